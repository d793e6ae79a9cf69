/** The interface of a receiver. create-receiver.ts makes one. */
import type { Effects } from "../effects/effects.ts";
import type { LookupTransaction } from "../flows/lookup.ts";
import type { Handler, HandlerContext, HandlerOptions } from "../handlers/handler.ts";
import type { Registration } from "../handlers/registration.ts";
import type { Events } from "../inbox/contract/events.ts";
import type { Health, WorkReport } from "../inbox/contract/inbox.ts";
import type { LeaseView, NamedLease } from "../inbox/named-lease.ts";
import type { AcceptOutcome, RunReport, StoredDelivery } from "../inbox/record/event.ts";
import type { StoredEvent } from "../inbox/record/stored-event.ts";
import type { Notice, NotReadyCode } from "../notices/notice.ts";
import type { Contents } from "../protocol/contents.ts";
import type { EventName, FlowName } from "../protocol/events.ts";
import { unknownSourceError } from "../sources/known-sources.ts";
import type { EventOfSource, NameOf, Sources } from "../sources/source.ts";
import type { Endpoint } from "./endpoint.ts";

/** The payments flow of a receiver. */
export interface PaymentsEndpoint extends Endpoint {
  /**
   * Feeds the result of a transaction look-up through the table of deduplication, so that an event that arrives both ways runs
   * once. `updated_at` is its signed time.
   * @param options `tenant` as the resolver names it. Required if a resolver chooses the keys, and refused otherwise.
   * @throws PayhooksError `ERR_TRANSACTION_INVALID`, `ERR_TRANSACTION_FOREIGN` if its `merchant_id` is not of this tenant or not
   * expected, `ERR_RESOLVER_FAILED`, `ERR_OPTION_MISSING` or `ERR_OPTION_INVALID` for the tenant, `ERR_CLOSING`
   * after `close()`, or what the inbox throws.
   */
  ingest(
    transaction: LookupTransaction,
    options?: { readonly tenant?: string | undefined },
  ): Promise<IngestResult>;
}

/** The answer to a load balancer. */
export interface Probe {
  readonly ok: boolean;
  /** Why not, as a code that anybody may see; null if it is ok. */
  readonly code: NotReadyCode | null;
  /** Why not, in words; null if it is ok. The text is for logs, and may name servers. */
  readonly detail: string | null;
}

/** Options of `receiver.ready`. */
export interface ReadyOptions {
  /** The longest time for which an event may have been due, in milliseconds. Default: any. */
  readonly maxDueAgeMs?: number | undefined;
}

/** The result of an ingested look-up. */
export interface IngestResult {
  readonly outcome: AcceptOutcome;
  readonly eventId: string;
}

/** The endpoints of a receiver's sources, by their names. */
export type SourceEndpoints<S extends Sources> = { readonly [Name in keyof S]: Endpoint };

/** No sources. */
// biome-ignore lint/complexity/noBannedTypes: an object without known names, so that no name of a source compiles.
export type NoSources = {};

/** A receiver with any sources and any context of handlers. */
export type AnyReceiver = Omit<
  Receiver,
  keyof Registration<Receiver, HandlerContext> | "on" | "ignore" | "effects" | "sources"
> & { readonly sources: Readonly<Record<string, Endpoint>> };

/** The names of a receiver's sources. */
export type SourceNameOf<Mounted extends AnyReceiver> = keyof Mounted["sources"] & string;

/** Receives the service's events, and those of other senders. Made by {@link createReceiver}. */
export interface Receiver<Context extends HandlerContext = HandlerContext, S extends Sources = NoSources>
  extends Registration<Receiver<Context, S>, Context> {
  /** Throws `ERR_FLOW_OFF` if the options have no `payments`. */
  readonly payments: PaymentsEndpoint;
  /** Throws `ERR_FLOW_OFF` if the options have no `connect`. */
  readonly connect: Endpoint;
  /** The endpoints of the option `sources`, by their names. */
  readonly sources: SourceEndpoints<S>;

  /**
   * Registers a handler of a source's events with this name; `"*"` stands for every name. A further handler of one name needs a
   * `name` of its own.
   * @throws PayhooksError `ERR_SOURCE_UNKNOWN`; `ERR_OPTION_INVALID` for a name that the source's `events` do not have;
   * `ERR_HANDLER_NAME`, `ERR_HANDLER_DUPLICATE`, `ERR_REGISTRATION_CLOSED`.
   */
  on<const Source extends keyof S & string, const Name extends NameOf<S[Source]>>(
    source: Source,
    name: Name,
    handler: Handler<EventOfSource<Source, S[Source], Name>, Context>,
    options?: HandlerOptions,
  ): this;
  /**
   * Declares that you do not want events with this name. They are then done when they arrive, instead of held.
   * @throws PayhooksError `ERR_OPTION_INVALID` when the event has a handler, `ERR_REGISTRATION_CLOSED`.
   */
  ignore(event: EventName): this;
  /**
   * Declares that you do not want events with these names of a source. They are acknowledged, and not counted.
   * @throws PayhooksError `ERR_SOURCE_UNKNOWN`, `ERR_OPTION_INVALID`, `ERR_REGISTRATION_CLOSED`.
   */
  ignore<const Source extends keyof S & string>(
    source: Source,
    ...names: readonly Exclude<NameOf<S[Source]>, "*">[]
  ): this;

  /**
   * Adds an observer, which gets a notice of everything that happens until the returned function is called. An observer can
   * neither slow down nor break a delivery.
   */
  observe(observer: (notice: Notice) => void): () => void;

  /**
   * Checks the set-up, and closes registration. With `run: "background"`, or without `run`, also begins to run events.
   * Idempotent. Adapters call it. It rejects with the failure of the first attempt. From then on, the receiver tries again by
   * itself, at intervals of at most about 15 s, until it has started or is closed. `ready()` is not ok meanwhile.
   * @throws PayhooksError a set-up code such as `ERR_OPTION_MISSING`, `ERR_INBOX_REQUIRED` or `ERR_NO_HANDLERS`.
   */
  start(): Promise<void>;
  /** Runs the events that are due, for a cron job. `deadlineMs` default 10 s, `limit` default 1,000. */
  work(options?: {
    readonly deadlineMs?: number | undefined;
    readonly limit?: number | undefined;
  }): Promise<WorkReport>;
  /**
   * Runs one event now, such as one that `notifyWorker` named. Skips its backoff, at most once a second. An attempt
   * before its time does not count against `maxAttempts` if it fails.
   * @throws PayhooksError `ERR_OPTION_INVALID` for a text that is not an eventId.
   */
  run(eventId: string): Promise<RunReport>;
  /**
   * Begins no further run in the background of this process until `resume()`. Deliveries are still accepted, runs that
   * have begun continue, and other processes still run events. `work()`, `run()` and `ack: "handled"` still run events.
   * Use it while you deploy a service that the handlers need.
   */
  pause(): void;
  /** Begins to run events again after `pause()`. */
  resume(): void;
  /** The names of the handlers that this process has for an event now. Empty if they are all in other processes. */
  handlersOf(event: Pick<StoredEvent, "flow" | "event" | "status">): readonly string[];
  /** Shows a person the delivery of an event, as this receiver's options read it. */
  contents(delivery: StoredDelivery): Contents;
  /** The events of the inbox: shows them, runs them again, brings them forward, discards and erases them. */
  readonly events: Events;
  /**
   * Takes the lease of a task that only one process may do at a time, for this many milliseconds, 30 days at most. Null while
   * another holder has it. Names have up to 50 lowercase letters, digits and `-`, and begin with a letter. Do not begin them
   * with `payhooks`.
   * @throws PayhooksError `ERR_OPTION_INVALID`, or what the inbox throws.
   */
  lease(name: string, lengthMs: number): Promise<NamedLease | null>;
  /**
   * The note of a task, and whether a process has its lease now. Null if the lease was never taken.
   * @throws PayhooksError `ERR_OPTION_INVALID` for a name that a lease cannot have, or what the inbox throws.
   */
  viewLease(name: string): Promise<LeaseView | null>;
  /** The option `effects`; null if there was none. */
  readonly effects: Effects<Context> | null;
  /** Says whether the receiver should have started and has, whether events can be accepted and run, and how many events wait. */
  health(): Promise<Health>;
  /**
   * True if this process should keep running: false once `close()` was called. Does not ask the inbox, and so says nothing about
   * it.
   */
  live(): Probe;
  /**
   * True if deliveries should be sent to this process. False once `close()` was called, while a start has not
   * succeeded, and while events cannot be accepted, taken or ended. With `maxDueAgeMs`, also false while an event has
   * been due for longer than that. When the answer changes, there is a notice.
   * @throws PayhooksError `ERR_OPTION_INVALID` for a `maxDueAgeMs` that is not a positive number.
   */
  ready(options?: ReadyOptions): Promise<Probe>;
  /**
   * Answers 503 from now on, and waits for the handlers that are running. `unfinished` counts the events that were still
   * running after `graceMs` (default 10 s) or, with an inbox in memory, are lost.
   */
  close(options?: { readonly graceMs?: number | undefined }): Promise<{ readonly unfinished: number }>;
}

/** The endpoint of a flow. Throws `ERR_FLOW_OFF` or `ERR_SOURCE_UNKNOWN`. */
export function endpointOf(receiver: AnyReceiver, flow: FlowName): Endpoint {
  if (flow === "payments") return receiver.payments;
  if (flow === "connect") return receiver.connect;
  const { sources } = receiver;
  const endpoint = Object.hasOwn(sources, flow) ? sources[flow] : undefined;
  if (endpoint === undefined) throw unknownSourceError(flow, Object.keys(sources));
  return endpoint;
}
