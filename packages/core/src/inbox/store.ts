import type { Awaitable } from "../awaitable.ts";
import type { Happening } from "../notices.ts";
import type {
  Accepted,
  Begun,
  Decision,
  Ending,
  Held,
  HeldFilter,
  Job,
  Life,
  ReplayDecision,
  StepChange,
  VerifiedEvent,
} from "./inbox.ts";

/** Options of {@link IdempotencyStore.accept}. */
export interface ClaimOptions {
  readonly maxHeld: number;
  /** For a store that also queues the job, in the same step: how long the queue holds it back. */
  readonly delayMs: number;
}

/** Options of {@link IdempotencyStore.begin}. */
export interface BeginOptions {
  /** Names the process, unique in the store's lifetime. */
  readonly owner: string;
  readonly leaseMs: number;
  /**
   * Skips the backoff. `asked`: a redelivery, or a person, wants it now; granted at most once a second, since copies are
   * anybody's to send. `last`: there will be no later one, since the queue ends with its process.
   */
  readonly force: "asked" | "last" | null;
}

/** The outcome of a fenced write: `lost` means that another worker has the event, and nothing was written. */
export type Fenced = "ok" | "lost";

/** The answer to the end of a run. `next` are jobs of the same record that waited for it. */
export interface Finished {
  readonly fenced: Fenced;
  readonly next: readonly Job[];
}

/**
 * One record per transaction, changed in atomic steps on one key. Every method may throw or reject, which means that its
 * outcome is unknown; every method may be called again. What it throws is told by its kind and code, since it may hold
 * what was given: throw a `PayhooksError` to have its words told. The steps of every event may answer at once, where nothing has to
 * be waited for.
 */
export interface IdempotencyStore {
  /** Connects and checks; idempotent. */
  ready(): Promise<void>;
  /** The table of deduplication: claims a slot, or says why not. Not `pending`: the job is queued already. */
  accept(event: VerifiedEvent, options: ClaimOptions): Awaitable<Accepted>;
  /** Sets the flag that lets copies be acknowledged. Does nothing else. */
  markQueued(job: Job): Awaitable<void>;
  /** Takes the slot under a lease: fence + 1. Finished slots are left alone. */
  begin(job: Job, options: BeginOptions): Awaitable<Begun>;
  /** Extends the lease to `leaseMs` from now. */
  renew(job: Job, token: string, leaseMs: number): Awaitable<Fenced>;
  /** Writes how one handler stands with the event. */
  step(job: Job, token: string, name: string, change: StepChange): Awaitable<Fenced>;
  /** Ends the run. */
  finish(job: Job, token: string, ending: Ending): Awaitable<Finished>;
  /** One event's whole life, or null when there is no record of it. */
  read(eventId: string): Promise<Life | null>;
  /** The held entries that the filter lets pass. */
  listHeld(filter: HeldFilter): AsyncIterable<Held>;
  /** Makes a held slot wait again and raises its number of replays, in one step; null when it is not held. */
  replay(eventId: string, decision: ReplayDecision): Promise<Job | null>;
  /** Ends a held slot; false when it is not held. */
  discard(eventId: string, decision: Decision): Promise<boolean>;
  /** Events by state, for `health`; null where the store cannot tell cheaply. Throws when it does not answer. */
  counts(): Promise<{
    readonly waiting: number | null;
    readonly running: number | null;
    readonly held: number | null;
  }>;
  /** Lets go of what it holds open. Called once, after the last step. */
  close(): Promise<void>;
}

/** What a queue does with a job after its run: gone, or due again. */
export type Disposition = "finished" | { readonly againInMs: number };

/** How a queue hands out its jobs. */
export interface ConsumeOptions {
  readonly concurrency: number;
  /** For what happens beside the jobs, such as a worker that had to be replaced. */
  readonly notify: (notice: Happening) => void;
}

/** Carries jobs from accept to a worker: at least once, in any order. It counts no tries and drops nothing. */
export interface Queue {
  /** Connects and checks; idempotent. */
  ready(): Promise<void>;
  /** Idempotent per job id while the job is known. */
  add(job: Job, options: { readonly delayMs: number }): Promise<void>;
  /** Makes a job that waits for later due at once; nothing when it does not wait. */
  hasten(job: Job): Promise<void>;
  /** Resolves once everything added before is as durable as promised. */
  barrier?(): Promise<void>;
  /** Hands jobs to `process`, up to `concurrency` at a time, until stopped; `stop` waits for those that run. */
  consume(
    process: (job: Job) => Promise<Disposition>,
    options: ConsumeOptions,
  ): Promise<{ stop(): Promise<void> }>;
  /** Takes one due job for the caller, or null. The caller must settle it. */
  take(): Promise<{ readonly job: Job; settle(disposition: Disposition): Promise<void> } | null>;
  /** Makes jobs available again whose taker died, and every delayed one that is due. */
  recover(): Promise<void>;
  /**
   * Only on a queue that does not outlive the process: makes every delayed job due, for its last try before the end.
   */
  hurry?(): Promise<void>;
  /** Due jobs, and when the next delayed one is due (milliseconds since the epoch). */
  pending(): Promise<{ readonly due: number; readonly nextDueAt: number | null }>;
  /** Lets go of what it holds open. Nothing is added, taken or consumed afterwards. */
  close(): Promise<void>;
}
