/** A ledger that balances: handlers book in PostgreSQL with `ctx.transaction`, while everything dies that can. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ChildConfig, InboxConfig } from "./harness/child-config.ts";
import { type TestEvent, testEvent } from "./harness/events.ts";
import { newSqliteInbox } from "./harness/inbox.ts";
import { type Balance, type Booking, balanceOf, LEDGER_SCHEMA } from "./harness/ledger.ts";
import { PostgresServer } from "./harness/postgres-server.ts";
import { ProcessUnderTest } from "./harness/processes.ts";
import { RedisServer } from "./harness/redis-server.ts";
import { lengthOf, report } from "./harness/report.ts";
import { newSeed, pause, Scope, seededRandom, until, withScope } from "./harness/scope.ts";
import { Sender } from "./harness/sender.ts";
import { keys, LEASE_MS, System } from "./harness/system.ts";

const postgresScope = new Scope();
let postgres: PostgresServer;
let databases = 0;

beforeAll(async () => {
  postgres = await PostgresServer.start(postgresScope);
});
afterAll(() => postgresScope.close());

/** A database of a test's own. */
async function newLedger(): Promise<string> {
  const name = `ledger_${++databases}`;
  const { default: pg } = await import("pg");
  const run = async (url: string, sql: string): Promise<void> => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(sql);
    await client.end();
  };
  await run(postgres.url, `CREATE DATABASE ${name}`);
  const url = postgres.url.replace(/\/postgres$/, `/${name}`);
  await run(url, LEDGER_SCHEMA);
  return url;
}

/** Deposits and withdrawals: each PENDING and SUCCESS, in any order, and copies of them. */
class Traffic {
  /** By the key of the event that books. */
  readonly bookings = new Map<string, Booking>();
  readonly events = new Map<string, TestEvent>();
  readonly #random: () => number;
  readonly #hangs: number;
  readonly #waiting: TestEvent[] = [];

  constructor(seed: number, hangs: number) {
    this.#random = seededRandom(seed);
    this.#hangs = hangs;
  }

  /** Any of those that wait: an event comes some time before or after its neighbours. */
  next(): TestEvent {
    while (this.#waiting.length < 12) this.#add();
    const at = Math.floor(this.#random() * this.#waiting.length);
    const [event] = this.#waiting.splice(at, 1);
    return event ?? this.next();
  }

  #add(): void {
    const isDeposit = this.#random() < 0.6;
    const amount = (1 + this.#random() * 1_000).toFixed(2);
    const manner = this.#random() < this.#hangs ? ("hangs" as const) : ("calm" as const);
    const event = isDeposit ? ("DEPOSIT" as const) : ("WITHDRAWAL" as const);
    const success = testEvent(keys.privateKey, { event, amount, manner });
    const { payTxnId } = success;
    const pending = testEvent(keys.privateKey, { event, amount, manner, status: "PENDING", payTxnId });
    this.bookings.set(success.key, { payTxnId, amount: isDeposit ? amount : `-${amount}` });
    for (const one of [success, pending]) this.events.set(one.key, one);
    this.#waiting.push(pending, success, success);
    if (this.#random() < 0.2) this.#waiting.push(success, pending);
  }
}

/** What is played: the ledger's processes, and what is done to them while deliveries arrive. */
interface Play {
  readonly name: string;
  /** Null: in the database of the ledger, as a shop with one server has it. */
  readonly inbox: InboxConfig | null;
  readonly seed: number;
  readonly overrides?: Partial<ChildConfig>;
  readonly ports?: number;
  readonly hangs?: number;
  readonly isExactlyOnce?: boolean;
  readonly faults: (stage: Stage) => Promise<void>;
}

interface Stage {
  readonly scope: Scope;
  readonly configs: readonly ChildConfig[];
  readonly sender: Sender;
  readonly random: () => number;
}

async function play(
  scope: Scope,
  { name, inbox, seed, overrides = {}, ports = 1, hangs = 0, isExactlyOnce = true, faults }: Play,
): Promise<Balance> {
  const url = await newLedger();
  const system = System.create(scope, inbox ?? { kind: "postgres", target: url }, seed);
  const configs: ChildConfig[] = [];
  for (let at = 0; at < ports; at++) {
    configs.push(await system.config({ handlerMs: 60, ledger: { url, isExactlyOnce }, ...overrides }));
  }
  const sender = scope.add(new Sender({ ports: configs.map(({ port }) => port) }), (one) => one.close());
  const traffic = new Traffic(seed, hangs);
  let over = false;
  const sending = sender.run(() => traffic.next(), {
    isOver: () => over,
    perSecond: 60,
    withinMs: Number.POSITIVE_INFINITY,
  });
  scope.add(null, () => {
    over = true;
    return sending;
  });
  await faults({ scope, configs, sender, random: seededRandom(seed + 1) });
  over = true;
  await sending;
  const [last] = configs;
  if (last === undefined) throw new Error("there is no process");
  await ProcessUnderTest.start(scope, last);
  // What a process died on before it answered may be booked: the service sends it until it is acknowledged.
  const sent = [...traffic.events.values()].filter(
    ({ key }) => traffic.bookings.has(key) && !sender.acknowledged.has(key),
  );
  for (const event of sent)
    await until("it is acknowledged", async () => (await sender.attempt(event, last.port)).status === 200);
  const acknowledged = new Map([...sender.acknowledged].filter(([key]) => traffic.bookings.has(key)));
  const verdict = await system.judge({ acknowledged }, { withinMs: 300_000 });
  const balance = await balanceOf(url, [...traffic.bookings.values()]);
  report(
    name,
    { ...verdict, lost: balance.lost, doubles: balance.doubles },
    sender,
    `ledger ${balance.sum}, expected ${balance.expected}; handlers that ran twice: ${verdict.doubles.length}`,
  );
  expect(verdict.lost).toEqual([]);
  expect(verdict.held).toBe(0);
  expect(acknowledged.size).toBe(traffic.bookings.size);
  return balance;
}

function expectBalanced({ lost, doubles, sum, expected }: Balance): void {
  expect({ lost, doubles }).toEqual({ lost: [], doubles: [] });
  expect(sum).toBe(expected);
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

const inboxes: readonly {
  readonly name: string;
  readonly at: (scope: Scope) => Promise<InboxConfig | null>;
}[] = [
  { name: "Redis", at: async (scope) => ({ kind: "redis", target: (await RedisServer.start(scope)).url }) },
  { name: "SQLite", at: async (scope) => newSqliteInbox(scope) },
  { name: "the same PostgreSQL", at: async () => null },
];

const times = lengthOf(20, 1_000);

describe.each(inboxes)("a ledger that balances, events in $name", ({ name, at }) => {
  it(`after ${times} kills`, { timeout: 200_000 + times * 8_000 }, () =>
    withScope(async (scope) => {
      const seed = newSeed(`ledger, kills, ${name}`);
      const label = `${name}: ledger, kill -9 × ${times}`;
      expectBalanced(await play(scope, { name: label, inbox: await at(scope), seed, faults: kills(times) }));
    }),
  );

  it("with processes that freeze for longer than their lease, and come back", { timeout: 240_000 }, () =>
    withScope(async (scope) => {
      const seed = newSeed(`ledger, frozen, ${name}`);
      const freezes = lengthOf(4, 50);
      expectBalanced(
        await play(scope, {
          name: `${name}: ledger, frozen × ${freezes}`,
          inbox: await at(scope),
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
      const seed = newSeed(`ledger, hung, ${name}`);
      expectBalanced(
        await play(scope, {
          name: `${name}: ledger, hung handlers`,
          inbox: await at(scope),
          seed,
          hangs: 0.1,
          overrides: { timeoutMs: 1_000 },
          async faults({ scope: stage, configs: [config], sender }) {
            if (config === undefined) return;
            const one = await ProcessUnderTest.start(stage, config);
            await until("enough is acknowledged", () => sender.acknowledged.size >= 200);
            await one.terminate();
          },
        }),
      );
    }),
  );
});

describe("a ledger that balances", () => {
  it.each([
    ["SQLite", (scope: Scope) => newSqliteInbox(scope)],
    ["the same PostgreSQL", () => null],
  ] as const)(
    "with PostgreSQL itself killed and started again, events in %s",
    { timeout: 240_000 },
    (name, at) =>
      withScope(async (scope) => {
        const seed = newSeed(`ledger, PostgreSQL killed, ${name}`);
        const crashes = lengthOf(3, 30);
        expectBalanced(
          await play(scope, {
            name: `${name}: ledger, PostgreSQL killed × ${crashes}`,
            inbox: at(scope),
            seed,
            async faults({ scope: stage, configs: [config], sender, random }) {
              if (config === undefined) return;
              const one = await ProcessUnderTest.start(stage, config);
              for (let crash = 0; crash < crashes; crash++) {
                const enough = sender.acknowledged.size + 30;
                await until("the process acknowledges", () => sender.acknowledged.size >= enough);
                await pause(random() * 100);
                await postgres.kill();
                await pause(300);
                await postgres.up();
              }
              await one.terminate();
            },
          }),
        );
      }),
  );

  it("control: without ctx.transaction the same kills book twice", { timeout: 240_000 }, () =>
    withScope(async (scope) => {
      const seed = newSeed("ledger, control");
      const { doubles, sum, expected } = await play(scope, {
        name: "control: ledger without ctx.transaction",
        inbox: newSqliteInbox(scope),
        seed,
        isExactlyOnce: false,
        faults: kills(8),
      });
      expect(doubles.length).toBeGreaterThan(0);
      expect(sum).not.toBe(expected);
    }),
  );
});
