import { randomBytes } from "node:crypto";
import { LRUCache } from "lru-cache";
import { isPending } from "../awaitable.ts";
import { PayhooksError } from "../errors.ts";
import { copyRecord, decodeRecord, type EncodedRecord, encodeRecord, partsOf } from "../inbox/codec.ts";
import {
  type Accepted,
  type Held,
  type HeldFilter,
  type Job,
  recordKeyOf,
  slotKeyOf,
  type VerifiedEvent,
} from "../inbox/inbox.ts";
import type { IdempotencyRecord } from "../inbox/record.ts";
import * as records from "../inbox/steps.ts";
import type { IdempotencyStore } from "../inbox/store.ts";
import type { ScriptClient } from "./script-client.ts";
import { ADD_HELD, CLAIM_REFERENCE, COUNT_HELD, PAGE_HELD, READ, REMOVE_HELD } from "./scripts.ts";
import { swapper } from "./swaps.ts";

/** Options of {@link redisStore}. */
export interface RedisStoreOptions {
  /** Begins every key. Default `payhooks`. */
  readonly prefix?: string | undefined;
  /** Adds to the server's time, for tests of expiry. */
  readonly shiftMs?: (() => number) | undefined;
}

/** A record as it was last seen: what the next swap expects. */
interface Seen {
  /** Empty when there was no record. */
  readonly version: string;
  /** Without its version; empty when there was no record. */
  readonly text: EncodedRecord;
  /** The text, read; not to be changed. */
  record: IdempotencyRecord | null;
}

/** What a step makes of a record; null is no change. */
interface Stepped<T> {
  readonly record: IdempotencyRecord | null;
  readonly answer: T;
}

/**
 * One step. It is first given what was last seen; an answer that writes nothing counts only when it was given what is
 * there now (`isCurrent`), and one that answers null asks for just that.
 */
type Step<T> = (
  record: IdempotencyRecord | null,
  now: number,
  isCurrent: boolean,
) => Stepped<T> | Promise<Stepped<T> | null>;

const NOTHING: Seen = { version: "", text: { head: "", tail: "" }, record: null };
/** Records whose last state is remembered between the steps of one delivery. More would outlive the young generation. */
const MAX_SEEN = 500;
/** A swap that loses this often against others is given up: the outcome is then unknown. */
const MAX_ATTEMPTS = 50;
/** Copies move a record's expiry on; a move of less than this is not worth a write (the slack is a whole day). */
const EXPIRY_STEP_MS = 60 * 60 * 1000;
/** Bytes: heads are filled up to a multiple of it. */
const HEAD_STEP = 256;
const PAGE = 100;

/**
 * Idempotency records in Redis, one key each. The steps of a record are the functions that every store uses; Redis
 * gives them atomicity by a compare-and-swap script, and its clock.
 */
export function redisStore(
  client: () => Promise<ScriptClient>,
  { prefix = "payhooks", shiftMs = () => 0 }: RedisStoreOptions = {},
): IdempotencyStore {
  const heldKey = `${prefix}:held`;
  const swap = swapper(client);
  const seen = new LRUCache<string, Seen>({ max: MAX_SEEN });
  /** The server's time minus this process's monotonic time; null before the first answer. */
  let offset: number | null = null;

  function learnTime(time: unknown, askedAt: number): number {
    const now = Number(time);
    offset = now - (askedAt + performance.now()) / 2;
    return now + shiftMs();
  }

  async function read(key: string): Promise<{ readonly seen: Seen; readonly now: number }> {
    const askedAt = performance.now();
    const [time, value] = (await (await client()).eval(READ, [`${prefix}:${key}`], [])) as [string, string];
    const found = split(value);
    seen.set(key, found);
    return { seen: found, now: learnTime(time, askedAt) };
  }

  /** Runs one step of a record. */
  async function change<T>(key: string, step: Step<T>): Promise<T> {
    let state = seen.get(key) ?? NOTHING;
    let now = offset === null ? null : performance.now() + offset + shiftMs();
    let current = false;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      if (now === null) {
        ({ seen: state, now } = await read(key));
        current = true;
      }
      const time = Math.floor(now);
      const before = recordOf(state, time);
      const stepping = step(before === null ? null : copyRecord(before), time, current);
      const stepped = isPending(stepping) ? await stepping : stepping;
      if (stepped === null) {
        now = null;
        continue;
      }
      const { record, answer } = stepped;
      const text = record === null ? state.text : textOf(record);
      if (record === null || isKept(state, text, record, before)) {
        if (current) return answer;
        now = null;
        continue;
      }
      const heldBefore = records.heldSlots(before);
      const heldAfter = records.heldSlots(record);
      if (heldAfter.size > 0) await indexHeld(key, record, heldBefore, heldAfter);
      const version = newVersion();
      const expireAt = records.isFinished(record) ? Math.ceil(record.expiresAt - shiftMs()) : 0;
      const beginning = isBeginning(state.text, text);
      const args = [state.version, String(time - shiftMs())];
      args.push(version + text.head + (beginning ? "" : text.tail), beginning ? "1" : "0", String(expireAt));
      const askedAt = performance.now();
      const { time: serverTime, current: other } = await swap(`${prefix}:${key}`, args);
      now = learnTime(serverTime, askedAt);
      if (other === null) {
        seen.set(key, { version, text, record });
        if (heldBefore.size > 0) await unindexHeld(key, heldBefore, heldAfter);
        return answer;
      }
      state = split(other);
      seen.set(key, state);
      current = true;
    }
    throw new PayhooksError(
      "ERR_INBOX_UNAVAILABLE",
      `A record was changed by others ${MAX_ATTEMPTS} times in a row.`,
    );
  }

  function changeSlot<T>(
    job: Pick<Job, "eventId">,
    step: (record: IdempotencyRecord | null, slot: string, now: number) => T,
  ): Promise<T> {
    const slot = slotKeyOf(job.eventId);
    return change(recordKeyOf(job.eventId), (record, now) => ({ record, answer: step(record, slot, now) }));
  }

  /** Before the record says that a slot is held, the index does: it may name too many, never too few. */
  async function indexHeld(
    key: string,
    record: IdempotencyRecord,
    before: ReadonlySet<string>,
    after: ReadonlySet<string>,
  ): Promise<void> {
    for (const slot of after) {
      if (before.has(slot)) continue;
      const heldAt = record.slots[slot]?.work?.heldAt ?? 0;
      await (await client()).eval(ADD_HELD, [heldKey], [String(heldAt), key + slot]);
    }
  }

  async function unindexHeld(
    key: string,
    before: ReadonlySet<string>,
    after: ReadonlySet<string>,
  ): Promise<void> {
    for (const slot of before) {
      if (!after.has(slot)) await (await client()).eval(REMOVE_HELD, [heldKey], [key + slot]);
    }
  }

  /** Claims the event's reference, unless another has it. */
  async function isReferenceReused(referenceKey: string, event: VerifiedEvent): Promise<boolean> {
    const times = [Math.ceil(event.signedAt ?? 0), event.retentionMs, Math.round(shiftMs())].map(String);
    const owner = await (await client()).eval(
      CLAIM_REFERENCE,
      [`${prefix}:${referenceKey}`],
      [event.key, ...times],
    );
    return owner !== event.key;
  }

  /** The table. What it asks for beside the record, a claim or a count, is asked for of what is there now only. */
  async function decide(
    { event, maxHeld }: { readonly event: VerifiedEvent; readonly maxHeld: number },
    [record, now, isCurrent]: Parameters<Step<Accepted>>,
  ): Promise<Stepped<Accepted> | null> {
    let referenceReused = false;
    const reference = records.claimedReference(record, event);
    if (reference !== null) {
      if (!isCurrent) return null;
      referenceReused = await isReferenceReused(reference, event);
    }
    const { record: changed, accepted } = records.accept(record, event, { now, referenceReused });
    if (accepted.outcome === "held" && Number.isFinite(maxHeld)) {
      if (!isCurrent) return null;
      records.checkHeldRoom(await countHeld(), maxHeld);
    }
    return { record: changed, answer: accepted };
  }

  async function countHeld(): Promise<number> {
    return Number(await (await client()).eval(COUNT_HELD, [heldKey], []));
  }

  return {
    async ready() {
      await read("ready");
    },
    accept: (event, { maxHeld }) => change(event.key, (...args) => decide({ event, maxHeld }, args)),
    markQueued: (job) => changeSlot(job, (record, key) => records.markQueued(record, key, job)),
    begin: (job, options) =>
      changeSlot(job, (record, key, now) => records.begin(record, key, job, options, now)),
    renew: (job, token, leaseMs) =>
      changeSlot(job, (record, key, now) => records.renew(record, key, token, leaseMs, now)),
    step: (job, token, name, made) =>
      changeSlot(job, (record, key, now) => records.step(record, key, token, name, made, now)),
    finish: (job, token, ending) =>
      changeSlot(job, (record, key, now) => records.finish(record, key, job, token, ending, now)),
    async read(eventId) {
      const { seen: found, now } = await read(recordKeyOf(eventId));
      return records.lifeOf(recordOf(found, now), eventId);
    },
    listHeld,
    replay: (eventId, decision) =>
      changeSlot({ eventId }, (record, key, now) => records.replay(record, key, eventId, decision, now)),
    discard: (eventId, decision) =>
      changeSlot({ eventId }, (record, key, now) => records.discard(record, key, decision, now)),
    counts: async () => ({ waiting: null, running: null, held: await countHeld() }),
    close: async () => {},
  };

  async function* listHeld(filter: HeldFilter): AsyncGenerator<Held> {
    let left = filter.limit ?? Number.POSITIVE_INFINITY;
    const given = new Set<string>();
    for (let at = 0; left > 0; at += PAGE) {
      const page = (await (
        await client()
      ).eval(PAGE_HELD, [heldKey], [String(at), String(PAGE)])) as string[];
      if (page.length === 0) return;
      for (const eventId of page) {
        if (left <= 0 || given.has(eventId)) continue;
        given.add(eventId);
        const entry = await heldEntry(eventId);
        if (entry === null || !records.matchesFilter(entry, filter)) continue;
        left--;
        yield entry;
      }
    }
  }

  async function heldEntry(eventId: string): Promise<Held | null> {
    const { seen: found, now } = await read(recordKeyOf(eventId));
    return records.heldOf(recordOf(found, now), eventId);
  }
}

/** The text of a record. While there is work in it, its head is filled up, so that most steps change nothing behind it. */
function textOf(record: IdempotencyRecord): EncodedRecord {
  const { head, tail } = encodeRecord(record);
  if (tail === "") return { head, tail };
  return { head: head + " ".repeat(HEAD_STEP - (Buffer.byteLength(head) % HEAD_STEP)), tail };
}

/** True when the server has the tail already, in the right place. */
function isBeginning(before: EncodedRecord, after: EncodedRecord): boolean {
  if (after.tail === "" || after.tail !== before.tail) return false;
  return Buffer.byteLength(after.head) === Buffer.byteLength(before.head);
}

function split(value: string): Seen {
  return value === "" ? NOTHING : { version: value.slice(0, 8), text: partsOf(value.slice(8)), record: null };
}

/** The record, unless its time is over: a moment before Redis drops it, or long before where time is shifted. */
function recordOf(state: Seen, now: number): IdempotencyRecord | null {
  if (state.record === null && state.version !== "") state.record = decodeRecord(state.text);
  const { record } = state;
  return record !== null && record.expiresAt <= now && records.isFinished(record) ? null : record;
}

let pool = "";
let poolAt = 0;

/** Eight random characters; asking for many at a time costs no more. */
function newVersion(): string {
  if (poolAt >= pool.length) [pool, poolAt] = [randomBytes(6 * 512).toString("base64url"), 0];
  poolAt += 8;
  return pool.slice(poolAt - 8, poolAt);
}

/** True when a step changed nothing, or nothing but the expiry, and that not far. */
function isKept(
  { text }: Seen,
  changed: EncodedRecord,
  record: IdempotencyRecord,
  old: IdempotencyRecord | null,
): boolean {
  if (changed.tail !== text.tail) return false;
  if (changed.head === text.head) return true;
  if (old === null) return false;
  const { expiresAt, signedAt } = old;
  const moved = record.expiresAt - expiresAt;
  if (moved <= 0 || moved > EXPIRY_STEP_MS) return false;
  return textOf({ ...record, expiresAt, signedAt }).head === text.head;
}
