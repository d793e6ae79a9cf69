/** A move that is interrupted, while the old inbox goes on to work: nothing is lost, runs twice, or comes back. */
import { createHash } from "node:crypto";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { removeFolder } from "../../../../test/support/remove-folder.ts";
import type { RecordStore } from "../../src/inbox/contract/store.ts";
import { moveRecords } from "../../src/inbox/move.ts";
import { copyRecord, encodeRecord, isUnreadable } from "../../src/inbox/record/codec.ts";
import { replay, retryNow } from "../../src/inbox/record/decisions.ts";
import { erase } from "../../src/inbox/record/erase.ts";
import type { IdempotencyRecord } from "../../src/inbox/record/record.ts";
import { closeClaim } from "../../src/inbox/record/reference-claim.ts";
import type { RunOutcome } from "../../src/inbox/record/run-outcome.ts";
import { findNextSlot } from "../../src/inbox/record/schedule.ts";
import { releaseSubject, takeSubject } from "../../src/inbox/record/subject.ts";
import { aesGcm } from "../../src/seal/index.ts";
import { sqliteStore } from "../../src/sqlite/index.ts";
import {
  acceptedRecord,
  begunRecord,
  DAY_MS,
  decidedRecord,
  endedRecord,
  HOUR_MS,
  keyOf,
  referenceRecord,
} from "../../src/testing/store/records.ts";
import { put, readOne } from "../../src/testing/store/writes.ts";

const folder = mkdtempSync(join(tmpdir(), "payhooks-move-"));
afterAll(() => removeFolder(folder));

const sealedWith = (id: string) => aesGcm([{ id, key: createHash("sha256").update(id).digest() }]);
const seal = sealedWith("one");
const BY = { by: "an operator", note: "looked into it" };
let files = 0;

interface Two {
  readonly old: RecordStore;
  readonly target: RecordStore;
}

type Act = (record: IdempotencyRecord, now: number) => IdempotencyRecord;

/** Runs a case with two open stores. */
async function withStores(
  isSealed: Readonly<Record<keyof Two, boolean>>,
  play: (stores: Two) => Promise<void>,
): Promise<void> {
  const open = async (name: keyof Two): Promise<RecordStore> => {
    const store = sqliteStore(join(folder, `${++files}.db`));
    const sealed = isSealed[name] ? seal.wrap(store) : store;
    await sealed.open();
    return sealed;
  };
  const stores = { old: await open("old"), target: await open("target") };
  try {
    await play(stores);
  } finally {
    await stores.old.close();
    await stores.target.close();
  }
}

const PLAIN = { old: false, target: false };

/** The same store with another method. */
function through<Name extends "swap" | "scan">(
  store: RecordStore,
  name: Name,
  method: NonNullable<RecordStore[Name]>,
): RecordStore {
  return new Proxy(store, {
    get(target, asked) {
      if (asked === name) return method;
      const value: unknown = Reflect.get(target, asked, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/**
 * A move whose process dies at a write: behind so many of its items. False if it came to its end before. `meanwhile` is called before
 * the first record is taken out of the old store.
 */
async function killed(
  from: RecordStore,
  to: RecordStore,
  atWrite: number,
  behind: number,
  meanwhile: () => Promise<void> = async () => {},
): Promise<boolean> {
  let writes = 0;
  let waiting: typeof meanwhile | null = meanwhile;
  const dying = (store: RecordStore): RecordStore =>
    through(store, "swap", async (items) => {
      if (store === from) await waiting?.();
      if (store === from) waiting = null;
      const isLast = ++writes === atWrite;
      const results = await store.swap(isLast ? items.slice(0, behind) : items);
      if (isLast) throw new Error("killed");
      return results;
    });
  try {
    await moveRecords(dying(from), dying(to));
    return false;
  } catch (error) {
    const { message, code } = error as Error & { readonly code?: string };
    expect([message, code]).toContain(code === undefined ? "killed" : "ERR_INBOX_IN_USE");
    return true;
  }
}

/** Changes a record of a store, as a receiver or a person does. */
async function change(store: RecordStore, key: string, by: Act): Promise<void> {
  const found = await readOne(store, key);
  if (found === null || isUnreadable(found.record)) throw new Error("There is no such record.");
  const before = { key, version: found.version, record: found.record };
  await put(store, key, before, by(copyRecord(found.record), store.now(key)));
}

async function recordIn(store: RecordStore, key: string): Promise<IdempotencyRecord | null> {
  const found = await readOne(store, key);
  if (found === null) return null;
  if (isUnreadable(found.record)) throw new Error(found.record.unreadable);
  return found.record;
}

/** Erases every event of a record that has this status. */
function erased(key: string, now: number, record: IdempotencyRecord, status: string): IdempotencyRecord {
  const [slot = ""] = Object.entries(record.slots).find(([, one]) => one.status === status) ?? [];
  expect(erase(record, key + slot, true, now)).toBe("decided");
  return record;
}

describe("a move after a move that was killed between its two writes, to the new inbox and to the old one,", () => {
  const key = keyOf(1);

  /** Of a record in both stores, the old one is changed; then it is moved again. */
  async function movedAgain({ old, target }: Two, record: IdempotencyRecord, by: Act): Promise<void> {
    await put(old, key, null, record);
    expect(await killed(old, target, 2, 0)).toBe(true);
    expect(await recordIn(target, key)).not.toBeNull();
    await change(old, key, by);
    const truth = await recordIn(old, key);
    expect(await moveRecords(old, target)).toMatchObject({ notMoved: [], records: 1 });
    expect(await recordIn(target, key)).toEqual(truth);
    expect(await recordIn(old, key)).toBeNull();
  }

  const outcomes: readonly (readonly [string, RunOutcome])[] = [
    ["ran it", { kind: "done" }],
    ["tried it, and will try again", { kind: "retry", delayMs: HOUR_MS }],
    ["gave it up", { kind: "held", reason: "exhausted", detail: null, onHeld: [] }],
  ];
  it.each(outcomes)("brings the changes that the old receiver has made since: %s", (_, outcome) =>
    withStores(PLAIN, (stores) =>
      movedAgain(stores, acceptedRecord(key, stores.old.now(key)), (record, now) =>
        endedRecord(key, now, record, outcome),
      ),
    ),
  );

  it.each(["replay", "discard"] as const)(
    "brings the decision that a person has made since: %s",
    (decision) =>
      withStores(PLAIN, (stores) =>
        movedAgain(stores, acceptedRecord(key, stores.old.now(key), { held: "malformed" }), (record, now) =>
          decidedRecord(key, now, record, decision),
        ),
      ),
  );

  it("does not bring back a record, or one event of it, that was erased since", () =>
    withStores(PLAIN, async (stores) => {
      const done = endedRecord(key, stores.old.now(key), acceptedRecord(key, stores.old.now(key)));
      await movedAgain(stores, done, (record, now) => erased(key, now, record, "SUCCESS"));
      expect(JSON.stringify(await stores.target.list({}, null, 10))).not.toContain("o-1");
    }).then(() =>
      withStores({ old: true, target: true }, async (stores) => {
        const now = stores.old.now(key);
        const both = acceptedRecord(key, now, {}, acceptedRecord(key, now, { status: "PENDING" }));
        await movedAgain(stores, both, (record, at) => erased(key, at, record, "PENDING"));
      }),
    ));

  it("keeps the copy that knows a later copy of a finished event, and so lives longer", () =>
    withStores(PLAIN, async (stores) => {
      const now = stores.old.now(key);
      const done = endedRecord(key, now, acceptedRecord(key, now));
      await movedAgain(stores, done, (record) => ({
        ...record,
        signedAt: record.signedAt + HOUR_MS,
        expiresAt: record.expiresAt + HOUR_MS,
      }));
    }));
});

describe("a move to an inbox that knows the same transaction", () => {
  const key = keyOf(1);
  const retry: RunOutcome = { kind: "retry", delayMs: HOUR_MS };

  it.each<readonly [string, Act]>([
    ["has run it", (record, now) => endedRecord(key, now, record)],
    ["has tried it", (record, now) => endedRecord(key, now, record, retry)],
    ["has erased it", (record, now) => erased(key, now, record, "SUCCESS")],
  ])("leaves a record that both inboxes have changed since: the new one %s", (_, act) =>
    withStores(PLAIN, async ({ old, target }) => {
      await put(old, key, null, acceptedRecord(key, old.now(key)));
      await killed(old, target, 2, 0);
      await change(target, key, act);
      // A further event, which only the old one has.
      await change(old, key, (record, now) => acceptedRecord(key, now, { status: "FAILED" }, record));
      const before = [await recordIn(target, key), await recordIn(old, key)];
      expect((await moveRecords(old, target)).notMoved).toEqual([{ key, why: "conflict" }]);
      expect([await recordIn(target, key), await recordIn(old, key)]).toEqual(before);
    }),
  );

  it("leaves a record that both inboxes have accepted, each as an event of its own", () =>
    withStores(PLAIN, async ({ old, target }) => {
      const now = old.now(key);
      await put(target, key, null, acceptedRecord(key, now - 5));
      await put(old, key, null, endedRecord(key, now, acceptedRecord(key, now)));
      expect((await moveRecords(old, target)).notMoved).toEqual([{ key, why: "conflict" }]);
    }));

  it("leaves a record that a receiver of the new inbox is running, and brings it once that receiver has died", () =>
    withStores(PLAIN, async ({ old, target }) => {
      await put(old, key, null, acceptedRecord(key, old.now(key)));
      await killed(old, target, 2, 0);
      await change(old, key, (record, now) => endedRecord(key, now, record));
      await change(target, key, (record, now) => begunRecord(key, now, record, HOUR_MS));
      expect((await moveRecords(old, target)).notMoved).toEqual([{ key, why: "running" }]);
      await change(target, key, (record, now) => ({
        ...record,
        lease: record.lease && { ...record.lease, until: now },
      }));
      const truth = await recordIn(old, key);
      expect((await moveRecords(old, target)).notMoved).toEqual([]);
      expect(await recordIn(target, key)).toEqual(truth);
    }));

  it.each<readonly [string, Act]>([
    ["run", (record, now) => endedRecord(key, now, record)],
    ["tried", (record, now) => endedRecord(key, now, record, retry)],
    ["erased", (record, now) => erased(key, now, record, "SUCCESS")],
  ])("removes a record from the old inbox that only the new one has %s", (_, act) =>
    withStores(PLAIN, async ({ old, target }) => {
      await put(old, key, null, acceptedRecord(key, old.now(key)));
      await killed(old, target, 2, 0);
      await change(target, key, act);
      const truth = await recordIn(target, key);
      expect(await moveRecords(old, target)).toMatchObject({ notMoved: [], records: 1, alreadyPresent: 1 });
      expect([await recordIn(target, key), await recordIn(old, key)]).toEqual([truth, null]);
    }),
  );

  it("leaves a record that it cannot read in the new inbox", () =>
    withStores(PLAIN, async ({ old, target }) => {
      await put(old, key, null, acceptedRecord(key, old.now(key)));
      await killed(old, seal.wrap(target), 2, 0);
      const notMoved = [{ key, why: "unreadable-there" }];
      expect((await moveRecords(old, sealedWith("two").wrap(target))).notMoved).toEqual(notMoved);
      await change(old, key, (record, now) => endedRecord(key, now, record));
      expect((await moveRecords(old, sealedWith("two").wrap(target))).notMoved).toEqual(notMoved);
      expect((await moveRecords(old, seal.wrap(target))).notMoved).toEqual([]);
    }));

  it("stops when a receiver begins to run an event while the move goes on", () =>
    withStores(PLAIN, async ({ old, target }) => {
      await put(old, key, null, acceptedRecord(key, old.now(key)));
      let scans = 0;
      const working = through(old, "scan", async (cursor, limit) => {
        if (++scans === 2) await change(old, key, (record, now) => begunRecord(key, now, record, HOUR_MS));
        return (await old.scan?.(cursor, limit)) ?? { records: [], next: null };
      });
      await expect(moveRecords(working, target)).rejects.toMatchObject({ code: "ERR_INBOX_IN_USE" });
      expect(await recordIn(target, key)).toBeNull();
    }));
});

describe("moves in random orders", () => {
  const [claimKey, subjectKey] = [keyOf(100), keyOf(101)];
  const subject = keyOf(102) + "0".repeat(15);

  /** The record of a subject, once its next word has begun. */
  function nextWord(before: IdempotencyRecord | null, now: number): IdempotencyRecord {
    const n = before === null ? 1 : Number(before.id.at(-1)) + 1;
    const wish = {
      flow: "payments",
      tenant: "",
      eventId: subject + n,
      at: now + n,
      token: `t${n}`,
      begunAt: now,
    } as const;
    const terms = { leaseMs: 0, retentionMs: DAY_MS, isReplay: true, mayBeForgotten: false };
    const { record } = takeSubject(before, { ...wish, ...terms }, now);
    if (record === null) throw new Error("The subject has a later word.");
    return record;
  }

  /** A record of each kind, in an order that the acts below name. */
  function recordsAt(now: number): Map<string, IdempotencyRecord> {
    const claim = { ...referenceRecord(keyOf(0), now, DAY_MS), isClosed: false, fixedFacts: { token: "t" } };
    return new Map([
      [keyOf(0), acceptedRecord(keyOf(0), now)],
      [keyOf(1), acceptedRecord(keyOf(1), now, { status: "PENDING" })],
      [keyOf(2), acceptedRecord(keyOf(2), now, { held: "malformed" })],
      [keyOf(3), keepable(acceptedRecord(keyOf(3), now))],
      [claimKey, claim],
      [subjectKey, nextWord(null, now)],
    ]);
  }

  /** The event of a record is kept after its end, so that it can be run again. */
  function keepable(record: IdempotencyRecord): IdempotencyRecord {
    for (const slot of Object.values(record.slots)) {
      if (slot.work !== null) slot.work = { ...slot.work, keepMs: DAY_MS };
    }
    return record;
  }

  /** Something that the old inbox does, or a person who looks into it. An act that is not possible now changes nothing. */
  const acts: Readonly<
    Record<string, (key: string, now: number, record: IdempotencyRecord) => IdempotencyRecord>
  > = {
    accept: (key, now, record) => acceptedRecord(key, now, { status: "SUCCESS" }, record),
    contradict: (key, now, record) => acceptedRecord(key, now, { status: "FAILED" }, record),
    run: (key, now, record) => ran(key, now, record, { kind: "done" }),
    retry: (key, now, record) => ran(key, now, record, { kind: "retry", delayMs: 0 }),
    giveUp: (key, now, record) =>
      ran(key, now, record, { kind: "held", reason: "exhausted", detail: null, onHeld: [] }),
    crash: (key, now, record) => begunRecord(key, now, record, 0),
    bringForward: (key, now, record) => each(record, (slot) => retryNow(record, key + slot, BY, now)),
    replay: (key, now, record) => each(record, (slot) => replay(record, key + slot, BY, now)),
    discard: (key, now, record) => decidedRecord(key, now, record, "discard"),
    erase: (key, now, record) => each(record, (slot) => erase(record, key + slot, true, now)),
  };

  /** The decision is made about the first event for which it is possible. */
  function each(record: IdempotencyRecord, decide: (slot: string) => string): IdempotencyRecord {
    if (!Object.keys(record.slots).some((slot) => decide(slot) === "decided")) throw new Error("impossible");
    return record;
  }

  function ran(key: string, now: number, record: IdempotencyRecord, outcome: RunOutcome): IdempotencyRecord {
    const slot = record.slots[findNextSlot(record, now) ?? ""];
    return endedRecord(key, now, record, slot?.state === "held" ? { kind: "stays-held" } : outcome);
  }

  /** The record after an act; null if the act is not possible now. */
  function after(key: string, now: number, record: IdempotencyRecord, act: string): IdempotencyRecord | null {
    try {
      if (key === claimKey) return closeClaim(record, "t", record.expiresAt + 1);
      if (key !== subjectKey) return acts[act]?.(key, now, record) ?? null;
      if (act === "accept") return nextWord(record, now);
      const token = record.lease?.token ?? "";
      return releaseSubject(record, token, [record.id], DAY_MS, now + 1) ? record : null;
    } catch {
      return null;
    }
  }

  /** How often each event has been run to its end, by its number of replays. */
  function countRuns(
    runs: Map<string, number>,
    key: string,
    before: IdempotencyRecord,
    after: IdempotencyRecord,
  ): void {
    for (const [name, { state, replays }] of Object.entries(after.slots)) {
      if (state !== "done" || before.slots[name]?.state === "done") continue;
      const run = `${key}${name} ${replays}`;
      runs.set(run, (runs.get(run) ?? 0) + 1);
    }
  }

  const act = fc.record({ act: fc.constantFrom(...Object.keys(acts)), on: fc.nat(5) });
  const move = fc.record({
    isBack: fc.boolean(),
    /** With the last of these writes, it mostly comes to its end. */
    atWrite: fc.integer({ min: 1, max: 4 }),
    behind: fc.nat(6),
    /** An old receiver that works although the move has begun. */
    meanwhile: fc.option(act, { freq: 3 }),
  });
  const steps = fc.array(fc.oneof({ weight: 3, arbitrary: act }, move), { minLength: 4, maxLength: 16 });
  const sealed = fc.record({ old: fc.boolean(), target: fc.boolean() });

  it("lose no event, run no event twice, and bring no erased event back", async () => {
    const history = fc.asyncProperty(sealed, fc.boolean(), steps, (isSealed, isOneWay, history) =>
      withStores(isSealed, async ({ old, target }) => {
        const records = recordsAt(old.now(""));
        const keys = [...records.keys()];
        const runs = new Map<string, number>();
        for (const [key, record] of records) await put(old, key, null, record);
        const play = async (step: { readonly act: string; readonly on: number }): Promise<void> => {
          const key = keys[step.on] ?? "";
          const here = await recordIn(old, key);
          if (here === null) return;
          const next = after(key, old.now(key), copyRecord(here), step.act);
          // On the way back, an attempt that was brought forward may be put off again. It is not lost.
          if (next === null || (!isOneWay && step.act === "bringForward")) return;
          countRuns(runs, key, here, next);
          records.set(key, next);
          await change(old, key, () => next);
        };
        for (const step of history) {
          if ("act" in step) await play(step);
          else if (step.isBack && !isOneWay) await killed(target, old, step.atWrite, step.behind);
          else {
            const { atWrite, behind, meanwhile } = step;
            const works = async (): Promise<void> => void (meanwhile && (await play(meanwhile)));
            if (!(await killed(old, target, atWrite, behind, works))) break;
          }
        }
        expect((await moveRecords(old, target)).notMoved).toEqual([]);
        for (const [key, record] of records) {
          const there = await recordIn(target, key);
          expect(there && encodeRecord(there)).toBe(encodeRecord(record));
          expect(await recordIn(old, key)).toBeNull();
          // The receiver of the new inbox works until nothing is due.
          for (let last = record; findNextSlot(last, Infinity) !== null; ) {
            const next = ran(key, last.expiresAt, copyRecord(last), { kind: "done" });
            countRuns(runs, key, last, next);
            last = next;
          }
        }
        expect([...runs.values()].filter((count) => count > 1)).toEqual([]);
      }),
    );
    await fc.assert(history, { numRuns: 40 });
  });
});
