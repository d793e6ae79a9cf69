import type { Chronicle } from "./chronicle.ts";
import type { Core } from "./core.ts";
import { play } from "./history.ts";
import { violationOf } from "./invariants.ts";
import { DEFAULT_SIZE, type Plan, planOf, type Size } from "./plan.ts";
import type { Coverage } from "./world.ts";

export interface Violation {
  readonly seed: number;
  readonly invariant: string;
  readonly how: string;
}

export interface Exploration {
  readonly histories: number;
  readonly violations: readonly Violation[];
  readonly coverage: Coverage;
  readonly tookMs: number;
  readonly calls: number;
  readonly writes: number;
}

export interface ExploreOptions {
  readonly core: Core;
  /** The first seed; the next history has the next one. */
  readonly seed: number;
  readonly histories: number;
  readonly size?: Size;
  /** Stops after this many violations. Default 1. */
  readonly enough?: number;
  /** Called now and then with the number of histories played. */
  readonly onProgress?: (played: number) => void;
}

/** Plays one history after the other. */
export async function explore(options: ExploreOptions): Promise<Exploration> {
  const { core, seed, histories, size = DEFAULT_SIZE, enough = 1, onProgress } = options;
  const coverage: Coverage = new Map();
  const violations: Violation[] = [];
  const began = performance.now();
  let [played, calls, writes] = [0, 0, 0];
  while (played < histories && violations.length < enough) {
    const plan = planOf(seed + played, size);
    const chronicle = await play(plan, core, coverage);
    played++;
    calls += chronicle.calls.length;
    writes += chronicle.writes.length;
    const violation = violationOf(chronicle);
    if (violation !== null) violations.push({ seed: plan.seed, ...violation });
    if (played % 1_000 === 0) onProgress?.(played);
  }
  return { histories: played, violations, coverage, tookMs: performance.now() - began, calls, writes };
}

/** The same violation in the smallest plan that still has it: faults, events, decisions and processes are taken away. */
async function shrink(plan: Plan, invariant: string, core: Core): Promise<Plan> {
  const stillFails = async (smaller: Plan): Promise<boolean> => {
    const chronicle = await play(smaller, core, new Map());
    return violationOf(chronicle)?.invariant === invariant;
  };
  let smallest = plan;
  for (let isSmaller = true; isSmaller; ) {
    isSmaller = false;
    for (const candidate of smallerThan(smallest)) {
      if (!(await stillFails(candidate))) continue;
      smallest = candidate;
      isSmaller = true;
      break;
    }
  }
  return smallest;
}

/** Plans with less in them. Those with much less come first. */
function* smallerThan(plan: Plan): Generator<Plan> {
  const { events, faults, decisions, processes } = plan;
  for (let half = events.length >> 1; half > 1; half >>= 1) {
    for (let at = 0; at < events.length; at += half) yield { ...plan, events: without(events, at, half) };
  }
  if (processes > 1) yield { ...plan, processes: processes - 1 };
  for (let at = 0; at < faults.length; at++) yield { ...plan, faults: without(faults, at, 1) };
  for (let at = 0; at < decisions.length; at++) yield { ...plan, decisions: without(decisions, at, 1) };
  for (let at = 0; at < events.length; at++) yield { ...plan, events: without(events, at, 1) };
}

function without<T>(list: readonly T[], from: number, count: number): readonly T[] {
  return list.filter((_, at) => at < from || at >= from + count);
}

/** A violation as a text for people: the smallest history that has it, line by line, and the command that repeats it. */
export async function storyOf(
  { seed, invariant, how }: Violation,
  core: Core,
  size: Size = DEFAULT_SIZE,
): Promise<string> {
  const plan = planOf(seed, size);
  const smallest = await shrink(plan, invariant, core);
  const chronicle: Chronicle = await play(smallest, core, new Map(), true);
  const now = violationOf(chronicle);
  const { processes, events, faults, leaseMs, pollMs, concurrency, replicated, operation } = smallest;
  return [
    `seed ${seed} breaks ${invariant}: ${how}`,
    `smallest: ${processes} processes, ${events.length} events, ${faults.length} faults, lease ${leaseMs} ms, poll ${pollMs} ms, concurrency ${concurrency}, ${operation}${replicated ? ", replicas" : ""}`,
    ...(chronicle.story ?? []),
    `broken: ${now?.how ?? how}`,
    `again: npm run test:simulation -- --histories 1 --seed ${seed}`,
  ].join("\n");
}
