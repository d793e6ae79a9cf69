import { isDocumented } from "./callback.ts";

/** How many steps the search for readings may take. This is a millisecond or two. */
export const MAX_STEPS = 20_000;

type Path = readonly (readonly [part: number, end: number])[];

/** Walks the paths that differ in their documented fields, the cheapest first, within a limited number of steps. */
export class ReadingSearch {
  readonly #steps: readonly (readonly number[])[];
  readonly #costOf: (part: number, end: number) => number;
  /** For each part, the documented parts (or the end) that can be reached through undocumented parts only, as a set of bits. */
  readonly #documentedFrom: readonly bigint[];
  /** For each part, the cost of the cheapest way to the end. */
  readonly #cheapest: readonly number[];
  #left = MAX_STEPS;

  /** `names` are the names of the parts; null if a part begins no field. */
  constructor(steps: readonly (readonly number[])[], names: readonly (string | null)[]) {
    const cost = costOf(names);
    this.#steps = steps;
    this.#costOf = cost;
    const end = steps.length;
    const documentedFrom: bigint[] = [];
    const cheapest: number[] = [];
    documentedFrom[end] = 1n << BigInt(end);
    cheapest[end] = 0;
    for (let i = end - 1; i >= 0; i--) {
      const next = steps[i] ?? [];
      const documented = isDocumented(names[i] ?? "");
      documentedFrom[i] = documented
        ? 1n << BigInt(i)
        : next.reduce((all, to) => all | (documentedFrom[to] ?? 0n), 0n);
      const costs = next.map((to) => (cheapest[to] ?? 0) + (documented ? cost(i, to) : 0));
      cheapest[i] = Math.min(...costs);
    }
    this.#documentedFrom = documentedFrom;
    this.#cheapest = cheapest;
  }

  /** How many steps were taken so far. */
  get steps(): number {
    return Math.min(MAX_STEPS, MAX_STEPS - this.#left);
  }

  /** Calls `take` for each path until it says false. Returns whether all paths were walked. */
  run(take: (path: Path) => boolean): boolean {
    if ((this.#steps[0]?.length ?? 0) === 0) return true;
    for (let budget = this.#cheapest[0] ?? 0; budget <= MAX_COST; budget++) {
      if (!this.#walk(0, budget, [], take)) return false;
    }
    return true;
  }

  /** Continues from a part, for paths that cost exactly the rest of the budget. */
  #walk(from: number, budget: number, path: Path, take: (path: Path) => boolean): boolean {
    const reached = this.#documentedFrom[from] ?? 0n;
    for (let part = from; part <= this.#steps.length; part++) {
      if (this.#left-- <= 0) return false;
      if ((reached & (1n << BigInt(part))) === 0n) continue;
      if (part === this.#steps.length) {
        if (budget === 0 && !take(path)) return false;
        continue;
      }
      for (const end of this.#steps[part] ?? []) {
        if (this.#left-- <= 0) return false;
        const left = budget - this.#costOf(part, end);
        if (left < (this.#cheapest[end] ?? 0)) continue;
        if (!this.#walk(end, left, [...path, [part, end]], take)) return false;
      }
    }
    return true;
  }
}

/** The fields in which an `&` is not unusual. */
const OFTEN_WITH_AMPERSAND: ReadonlySet<string> = new Set(["callbackUrl", "message", "referenceId"]);
const MAX_COST = 7;

/**
 * A value that contains an `&` costs 1, or 2 if that is unusual. Five fields can have such a value, so a path costs 7 at most.
 */
function costOf(names: readonly (string | null)[]): (part: number, end: number) => number {
  return (part, end) => (end === part + 1 ? 0 : OFTEN_WITH_AMPERSAND.has(names[part] ?? "") ? 1 : 2);
}
