/** Writes that are recognised as one's own, sent again, refused, or grouped with others. */
import type { RecordStore, Swap, SwapResult, VersionedRecord } from "@payhooks/core/inbox";
import { expect } from "vitest";
import { type ContractCase, newGate, onFreshData, withOverrides } from "./inbox-processes.ts";
import { depositOf, merchantOn, noticed } from "./merchant-receiver.ts";
import { newId, sampleEvent, sampleRunner, workAll } from "./sample-events.ts";
import { does } from "./write-names.ts";

const unavailable = { code: "ERR_INBOX_UNAVAILABLE" };

/** The writes of an event that is accepted and begun at once, fails, is tried again, and is done. */
const WRITES = ["accept", "begin", "started", "done", "finish retry", "finish done"] as const;

/** Changes what the store answers to a swap. */
function withSwap(
  change: (items: readonly Swap[], store: RecordStore) => ReturnType<RecordStore["swap"]>,
): (store: RecordStore) => RecordStore {
  return (store) => withOverrides<RecordStore>(store, { swap: (items) => change(items, store) });
}

/** Makes the records of some keys unreadable, as those of a newer version are. */
function unreadable(isSo: (key: string) => boolean): (store: RecordStore) => RecordStore {
  const record = { unreadable: 'its format is "2"' };
  const seen = <T extends VersionedRecord | null>(key: string, found: T): T =>
    found !== null && isSo(key) ? { ...found, record } : found;
  return (store) =>
    withOverrides<RecordStore>(store, {
      read: async (keys) => (await store.read(keys)).map((found, at) => seen(keys[at] ?? "", found)),
      swap: async (items) =>
        (await store.swap(items)).map(
          (result, at): SwapResult =>
            result.kind === "conflict"
              ? { kind: "conflict", current: seen(items[at]?.key ?? "", result.current) }
              : result,
        ),
      async takeDue(limit, hideMs) {
        const due = await store.takeDue(limit, hideMs);
        return { ...due, records: due.records.map((one) => seen(one.key, one)) };
      },
    });
}

export const writeCases: readonly ContractCase[] = [
  onFreshData(
    "an accept whose answer is lost, and that begins no run, is repeated without being counted as a copy",
    async (rig) => {
      let lost = 0;
      const process = rig.start((moment, call) =>
        moment === "after" && does(call, "accept") && lost++ === 0 ? "lose" : undefined,
      );
      const merchant = merchantOn(process, (receiver) => receiver.onDeposit(() => {}));
      await rig.until(merchant.deliver(depositOf(rig, { payTxnId: "tx-lost" })));
      expect(lost).toBe(1);
      expect(await noticed(merchant, "accepted")).toHaveLength(1);
      expect(await noticed(merchant, "duplicate")).toEqual([]);
    },
  ),
  ...(["nobody else", "another process"] as const).flatMap((who) =>
    WRITES.map((write) =>
      onFreshData(
        `the answer to the write "${write}" is lost, and ${who} writes in between: it was made, so nothing is lost or repeated, and there is no risk`,
        async (rig) => {
          let lost = 0;
          const fields = depositOf(rig, { payTxnId: "tx-lost" });
          const attempts: string[] = [];
          const other = merchantOn(rig.start(), (receiver) => receiver.onDeposit(() => {}));
          let delivered: Promise<unknown> = Promise.resolve();
          const process = rig.start((moment, call) => {
            if (moment !== "after" || !does(call, write) || lost > 0) return undefined;
            lost++;
            if (who === "another process") {
              const late = new Date(rig.now() + 1_000).toISOString();
              delivered = other.deliver({ ...fields, timestamp: late });
            }
            return "lose";
          });
          const merchant = merchantOn(
            process,
            (receiver) =>
              receiver
                .onDeposit((_, { attempt }) => void attempts.push(`a${attempt}`), { name: "a" })
                .onDeposit(
                  (_, { attempt }) => {
                    attempts.push(`b${attempt}`);
                    if (attempt === 1) throw new Error("not yet");
                  },
                  { name: "b", backoffMs: () => 1 },
                ),
            { run: "background" },
          );
          await merchant.receiver.start();
          const eventId = await rig.until(merchant.deliver(fields));
          await rig.until(
            (async () => {
              while ((await merchant.storedEvent(eventId))?.state !== "done") {
                await new Promise((resolve) => setImmediate(resolve));
              }
            })(),
          );
          await rig.until(delivered);
          await rig.until(merchant.receiver.close());
          expect(lost).toBe(1);
          expect(attempts).toEqual(["a1", "b1", "b2"]);
          expect(await noticed(merchant, "double-risk")).toEqual([]);
        },
      ),
    ),
  ),
  ...(["nobody else", "another process"] as const).flatMap((who) =>
    (["another event of the transaction", "the same event again"] as const).map((what) =>
      onFreshData(
        `the answer to the write that begins ${what} after the end of a run is lost, and ${who} writes in between: both are known`,
        async (rig) => {
          let lost = 0;
          const id = newId();
          const other = rig.start();
          const process = rig.start((moment, call) => {
            if (moment !== "after" || call !== "begin" || lost++ > 0) return undefined;
            if (who === "another process") {
              void other.inbox.accept(sampleEvent(id, rig.now(), { signedAt: rig.now() + 1_000 }));
            }
            return "lose";
          });
          const free = newGate();
          const runner = sampleRunner(async (run) => {
            run.noteCall();
            if (runner.ran.length > 1) return { kind: "done" };
            await free.passed;
            return what === "the same event again" ? { kind: "retry", delayMs: 0 } : { kind: "done" };
          });
          const running = await process.inbox.run(runner, { concurrency: 4 });
          await rig.advance(1);
          const isSame = what === "the same event again";
          const [first, success] = [isSame ? "SUCCESS" : "PENDING", sampleEvent(id, rig.now())];
          await process.inbox.accept(sampleEvent(id, rig.now(), { status: first }));
          await rig.advance(rig.leaseMs / 10);
          await process.inbox.accept(success);
          await rig.advance(rig.leaseMs / 10);
          free.open();
          await rig.advance(rig.leaseMs / 4);
          // A look begins the second run, and a slow database takes its time for it.
          for (let n = 0; n < 40 && runner.ran.length < 2; n++) await rig.advance(rig.leaseMs / 40);
          expect(lost).toBeGreaterThanOrEqual(1);
          expect(runner.ran).toEqual([first, "SUCCESS"]);
          await rig.until(running.stop());
          expect((await other.inbox.events.get(success.key + success.slot))?.state).toBe("done");
          expect(runner.notices.filter(({ type }) => type === "double-risk")).toEqual([]);
        },
      ),
    ),
  ),
  onFreshData(
    "a write whose outcome is unknown is sent again unchanged, until its outcome is known",
    async (rig) => {
      const sent: Swap[] = [];
      const { inbox } = rig.start(undefined, {
        store: withSwap((items, store) => {
          sent.push(...items);
          if (sent.length > 3) return store.swap(items);
          return items.map((): SwapResult => ({ kind: "unknown", cause: new Error("no answer") }));
        }),
      });
      const event = sampleEvent(newId(), rig.now());
      expect(await rig.until(inbox.accept(event, { deadlineMs: rig.leaseMs * 2 }))).toMatchObject({
        outcome: "new",
      });
      expect(sent).toHaveLength(4);
      for (const item of sent) expect(item).toBe(sent[0]);
    },
  ),
  onFreshData(
    "a write that was made by a connection that broke off, and lands late, changes nothing any more",
    async (rig) => {
      const late: Swap[] = [];
      let isCut = true;
      const process = rig.start(undefined, {
        store: withSwap((items, store) => {
          if (!isCut) return store.swap(items);
          late.push(...items);
          return items.map((): SwapResult => ({ kind: "unknown", cause: new Error("no answer") }));
        }),
      });
      let landing: RecordStore["swap"] = () => [];
      const other = rig.start(undefined, {
        store: (store) => {
          landing = (items) => store.swap(items);
          return store;
        },
      });
      await other.inbox.ready();
      const event = sampleEvent(newId(), rig.now());
      const accepting = Promise.resolve(process.inbox.accept(event, { deadlineMs: rig.leaseMs }));
      await rig.advance(rig.leaseMs / 8);
      isCut = false;
      expect(await rig.until(accepting)).toMatchObject({ outcome: "new" });
      const runner = sampleRunner();
      await workAll(other.inbox, runner);
      for (const item of late) expect(await landing([item])).toMatchObject([{ kind: "conflict" }]);
      await workAll(other.inbox, runner);
      expect(runner.ran).toEqual(["SUCCESS"]);
      expect((await other.inbox.events.get(event.key + event.slot))?.state).toBe("done");
    },
  ),
  onFreshData("nothing is acknowledged while nobody knows whether it was written", async (rig) => {
    const { inbox } = rig.start((moment, call) =>
      moment === "before" && does(call, "accept") ? "lose" : undefined,
    );
    const event = sampleEvent(newId(), rig.now());
    const before = rig.now();
    const deadlineMs = rig.leaseMs / 2;
    await expect(rig.until(inbox.accept(event, { deadlineMs }))).rejects.toMatchObject(unavailable);
    expect(rig.now() - before).toBeGreaterThanOrEqual(deadlineMs);
    expect(await rig.start().inbox.accept(event)).toMatchObject({ outcome: "new" });
  }),
  onFreshData(
    "while the store writes nothing, an accept fails within its time, and leaves nothing",
    async (rig) => {
      const process = rig.start((moment, call) =>
        moment === "before" && does(call, "accept") ? "fail" : undefined,
      );
      const event = sampleEvent(newId(), rig.now());
      const accepting = process.inbox.accept(event, { deadlineMs: rig.leaseMs / 4 });
      await expect(rig.until(accepting)).rejects.toMatchObject(unavailable);
      const { inbox } = rig.start();
      expect(await inbox.events.get(event.key + event.slot)).toBeNull();
      expect(await inbox.accept(event)).toMatchObject({ outcome: "new" });
    },
  ),
  onFreshData(
    "one event that the store does not take fails none of the writes that are sent with it",
    async (rig) => {
      const events = Array.from({ length: 5 }, () => sampleEvent(newId(), rig.now()));
      const bad = events[2]?.key;
      const { inbox } = rig.start(undefined, {
        store: withSwap(async (items, store) => {
          const good = items.filter(({ key }) => key !== bad);
          const made = new Map<string, SwapResult>();
          const results = good.length === 0 ? [] : await store.swap(good);
          for (const [at, { key }] of good.entries()) made.set(key, results[at] as SwapResult);
          return items.map(
            ({ key }) => made.get(key) ?? { kind: "refused", cause: new Error("invalid data") },
          );
        }),
      });
      const answers = await Promise.allSettled(events.map((event) => inbox.accept(event)));
      expect(answers.map(({ status }) => status)).toEqual([
        "fulfilled",
        "fulfilled",
        "rejected",
        "fulfilled",
        "fulfilled",
      ]);
      expect(answers[2]).toMatchObject({ reason: unavailable });
      const runner = sampleRunner();
      await workAll(inbox, runner);
      expect(runner.ran).toHaveLength(4);
    },
  ),
  onFreshData("of changes of one record that are sent together, only the refused one fails", async (rig) => {
    const id = newId();
    const [pending, success, failed] = (["PENDING", "SUCCESS", "FAILED"] as const).map((status) =>
      sampleEvent(id, rig.now(), { status }),
    );
    if (pending === undefined || success === undefined || failed === undefined) return;
    const { inbox } = rig.start(undefined, {
      store: withSwap(async (items, store) => {
        // A turn later, so that what is asked for meanwhile makes up one write.
        await new Promise((resolve) => setImmediate(resolve));
        const isBad = items.some(({ record }) => record.slots[failed.slot] !== undefined);
        if (!isBad) return store.swap(items);
        return items.map((): SwapResult => ({ kind: "refused", cause: new Error("invalid data") }));
      }),
    });
    const answers = await Promise.allSettled(
      [pending, success, failed, success].map((event) => inbox.accept(event)),
    );
    expect(answers).toMatchObject([
      { value: { outcome: "new" } },
      { value: { outcome: "progress" } },
      { reason: unavailable },
      { value: { outcome: "duplicate" } },
    ]);
  }),
  onFreshData("a refused delivery fails only its own caller, whatever is sent with it", async (rig) => {
    const { inbox } = rig.start();
    const id = newId();
    const success = sampleEvent(id, rig.now());
    await inbox.accept(success);
    await inbox.accept(sampleEvent(newId(), rig.now(), { verdict: "malformed" }));
    const later = { ...success, signedAt: rig.now() + 1_000 };
    const answers = await Promise.allSettled([
      inbox.accept(later),
      // There is no room for what would be held.
      new Promise((resolve) =>
        resolve(inbox.accept(sampleEvent(id, rig.now(), { status: "FAILED" }), { maxHeld: 1 })),
      ),
      inbox.accept({ ...later, signedAt: later.signedAt + 1 }),
    ]);
    expect(answers).toMatchObject([
      { value: { outcome: "duplicate" } },
      { reason: { code: "ERR_HELD_FULL" } },
      { value: { outcome: "duplicate" } },
    ]);
  }),
  onFreshData(
    "a copy is a duplicate only by what the store says after it came, whatever this process remembers",
    async (rig) => {
      let isEmptied = false;
      const { inbox, calls } = rig.start(undefined, {
        store: (store) =>
          withOverrides<RecordStore>(store, {
            read: (keys) => (isEmptied ? keys.map(() => null) : store.read(keys)),
            swap: (items) =>
              isEmptied
                ? items.map(
                    ({ expected }): SwapResult =>
                      expected === null ? { kind: "written" } : { kind: "conflict", current: null },
                  )
                : store.swap(items),
          }),
      });
      const [begun, free] = [newGate(), newGate()];
      const event = sampleEvent(newId(), rig.now());
      await inbox.accept(event);
      const working = workAll(
        inbox,
        sampleRunner(async () => {
          begun.open();
          await free.passed;
          return { kind: "done" };
        }),
      );
      await begun.passed;
      const before = calls.length;
      expect(await inbox.accept(event)).toMatchObject({ outcome: "duplicate" });
      expect(calls.length).toBeGreaterThan(before);
      // The data are gone, as a copy of the machine from before brings them back: no copy may be waved through.
      isEmptied = true;
      expect(await inbox.accept(event)).toMatchObject({ outcome: "new" });
      isEmptied = false;
      free.open();
      await working;
    },
  ),
  onFreshData(
    "where replicas are to have it, every answer waits for them, a copy's too, and so does the handler",
    async (rig) => {
      const asked: string[] = [];
      let gate = newGate();
      const process = rig.start(undefined, {
        store: (store) =>
          withOverrides<RecordStore>(store, {
            async replicated(items) {
              asked.push(...items.map(({ key }) => key));
              await gate.passed;
            },
          }),
      });
      const runner = sampleRunner();
      const running = await process.inbox.run(runner, { concurrency: 2 });
      const event = sampleEvent(newId(), rig.now());
      for (const outcome of ["new", "duplicate"]) {
        gate = newGate();
        let isAnswered = false;
        const accepting = Promise.resolve(process.inbox.accept(event)).finally(() => {
          isAnswered = true;
        });
        await rig.advance(rig.leaseMs / 10);
        expect(isAnswered).toBe(false);
        expect(runner.ran).toHaveLength(outcome === "new" ? 0 : 1);
        gate.open();
        expect(await accepting).toMatchObject({ outcome });
        await rig.advance(rig.leaseMs / 10);
        expect(runner.ran).toEqual(["SUCCESS"]);
      }
      expect(asked).toEqual([event.key, event.key]);
      await running.stop();
    },
  ),
  onFreshData(
    "where replicas do not have it in time, it is not acknowledged, and runs all the same",
    async (rig) => {
      const process = rig.start(undefined, {
        store: (store) =>
          withOverrides<RecordStore>(store, {
            replicated: async () => {
              throw new Error("not enough replicas");
            },
          }),
      });
      const runner = sampleRunner();
      const running = await process.inbox.run(runner, { concurrency: 1 });
      const event = sampleEvent(newId(), rig.now());
      for (let copy = 0; copy < 2; copy++) {
        await expect((async () => process.inbox.accept(event))()).rejects.toMatchObject(unavailable);
      }
      await rig.advance(rig.leaseMs / 2);
      await running.stop();
      expect(runner.ran).toEqual(["SUCCESS"]);
    },
  ),
  onFreshData(
    "a record of a newer version is left alone: its copies get an error, its work waits, others go on",
    async (rig) => {
      const [strange, known] = [sampleEvent(newId(), rig.now()), sampleEvent(newId(), rig.now())];
      const newer = rig.start();
      await newer.inbox.accept(strange);
      const older = rig.start(undefined, { store: unreadable((key) => key === strange.key) });
      await older.inbox.accept(known);
      await expect((async () => older.inbox.accept(strange))()).rejects.toMatchObject(unavailable);
      await expect(older.inbox.events.get(strange.key + strange.slot)).rejects.toMatchObject(unavailable);
      const runner = sampleRunner();
      await workAll(older.inbox, runner);
      expect(runner.ran).toEqual(["SUCCESS"]);
      expect(runner.notices.filter(({ type }) => type === "inbox-error").length).toBeLessThanOrEqual(1);
      // It was hidden by that look for a while, and then is there for whoever can read it.
      await rig.advance(rig.leaseMs * 1.25);
      const successor = sampleRunner();
      await workAll(newer.inbox, successor);
      expect(successor.ran).toEqual(["SUCCESS"]);
    },
  ),
];
