import { readFound, writeFound } from "../results.ts";
import type { Estimate, Verdict } from "../statistics.ts";
import type { Way } from "./ways.ts";

export interface WayFigures {
  readonly way: Way;
  /** Of one event: processor time of the merchant's process, microseconds. */
  readonly cpuUs: Estimate;
  /** Of its server; null where the way has none. */
  readonly serverCpuUs: Estimate | null;
  readonly perSecond: Estimate;
}

/** Ours ÷ by hand, and the bound of it. */
export interface RatioFigures {
  readonly what: string;
  /** "≤ 0.85" */
  readonly goal: string;
  readonly figure: Estimate;
  readonly verdict: Verdict;
}

/** All ways with one kind of handler. */
export interface HandlerFigures {
  readonly handlerMs: number;
  readonly ways: readonly WayFigures[];
  readonly goals: readonly RatioFigures[];
}

export interface ByHandResults {
  readonly node: string;
  readonly cores: number;
  /** The system's load in the last minutes of the run. */
  readonly load: number;
  readonly measuredOn: string;
  readonly handlers: readonly HandlerFigures[];
}

const NAME = "by-hand";

export const readByHand = (): ByHandResults | null => readFound<ByHandResults>(NAME);
export const writeByHand = (results: ByHandResults): void => writeFound(NAME, results);
