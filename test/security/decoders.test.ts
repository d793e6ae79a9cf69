/** The texts that a store returns are input. Damaged texts are read, and whatever can be read is given to every step. */
import { memoryInbox } from "@payhooks/core";
import { decodeRecord, encodeRecord, isUnreadable } from "@payhooks/core/inbox";
import { describe, expect, it } from "vitest";
import { compareHandlers } from "../../packages/core/src/inbox/contract/handler-sets.ts";
import { newCanary } from "../../packages/core/src/inbox/record/canary.ts";
import { copyRecord } from "../../packages/core/src/inbox/record/codec.ts";
import { discard, eventIn, replay } from "../../packages/core/src/inbox/record/decisions.ts";
import { indexOf } from "../../packages/core/src/inbox/record/index-of.ts";
import { beginNext, endRun } from "../../packages/core/src/inbox/record/leased-run.ts";
import type { IdempotencyRecord } from "../../packages/core/src/inbox/record/record.ts";
import { fold, unfold } from "../../packages/core/src/memory/finished-records.ts";
import { storedTextOf, versionedRecordOf } from "../../packages/core/src/redis/stored-text.ts";
import {
  acceptedRecord,
  begunRecord,
  decidedRecord,
  endedRecord,
  keyOf,
  referenceRecord,
} from "../../packages/core/src/testing/store/records.ts";
import { Random, seedOfRun } from "./random.ts";
import { isLong, lengthOf, report, TIMEOUT_MS } from "./report.ts";

const NOW = 1_795_000_000_000;
const KEY = keyOf(1);
const seed = seedOfRun();

/** A record of each kind. */
function samples(): readonly IdempotencyRecord[] {
  const waiting = acceptedRecord(KEY, NOW, {
    status: "PENDING",
    foundBy: ["a", "b"],
    signature: "s",
  });
  const both = acceptedRecord(KEY, NOW, { content: Buffer.from([0, 255, 10]) }, waiting);
  const held = acceptedRecord(KEY, NOW, { held: "mismatch" });
  const failed = endedRecord(KEY, NOW, waiting, {
    kind: "held",
    reason: "rejected",
    detail: "no such order",
    onHeld: ["held:mail"],
  });
  const again = endedRecord(KEY, NOW, both, { kind: "retry", delayMs: 1_000 });
  const records = [
    waiting,
    both,
    held,
    failed,
    again,
    begunRecord(KEY, NOW, both, 30_000),
    endedRecord(KEY, NOW, waiting),
  ];
  const claims = [referenceRecord(KEY, NOW, 1_000), newCanary(NOW, true), newCanary(NOW, false)];
  return [
    ...records,
    decidedRecord(KEY, NOW, held, "discard"),
    decidedRecord(KEY, NOW, held, "replay"),
    ...claims,
  ];
}

const VALUES: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  0.5,
  1e12,
  9e15,
  1e300,
  "",
  "x",
  "__proto__",
  "constructor",
  "held",
  "running",
  "done",
  "waiting",
  "run",
  "mismatch",
  [],
  [[]],
  [null],
  [1, 2, 3],
  {},
  { __proto__: null, x: 1 },
];
const PIECES = [
  "[",
  "]",
  "{",
  "}",
  '"',
  ",",
  ":",
  "null",
  "999999999999",
  "zzzzzz",
  "\\",
  "\\u0000",
  "\n",
  "~",
  "é",
  "\ud800",
];

/** A text that was damaged in one to three places. */
function damaged(random: Random, text: string, other: string): string {
  let result = text;
  for (let left = 1 + random.below(3); left > 0; left--) {
    const at = random.below(result.length + 1);
    const length = random.below(1 + Math.min(result.length - at, random.oneIn(4) ? 500 : 3));
    switch (random.below(5)) {
      case 0:
        result = result.slice(0, at) + random.pick(PIECES) + result.slice(at + length);
        break;
      case 1:
        result = result.slice(0, at) + result.slice(at + length);
        break;
      case 2:
        result = result.slice(0, at) + other.slice(random.below(other.length + 1));
        break;
      case 3:
        result = result.slice(0, at) + String.fromCharCode(random.below(256)) + result.slice(at + 1);
        break;
      default:
        result = withOtherValue(random, result);
    }
  }
  return result;
}

/** Another value in place of one in the JSON after the format's sign. */
function withOtherValue(random: Random, text: string): string {
  let json: unknown;
  try {
    json = JSON.parse(text.slice(1));
  } catch {
    return text;
  }
  let node = json;
  for (;;) {
    if (typeof node !== "object" || node === null) return text;
    const names = Object.keys(node);
    if (names.length === 0) return text;
    const name = random.pick(names);
    const inner: unknown = Reflect.get(node, name);
    if (typeof inner !== "object" || inner === null || random.oneIn(4)) {
      Reflect.set(node, name, random.pick(VALUES));
      return text.slice(0, 1) + JSON.stringify(json);
    }
    node = inner;
  }
}

/** Everything that is done with a record that was read. */
function use(record: IdempotencyRecord): void {
  const copy = (): IdempotencyRecord => copyRecord(record);
  indexOf(KEY, record);
  for (const slot in record.slots) {
    const eventId = KEY + slot;
    const event = eventIn(record, eventId);
    if (event !== null) new Date(event.acceptedAt).toISOString();
    const by = { by: "an operator", note: "n" };
    replay(copy(), eventId, by, NOW);
    discard(copy(), eventId, by, NOW);
  }
  for (const status of ["PENDING", "SUCCESS"]) {
    try {
      acceptedRecord(KEY, NOW, { status }, record);
    } catch (error) {
      if (!(error instanceof Error) || error.message !== "The event changes nothing.") throw error;
    }
  }
  const changed = copy();
  const options = {
    key: KEY,
    token: "t",
    leaseMs: 1_000,
    now: NOW,
    earlyBecause: null,
    mayRunCrashSuspect: () => true,
  };
  const input = beginNext(changed, { ...options, firstHandler: () => "main", handlersOf: () => ["main"] });
  if (input !== null) {
    const failed = { name: "main", kind: "failed", attempt: 1, delayMs: 1, error: "e" } as const;
    endRun(copyRecord(changed), input, { kind: "retry", delayMs: 1 }, [failed], NOW);
    endRun(changed, input, { kind: "done" }, [], NOW);
  }
  decodeRecord(encodeRecord(changed));
}

const cases = lengthOf(20_000, 1_000_000);

describe(`damaged texts of seed ${seed}`, { timeout: TIMEOUT_MS }, () => {
  it("of records are unreadable, or are records with everything that a step needs", () => {
    const random = new Random(seed);
    const texts = samples().map(encodeRecord);
    let readable = 0;
    let slowest = 0;
    for (let number = 0; number < cases; number++) {
      const text = damaged(random, random.pick(texts), random.pick(texts));
      const since = performance.now();
      const record = decodeRecord(text);
      if (!isUnreadable(record)) {
        readable++;
        try {
          use(record);
        } catch (cause) {
          throw new Error(`number ${number} of seed ${seed}: ${text}`, { cause });
        }
      }
      slowest = Math.max(slowest, performance.now() - since);
    }
    const note = `${readable} could be read; the slowest took ${slowest.toFixed(1)} ms`;
    report({ proof: "damaged texts of records", cases, crashes: 0, note });
    // Both ways were tried.
    expect(readable).toBeGreaterThan(cases / 100);
    expect(readable).toBeLessThan(cases / 2);
    if (isLong) console.log(note);
  });

  it("of Redis, of the memory inbox, of notes and of pages give an answer or a coded error", async () => {
    const random = new Random(seed + 1);
    const records = samples();
    const inbox = memoryInbox();
    const page = `${NOW}-${KEY}${"0".repeat(16)}`;
    for (let number = 0; number < cases / 20; number++) {
      const record = random.pick(records);
      versionedRecordOf(damaged(random, storedTextOf("v1", encodeRecord(record)), ""));
      unfold(damaged(random, fold("v1", record), ""), NOW);
      const note = damaged(random, '[["a","b"],["c"]]', page);
      await compareHandlers({ readNote: async () => note, writeNote: async () => {} }, ["a"], () => true);
      const cursor = damaged(random, page, note);
      await inbox.events.list({ cursor }).catch((error: unknown) => {
        expect(error).toMatchObject({ code: "ERR_OPTION_INVALID" });
      });
    }
    await inbox.close({ graceMs: 0 });
    report({ proof: "damaged texts of Redis, memory, notes, pages", cases: cases / 5, crashes: 0 });
  });

  it("would find a decoder that lets a hole through", () => {
    const [given] = samples();
    if (given === undefined) throw new Error("no sample");
    const broken = { ...given, tenant: 7 as unknown as string };
    expect(() => use(broken)).toThrow(TypeError);
    expect(decodeRecord(encodeRecord(broken))).toMatchObject({
      unreadable: expect.stringContaining("tenant"),
    });
  });
});
