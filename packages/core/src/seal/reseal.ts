/**
 * Seals records anew: those of an older key, and those that are stored in the clear. A store never changes a label of
 * an event that it knows. So each record is written twice: first without its labels, then with the new labels. In
 * between, its text says that no list has it. If a receiver writes the record then, it adds the labels. If this call is
 * killed there, the next call adds them.
 */

import type { DueRecord, RecordStore, Swap, SwapResult } from "../inbox/contract/store.ts";
import { isCanary } from "../inbox/record/canary.ts";
import { isUnreadable, markUnlisted, type SealedRecord, type SealedText } from "../inbox/record/codec.ts";
import { indexOf } from "../inbox/record/index-of.ts";
import type { IdempotencyRecord } from "../inbox/record/record.ts";
import { checkFlag } from "../protocol/check-names.ts";
import { checkTime } from "../protocol/check-number.ts";
import { PayhooksError } from "../protocol/errors.ts";
import { type Clock, sleep } from "../time/clock.ts";
import { type Environment, environmentOf } from "../time/environment.ts";
import type { DerivedKey, SealKeyring } from "./keys.ts";
import { openRecord, sealRecord, withoutLabels } from "./sealed-store.ts";

const PAGE_SIZE = 50;
const DEFAULT_PER_SECOND = 500;
/** A record that another process has written meanwhile is tried again at once, at most this often. */
const MAX_ATTEMPTS = 5;
/** Records that could not be sealed are tried again, in at most this many passes. */
const MAX_PASSES = 10;
const PASS_PAUSE_MS = 300;

/** Options of {@link AesGcmSeal.reseal}. */
export interface ResealOptions {
  /** How many records to seal in a second at most. Default 500. */
  readonly perSecond?: number | undefined;
  /** Only counts the records that would be sealed. Default false. */
  readonly dryRun?: boolean | undefined;
  /** Called after each page of records, with the counts so far. */
  readonly onProgress?: ((report: ResealReport) => void) | undefined;
  /** Ends the work after the current page of records. */
  readonly signal?: AbortSignal | undefined;
  /** For tests: a clock, or everything that it takes from outside. */
  readonly clock?: Clock | Environment | undefined;
}

/** The counts of a sealing anew. */
export interface ResealReport {
  /** The id of the key that seals now. */
  readonly keyId: string;
  /** Records that were sealed with it by this call, or would be with `dryRun`. */
  readonly resealed: number;
  /** Records that had it before. */
  readonly current: number;
  /** Records that stay as they are, by the id of the key that is missing. */
  readonly missing: Readonly<Record<string, number>>;
  /** Records that stay as they are, because they are damaged, or another version of Payhooks wrote them. */
  readonly unreadable: number;
  /** False if its signal has ended it. Then there may be more. */
  readonly complete: boolean;
}

/** A record to seal anew. */
interface RecordToReseal {
  readonly key: string;
  readonly version: string;
  readonly record: IdempotencyRecord;
  /** Its text in the store; null if it lies in the clear. */
  readonly sealed: SealedText | null;
}

/** The decision about a record: it is sealed anew, or has the current key already, or cannot be read. */
type Verdict =
  | { readonly kind: "old"; readonly old: RecordToReseal }
  | { readonly kind: "current" }
  | { readonly kind: "unreadable" }
  | { readonly kind: "missing"; readonly keyId: string };

export async function resealRecords(
  store: RecordStore,
  keys: SealKeyring,
  options: ResealOptions = {},
): Promise<ResealReport> {
  const { perSecond = DEFAULT_PER_SECOND, dryRun = false, onProgress, signal } = options;
  checkTime("perSecond", perSecond);
  checkFlag("dryRun of reseal", dryRun);
  const environment = environmentOf(options.clock);
  await keys.ensureRead(environment);
  const { current } = keys;
  const stopKeepingAlive = environment.keepAlive();
  let resealed = 0;
  try {
    for (let pass = 1; ; pass++) {
      const passCounts = new PassCounts(current, keys);
      // A record that an earlier pass has sealed counts once.
      const before = pass === 1 ? 0 : resealed;
      let needsAnotherPass = false;
      for await (const page of pagesOf(store, Math.min(PAGE_SIZE, Math.ceil(perSecond)))) {
        const outdated = page.flatMap((record) => passCounts.outdatedOf(record));
        const result = dryRun
          ? { sealed: outdated.length, complete: true }
          : await resealAll(store, outdated, current, keys, environment);
        resealed += result.sealed;
        if (!result.complete) needsAnotherPass = true;
        onProgress?.(passCounts.report(resealed, before));
        if (signal?.aborted === true) return { ...passCounts.report(resealed, before), complete: false };
        if (!dryRun && result.sealed > 0) await sleep(environment, (result.sealed / perSecond) * 1_000);
      }
      if (!needsAnotherPass) return passCounts.report(resealed, before);
      if (pass === MAX_PASSES) throw recordsNotSealedError();
      await sleep(environment, PASS_PAUSE_MS);
    }
  } finally {
    stopKeepingAlive();
  }
}

class PassCounts {
  #current = 0;
  #unreadable = 0;
  readonly #missing = new Map<string, number>();
  readonly #key: DerivedKey;
  readonly #keys: SealKeyring;

  constructor(key: DerivedKey, keys: SealKeyring) {
    this.#key = key;
    this.#keys = keys;
  }

  /** The record, if it is to be sealed anew. */
  outdatedOf(dueRecord: DueRecord): readonly RecordToReseal[] {
    const verdict = verdictOn(dueRecord, this.#key, this.#keys);
    if (verdict.kind === "old") return [verdict.old];
    if (verdict.kind === "current") this.#current++;
    else if (verdict.kind === "unreadable") this.#unreadable++;
    else this.#missing.set(verdict.keyId, (this.#missing.get(verdict.keyId) ?? 0) + 1);
    return [];
  }

  report(resealed: number, before: number): ResealReport {
    const current = Math.max(0, this.#current - before);
    return {
      keyId: this.#key.id,
      resealed,
      current,
      missing: Object.fromEntries(this.#missing),
      unreadable: this.#unreadable,
      complete: true,
    };
  }
}

function verdictOn({ key, version, record }: DueRecord, current: DerivedKey, keys: SealKeyring): Verdict {
  if (!isUnreadable(record)) return { kind: "old", old: { key, version, record, sealed: null } };
  const { sealed } = record;
  if (sealed === undefined) return { kind: "unreadable" };
  const { keyId, isUnlisted } = sealed;
  if (keyId === current.id && !isUnlisted) return { kind: "current" };
  if (keys.find(keyId) === null) return { kind: "missing", keyId };
  const openedRecord = openRecord(sealed, key, keys);
  if (isUnreadable(openedRecord)) return { kind: "unreadable" };
  return { kind: "old", old: { key, version, record: openedRecord, sealed } };
}

/** Reseals the records. `complete` is false if the store did not answer for some, or other processes kept changing them. */
async function resealAll(
  store: RecordStore,
  records: readonly RecordToReseal[],
  current: DerivedKey,
  keys: SealKeyring,
  environment: Environment,
): Promise<{ readonly sealed: number; readonly complete: boolean }> {
  let old = records;
  let sealed = 0;
  let complete = true;
  for (let attempt = 1; old.length > 0; attempt++) {
    const swapPairs = old.map((record) =>
      swapsOf(record, current, keys, environment.token(), environment.token()),
    );
    const unlabelledSwaps = swapPairs.map((item) => item.unlabelled);
    const bareResults = await swapAll(store, unlabelledSwaps);
    const isUnlabelled = ({ key }: UndatedSwap): boolean => bareResults.get(key)?.kind === "written";
    const resealedResults = await swapAll(store, swapPairs.map((item) => item.anew).filter(isUnlabelled));
    const recordsToRepeat: RecordToReseal[] = [];
    for (const item of unlabelledSwaps) {
      const { key } = item;
      const result = resealedResults.get(key) ?? bareResults.get(key);
      if (result?.kind === "written") sealed++;
      else if (result?.kind !== "conflict") complete = false;
      else if (result.current !== null) {
        const verdict = verdictOn({ key, ...result.current }, current, keys);
        if (verdict.kind === "old") recordsToRepeat.push(verdict.old);
        // A receiver has written it meanwhile, and has added the labels.
        else if (verdict.kind === "current" && isUnlabelled(item)) sealed++;
      }
    }
    if (recordsToRepeat.length > 0 && attempt === MAX_ATTEMPTS) return { sealed, complete: false };
    old = recordsToRepeat;
  }
  return { sealed, complete };
}

/** The two writes of a record. */
function swapsOf(
  { key, version, record, sealed }: RecordToReseal,
  current: DerivedKey,
  keys: SealKeyring,
  betweenVersion: string,
  finalVersion: string,
): { readonly unlabelled: UndatedSwap; readonly anew: UndatedSwap } {
  const index = indexOf(key, record);
  const bareIndex = withoutLabels(index);
  const labels = sealed === null ? index : (keys.find(sealed.keyId)?.labels.hashIndex(index) ?? index);
  const resealedRecord = sealRecord(record, key, current);
  const bareRecord: SealedRecord = { ...resealedRecord, sealed: markUnlisted(resealedRecord.sealed) };
  return {
    unlabelled: {
      key,
      expected: version,
      version: betweenVersion,
      record: bareRecord,
      before: sealed?.isUnlisted === true ? bareIndex : labels,
      index: bareIndex,
    },
    anew: {
      key,
      expected: betweenVersion,
      version: finalVersion,
      record: resealedRecord,
      before: bareIndex,
      index: current.labels.hashIndex(index),
    },
  };
}

type UndatedSwap = Omit<Swap, "at" | "shouldAnnounce">;

/** Makes the writes, and returns the result of each by its key. */
async function swapAll(
  store: RecordStore,
  items: readonly UndatedSwap[],
): Promise<ReadonlyMap<string, SwapResult | undefined>> {
  if (items.length === 0) return new Map();
  const sorted = items
    .toSorted((a, b) => (a.key < b.key ? -1 : 1))
    .map((item) => ({ ...item, at: store.now(item.key), shouldAnnounce: false }));
  const results = await store.swap(sorted);
  return new Map(sorted.map(({ key }, index) => [key, results[index]]));
}

async function* pagesOf(store: RecordStore, pageSize: number): AsyncIterable<readonly DueRecord[]> {
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<NonNullable<RecordStore["scan"]>>> | undefined = await store.scan?.(
      cursor,
      pageSize,
    );
    if (page === undefined) return;
    const recordsByKey = new Map(page.records.map((record) => [record.key, record]));
    yield [...recordsByKey.values()].filter(({ key }) => !isCanary(key));
    cursor = page.next;
  } while (cursor !== null);
}

function recordsNotSealedError(): PayhooksError {
  return new PayhooksError("ERR_INBOX_UNAVAILABLE", "Some records could not be sealed anew.", {
    fix: "Nothing is lost. Check that the store is up, and call it again. It skips the records that are sealed already.",
  });
}
