/** The results of a run, as they are kept in a file for each version of Node. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { FrameworkName, Mode, PeerName, Scheme } from "./protocol.ts";
import type { Estimate, Verdict } from "./statistics.ts";

export interface ModeFigures {
  readonly mode: Mode;
  /** Processor time of the server process per request, microseconds. */
  readonly cpuUs: Estimate;
  readonly perSecond: Estimate;
  /** The processor time of the reference ÷ that of this mode. */
  readonly ratio: Estimate;
}

export interface GroupFigures {
  readonly framework: FrameworkName;
  readonly scheme: Scheme;
  /** The one that the others of the group are compared with. */
  readonly reference: Mode;
  readonly modes: readonly ModeFigures[];
}

export interface GoalFigures {
  readonly what: string;
  /** "≥ 0.96" */
  readonly goal: string;
  readonly figure: Estimate;
  readonly acceptingAlone: Estimate | null;
  readonly least: Estimate | null;
  readonly verdict: Verdict;
}

/** A peer, and ours, each beside its own bare framework: the bare one's processor time ÷ its. */
export interface PeerFigures {
  readonly peer: PeerName;
  readonly framework: "node" | "express";
  readonly cpuUs: Estimate;
  readonly besideBare: Estimate;
  readonly oursBesideBare: Estimate;
  /** Ours ÷ the peer's; above 1, ours costs less. */
  readonly ratio: Estimate;
  readonly acceptingAlone: Estimate;
  readonly verdict: Verdict;
}

export interface LatencyFigures {
  readonly mode: Mode;
  readonly requests: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
}

export interface BurstFigures {
  readonly mode: Mode;
  readonly deliveries: number;
  /** Until the last answer. */
  readonly ms: number;
  readonly lagMs: number;
}

export interface ThroughputFigures {
  readonly processes: number;
  readonly events: number;
  readonly perSecond: number;
  /** Of all server processes together, per event. */
  readonly cpuUs: number;
  readonly redisCpuUs: number;
}

export interface ScalingFigures {
  readonly mode: Mode;
  readonly records: number;
  readonly cpuUs: number;
}

export interface EntryFigures {
  readonly entry: string;
  readonly minifiedBytes: number;
  readonly gzipBytes: number;
  readonly importMs: number;
}

/** Milliseconds from the start of a process on Express until it listens. */
export interface StartFigures {
  readonly bareMs: number;
  readonly oursMs: number;
}

/** Microseconds of processor time for one delivery in a loop, each part with the one before. */
export interface PartFigures {
  readonly scheme: Scheme;
  readonly part: "signature" | "byHand" | "accepted" | "handled";
  readonly cpuUs: number;
}

/** Microseconds of a request by the place where they go, as a sampling profiler sees it. */
export interface ProfileFigures {
  readonly mode: Mode;
  readonly cpuUs: Readonly<Record<string, number>>;
}

/** The results of `--all` alone. A run without it leaves these as an earlier one has found them. */
export interface MoreResults {
  readonly peers?: readonly PeerFigures[];
  readonly latency?: readonly LatencyFigures[];
  readonly bursts?: readonly BurstFigures[];
  readonly throughput?: readonly ThroughputFigures[];
  readonly scaling?: readonly ScalingFigures[];
  readonly entries?: readonly EntryFigures[];
  readonly start?: StartFigures;
}

export interface Results extends MoreResults {
  readonly parts?: readonly PartFigures[];
  readonly profile?: readonly ProfileFigures[];
  readonly node: string;
  readonly cores: number;
  /** The system's load in the last minutes of the run; the bench itself is about 2 of it. */
  readonly load: number;
  /** The day of the newest section. */
  readonly measuredOn: string;
  readonly goals: readonly GoalFigures[];
  readonly groups: readonly GroupFigures[];
  readonly recordBytes: Readonly<Partial<Record<"memory" | "sqlite" | "redis", number>>>;
}

export const VERSIONS = [20, 24] as const;

export const readResults = (major: number): Results | null => readFound<Results>(`node-${major}`);
export const writeResults = (major: number, results: Results): void => writeFound(`node-${major}`, results);

const fileOf = (name: string): string => fileURLToPath(new URL(`results/${name}.json`, import.meta.url));

/** The results that a bench has written under this name, or null. */
export function readFound<Found>(name: string): Found | null {
  const file = fileOf(name);
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Found) : null;
}

export function writeFound(name: string, found: object): void {
  mkdirSync(new URL("results", import.meta.url), { recursive: true });
  writeFileSync(fileOf(name), `${JSON.stringify(rounded(found), null, 2)}\n`);
}

/** Four significant digits: more are noise, and change every line of the file. */
function rounded(value: unknown): unknown {
  if (typeof value === "number") return Number.isInteger(value) ? value : Number(value.toPrecision(4));
  if (Array.isArray(value)) return value.map(rounded);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, rounded(inner)]));
}
