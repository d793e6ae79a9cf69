/** The faults of a history, and the places at which they happen. */

/** The places at which a fault can happen to a process: before and after the effect of each of these calls. */
export const SITES = [
  "open",
  "read",
  "swap",
  "takeDue",
  "replicated",
  "hint",
  "request",
  "answer",
  "handler",
  "timer",
  "clock",
  "close",
] as const;
export type Site = (typeof SITES)[number];

/** Faults of a process, or of everything, which can happen at any place. */
export const SYSTEM_FAULTS = [
  "death",
  "freeze",
  "sleep",
  "wall-back",
  "wall-forward",
  "store-clock-back",
  "store-clock-forward",
  "cut-off",
  "store-down",
  "failover",
  "lose-all",
  "close",
  "deploy",
] as const;
export type SystemFault = (typeof SYSTEM_FAULTS)[number];

/** Faults of a single call. */
export const CALL_FAULTS = ["not-made", "answer-lost", "late", "lands-late", "part", "twice"] as const;
export type CallFault = (typeof CALL_FAULTS)[number];

/** The faults of a call that can happen at each place. */
export const CALL_FAULTS_OF: Readonly<Record<Site, readonly CallFault[]>> = {
  open: ["not-made", "answer-lost", "late"],
  read: ["not-made", "answer-lost", "late"],
  swap: ["not-made", "answer-lost", "late", "lands-late", "part", "twice"],
  takeDue: ["not-made", "answer-lost", "late", "twice"],
  replicated: ["not-made", "answer-lost", "late"],
  hint: ["not-made", "late", "twice"],
  request: ["not-made", "late", "twice"],
  answer: ["answer-lost", "late"],
  handler: ["not-made", "answer-lost", "late"],
  timer: ["late"],
  clock: [],
  close: ["not-made", "late"],
};

/** How often a history meets a site, about: a planned fault falls on one of these. */
export const USUAL_MEETINGS: Readonly<Record<Site, number>> = {
  open: 3,
  read: 4,
  swap: 50,
  takeDue: 30,
  replicated: 10,
  hint: 1,
  request: 20,
  answer: 20,
  handler: 18,
  timer: 40,
  clock: 300,
  close: 1,
};

export type Phase = "before" | "after" | "at";

/** One fault of a history: it happens when its site is met for the nth time. */
export interface PlannedFault {
  readonly what: SystemFault | CallFault;
  readonly site: Site;
  /** `at` for faults of a call, which are its own. */
  readonly phase: Phase;
  readonly nth: number;
}

export interface FaultPoint extends Pick<PlannedFault, "what" | "site" | "phase"> {}

/** Every fault at every place where it can happen. */
export const FAULT_POINTS: readonly FaultPoint[] = SITES.flatMap((site) => [
  ...SYSTEM_FAULTS.flatMap((what) => [
    { what, site, phase: "before" as const },
    { what, site, phase: "after" as const },
  ]),
  ...CALL_FAULTS_OF[site].map((what) => ({ what, site, phase: "at" as const })),
]);

export function isCallFault(what: SystemFault | CallFault): what is CallFault {
  return (CALL_FAULTS as readonly string[]).includes(what);
}

export function nameOf({ what, site, phase }: FaultPoint): string {
  return `${what} ${phase} ${site}`;
}
