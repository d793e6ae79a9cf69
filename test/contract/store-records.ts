/** Records as the engine writes them, made with the engine's own functions. */
import { createHash } from "node:crypto";
import { expect } from "vitest";
import { tokens } from "../../packages/core/src/environment.ts";
import type { Ending, HeldReason, VerifiedEvent } from "../../packages/core/src/inbox/inbox.ts";
import { accept } from "../../packages/core/src/inbox/record/accept.ts";
import { copyRecord, encodeRecord, isUnreadable } from "../../packages/core/src/inbox/record/codec.ts";
import { discard, replay } from "../../packages/core/src/inbox/record/decisions.ts";
import { indexOf } from "../../packages/core/src/inbox/record/index-of.ts";
import type { IdempotencyRecord } from "../../packages/core/src/inbox/record/record.ts";
import { beginNext, finish } from "../../packages/core/src/inbox/record/run.ts";
import type {
  Counts,
  RecordStore,
  Swap,
  SwapResult,
  Versioned,
} from "../../packages/core/src/inbox/store.ts";

/** What a case lets pass: long enough for what has to happen before, on a busy machine too. */
export const SHORT_MS = 1_200;
export const HOUR_MS = 3_600_000;
export const DAY_MS: number = 24 * HOUR_MS;

const token = tokens("storetests");

/** A record's key: 32 hex digits, spread as hashes are. */
export function keyOf(n: number): string {
  return createHash("sha256").update(`record ${n}`).digest("hex").slice(0, 32);
}

function slotOf(status: string): string {
  return createHash("sha256").update(`slot ${status}`).digest("hex").slice(0, 16);
}

/** What an event may say otherwise than a DEPOSIT of 10 that succeeded. */
export interface Sample {
  readonly status?: string;
  readonly flow?: "payments" | "connect";
  readonly tenant?: string;
  readonly name?: string;
  readonly id?: string;
  readonly referenceId?: string;
  readonly rawBody?: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  readonly retentionMs?: number;
  /** Held at once, for this reason. */
  readonly held?: HeldReason;
  /** Due so much later than it is accepted. */
  readonly delayMs?: number;
}

function eventOf(key: string, now: number, sample: Sample): VerifiedEvent {
  const { status = "SUCCESS", flow = "payments", tenant = "", name = "DEPOSIT", id = "tx-1" } = sample;
  const { referenceId = "o-1", retentionMs = 8 * DAY_MS, held } = sample;
  return {
    key,
    slot: slotOf(status),
    variantSlot: () => slotOf(`${status}, contradicting`),
    id,
    name,
    status,
    rank: held === undefined ? (status === "PENDING" ? 0 : 1) : null,
    identity: { referenceId },
    amount: "10",
    signedAt: now,
    fresh: true,
    retentionMs,
    verdict: held ?? "run",
    detail: held === undefined ? null : "as sampled",
    referenceKey: null,
    delivery: {
      flow,
      tenant,
      source: flow === "payments" ? "callback" : "webhook",
      rawBody: sample.rawBody ?? Buffer.from(JSON.stringify({ referenceId })),
      headers: sample.headers ?? {},
      keyId: "key-1",
      receivedAt: now,
    },
  };
}

/** A record in which one more event was accepted; of nothing, a new one. */
export function accepted(
  key: string,
  now: number,
  sample: Sample = {},
  before: IdempotencyRecord | null = null,
): IdempotencyRecord {
  const { record } = accept(before === null ? null : copyRecord(before), eventOf(key, now, sample), {
    now,
    delayMs: sample.delayMs ?? 0,
    referenceReused: false,
    admit: () => {},
  });
  if (record === null) throw new Error("The event changes nothing.");
  return record;
}

/** The record with its next event running under a lease. */
export function begun(
  key: string,
  now: number,
  before: IdempotencyRecord,
  leaseMs: number,
): IdempotencyRecord {
  return ran(key, now, before, leaseMs, null);
}

/** The record after a run of its next event. */
export function ended(
  key: string,
  now: number,
  before: IdempotencyRecord,
  ending: Ending = { kind: "done" },
): IdempotencyRecord {
  return ran(key, now, before, HOUR_MS, ending);
}

function ran(
  key: string,
  now: number,
  before: IdempotencyRecord,
  leaseMs: number,
  ending: Ending | null,
): IdempotencyRecord {
  const record = copyRecord(before);
  const lease = beginNext(record, {
    key,
    token: token(),
    leaseMs,
    now,
    force: null,
    firstStep: () => "credit",
  });
  if (lease === null) throw new Error("Nothing in the record is due.");
  if (ending !== null) finish(record, lease, ending, [], now);
  return record;
}

const BY = { by: "an operator", note: "looked into it" };

/** The record after a person has decided about a held event of it. */
export function decided(
  key: string,
  now: number,
  before: IdempotencyRecord,
  decision: "replay" | "discard",
): IdempotencyRecord {
  const record = copyRecord(before);
  const [slot = ""] = Object.entries(record.slots).find(([, { state }]) => state === "held") ?? [];
  const decide = decision === "replay" ? replay : discard;
  const done = decide(record, key + slot, BY, now);
  if (!done) throw new Error("Nothing in the record is held.");
  return record;
}

/** The record that says which transaction a reference belongs to. */
export function referenceRecord(owner: string, now: number, lifetimeMs: number): IdempotencyRecord {
  return {
    flow: "payments",
    tenant: "",
    id: owner,
    status: null,
    statusSlot: null,
    terminal: false,
    identity: {},
    lease: null,
    slots: {},
    signedAt: now,
    expiresAt: now + lifetimeMs,
  };
}

/** The ids of a record's events. */
export function eventIds(key: string, record: IdempotencyRecord): readonly string[] {
  return Object.keys(record.slots).map((slot) => key + slot);
}

/** A record that was written, as whoever wrote it knows it. */
export interface Written {
  readonly key: string;
  readonly version: string;
  readonly record: IdempotencyRecord;
}

/** The write that makes `record` of what was written before. */
export function swapOf(
  store: RecordStore,
  key: string,
  before: Written | null,
  record: IdempotencyRecord,
  changes: Partial<Swap> = {},
): Swap {
  return {
    key,
    expected: before?.version ?? null,
    version: token(),
    record,
    index: indexOf(key, record),
    before: before === null ? null : indexOf(key, before.record),
    at: store.now(key),
    announce: false,
    ...changes,
  };
}

/** Makes the writes in one call; the answers are in the order of the given ones. */
export async function swapAll(store: RecordStore, swaps: readonly Swap[]): Promise<readonly SwapResult[]> {
  const sorted = swaps.toSorted((a, b) => (a.key < b.key ? -1 : 1));
  const results = await store.swap(sorted);
  expect(results).toHaveLength(sorted.length);
  return swaps.map((swap) => {
    const result = results[sorted.indexOf(swap)];
    if (result === undefined) throw new Error("No answer.");
    return result;
  });
}

/** Makes one write, which must succeed. */
export async function put(
  store: RecordStore,
  key: string,
  before: Written | null,
  record: IdempotencyRecord,
  changes: Partial<Swap> = {},
): Promise<Written> {
  const swap = swapOf(store, key, before, record, changes);
  expect(await store.swap([swap])).toEqual([{ kind: "written" }]);
  return { key, version: swap.version, record };
}

/** Makes one write of each record, all of them new, in one call. */
export async function putAll(
  store: RecordStore,
  records: ReadonlyMap<string, IdempotencyRecord>,
): Promise<ReadonlyMap<string, Written>> {
  const swaps = [...records].map(([key, record]) => swapOf(store, key, null, record));
  for (const result of await swapAll(store, swaps)) expect(result).toEqual({ kind: "written" });
  return new Map(swaps.map(({ key, version, record }) => [key, { key, version, record }]));
}

/** What a store has of one record. */
export async function readOne(store: RecordStore, key: string): Promise<Versioned | null> {
  const [versioned] = await store.read([key]);
  if (versioned === undefined) throw new Error("No answer.");
  return versioned;
}

/** Fails unless the store's record is the written one. Whether facts of finished ones are kept as digests is its own affair. */
export function expectSame(found: Versioned | null | undefined, written: Written): void {
  expect(plain(found)).toEqual({ version: written.version, text: encodeRecord(written.record) });
}

function plain(found: Versioned | null | undefined): unknown {
  if (found === null || found === undefined) return found;
  const { version, record } = found;
  return { version, text: isUnreadable(record) ? record.unreadable : encodeRecord(record) };
}

/** What is counted; reasons that no event is held for are left out. */
export async function countsOf(
  store: RecordStore,
): Promise<Omit<Counts, "heldBy"> & { readonly heldBy: readonly (readonly [string, number])[] }> {
  const { heldBy, ...counts } = await store.counts();
  const reasons = Object.entries(heldBy).filter(([, count]) => count !== 0);
  return { ...counts, heldBy: reasons.toSorted(([a], [b]) => (a < b ? -1 : 1)) };
}
