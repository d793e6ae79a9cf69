/** Plays a history on several stores, and finds the first call to which their answers differ. */

import type {
  DueRecord,
  ListCursor,
  ListPage,
  RecordStore,
  Swap,
  SwapResult,
} from "../../../packages/core/src/inbox/contract/store.ts";
import { labelOf } from "../../../packages/core/src/inbox/record/label.ts";
import { sendCanary } from "../../../packages/core/src/testing/store/canaries.ts";
import { keyOf } from "../../../packages/core/src/testing/store/records.ts";
import { takeOfBothLanes } from "../../../packages/core/src/testing/store/writes.ts";
import { pause } from "../../faults/harness/scope.ts";
import { AgreedState } from "./agreed-state.ts";
import {
  type Answer,
  canonicalCounts,
  canonicalDue,
  canonicalPages,
  canonicalRecord,
  canonicalResult,
} from "./canonical.ts";
import type { Call, History, ProcessNumber } from "./history.ts";
import { type Kind, START, World } from "./world.ts";
import { type Write, writeOf } from "./writes.ts";

/** The answer of a store of one kind. */
interface StoreAnswer {
  readonly store: string;
  readonly answer: Answer;
}

/** Two stores that do not agree. */
export interface Difference {
  /** The position of the call in the history. */
  readonly at: number;
  readonly expected: StoreAnswer;
  readonly found: StoreAnswer;
}

type Compared = Omit<Difference, "at"> | null;

/** A call may fail for a while: a server closes the connection if a record is too big for it. */
const ATTEMPTS = 200;
const RETRY_MS = 10;
const SETTLE_ATTEMPTS = 3;
const MOST_PAGES = 1_000;

/** Called with each situation that occurs in a history, so that a test can count them. */
export type OnSituation = (situation: string) => void;

/** Plays the history on a store of each kind. Each must give the same answers as the first one. */
export async function play(
  history: History,
  kinds: readonly Kind[],
  onSituation: OnSituation = () => {},
): Promise<Difference | null> {
  const worlds: World[] = [];
  try {
    for (const kind of kinds) {
      if (kind.distrustsClock || !history.wrongClocks) worlds.push(await World.make(kind));
    }
    const player = new Player(worlds, onSituation);
    for (const [at, call] of history.calls.entries()) {
      onSituation(call.kind);
      const compared = await player.play(call);
      if (compared !== null) return { at, ...compared };
    }
    return null;
  } finally {
    for (const world of worlds) await world.close();
  }
}

type ListCall = Extract<Call, { readonly kind: "list" }>;
type Ask = (store: RecordStore, world: World) => Promise<Answer>;

/** A process has to know its primary for this long before it confirms that a changed record contains an earlier write. */
const TRUSTED_AFTER_MS = 10_000;

class Player {
  readonly #worlds: readonly World[];
  readonly #agreed: AgreedState;
  readonly #onSituation: OnSituation;
  #now = START;
  /** The time when each process first asked its replicas; null if it has not asked yet. */
  readonly #askedSince: [number | null, number | null] = [0, 0];
  #versions = 0;

  constructor(worlds: readonly World[], onSituation: OnSituation) {
    this.#worlds = worlds;
    const limits = worlds.map(({ kind }) => kind.dueWithinMs ?? Number.POSITIVE_INFINITY);
    this.#agreed = new AgreedState(Math.min(...limits));
    this.#onSituation = onSituation;
  }

  async play(call: Call): Promise<Compared> {
    switch (call.kind) {
      case "pass":
        this.#now += call.ms;
        for (const world of this.#worlds) await world.setTime(this.#now);
        return null;
      case "swap":
        return this.#write(
          call.by,
          call.items
            .map((item) => writeOf(item, this.#agreed, this.#version(), this.#now, keyOf(item.key)))
            .toSorted((a, b) => (a.swap.key < b.swap.key ? -1 : 1)),
        );
      case "resend":
        return this.#write(
          call.by,
          // Stores may answer differently to an unfit write.
          (this.#agreed.calls.at(-1 - call.ago) ?? []).filter(({ isUnfit }) => !isUnfit),
        );
      case "take":
        return this.#take(call.by, call.limit, call.hideMs);
      case "list":
        return this.#list(call);
      case "read":
        return this.#compare(call.by, async (store) =>
          (await store.read(call.keys.map(keyOf))).map(canonicalRecord),
        );
      case "counts":
        return this.#compare(call.by, async (store) => canonicalCounts(await store.counts()));
      case "prune":
        return this.#compare(call.by, pruned);
      case "canary":
        return this.#compare(call.by, sendCanary);
      case "now":
        // A store may learn the time from an answer of its server.
        return this.#compare(call.by, async (store) => {
          await store.read([keyOf(call.key)]);
          return store.now(keyOf(call.key));
        });
      case "replicated":
        return this.#replicated(call.by, call.keys.map(keyOf));
      case "reopen":
        this.#askedSince[call.by] = null;
        return this.#compare(call.by, (_, world) => world.reopen(call.by));
    }
  }

  #version(): string {
    return `write-${String(this.#versions++).padStart(6, "0")}`;
  }

  /** Asks each store, and compares its answer with that of the first store. */
  async #compare(by: ProcessNumber, ask: Ask, worlds = this.#worlds): Promise<Compared> {
    let expected: StoreAnswer | null = null;
    for (const world of worlds) {
      const found = {
        store: world.kind.name,
        answer: await untilAnswered(() => ask(world.store(by), world)),
      };
      expected ??= found;
      if (JSON.stringify(found.answer) !== JSON.stringify(expected.answer)) return { expected, found };
    }
    return null;
  }

  async #write(by: ProcessNumber, writes: readonly Write[]): Promise<Compared> {
    this.#agreed.calls.push(writes);
    const swaps = writes.map(({ swap }) => swap);
    let results: readonly SwapResult[] = [];
    const compared = await this.#compare(by, async (store) => {
      results = await swapSurely(store, swaps);
      const answers: Answer[] = [];
      for (const [at, write] of writes.entries()) {
        const result = results[at];
        if (result === undefined) answers.push("no answer");
        else answers.push(write.isUnfit ? await this.#unfit(store, write, result) : canonicalResult(result));
      }
      return answers;
    });
    writes.forEach(({ known, isUnfit }, at) => {
      const result = results[at]?.kind ?? "no answer";
      this.#onSituation(`a write that is ${isUnfit ? "unfit and " : ""}${result}`);
      if (result === "written" || result === "refused") this.#agreed.wrote(known, this.#now);
    });
    return compared;
  }

  /**
   * Some stores take an unfit write, and others refuse it. The record must agree with their answer. Then it is written with
   * valid labels, so that all stores have the same record again.
   */
  async #unfit(store: RecordStore, { swap, known }: Write, result: SwapResult): Promise<Answer> {
    if (result.kind !== "written" && result.kind !== "refused") return canonicalResult(result);
    const isWritten = result.kind === "written";
    const [stored] = await untilAnswered(async () => store.read([swap.key]));
    const expected = isWritten ? swap.version : swap.expected;
    const fit: Swap = {
      ...swap,
      record: known.record,
      index: known.index,
      expected,
      before: isWritten ? swap.index : swap.before,
      version: known.version,
    };
    const [repaired] = await swapSurely(store, [fit]);
    return { isTrue: (stored?.version ?? null) === expected, repaired: repaired?.kind };
  }

  async #take(by: ProcessNumber, atMost: number, hideMs: number): Promise<Compared> {
    const now = this.#now;
    const takesAll = this.#worlds.some(({ kind }) => kind.takesPerShard === true);
    const limit = takesAll ? atMost : this.#agreed.limitBetweenTimes(atMost, now);
    const since = (key: string): number => this.#agreed.dueSince(key, now);
    let taken: readonly DueRecord[] = [];
    const compared = await this.#compare(by, async (store) => {
      const takes = [await takeOfBothLanes(store, limit, hideMs)];
      // A poll may take the records of any shards, so polls go on until everything is taken.
      while (takesAll && limit > 0 && takes.at(-1)?.left !== 0 && takes.length < MOST_PAGES) {
        takes.push(await takeOfBothLanes(store, limit, hideMs));
      }
      const { left = 0, nextDueAt = null } = takes.at(-1) ?? {};
      taken = takes.flatMap(({ records }) => records);
      const isTooMuch = takes.some(({ records }) => records.length > limit);
      const found = canonicalDue({ records: taken, left, nextDueAt }, limit, since);
      return takesAll ? [isTooMuch, { ...found, areInOrder: "any" }] : [isTooMuch, found];
    });
    this.#agreed.took(
      taken.map(({ key }) => key),
      now,
      hideMs,
    );
    this.#onSituation(`a take of ${taken.length > 1 ? "several" : taken.length === 1 ? "one" : "none"}`);
    return compared;
  }

  #list({ by, filter, since, until, after, limit }: ListCall): Promise<Compared> {
    const known = this.#agreed.events();
    const nth = (n: number | null) =>
      n === null || known.length === 0 ? undefined : known[n % known.length];
    const isOfFinished = filter.state === "finished" || filter.state === "any";
    const { referenceId, tenant, event, id, ...others } = filter;
    const asked = {
      ...others,
      tenant: optionalLabelOf(tenant),
      event: optionalLabelOf(event),
      id: optionalLabelOf(id),
      referenceId: optionalLabelOf(referenceId),
      since: nth(since)?.acceptedAt,
      until: nth(until)?.acceptedAt,
    };
    return this.#compare(
      by,
      async (store) => {
        const pages: ListPage[] = [];
        let cursor: ListCursor | null = nth(after) ?? null;
        do {
          const page: ListPage = await store.list(asked, cursor, limit);
          pages.push(page);
          cursor = page.next;
        } while (cursor !== null && pages.length < MOST_PAGES);
        if (pages.length > 1) this.#onSituation("a list of several pages");
        return canonicalPages(pages, limit);
      },
      isOfFinished ? this.#worlds.filter(({ kind }) => kind.listsFinished) : this.#worlds,
    );
  }

  /** In a store without replicas, every stored record counts as replicated. */
  #replicated(by: ProcessNumber, keys: readonly string[]): Promise<Compared> {
    const items = keys.map((key, at) => {
      const current = this.#agreed.current(key, this.#now);
      const known = at % 2 === 0 ? current : (this.#agreed.earlier(key) ?? current);
      return { key, version: known?.version ?? "never" };
    });
    const since = this.#askedSince[by];
    this.#askedSince[by] ??= this.#now;
    // A process that is new to its primary need not confirm a record that has changed since.
    const isOpen =
      (since === null || this.#now - since < TRUSTED_AFTER_MS) &&
      items.some(({ key, version }) => version !== this.#agreed.current(key, this.#now)?.version);
    return this.#compare(by, async (store) => {
      const found = await store.read(keys);
      const areThere = found.every((one) => one !== null);
      const isConfirmed =
        store.replicated === undefined ? areThere : await isReplicated(() => store.replicated?.(items));
      return isOpen ? "any" : isConfirmed;
    });
  }
}

function optionalLabelOf(text: string | undefined): string | undefined {
  return text === undefined ? undefined : labelOf(text);
}

async function pruned(store: RecordStore): Promise<Answer> {
  let steps = 0;
  while ((await store.prune?.(store.now(""))) === true) if (++steps > MOST_PAGES) return "no end";
  return "all";
}

/** `replicated` may reject at any time, so it is asked several times. It never confirms a record that is not stored. */
async function isReplicated(ask: () => Promise<void> | undefined): Promise<boolean> {
  for (let attempts = 1; attempts <= SETTLE_ATTEMPTS; attempts++) {
    try {
      await ask();
      return true;
    } catch {}
  }
  return false;
}

async function untilAnswered<T>(ask: () => Promise<T>): Promise<T> {
  for (let attempts = 1; ; attempts++) {
    try {
      return await ask();
    } catch (error) {
      if (attempts === ATTEMPTS) throw error;
      await pause(RETRY_MS);
    }
  }
}

/** Like the engine, sends a write of unknown outcome again, and recognises it by its version if it was made. */
async function swapSurely(store: RecordStore, swaps: readonly Swap[]): Promise<readonly SwapResult[]> {
  const results = new Map<Swap, SwapResult>();
  let unsure = swaps;
  for (let attempts = 1; ; attempts++) {
    const answers = await store.swap(unsure);
    if (answers.length !== unsure.length) return [];
    unsure.forEach((swap, at) => {
      const answer = answers[at];
      if (answer === undefined) return;
      const isOwn =
        results.get(swap)?.kind === "unknown" &&
        answer.kind === "conflict" &&
        answer.current?.version === swap.version;
      results.set(swap, isOwn ? { kind: "written" } : answer);
    });
    const isUnsure = (swap: Swap): boolean =>
      ["unknown", "not-written"].includes(results.get(swap)?.kind ?? "");
    unsure = unsure.filter(isUnsure);
    if (unsure.length === 0 || attempts === ATTEMPTS) break;
    await pause(RETRY_MS);
  }
  return swaps.map((swap) => results.get(swap) ?? { kind: "unknown", cause: "no answer" });
}
