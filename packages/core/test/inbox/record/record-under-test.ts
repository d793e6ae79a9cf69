import { type AcceptContext, accept } from "../../../src/inbox/record/accept-into-record.ts";
import { eventIn } from "../../../src/inbox/record/decisions.ts";
import type { AcceptResult, VerifiedEvent } from "../../../src/inbox/record/event.ts";
import type { HandlerChange } from "../../../src/inbox/record/handler-state.ts";
import {
  type BeginOptions,
  type BeginResult,
  begin,
  beginNext,
  type EndResult,
  endRun,
  renew,
  writeHandlerChanges,
} from "../../../src/inbox/record/leased-run.ts";
import type { IdempotencyRecord, Slot } from "../../../src/inbox/record/record.ts";
import type { RunInput } from "../../../src/inbox/record/run-input.ts";
import type { RunOutcome } from "../../../src/inbox/record/run-outcome.ts";
import type { StoredEvent } from "../../../src/inbox/record/stored-event.ts";

export const DAY: number = 86_400_000;
export const KEY: string = "a".repeat(32);
export const PENDING: string = "0".repeat(16);
export const SUCCESS: string = "1".repeat(16);
export const FAILED: string = "2".repeat(16);
export const OTHER: string = "f".repeat(16);
const slots: Readonly<Record<string, string>> = { PENDING, SUCCESS, FAILED };

/** A callback of transaction tx-1, as the flow hands it to the inbox. */
export function event(status: string, changes: Partial<VerifiedEvent> = {}): VerifiedEvent {
  return {
    key: KEY,
    slot: slots[status] ?? "3".repeat(16),
    variantSlot: () => OTHER,
    id: "tx-1",
    name: "DEPOSIT",
    status,
    rank: status === "PENDING" ? 0 : 1,
    fixedFacts: { event: "DEPOSIT", referenceId: "o-1" },
    amount: "10",
    signedAt: 500,
    isWithinWindow: true,
    retentionMs: DAY,
    verdict: "run",
    detail: null,
    referenceKey: null,
    referenceId: "o-1",
    delivery: {
      flow: "payments",
      tenant: "t",
      arrivedBy: "callback",
      content: new TextEncoder().encode("referenceId=o-1"),
      signature: null,
      keyId: "k",
      receivedAt: 900,
    },
    ...changes,
  };
}

export const lookedUp = (status: string, amount: string): VerifiedEvent => {
  const given = event(status, { amount });
  return { ...given, delivery: { ...given.delivery, arrivedBy: "lookup" } };
};

/** One record, and what is done to it at a time that goes on by itself. */
export class RecordUnderTest {
  record: IdempotencyRecord | null = null;
  now = 1_000;

  accept(given: VerifiedEvent, context: Partial<AcceptContext> = {}): AcceptResult {
    const nothing = {
      now: this.now,
      delayMs: 0,
      lane: "usual",
      isReferenceReused: false,
      admit: () => {},
    } as const;
    const { record, accepted } = accept(this.record, given, { ...nothing, ...context });
    if (record !== null) this.record = record;
    return accepted;
  }

  begin(slot: string, options: Partial<BeginOptions> = {}): BeginResult {
    return begin(this.record, slot, { ...this.#begins, ...options });
  }

  next(options: Partial<BeginOptions> = {}): RunInput | null {
    return this.record === null ? null : beginNext(this.record, { ...this.#begins, ...options });
  }

  get #begins(): BeginOptions {
    return {
      key: KEY,
      token: "w",
      leaseMs: 100,
      now: this.now,
      earlyBecause: null,
      mayRunCrashSuspect: () => true,
      firstHandler: () => null,
      handlersOf: () => [],
    };
  }

  endRun(slot: string, outcome: RunOutcome, changes: readonly HandlerChange[] = [], token = "w"): EndResult {
    return endRun(this.record, { ...this.#lease(slot), token }, outcome, changes, this.now);
  }

  write(slot: string, changes: readonly HandlerChange[], token = "w"): boolean {
    return writeHandlerChanges(this.record, { ...this.#lease(slot), token }, changes, this.now);
  }

  renew(slot: string, now: number, token = "w"): boolean {
    return renew(this.record, { ...this.#lease(slot), token }, 100, now);
  }

  /** Of a lease only what its owner writes with. */
  #lease(slot: string): RunInput {
    return { key: KEY, slot, eventId: KEY + slot } as RunInput;
  }

  slot(key: string): Slot {
    const slot = this.record?.slots[key];
    if (slot === undefined) throw new Error(`no slot ${key}`);
    return slot;
  }

  life(key: string): StoredEvent {
    if (this.record === null) throw new Error("no record");
    const life = eventIn(this.record, KEY + key);
    if (life === null) throw new Error(`nothing is known of ${key}`);
    return life;
  }
}

/** An event that was taken, by the owner `w`. */
export function running(given: VerifiedEvent = event("SUCCESS")): RecordUnderTest {
  const tested = new RecordUnderTest();
  tested.accept(given);
  const begun = tested.begin(given.slot);
  if (begun.kind !== "leased") throw new Error(begun.kind);
  return tested;
}
