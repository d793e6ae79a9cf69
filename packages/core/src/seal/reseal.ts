/**
 * Seals records anew: those of an older key, and those that lie in the clear. A store changes no label of an event that it knows. So
 * each record is written twice: without its labels, and then with the new ones. Whoever is killed in between has left a record under
 * its old key, so the next call does both again.
 */
import { isCanary } from "../inbox/record/canary.ts";
import { isUnreadable, type SealedText } from "../inbox/record/codec.ts";
import { indexOf, type RecordIndex } from "../inbox/record/index-of.ts";
import type { IdempotencyRecord } from "../inbox/record/record.ts";
import type { DueRecord, RecordStore, Swap } from "../inbox/store.ts";
import { checkFlag } from "../protocol/check-names.ts";
import { checkTime } from "../protocol/check-number.ts";
import { PayhooksError } from "../protocol/errors.ts";
import { sleep } from "../time/clock.ts";
import { type Environment, environmentOf } from "../time/environment.ts";
import type { DerivedKey, Keyring } from "./keys.ts";
import { openRecord, sealRecord } from "./sealed-store.ts";

const TOGETHER = 50;
const DEFAULT_PER_SECOND = 500;
/** Records that others have written meanwhile are looked at again, in so many passes at most. */
const PASSES = 10;
const PAUSE_MS = 300;

/** Options of {@link AesGcmSeal.reseal}. */
export interface ResealOptions {
  /** How many records to seal in a second at most. Default 500. */
  readonly perSecond?: number | undefined;
  /** Seals nothing, and counts what would be sealed. Default false. */
  readonly dryRun?: boolean | undefined;
  /** Called after each page of records with what has been done so far. */
  readonly onProgress?: ((report: ResealReport) => void) | undefined;
  /** For tests: time and randomness. */
  readonly environment?: Environment | undefined;
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
  /** Records that stay as they are, since they are damaged, or another version of Payhooks wrote them. */
  readonly unreadable: number;
}

/** A record to seal anew. */
interface Old {
  readonly key: string;
  readonly version: string;
  readonly record: IdempotencyRecord;
  /** Its text in the store; null if it lies in the clear. */
  readonly sealed: SealedText | null;
}

export async function resealRecords(
  store: RecordStore,
  keys: Keyring,
  options: ResealOptions = {},
): Promise<ResealReport> {
  const { perSecond = DEFAULT_PER_SECOND, dryRun = false, onProgress } = options;
  checkTime("perSecond", perSecond);
  checkFlag("dryRun of reseal", dryRun);
  const environment = environmentOf(options.environment);
  await keys.ready(environment);
  const { current } = keys;
  const letGo = environment.hold();
  let resealed = 0;
  try {
    for (let pass = 1; ; pass++) {
      const found = new Found(current, keys);
      let isAgain = false;
      for await (const page of pagesOf(store)) {
        const old = page.flatMap((one) => found.look(one));
        const done = dryRun ? old.length : await resealAll(store, old, current, keys, environment);
        resealed += done;
        if (done < old.length) isAgain = true;
        onProgress?.(found.report(resealed));
        if (!dryRun && done > 0) await sleep(environment, (done / perSecond) * 1_000);
      }
      // A record that an earlier pass has sealed counts once.
      if (!isAgain) return found.report(resealed, pass === 1 ? 0 : resealed);
      if (pass === PASSES) throw notTaken();
      await sleep(environment, PAUSE_MS);
    }
  } finally {
    letGo();
  }
}

/** The findings of one pass. */
class Found {
  #current = 0;
  #unreadable = 0;
  readonly #missing: Record<string, number> = {};
  readonly #key: DerivedKey;
  readonly #keys: Keyring;

  constructor(key: DerivedKey, keys: Keyring) {
    this.#key = key;
    this.#keys = keys;
  }

  /** The record, if it is to be sealed anew. */
  look({ key, version, record }: DueRecord): readonly Old[] {
    if (!isUnreadable(record)) return [{ key, version, record, sealed: null }];
    const { sealed } = record;
    if (sealed?.keyId === this.#key.id) this.#current++;
    else if (sealed === undefined) this.#unreadable++;
    else if (this.#keys.find(sealed.keyId) === null) {
      this.#missing[sealed.keyId] = (this.#missing[sealed.keyId] ?? 0) + 1;
    } else {
      const opened = openRecord(sealed, key, this.#keys);
      if (!isUnreadable(opened)) return [{ key, version, record: opened, sealed }];
      this.#unreadable++;
    }
    return [];
  }

  report(resealed: number, before = 0): ResealReport {
    const current = Math.max(0, this.#current - before);
    return {
      keyId: this.#key.id,
      resealed,
      current,
      missing: { ...this.#missing },
      unreadable: this.#unreadable,
    };
  }
}

/** How many were sealed. The others were written by somebody else meanwhile, or the store did not answer. */
async function resealAll(
  store: RecordStore,
  old: readonly Old[],
  current: DerivedKey,
  keys: Keyring,
  environment: Environment,
): Promise<number> {
  const items = old.map((one) => swapsOf(one, current, keys, environment.token(), environment.token()));
  const bare = await swapAll(
    store,
    items.map(({ without }) => without),
  );
  const done = await swapAll(
    store,
    items.filter(({ without }) => bare.has(without.key)).map(({ anew }) => anew),
  );
  return done.size;
}

/** The two writes of a record. */
function swapsOf(
  { key, version, record, sealed }: Old,
  current: DerivedKey,
  keys: Keyring,
  between: string,
  last: string,
): { readonly without: Undated; readonly anew: Undated } {
  const index = indexOf(key, record);
  const bare: RecordIndex = { ...index, events: [] };
  const before = sealed === null ? index : (keys.find(sealed.keyId)?.labels.index(index) ?? index);
  const same = sealed === null ? record : { ...record, sealed: sealed.text };
  return {
    without: { key, expected: version, version: between, record: same, before, index: bare },
    anew: {
      key,
      expected: between,
      version: last,
      record: sealRecord(record, key, current),
      before: bare,
      index: current.labels.index(index),
    },
  };
}

type Undated = Omit<Swap, "at" | "announce">;

/** Makes the writes, and returns the keys of those that were made. */
async function swapAll(store: RecordStore, items: readonly Undated[]): Promise<ReadonlySet<string>> {
  if (items.length === 0) return new Set();
  const sorted = items
    .toSorted((a, b) => (a.key < b.key ? -1 : 1))
    .map((item) => ({ ...item, at: store.now(item.key), announce: false }));
  const results = await store.swap(sorted);
  return new Set(sorted.filter((_, at) => results[at]?.kind === "written").map(({ key }) => key));
}

async function* pagesOf(store: RecordStore): AsyncIterable<readonly DueRecord[]> {
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<NonNullable<RecordStore["scan"]>>> | undefined = await store.scan?.(
      cursor,
      TOGETHER,
    );
    if (page === undefined) return;
    const found = new Map(page.records.map((one) => [one.key, one]));
    yield [...found.values()].filter(({ key }) => !isCanary(key));
    cursor = page.next;
  } while (cursor !== null);
}

function notTaken(): PayhooksError {
  return new PayhooksError("ERR_INBOX_UNAVAILABLE", "Some records could not be sealed anew.", {
    fix: "Nothing is lost. Is the store up? Call it again: what is sealed already is left out.",
  });
}
