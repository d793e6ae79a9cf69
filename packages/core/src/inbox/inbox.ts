import type { Awaitable } from "../awaitable.ts";
import type { Cancellation } from "../cancellation.ts";
import type { FlowName } from "../events.ts";
import type { EventFacts, Happening } from "../notices.ts";
import type { EventState } from "./record/index-of.ts";
import { referenceIdOf } from "./record/reference.ts";

/**
 * Why an event is kept for a person instead of being run. The first four never entered the table of
 * deduplication: nobody can say yet which event they are. The next three are the table's. The rest come from running.
 */
export type HeldReason =
  | "ambiguous"
  | "malformed"
  | "unexpected"
  | "unrecognized"
  | "conflict"
  | "mismatch"
  | "reference-reused"
  | "exhausted"
  | "rejected"
  | "crashed"
  | "unhandled";

/** True for what never entered the table of deduplication; a replay reads it again, as if it had just arrived. */
export function isEntry(verdict: "run" | HeldReason): boolean {
  return (
    verdict === "ambiguous" ||
    verdict === "malformed" ||
    verdict === "unexpected" ||
    verdict === "unrecognized"
  );
}

/** Where a slot stands. `stale` and `discarded` are ends, like `done`. */
export type SlotState = "waiting" | "running" | "done" | "held" | "stale" | "discarded";

/** A delivery as it is stored until it is done: what a replay parses again. */
export interface StoredDelivery {
  readonly flow: FlowName;
  readonly tenant: string;
  readonly source: "callback" | "lookup" | "webhook";
  /** The exact bytes that arrived. */
  readonly rawBody: Uint8Array;
  /** The header fields that the flow needs; for payments none. */
  readonly headers: Readonly<Record<string, string>>;
  /** Fingerprint of the key that verified it; null when it was not signed (`unsafeAllowUnsigned`, look-ups). */
  readonly keyId: string | null;
  /** Milliseconds since the epoch, on the receiver's clock. */
  readonly receivedAt: number;
  /** The body is not what arrived but the reading of it that `payments.confirm` chose. */
  readonly confirmed?: true;
}

/** A verified delivery, with everything that the table of deduplication (docs/deduplication.md) decides by. */
export interface VerifiedEvent {
  /** The record's key: 32 hex digits, a hash of tenant, flow and id. */
  readonly key: string;
  /** The normal run's slot in the record: 16 hex digits, a hash of event and status. `key + slot` is its eventId. */
  readonly slot: string;
  /** The slot for these very facts, used when they contradict the record. */
  readonly variantSlot: () => string;
  /** `payTxnId` or `idempotency_key`; for an entry, a hash of what was signed. */
  readonly id: string;
  readonly name: string;
  /** The payment's status; empty in the connect flow. */
  readonly status: string;
  /** 0 may be followed by 1. Null: sets neither rank nor facts. */
  readonly rank: 0 | 1 | null;
  /** Facts that never change between attempts; an absent one is not compared. */
  readonly identity: Readonly<Record<string, string>>;
  /** In one spelling per value, or null where the event has none. */
  readonly amount: string | null;
  /** When the service signed it, in milliseconds since the epoch; null where a malformed body does not say. */
  readonly signedAt: number | null;
  /** False when it was signed outside of the window: only what is already recorded is accepted. */
  readonly fresh: boolean;
  /** A person has said that it is to run although the store may have forgotten an earlier run of it. */
  readonly evenIfExpired?: true;
  /** A finished record is kept until max(now, greatest signedAt) + this, in milliseconds. */
  readonly retentionMs: number;
  /** Run it, or hold it for a reason that was found before the table is asked. */
  readonly verdict: "run" | HeldReason;
  /** What is wrong, when the verdict is to hold it. */
  readonly detail: string | null;
  /** With `oneSuccessPerReference`: the key of the one-key step that claims the reference for this id. */
  readonly referenceKey: string | null;
  readonly delivery: StoredDelivery;
}

const EVENT_ID = /^[0-9a-f]{48}$/;

/** Whether a text can be an eventId. */
export function isEventId(text: unknown): text is string {
  return typeof text === "string" && EVENT_ID.test(text);
}

/** The record's key in an eventId. */
export function recordKeyOf(eventId: string): string {
  return eventId.slice(0, 32);
}

/** The slot's key in an eventId. */
export function slotKeyOf(eventId: string): string {
  return eventId.slice(32);
}

/** What became of a delivery in the table of deduplication. */
export type AcceptOutcome = "new" | "progress" | "duplicate" | "stale" | "held" | "expired";

/** What became of an event that was offered to the inbox. */
export interface Accepted {
  readonly outcome: AcceptOutcome;
  /** The record's key and the slot's. With the outcomes `stale` and `expired` there may be no such event. */
  readonly eventId: string;
  /** Why it is held, for the outcome `held` and for copies of a held event. */
  readonly reason: HeldReason | null;
  /** What is wrong, in words, where there is a reason. Names fields, but not their values. */
  readonly detail: string | null;
  /** The amount that was known before, when this delivery changed it (outcome `progress`, or another source). */
  readonly previousAmount: string | null;
  /** This process has begun to run it. */
  readonly begun: boolean;
  /** PENDING events that waited, and will not run since this one is terminal. */
  readonly overtaken: readonly EventFacts[];
  /**
   * With the outcome `expired`: the inbox was too small to keep its records for the whole window, and no longer knows
   * events that were signed before this time.
   */
  readonly signedBefore?: number;
  /** With {@link AcceptOptions.handle}: what became of the event in the run that this call began, or found. */
  readonly handled?: Promise<RunReport>;
}

/** How one handler stands with one event. */
export interface Step {
  /** Tries that count: not those that were asked for early and failed, nor those that were taken back unstarted. */
  readonly tries: number;
  /** `started` at the next begin means that the process died, or lost its lease, while it ran. */
  readonly state: "started" | "done" | "failed" | "given-up";
  /** Not to be tried before this time (store's clock); 0: at once. */
  readonly dueAt: number;
  /** The last error, as text. */
  readonly error: string | null;
  /** Why it was given up; null otherwise. */
  readonly reason: GivenUp | null;
}

/** Why a handler is not tried again. */
export type GivenUp = "exhausted" | "rejected" | "crashed";

/** Steps of the onHeld handlers begin with this; they start anew whenever the event is held anew. */
export const TELL_PREFIX = "held:";

/** A line in an event's life. */
export interface HistoryEntry {
  readonly at: number;
  readonly what: string;
  readonly by?: string;
  readonly note?: string;
}

/** What a run is given: the slot's content under a lease. */
export interface LeaseData {
  /** The record's key. */
  readonly key: string;
  /** The slot's key. */
  readonly slot: string;
  readonly eventId: string;
  /** Names the begin of this run; every write of the run counts only as long as the record has it. */
  readonly token: string;
  /** `run` the event, or `tell` the onHeld handlers about a held one. */
  readonly mode: "run" | "tell";
  readonly verdict: "run" | HeldReason;
  readonly reason: HeldReason | null;
  readonly detail: string | null;
  /** The id, name and status that it was recorded under. */
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly delivery: StoredDelivery;
  /** How the handlers stood before this run. */
  readonly steps: Readonly<Record<string, Step>>;
  /** A replay of these handlers only; null: whatever has not finished. */
  readonly only: readonly string[] | null;
  /** The replay said so: run it although a record of an earlier run may have expired. */
  readonly evenIfExpired: boolean;
  readonly previousStatus: string | null;
  readonly previousAmount: string | null;
  /** The store's clock at the begin. */
  readonly now: number;
  /** Steps are tried before their time too. Such a try does not count when it fails. */
  readonly force: boolean;
  /** The step whose start was written together with the begin; null when it has to be written by itself. */
  readonly started: string | null;
}

/** What notices say of the event that is run. */
export function factsOf({ eventId, id, name, status, verdict, delivery }: LeaseData): EventFacts {
  const { flow, tenant } = delivery;
  const referenceId = referenceIdOf(delivery, verdict);
  return { flow, tenant, eventId, id, event: name, status, referenceId };
}

/** How a run ended. */
export type Ending =
  | { readonly kind: "done" }
  /** At least one handler is to be tried again, in `delayMs`. */
  | { readonly kind: "retry"; readonly delayMs: number }
  /** `tell`: there are onHeld handlers to run about it. */
  | {
      readonly kind: "held";
      readonly reason: HeldReason;
      readonly detail: string | null;
      readonly tell: boolean;
    }
  /** The onHeld handlers are through with it; it stays held. */
  | { readonly kind: "told" }
  /** No handler was called: another process may have it at once. */
  | { readonly kind: "released" };

/** How one handler stands from now on. Written twice, it is the same as written once. */
export type StepChange =
  | { readonly name: string; readonly kind: "started" | "done"; readonly attempt: number }
  | {
      readonly name: string;
      readonly kind: "failed";
      readonly attempt: number;
      readonly delayMs: number;
      readonly error: string;
    }
  | {
      readonly name: string;
      readonly kind: "given-up";
      readonly attempt: number;
      readonly reason: GivenUp;
      readonly error: string;
    }
  /** As it was `before` (null: never tried): it was not called, or called early, which does not count. */
  | { readonly name: string; readonly kind: "undone"; readonly before: Step | null };

/** Filter of the held list. */
export interface HeldFilter {
  readonly flow?: FlowName | undefined;
  readonly tenant?: string | undefined;
  readonly reason?: HeldReason | undefined;
  /** At most so many; default: all. */
  readonly limit?: number | undefined;
}

/** One event's whole life. */
export interface Life {
  readonly eventId: string;
  readonly flow: FlowName;
  readonly tenant: string;
  readonly id: string;
  readonly event: string;
  readonly status: string;
  readonly state: SlotState;
  readonly reason: HeldReason | null;
  readonly detail: string | null;
  readonly replays: number;
  /** Empty once the event is done. */
  readonly steps: Readonly<Record<string, Step>>;
  /** Empty once the event is done. */
  readonly history: readonly HistoryEntry[];
}

/** An entry of the held list: an event's life with what arrived. */
export interface Held extends Life {
  readonly state: "held";
  readonly reason: HeldReason;
  /** The merchant's reference of a payment; null in the connect flow, and where the reading is not certain. */
  readonly referenceId: string | null;
  readonly heldAt: number;
  readonly delivery: StoredDelivery;
}

/** Who decides about a held entry, and why. Both are kept in its history. */
export interface Decision {
  readonly by: string;
  readonly note: string;
}

/** How to replay a held entry. */
export interface ReplayDecision extends Decision {
  /** The handlers to run, finished ones too; default: those that have not finished. */
  readonly handlers?: readonly string[] | undefined;
  /**
   * For an entry that never met the table of deduplication (`ambiguous`, `malformed`, `unexpected`, `unrecognized`) and
   * was signed longer ago than `windowMs`: run it although the event may have run before and its record have expired.
   * There is a `double-risk` notice. Default false: such an entry stays held.
   */
  readonly evenIfExpired?: boolean | undefined;
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
  /** Whether an event could be accepted now. */
  readonly ok: boolean;
  /** Why not. */
  readonly detail: string | null;
  /** Events that wait for a run, those that are to be tried again included. */
  readonly waiting: number | null;
  readonly running: number | null;
  readonly held: number | null;
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

/** What became of one event that was run on the spot. */
export interface RunReport {
  /** The event's state afterwards; `running` when another run has it; null when there is no such event. */
  readonly state: SlotState | null;
  /** Whether this call ran it. */
  readonly ran: boolean;
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

/** What is listed: events in one of these states that the other fields let pass. */
export interface EventFilter {
  readonly state?: EventState | undefined;
  readonly flow?: FlowName | undefined;
  readonly tenant?: string | undefined;
  readonly event?: string | undefined;
  readonly reason?: HeldReason | undefined;
  readonly referenceId?: string | undefined;
  /** `payTxnId` or `idempotency_key`. */
  readonly id?: string | undefined;
  /** Accepted at this time or later, in milliseconds since the epoch. */
  readonly since?: number | undefined;
  /** Accepted before this time. */
  readonly until?: number | undefined;
}

/** The one storage decision that a user makes. */
export interface Inbox {
  /** What an acknowledged event survives: the process's graceful end, the host's crash, or a machine's loss. */
  readonly durability: "process" | "host" | "replicated";
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
  readonly held: HeldEntries;
  /** Whether the inbox answers, and how much waits in it. */
  health(): Promise<Health>;
  /** Hands back what no handler was called for, and waits for the rest until `graceMs` is over. */
  close(options: { readonly graceMs: number }): Promise<{ readonly unfinished: number }>;
}
