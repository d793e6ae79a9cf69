import type { StallKind, UndatedNotice } from "../../notices/notice.ts";
import type { FlowName } from "../../protocol/events.ts";
import type { AsyncContext } from "../../time/async-context.ts";
import type { Cancellation } from "../../time/cancellation.ts";
import type { AcceptResult, RunReport, VerifiedEvent } from "../record/event.ts";
import type { HandlerChange } from "../record/handler-state.ts";
import type { RunInput } from "../record/run-input.ts";
import type { RunOutcome } from "../record/run-outcome.ts";
import type { SubjectAnswer } from "../record/subject.ts";
import type { InboxEvents } from "./events.ts";
import type { HandlersDiff } from "./handler-sets.ts";
import type { SharedTexts } from "./texts.ts";

/** The state of an inbox for an operator. A count is null if the inbox did not answer. */
export interface Health {
  /**
   * True if the inbox could accept an event now, and a process that runs events would run it. Within the last seconds,
   * a real event or a synthetic record has shown that this works.
   */
  readonly ok: boolean;
  /** Why not, in words; null if `ok`. The text is for the people who run the program, and may name servers. */
  readonly detail: string | null;
  /** The operation that fails; null if `ok`. See the notice `stalled`. */
  readonly failing: StallKind | null;
  /**
   * When this process last noticed that stored events were lost, or may have been, in milliseconds since the epoch; null if
   * never. A `data-lost` notice says how. The time is never reset.
   */
  readonly lostAt: number | null;
  /** Events that wait for their first run. */
  readonly waiting: number | null;
  /** Events that wait for another attempt. */
  readonly retrying: number | null;
  readonly running: number | null;
  readonly held: number | null;
  /** For how long the event that waits longest has been due, in milliseconds; null also when none is due. */
  readonly oldestDueMs: number | null;
}

/** A run in progress, as its {@link Runner} gets it. */
export interface RunHandle {
  /** The event, as its record has it. */
  readonly input: RunInput;
  /** Cancelled when the lease is lost, or when the inbox closes and the grace period is over. */
  readonly cancellation: Cancellation;
  /**
   * The context in which handlers are called: that of the request that accepted the event and so began this run, or the empty
   * one.
   */
  readonly context: AsyncContext;
  /**
   * Says whether a handler may be called now. `hand-back`: no, because the inbox is closing or the lease is over; hand
   * the event back. `lost`: no, because another process has the event, or may have it.
   */
  mayCall(): "yes" | "hand-back" | "lost";
  /**
   * Leaves this run's place to others until `turn` resolves, and then waits for a place again. False if the run must
   * not wait any longer, because events are handed back or the lease is lost.
   */
  waitWithoutPlace(turn: Promise<void>): Promise<boolean>;
  /** A handler was called. If the lease is lost from now on, an effect may happen twice. */
  noteCall(): void;
  /**
   * Writes the state of handlers, and repeats the write while the store is down. False: the lease is lost and nothing was
   * written.
   */
  write(changes: readonly HandlerChange[]): Promise<boolean>;
  /**
   * Claims the reference of the running event (`oneSuccessPerReference`), if the event has not claimed it yet. False if
   * the SUCCESS of another transaction has the reference.
   */
  claimReference(event: VerifiedEvent): Promise<boolean>;
  /**
   * Takes the subject of the running event, before any of its handlers is called. `acquired`: this is the latest event, all
   * earlier events that had not ended are stale, and no other event of the subject runs until this run is over.
   */
  takeSubject(event: VerifiedEvent): Promise<SubjectAnswer>;
  /** This event is outside of the table, and another event was read anew from it. Accepts that event into the same inbox. */
  accept(event: VerifiedEvent): Promise<AcceptResult>;
}

/** What the runner hands to the inbox at the end of a run, for one write. How that write went is an `EndResult`. */
export interface RunEnd {
  readonly outcome: RunOutcome;
  /** States of handlers that are not written yet. They are written together with the outcome. */
  readonly changes: readonly HandlerChange[];
  /** Called once both are written. */
  onWritten(): void;
}

/** The receiver's side of a run: calls the handlers, and reports the result. */
export interface Runner {
  /**
   * Runs the handlers of the event that have not finished, and resolves to the end of the run. If it rejects, the event
   * runs again.
   */
  run(run: RunHandle): Promise<RunEnd>;
  /**
   * The handler that a run calls first, if its start may be written by the same write that begins the run; null otherwise. Pure.
   */
  firstHandler(input: RunInput): string | null;
  /** The names of all handlers that this process has for the event, or of its onHeld handlers if it is held. Pure. */
  handlersOf(input: RunInput): readonly string[];
  /** How often a handler of an event of a flow may be called; 0 if this process does not have it. Left out: not known. Pure. */
  maxAttempts?(flow: FlowName, event: string, handler: string): number;
  /**
   * True if this process has the flow. It leaves events of other flows alone, for a process that has these. Left out:
   * it has every flow. Pure.
   */
  hasFlow?(flow: string): boolean;
  /** Passes a notice of the inbox to the receiver's observers and logger. */
  notify(notice: UndatedNotice): void;
}

/** Options of {@link Inbox.run}. */
export interface RunOptions {
  /** How many events run at one time in this process. */
  readonly concurrency: number;
}

/** The background runs of an inbox. */
export interface BackgroundRuns {
  /** Begins no further event until `resume`. Events that are running continue, and new ones are accepted. */
  pause(): void;
  /** Begins events again after `pause`, at once if any are due. */
  resume(): void;
  /** Begins no further event, and waits for those that are running. Nothing is aborted. */
  stop(): Promise<void>;
}

/** Options of {@link Inbox.work}. */
export interface WorkOptions {
  /** Takes no further event after this time. The call still waits for events that are running by then. */
  readonly deadlineMs: number;
  /** How many events to run at most. */
  readonly limit: number;
  /** How many events run at one time. */
  readonly concurrency: number;
}

/** The counts of one {@link Inbox.work}. */
export interface WorkReport {
  /** Runs that ended, however they ended. */
  readonly ran: number;
  /** How many of these will be retried, or are now held. */
  readonly failed: number;
  /**
   * Records that are due but were not reached. An inbox in a database counts up to 1,000 of them in each of two lanes (SQLite:
   * 10,000), so a higher number means "at least as many".
   */
  readonly remaining: number;
  /** When the next event is due (milliseconds since the epoch), or null when none waits. */
  readonly nextDueAt: number | null;
}

/** Options of {@link Inbox.accept}. */
export interface AcceptOptions {
  /** For how long the event is reserved for the caller, who runs it with {@link Inbox.runEvent}. Default 0. */
  readonly delayMs?: number | undefined;
  /**
   * How many entries may be held. When there are this many, an event that would be held at its acceptance is refused. A
   * tenant may have as many held entries as there are places left; beyond that, its events are refused, too. If other
   * processes use the store, the count is up to a second old, so a few more entries may be held.
   */
  readonly maxHeld?: number | undefined;
  /** How long the caller waits for the answer. After this time, a failed write is not repeated. Default 2 s. */
  readonly deadlineMs?: number | undefined;
  /**
   * Called with the reason each time the store did not take the event and the write is repeated. When the time is up,
   * the last reason is the cause of the error.
   */
  readonly onFailure?: ((cause: unknown) => void) | undefined;
  /** Runs the event at once, even if every place is taken (`ack: "handled"`): see {@link AcceptResult.whenHandled}. */
  readonly runAtOnce?: Runner | undefined;
  /** A short text of an instrumentation, which is kept with the event if it is new. Runs find it in `RunInput.trace`. */
  readonly trace?: string | null | undefined;
  /**
   * The context of the request. If this call begins a run of the event, its handlers are called there. Default: the empty one.
   */
  readonly context?: AsyncContext | undefined;
}

/** Options of {@link Inbox.runEvent}. */
export interface RunEventOptions {
  /** The context of the request that accepted the event, if that request also runs it. Default: the empty one. */
  readonly context?: AsyncContext | undefined;
  /**
   * If another event of the same record is begun or runs in this process, the call waits for its end, and then runs
   * this event. A handler must not use this, because it could wait for its own end. Default false: the call reports
   * `running` at once.
   */
  readonly afterOthers?: boolean | undefined;
}

/** Stores accepted events until they are handled. Choosing an inbox is the only decision about storage that a user makes. */
export interface Inbox {
  /**
   * The loss that an acknowledged event survives: a graceful end of the process, a crash of the host, or the loss of a machine.
   */
  readonly durability: "process" | "host" | "replicated";
  /** Sets the callback for notices that concern the whole inbox rather than one run. */
  observe(notify: (notice: UndatedNotice) => void): void;
  /** Connects to the store and checks it. Idempotent. */
  ready(): Promise<void>;
  /**
   * Keeps the names of a receiver's handlers beside the data, for all processes. Returns how they differ from those of the
   * receiver that started last; null if they do not, or if a receiver with the same handlers has started before.
   */
  compareHandlers(handlers: readonly string[]): Promise<HandlersDiff | null>;
  /**
   * Applies the table of deduplication in one atomic step and stores the event as durably as the inbox promises. If this
   * process runs events and has room for one more, the same step begins the event.
   * @throws PayhooksError `ERR_INBOX_UNAVAILABLE`, `ERR_INBOX_FULL` or `ERR_HELD_FULL`. Any throw means that the outcome is
   * unknown: nothing may be acknowledged.
   */
  accept(event: VerifiedEvent, options?: AcceptOptions): Promise<AcceptResult>;
  /** Runs due events in the background, until stopped. */
  run(runner: Runner, options: RunOptions): Promise<BackgroundRuns>;
  /** Runs the events that are due, including those whose lease has lapsed. */
  work(runner: Runner, options: WorkOptions): Promise<WorkReport>;
  /**
   * Runs one event now and skips its backoff, at most once a second. A call that comes sooner reports `waiting`, and does not
   * run it. An attempt before its time counts only if the process dies in it.
   */
  runEvent(runner: Runner, eventId: string, options?: RunEventOptions): Promise<RunReport>;
  readonly events: InboxEvents;
  /** Small texts beside the events, which all processes share. Leases of tasks are made of them. */
  readonly texts: SharedTexts;
  /** Says whether the inbox works, and how many events wait in it. */
  health(): Promise<Health>;
  /** Hands back the events whose handlers were not called yet. Waits for the others until `graceMs` is over. */
  close(options: { readonly graceMs: number }): Promise<{ readonly unfinished: number }>;
}
