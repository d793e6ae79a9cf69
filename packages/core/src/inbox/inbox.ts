import type { Happening } from "../notices/notice.ts";
import type { FlowName } from "../protocol/events.ts";
import type { HeldReason } from "../protocol/held-reasons.ts";
import type { Awaitable } from "../time/awaitable.ts";
import type { Cancellation } from "../time/cancellation.ts";
import type { EventEntries, FindQuery } from "./events.ts";
import type { Accepted, RunReport, VerifiedEvent } from "./record/event.ts";
import type { EventSummary } from "./record/index-of.ts";
import type { Ending, LeaseData, StepChange } from "./record/lease.ts";
import type { Decision, Held, Life, ReplayDecision } from "./record/life.ts";

/** Filter of the held list. */
export interface HeldFilter {
  readonly flow?: FlowName | undefined;
  readonly tenant?: string | undefined;
  readonly reason?: HeldReason | undefined;
  /** At most so many; default: all. */
  readonly limit?: number | undefined;
}

/** The held list of an inbox. */
export interface HeldEntries {
  /** The entries that the filter lets pass. */
  list(filter?: HeldFilter): AsyncIterable<Held>;
  /** @throws PayhooksError `ERR_HELD_NOT_FOUND` when no held entry has this eventId. */
  replay(eventId: string, decision: ReplayDecision): Promise<void>;
  /** @throws PayhooksError `ERR_HELD_NOT_FOUND` when no held entry has this eventId. */
  discard(eventId: string, decision: Decision): Promise<void>;
}

/** What an operator wants to know. Counts are null where the inbox did not answer. */
export interface Health {
  /** Whether an event could be accepted now: a write was tried, in the last second. */
  readonly ok: boolean;
  /** Why not. */
  readonly detail: string | null;
  /**
   * When this process noticed last that stored events were lost, or may be (milliseconds since the epoch); null: never. A
   * `data-lost` notice says how. It does not go away by itself.
   */
  readonly lostAt: number | null;
  /** Events that wait for a run, those that are to be tried again included. */
  readonly waiting: number | null;
  readonly running: number | null;
  readonly held: number | null;
  /** For how long the event that waits longest has been due, in milliseconds; null also where none is due. */
  readonly oldestDueMs: number | null;
}

/** A lease that is being worked under; given to the {@link Runner}. */
export interface Lease {
  /** What is run. */
  readonly data: LeaseData;
  /** Cancelled when the lease is lost, or when the inbox closes and its grace is over. */
  readonly cancellation: Cancellation;
  /** Whether a handler may be called now. `hand-back`: the inbox closes. `lost`: another process may have the event. */
  mayCall(): "yes" | "hand-back" | "lost";
  /** From now on a loss of the lease means that an effect may come twice. */
  called(): void;
  /** Writes how handlers stand, repeating while the store is down. False: the lease is lost and nothing was written. */
  write(changes: readonly StepChange[]): Awaitable<boolean>;
  /** Enters another event, released from this entry, into the same inbox. */
  accept(event: VerifiedEvent): Awaitable<Accepted>;
}

/** What a run has come to. */
export interface RunEnd {
  readonly ending: Ending;
  /** How handlers stand that no write has told of yet: written together with the ending. */
  readonly changes: readonly StepChange[];
  /** Called once that is written. */
  written(): void;
}

/** The receiver's side: it runs handlers and says how that ended. It never rejects. */
export interface Runner {
  /** Runs what has not finished of the event, and answers how that ended. */
  run(lease: Lease): Promise<RunEnd>;
  /** The step that a run begins with, if its start may be written with the begin; null otherwise. Pure. */
  firstStep(data: LeaseData): string | null;
  /** Takes a notice of the inbox to the receiver's observer and logger. */
  notify(notice: Happening): void;
}

/** Options of {@link Inbox.run}. */
export interface RunOptions {
  /** Events that run at one time in this process. */
  readonly concurrency: number;
}

/** The background runs of an inbox. */
export interface Running {
  /** Begins nothing more until `resume`. What runs goes on, and events are accepted. */
  pause(): void;
  /** Begins again after `pause`, at once where something is due. */
  resume(): void;
  /** Takes nothing more and waits for what runs. Nothing is aborted. */
  stop(): Promise<void>;
}

/** Options of {@link Inbox.work}. */
export interface WorkOptions {
  /** Stops taking after this time; what runs is waited for. */
  readonly deadlineMs: number;
  /** Events to run, at most. */
  readonly limit: number;
  /** Events that run at one time. */
  readonly concurrency: number;
}

/** What {@link Inbox.work} did. */
export interface WorkReport {
  /** Runs that ended, in whatever way. */
  readonly ran: number;
  /** Of these, the ones that will be retried or are now held. */
  readonly failed: number;
  /** Events that are due but were not reached. */
  readonly remaining: number;
  /** When the next one is due (milliseconds since the epoch), or null when none waits. */
  readonly nextDueAt: number | null;
}

/** Options of {@link Inbox.accept}. */
export interface AcceptOptions {
  /** Nobody else runs it for this long, since the caller will: {@link Inbox.runEvent}. Default 0. */
  readonly delayMs?: number | undefined;
  /**
   * Entries that may be held: beyond, an event that would be held at its acceptance is refused. The count is up to a second
   * old where the store is another process's too, so that a few more may be held.
   */
  readonly maxHeld?: number | undefined;
  /** How long the caller waits for the answer. What is not written by then is not tried again. Default 2 s. */
  readonly deadlineMs?: number | undefined;
  /** Runs the event at once, whatever else runs (`ack: "handled"`): see {@link Accepted.handled}. */
  readonly handle?: Runner | undefined;
}

/** The one storage decision that a user makes. */
export interface Inbox {
  /** What an acknowledged event survives: the process's graceful end, the host's crash, or a machine's loss. */
  readonly durability: "process" | "host" | "replicated";
  /** Takes notices that concern the whole inbox, and no single run, to the receiver. */
  observe(notify: (notice: Happening) => void): void;
  /** Connects and checks; idempotent. */
  ready(): Promise<void>;
  /**
   * Applies the table of deduplication in one atomic step and stores the event as durably as the inbox promises. Where
   * this process runs events and has room for one more, the same step begins the event.
   * @throws PayhooksError `ERR_INBOX_UNAVAILABLE`, `ERR_INBOX_FULL` or `ERR_HELD_FULL`. Any throw means that the
   * outcome is unknown: nothing may be acknowledged. An inbox in this process's memory answers, or throws, at once.
   */
  accept(event: VerifiedEvent, options?: AcceptOptions): Awaitable<Accepted>;
  /** Runs what is due, in the background, until stopped. */
  run(runner: Runner, options: RunOptions): Promise<Running>;
  /** Works off what is due, leases that have lapsed included. */
  work(runner: Runner, options: WorkOptions): Promise<WorkReport>;
  /**
   * Runs one event now, its backoff skipped: at most once a second (`waiting`, and not `ran`, otherwise). A try before its
   * time counts only if the process dies in it.
   */
  runEvent(runner: Runner, eventId: string): Promise<RunReport>;
  /** One event's whole life, or null when there is no record of it. */
  read(eventId: string): Promise<Life | null>;
  /** The events of one transaction, one webhook or one reference, the one that was accepted first at their head. */
  find(query: FindQuery): Promise<readonly EventSummary[]>;
  readonly events: EventEntries;
  readonly held: HeldEntries;
  /** Whether the inbox answers, and how much waits in it. */
  health(): Promise<Health>;
  /** Hands back what no handler was called for, and waits for the rest until `graceMs` is over. */
  close(options: { readonly graceMs: number }): Promise<{ readonly unfinished: number }>;
}
