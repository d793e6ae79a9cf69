import type { StoredEvent } from "@payhooks/core";
import { expect, it } from "vitest";
import type { InboxConfig } from "./child-config.ts";
import { testEvent } from "./events.ts";
import { openInbox } from "./inbox.ts";
import { balanceOf, createLedger } from "./ledger.ts";
import { ProcessUnderTest } from "./processes.ts";
import { isLong } from "./report.ts";
import { newSeed, type Scope, until, withScope } from "./scope.ts";
import { Sender } from "./sender.ts";
import { keys, System } from "./system.ts";

/** The inbox and its processes. */
export interface AgainFixture {
  readonly name: string;
  inboxAt(scope: Scope): Promise<InboxConfig>;
  /** An empty database for the merchant's ledger. Without one, the books are what each effectId says once. */
  ledgerAt?(scope: Scope): Promise<string>;
}

/** How many events have finished before the bulk begins; half as many come meanwhile. */
const FINISHED = isLong ? 10_000 : 300;
const PER_SECOND = isLong ? 500 : 150;
const WITHIN_MS = isLong ? 1_200_000 : 90_000;

/** A bulk replay whose process is killed in the middle, and that another one goes on with, while new events come. */
export function runsAgain({ name, inboxAt, ledgerAt }: AgainFixture): void {
  const title = `${FINISHED} finished events on ${name} run exactly once more, though the process that replays them is killed in the middle and new ones come`;
  it(title, { timeout: 2 * WITHIN_MS }, () =>
    withScope(async (scope) => {
      const system = System.create(scope, await inboxAt(scope), newSeed("a bulk replay"));
      const ledger = await ledgerAt?.(scope);
      if (ledger !== undefined) await createLedger(ledger);
      const config = await system.config({
        keeps: true,
        handlerMs: 2,
        ...(ledger === undefined ? {} : { ledger: { url: ledger, isExactlyOnce: true } }),
      });
      const sender = scope.add(new Sender({ ports: [config.port] }), (one) => one.close());
      const amounts = new Map<string, string>();
      const send = async (count: number): Promise<void> => {
        let left = count;
        const next = () => {
          if (left-- <= 0) return null;
          const amount = `${1 + (left % 90)}.${10 + (left % 89)}`;
          const event = testEvent(keys.privateKey, { amount });
          amounts.set(event.payTxnId, amount);
          return event;
        };
        await sender.run(next, { perSecond: isLong ? 1_000 : Number.POSITIVE_INFINITY, withinMs: WITHIN_MS });
      };

      const first = await ProcessUnderTest.start(scope, config);
      await send(FINISHED);
      await atRest(system.inbox);
      await first.terminate();
      const before = new Set(amounts.keys());
      expect(before.size).toBe(FINISHED);

      const bulk = { name: "bug-17", until: Date.now() + 1, perSecond: PER_SECOND };
      const second = await ProcessUnderTest.start(scope, { ...config, bulk });
      const sending = send(FINISHED / 2);
      const replayed = () => system.lines("replays").filter(({ detail }) => detail === "decided").length;
      await until("half of them are replayed", () => replayed() >= FINISHED / 2, { withinMs: WITHIN_MS });
      await second.kill();
      const done = replayed();
      expect(done).toBeLessThan(FINISHED);
      await ProcessUnderTest.start(scope, { ...config, bulk });
      const [end] = await until(
        "the bulk ends",
        () => {
          const ends = system.lines("replayed");
          return ends.length > 0 ? ends : null;
        },
        { withinMs: WITHIN_MS, everyMs: 100 },
      );
      await sending;
      await atRest(system.inbox);

      // The first process may have died before it told of its last decision: one event at most. Some of these wait or run.
      const [decided, known] = [Number(end?.detail), Number(end?.more)];
      expect([FINISHED - done, FINISHED - done - 1]).toContain(decided);
      expect(known).toBeLessThanOrEqual(FINISHED - decided);
      const events = await finished(system.inbox);
      expect(events).toHaveLength(FINISHED + FINISHED / 2);
      for (const { id, state, replays } of events) {
        expect({ id, state, replays }).toEqual({ id, state: "done", replays: before.has(id) ? 1 : 0 });
      }

      // Only a run that died with its process may be there once more, and it is told.
      const risked = new Set(
        system.lines("notice").flatMap(({ key, detail }) => (detail === "double-risk" ? [key] : [])),
      );
      const runs = new Map<string, string[]>();
      for (const { key, detail } of system.lines("completed")) {
        runs.set(key, [...(runs.get(key) ?? []), detail]);
      }
      expect(runs.size).toBe(events.length);
      let sum = 0n;
      for (const [key, effectIds] of runs) {
        const id = key.split(" ")[0] ?? "";
        const times = before.has(id) ? 2 : 1;
        if (!risked.has(key)) expect({ key, times: effectIds.length }).toEqual({ key, times });
        expect(effectIds.length).toBeGreaterThanOrEqual(times);
        sum += BigInt(new Set(effectIds).size) * cents(amounts.get(id));
      }
      expect(sum).toBe([...amounts.values()].reduce((all, amount) => all + cents(amount), 0n));
      if (ledger === undefined) return;
      const bookings = [...amounts].map(([payTxnId, amount]) => ({ payTxnId, amount }));
      const balance = await balanceOf(ledger, bookings);
      expect(balance).toMatchObject({ lost: [], doubles: [], sum: balance.expected });
    }),
  );
}

function cents(amount = ""): bigint {
  return BigInt(amount.replace(".", ""));
}

/** Waits until nothing waits or runs any more. */
async function atRest(config: InboxConfig): Promise<void> {
  const inbox = openInbox(config);
  try {
    await until(
      "everything has run",
      async () => {
        const { waiting, retrying, running } = await inbox.events.counts();
        return waiting + retrying + running === 0;
      },
      { withinMs: WITHIN_MS, everyMs: 200 },
    );
  } finally {
    await inbox.close({ graceMs: 0 });
  }
}

/** Every finished event, on each inbox: what a replay of them would be about. */
async function finished(config: InboxConfig): Promise<readonly StoredEvent[]> {
  const inbox = openInbox(config);
  const events: StoredEvent[] = [];
  try {
    await inbox.events.replay(
      { state: "finished" },
      {
        by: "the test",
        note: "",
        dryRun: true,
        progress: ({ event }) => void (event !== null && events.push(event)),
      },
    );
  } finally {
    await inbox.close({ graceMs: 0 });
  }
  return events;
}
