/**
 * Deletes records that have expired. A clock may be days ahead for a moment, for example after a virtual machine was resumed. If
 * Payhooks believed a single sample, it would delete every finished record, and every copy would run again. So the samples of the
 * clock are kept beside the data, and a record is deleted only if it had expired by a sample of an hour ago or earlier. If the
 * clock goes back meanwhile, the hour starts again.
 */
import type { InboxCore } from "./write/inbox-core.ts";

/** How far apart two samples of the store's clock have to be before the earlier one counts. */
const SAMPLES_APART_MS = 3_600_000;
/** Clocks of several processes are assumed to be no further apart than this. */
const SMALL_SETBACK_MS = 5_000;
/** The name of the note in which the store keeps the samples. */
const CLOCK_SAMPLES_NOTE = "looks";

/** Two samples of the store's clock. */
export interface ClockSamples {
  /** The last sample that was kept. */
  readonly last: number;
  /** The one before: records that had expired by then may be deleted. */
  readonly before: number;
}

/** The samples to keep after one more. */
export function addSample(samples: ClockSamples | null, now: number): ClockSamples {
  if (samples === null) return { last: now, before: 0 };
  const { last, before } = samples;
  if (now < last - SMALL_SETBACK_MS) return { last: now, before: Math.min(before, now) };
  return now - last < SAMPLES_APART_MS ? samples : { last: now, before: last };
}

/** Prunes the store of an inbox. */
export class Pruning {
  readonly #core: InboxCore;
  /** The samples that this process knows, for a store that keeps no notes. */
  #samples: ClockSamples | null = null;
  /** Nothing is left to delete that had expired by this time; null before the first pruning. */
  #prunedBefore: number | null = null;

  constructor(core: InboxCore) {
    this.#core = core;
  }

  /** Deletes some records. True if there are more. */
  async pruneSome(): Promise<boolean> {
    return this.#pruneBefore(await this.#safeTime());
  }

  /** Deletes all records that may be deleted now, unless the inbox closes. */
  async pruneAll(): Promise<void> {
    const before = await this.#safeTime();
    while (!this.#core.isClosing && (await this.#pruneBefore(before)));
  }

  /** Does not ask the store again for the same time once nothing is left. Otherwise each call of `work` would prune. */
  async #pruneBefore(before: number): Promise<boolean> {
    if (before === this.#prunedBefore) return false;
    const hasMore = (await this.#core.store.prune?.(before)) === true;
    if (!hasMore) this.#prunedBefore = before;
    return hasMore;
  }

  /** The last sample that counts: records that had expired by then may be deleted. */
  async #safeTime(): Promise<number> {
    const { store } = this.#core;
    if (store.prune === undefined) return 0;
    const keptSamples =
      store.readNote === undefined ? this.#samples : decodeSamples(await store.readNote(CLOCK_SAMPLES_NOTE));
    const samples = addSample(keptSamples, store.now(""));
    if (samples !== keptSamples && !this.#core.isClosing)
      await store.writeNote?.(CLOCK_SAMPLES_NOTE, `${samples.last} ${samples.before}`);
    this.#samples = samples;
    return samples.before;
  }
}

function decodeSamples(text: string | null): ClockSamples | null {
  const [last = Number.NaN, before = Number.NaN] = (text ?? "").split(" ").map(Number);
  return Number.isFinite(last) && Number.isFinite(before) ? { last, before } : null;
}
