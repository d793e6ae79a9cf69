/** Ledgers that balance: handlers book in a merchant's database with `ctx.transaction`, while everything dies that can. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { InboxConfig } from "./child-config.ts";
import { newSqliteInbox } from "./inbox.ts";
import { createLedger } from "./ledger.ts";
import { expectBalanced, type Play, play } from "./ledger-play.ts";
import { ProcessUnderTest } from "./processes.ts";
import { RedisServer } from "./redis-server.ts";
import { lengthOf } from "./report.ts";
import { newSeed, pause, Scope, until, withScope } from "./scope.ts";
import { LEASE_MS } from "./system.ts";

/** A server that ledgers are in. */
export interface LedgerServer {
  /** Makes an empty database; its address. */
  create(name: string): Promise<string>;
  kill(): Promise<void>;
  /** Starts it again on what it has kept. */
  up(): Promise<void>;
}

/** The parts of a database that the cases need. */
export interface LedgerCases {
  readonly database: string;
  readonly start: (scope: Scope) => Promise<LedgerServer>;
  /** An inbox in a database of this kind, as a shop with one server has it. */
  readonly inboxAt: (url: string) => InboxConfig;
  /** How often a process is killed in the short form. */
  readonly kills: number;
}

export function ledgerCases({ database, start, inboxAt, kills: shortKills }: LedgerCases): void {
  const ofServer = new Scope();
  let server: LedgerServer;
  let ledgers = 0;

  beforeAll(async () => {
    server = await start(ofServer);
  });
  afterAll(() => ofServer.close());

  const inboxes: readonly {
    readonly inbox: string;
    readonly at: (scope: Scope, ledger: string) => Promise<InboxConfig>;
  }[] = [
    {
      inbox: "Redis",
      at: async (scope) => ({ kind: "redis", target: (await RedisServer.start(scope)).url }),
    },
    { inbox: "SQLite", at: async (scope) => newSqliteInbox(scope) },
    { inbox: `the same ${database}`, at: async (_, ledger) => inboxAt(ledger) },
  ];
  const [, ...thatOutlive] = inboxes;

  /** A ledger of a test's own, and an inbox. */
  async function given(scope: Scope, { at }: (typeof inboxes)[number]): Promise<Pick<Play, "url" | "inbox">> {
    const url = await server.create(`ledger_${++ledgers}`);
    await createLedger(url);
    return { url, inbox: await at(scope, url) };
  }

  const times = lengthOf(shortKills, 1_000);

  describe.each(inboxes)(`a ledger in ${database} that balances, events in $inbox`, (place) => {
    const name = (what: string): string => `${place.inbox}: ledger in ${database}, ${what}`;

    it(`after ${times} kills`, { timeout: 200_000 + times * 8_000 }, () =>
      withScope(async (scope) => {
        const seed = newSeed(name("kills"));
        expectBalanced(
          await play(scope, {
            name: name(`kill -9 × ${times}`),
            ...(await given(scope, place)),
            seed,
            faults: kills(times),
          }),
        );
      }),
    );

    it("with processes that freeze for longer than their lease, and come back", { timeout: 240_000 }, () =>
      withScope(async (scope) => {
        const seed = newSeed(name("frozen"));
        const freezes = lengthOf(4, 50);
        expectBalanced(
          await play(scope, {
            name: name(`frozen × ${freezes}`),
            ...(await given(scope, place)),
            seed,
            ports: 2,
            async faults({ scope: stage, configs, sender, random }) {
              const both = await Promise.all(configs.map((config) => ProcessUnderTest.start(stage, config)));
              for (let freeze = 0; freeze < freezes; freeze++) {
                const one = both[freeze % both.length];
                const enough = sender.acknowledged.size + 20;
                await until("they acknowledge", () => sender.acknowledged.size >= enough);
                await pause(random() * 100);
                one?.freeze();
                await pause(LEASE_MS * (2 + random()));
                one?.thaw();
              }
              await Promise.all(both.map((one) => one.terminate()));
            },
          }),
        );
      }),
    );

    it("with handlers that outlive their timeout", { timeout: 240_000 }, () =>
      withScope(async (scope) => {
        const seed = newSeed(name("hung"));
        expectBalanced(
          await play(scope, {
            name: name("hung handlers"),
            ...(await given(scope, place)),
            seed,
            hangs: 0.1,
            overrides: { timeoutMs: 1_000 },
            async faults({ scope: stage, configs: [config], sender }) {
              if (config === undefined) return;
              const one = await ProcessUnderTest.start(stage, config);
              await until("enough is acknowledged", () => sender.acknowledged.size >= 200, {
                withinMs: 60_000,
              });
              await one.terminate();
            },
          }),
        );
      }),
    );
  });

  describe(`a ledger in ${database} that balances`, () => {
    it.each(thatOutlive)(
      `with ${database} itself killed and started again, events in $inbox`,
      { timeout: 240_000 },
      (place) =>
        withScope(async (scope) => {
          const seed = newSeed(`${place.inbox}: ledger, ${database} killed`);
          const crashes = lengthOf(3, 30);
          expectBalanced(
            await play(scope, {
              name: `${place.inbox}: ledger, ${database} killed × ${crashes}`,
              ...(await given(scope, place)),
              seed,
              async faults({ scope: stage, configs: [config], sender, random }) {
                if (config === undefined) return;
                const one = await ProcessUnderTest.start(stage, config);
                for (let crash = 0; crash < crashes; crash++) {
                  const enough = sender.acknowledged.size + 30;
                  await until("the process acknowledges", () => sender.acknowledged.size >= enough);
                  await pause(random() * 100);
                  await server.kill();
                  await pause(300);
                  await server.up();
                }
                await one.terminate();
              },
            }),
          );
        }),
    );

    it("control: without ctx.transaction the same kills book twice", { timeout: 240_000 }, () =>
      withScope(async (scope) => {
        const seed = newSeed(`ledger in ${database}, control`);
        const { doubles, sum, expected } = await play(scope, {
          name: `control: ledger in ${database} without ctx.transaction`,
          ...(await given(scope, { inbox: "SQLite", at: async () => newSqliteInbox(scope) })),
          seed,
          isExactlyOnce: false,
          faults: kills(8),
        });
        expect(doubles.length).toBeGreaterThan(0);
        expect(sum).not.toBe(expected);
      }),
    );
  });
}

/** Kills a process again and again, each time somewhere in its work. */
function kills(times: number): Play["faults"] {
  return async ({ scope, configs: [config], sender, random }) => {
    if (config === undefined) return;
    for (let kill = 0; kill < times; kill++) {
      const one = await ProcessUnderTest.start(scope, config);
      const enough = sender.acknowledged.size + 10;
      await until("the process acknowledges", () => sender.acknowledged.size >= enough);
      await pause(random() * 150);
      await one.kill();
    }
  };
}
