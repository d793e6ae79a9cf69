import { describe, expect, it } from "vitest";
import { copyRecord } from "../../../src/inbox/record/codec.ts";
import { knowsAllOf } from "../../../src/inbox/record/compare-copies.ts";
import { MAX_CONTRADICTIONS } from "../../../src/inbox/record/contradictions.ts";
import { replay } from "../../../src/inbox/record/decisions.ts";
import { erase } from "../../../src/inbox/record/erase.ts";
import type { HandlerState } from "../../../src/inbox/record/handler-state.ts";
import type { IdempotencyRecord, Slot } from "../../../src/inbox/record/record.ts";
import {
  acceptedRecord,
  begunRecord,
  DAY_MS,
  decidedRecord,
  endedRecord,
  HOUR_MS,
  keyOf,
  referenceRecord,
} from "../../../src/testing/store/records.ts";

const key = keyOf(1);
const NOW = 1_800_000_000_000;
const BY = { by: "an operator", note: "" };
const subject = (n: number): string => keyOf(9) + `${n}`.padStart(16, "0");

const waiting = acceptedRecord(key, NOW);
const held = acceptedRecord(key, NOW, { held: "malformed" });
const done = endedRecord(key, NOW, waiting);
const keptDone = endedRecord(
  key,
  NOW,
  withSlot(waiting, ({ work }) => ({ work: work && { ...work, keepMs: DAY_MS } })),
);
const exhausted = endedRecord(key, NOW, waiting, {
  kind: "held",
  reason: "exhausted",
  detail: null,
  onHeld: [],
});

/** The record with another slot. */
function withSlot(record: IdempotencyRecord, change: (slot: Slot) => Partial<Slot>): IdempotencyRecord {
  const slots = Object.entries(record.slots).map(([name, slot]) => [name, { ...slot, ...change(slot) }]);
  return { ...record, slots: Object.fromEntries(slots) as Record<string, Slot> };
}

/** The record, whose event has these handlers. */
function withSteps(
  record: IdempotencyRecord,
  states: Readonly<Record<string, HandlerState["state"]>>,
): IdempotencyRecord {
  const none = { attempts: 1, dueAt: 0, delayWhenWrittenMs: 0, error: null, reason: null };
  const handlerStates = Object.fromEntries(
    Object.entries(states).map(([name, state]) => [name, { ...none, state }]),
  );
  return withSlot(record, ({ work }) => ({ work: work && { ...work, handlerStates } }));
}

function decidedBy(
  record: IdempotencyRecord,
  decide: (record: IdempotencyRecord, eventId: string) => string,
) {
  const changed = copyRecord(record);
  expect(decide(changed, key + Object.keys(changed.slots)[0])).toBe("decided");
  return changed;
}

const replayed = (record: IdempotencyRecord): IdempotencyRecord =>
  decidedBy(record, (one, eventId) => replay(one, eventId, BY, NOW + 1));
const erased = (record: IdempotencyRecord): IdempotencyRecord =>
  decidedBy(record, (one, eventId) => erase(one, eventId, true, NOW));

/** A record that is full of held contradictions, the first of them ended. */
function full(): IdempotencyRecord {
  const [slot] = Object.values(held.slots);
  if (slot === undefined) throw new Error("There is no slot.");
  const slots = Array.from({ length: MAX_CONTRADICTIONS }, (_, n) => [
    `${n}`.repeat(16),
    { ...slot, acceptedAt: NOW + n },
  ]);
  return { ...held, slots: Object.fromEntries(slots) as Record<string, Slot> };
}

function withoutFirst(record: IdempotencyRecord): IdempotencyRecord {
  const [, ...others] = Object.entries(record.slots);
  return { ...record, slots: Object.fromEntries(others) };
}

const [newest] = Object.values(held.slots);
const later = {
  ...withoutFirst(full()).slots,
  f0f0f0f0f0f0f0f0: { ...newest, acceptedAt: NOW + 60 } as Slot,
};

describe("knowsAllOf", () => {
  it.each<readonly [string, IdempotencyRecord, IdempotencyRecord]>([
    ["a further event", waiting, acceptedRecord(key, NOW, { status: "FAILED" }, waiting)],
    ["a copy that was signed later", done, { ...done, expiresAt: done.expiresAt + 1 }],
    ["an attempt", waiting, begunRecord(key, NOW, waiting, 0)],
    ["one that failed", waiting, endedRecord(key, NOW, waiting, { kind: "retry", delayMs: HOUR_MS })],
    ["a handler that is done", withSteps(waiting, { a: "started" }), withSteps(waiting, { a: "done" })],
    [
      "a handler that is given up",
      withSteps(waiting, { a: "failed" }),
      withSteps(waiting, { a: "given-up" }),
    ],
    ["the end", waiting, done],
    ["an event that is held", waiting, exhausted],
    ["onHeld handlers that are done", held, endedRecord(key, NOW, held, { kind: "stays-held" })],
    [
      "a held event that no onHeld handler is called for",
      held,
      withSlot(held, () => ({ isOnHeldDone: true })),
    ],
    ["a discarded event", held, decidedRecord(key, NOW, held, "discard")],
    ["a replay", held, replayed(held)],
    ["a replay of a finished event", keptDone, replayed(keptDone)],
    ["an erased event that waited", waiting, erased(waiting)],
    ["an erased event that had ended", done, erased(done)],
    ["a contradiction that made room for a later one", full(), { ...full(), slots: later }],
    [
      "an event that was held anew, with new onHeld handlers",
      withSteps(replayed(held), { "held:a": "done" }),
      withSlot(replayed(held), ({ work }) => ({
        state: "held",
        work: work && { ...work, reason: "exhausted" },
      })),
    ],
    [
      "a later word of a subject",
      referenceRecord(subject(1), NOW, DAY_MS),
      referenceRecord(subject(2), NOW + 1, DAY_MS),
    ],
  ])("is true of the later state alone: %s", (_, before, after) => {
    expect([knowsAllOf(after, before), knowsAllOf(before, after)]).toEqual([true, false]);
  });

  it.each<readonly [string, IdempotencyRecord, IdempotencyRecord]>([
    ["the event was accepted twice", done, { ...acceptedRecord(key, NOW + 1), expiresAt: done.expiresAt }],
    ["one of them ran it, and the other one replayed it when it was held", done, replayed(exhausted)],
    ["each has a handler that is done", withSteps(waiting, { a: "done" }), withSteps(waiting, { b: "done" })],
    [
      "one gave a handler up that is done in the other one",
      withSteps(exhausted, { a: "given-up" }),
      withSteps(waiting, { a: "done" }),
    ],
    [
      "the reference has another owner",
      referenceRecord(keyOf(1), NOW, DAY_MS),
      referenceRecord(keyOf(2), NOW, DAY_MS),
    ],
  ])("is true of neither state: %s", (_, one, other) => {
    expect([knowsAllOf(one, other), knowsAllOf(other, one)]).toEqual([false, false]);
  });

  it("is true of two copies with the same state, or with differences that do not matter", () => {
    for (const record of [waiting, done, held, exhausted, erased(done), referenceRecord(key, NOW, DAY_MS)]) {
      expect(knowsAllOf(record, copyRecord(record))).toBe(true);
    }
  });
});
