import type { Notice } from "@payhooks/core";
import type { IdempotencyRecord } from "@payhooks/core/inbox";
import type { CallFault, SystemFault } from "./faults.ts";
import type { Plan, PlannedDecision, PlannedEvent } from "./plan.ts";

/** One call of a handler. */
export interface HandlerCall {
  readonly process: string;
  readonly key: string;
  readonly eventId: string;
  readonly handler: string;
  readonly effectId: string;
  readonly attempt: number;
  /** True for an onHeld handler, which only notifies people. */
  readonly isOnHeld: boolean;
  /** The token of the run in which it was called; null if the store has none. */
  readonly token: string | null;
  /** The process whose lease the store had at that moment. */
  readonly leaseThen: string | null;
  readonly from: number;
  /** The store's clock then. */
  readonly now: number;
  /** The time at which the call, or its process, ended. */
  to: number | null;
  end: "done" | "threw" | "rejected" | "died" | null;
  /** It ran into its timeout: it went on, and its result was ignored. */
  timedOut: boolean;
}

/** One answer to a delivery, at the moment when the process gave it. */
export interface Answer {
  readonly at: number;
  readonly askedAt: number;
  readonly process: string;
  readonly event: PlannedEvent;
  readonly status: number;
  /** The event as the store had it at that moment. */
  readonly standing: "over" | "recorded" | "past" | "missing";
}

/** One record that the store has written. */
export interface Write {
  readonly at: number;
  /** The store's clock. */
  readonly now: number;
  readonly process: string;
  readonly key: string;
  readonly before: IdempotencyRecord | null;
  readonly after: IdempotencyRecord;
  /** A process of the old version cannot read it. */
  readonly isNewFormat: boolean;
}

/** Something went wrong. */
export interface Fault {
  readonly at: number;
  /** Until when it lasts. */
  readonly until: number;
  readonly what: SystemFault | CallFault | "death";
  readonly where: string;
  readonly process: string;
}

/** The store no longer has what it had. */
export interface Loss {
  readonly at: number;
  readonly keys: ReadonlySet<string>;
  /** The writes of these keys since this time were taken back. */
  readonly since: number;
  readonly isEverything: boolean;
}

export interface Decided {
  readonly at: number;
  readonly what: PlannedDecision["what"];
  readonly eventId: string;
}

export interface Noticed {
  readonly at: number;
  readonly process: string;
  readonly notice: Notice;
}

export interface Closing {
  readonly process: string;
  readonly at: number;
  readonly graceMs: number;
  closedAt: number | null;
}

/** How a history ended. */
export interface Rest {
  /** False: the history did not come to rest, and was given up. */
  readonly isReached: boolean;
  readonly at: number;
  /** The store's clock. */
  readonly now: number;
  readonly records: ReadonlyMap<string, IdempotencyRecord>;
  /** Events whose sender never got a 2xx. */
  readonly unacknowledged: readonly PlannedEvent[];
}

/** Everything that happened in one history. */
export class Chronicle {
  readonly plan: Plan;
  readonly calls: HandlerCall[] = [];
  readonly answers: Answer[] = [];
  readonly writes: Write[] = [];
  readonly faults: Fault[] = [];
  readonly losses: Loss[] = [];
  /** How often each effect was committed in the merchant's database. */
  readonly booked: Map<string, number> = new Map();
  readonly decisions: Decided[] = [];
  readonly notices: Noticed[] = [];
  readonly closings: Closing[] = [];
  /** Calls that came after the end of the lease under which they were made. */
  readonly late: string[] = [];
  /** The handlers of each process. */
  readonly handlerSets: Map<string, number> = new Map();
  /** The write that made a begin, by its token. */
  readonly begins: Map<string, Write> = new Map();
  /** Lines for a person; null if they are not wanted. */
  readonly story: string[] | null;
  rest: Rest | null = null;

  constructor(plan: Plan, withStory: boolean) {
    this.plan = plan;
    this.story = withStory ? [] : null;
  }

  /** A line of the story. Made only if lines are wanted. */
  log(at: number, who: string, line: () => string): void {
    this.story?.push(`${at.toFixed(1).padStart(9)}  ${who.padEnd(6)} ${line()}`);
  }
}
