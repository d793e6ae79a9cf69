import { type AlertOptions, Alerts } from "./alerts.ts";
import { type Clock, systemClock } from "./clock.ts";
import {
  type Delivery,
  type DeliveryHead,
  findHeadFault,
  RECEIVED,
  type Reply,
  refusal,
} from "./delivery.ts";
import { ANSWER_STATUS, type DeliveryErrorCode, isPayhooksError, PayhooksError } from "./errors.ts";
import type {
  AnyEvent,
  ConnectedAccountApprovedEvent,
  ConnectedAccountDeclinedEvent,
  DepositEvent,
  EventName,
  FlowName,
  PaymentEvent,
  PaymentStatus,
  SettlementApprovedEvent,
  SettlementDeclinedEvent,
  WithdrawalEvent,
} from "./events.ts";
import { type ConnectOptions, connectFlow } from "./flows/connect.ts";
import { type Flow, ONLY_TENANT, type Reading, type Verification, withFreshness } from "./flows/flow.ts";
import {
  type LookupTransaction,
  type PaymentsFlow,
  type PaymentsOptions,
  paymentsFlow,
} from "./flows/payments.ts";
import {
  checkPositive,
  type Handler,
  type HandlerOptions,
  type HeldEvent,
  type PaymentHandlers,
  Registry,
} from "./handlers.ts";
import type {
  Accepted,
  AcceptOutcome,
  Health,
  HeldEntries,
  Inbox,
  Life,
  Running,
  RunReport,
  WorkReport,
} from "./inbox/inbox.ts";
import { parseJobId } from "./inbox/inbox.ts";
import { memoryInbox } from "./inbox/memory/index.ts";
import { consoleLogger, type EventFacts, type Logger, type Notice, NoticeBoard } from "./notices.ts";
import { createRunner } from "./runner.ts";

/** Options of {@link createReceiver}. A flow that is left out is off. */
export interface ReceiverOptions {
  /** The payments flow: per-transaction callbacks. */
  readonly payments?: PaymentsOptions | undefined;
  /** The connect flow: connected-account webhooks. */
  readonly connect?: ConnectOptions | undefined;
  /** Where events are kept. Default: memory, refused with `NODE_ENV=production` unless it is named. */
  readonly inbox?: Inbox | undefined;
  /** When to answer 200: once the event is stored (default), or once its handlers are done. */
  readonly ack?: "enqueued" | "handled" | undefined;
  /** With `ack: "handled"`: how long the handlers may take before the answer is 503. Default 8 s. */
  readonly handledBudgetMs?: number | undefined;
  /** Where handlers run: in this process (default), after each response, or in another process. */
  readonly run?: "background" | "after-response" | "elsewhere" | undefined;
  /** Events that run at one time in this process. Default 16. */
  readonly concurrency?: number | undefined;
  /** Deliveries between verification and answer at one time; beyond, 503. Default 1,000. */
  readonly maxInFlight?: number | undefined;
  /** Entries that deliveries may put on hold; beyond, such a delivery is answered 503. Default 10,000. */
  readonly maxHeld?: number | undefined;
  /** How long ago an event may have been signed. Default 7 days. */
  readonly windowMs?: number | undefined;
  /** The deadline from verification to acceptance. Default 2 s. */
  readonly acceptTimeoutMs?: number | undefined;
  /** Default 64 KiB. */
  readonly maxBodyBytes?: number | undefined;
  /** Default 10 s. */
  readonly bodyTimeoutMs?: number | undefined;
  /** Moving from another receiver: true for events that it has handled. Asked once, before the first try. */
  readonly alreadyHandled?: ((event: AnyEvent) => boolean | Promise<boolean>) | undefined;
  readonly alerts?: AlertOptions | undefined;
  /** Default: warnings and errors to the console. */
  readonly logger?: Logger | undefined;
  /** For tests. */
  readonly clock?: Clock | undefined;
}

/** What an adapter mounts: one flow of a receiver. */
export interface Endpoint {
  readonly flow: FlowName;
  readonly maxBodyBytes: number;
  readonly bodyTimeoutMs: number;
  /** What can be answered before the body is read, or null to read it. */
  check(head: DeliveryHead): Reply | null;
  /** The whole way of a delivery to its answer. Never rejects. */
  receive(delivery: Delivery): Promise<Reply>;
  /** The answer when the adapter could not get the bytes; `why` goes to the log only. */
  refuse(code: DeliveryErrorCode, why: string, remoteAddress?: string): Reply;
}

/** The payments flow of a receiver. */
export interface PaymentsEndpoint extends Endpoint {
  /**
   * Feeds the result of a transaction look-up through the table of deduplication, so that a result that arrives both
   * ways runs once. `updated_at` is its signed time.
   * @throws PayhooksError `ERR_TRANSACTION_INVALID`, or what the inbox throws.
   */
  ingest(
    transaction: LookupTransaction,
    options?: { readonly tenant?: string | undefined },
  ): Promise<Ingested>;
}

/** What became of an ingested look-up. */
export interface Ingested {
  readonly outcome: AcceptOutcome;
  readonly eventId: string;
}

/** Receives the service's events. Made by {@link createReceiver}. */
export interface Receiver {
  /** Throws `ERR_FLOW_OFF` where the options have no `payments`. */
  readonly payments: PaymentsEndpoint;
  /** Throws `ERR_FLOW_OFF` where the options have no `connect`. */
  readonly connect: Endpoint;

  onDeposit(handlers: PaymentHandlers<DepositEvent>, options?: HandlerOptions): Receiver;
  onWithdrawal(handlers: PaymentHandlers<WithdrawalEvent>, options?: HandlerOptions): Receiver;
  onConnectedAccountApproved(
    handler: Handler<ConnectedAccountApprovedEvent>,
    options?: HandlerOptions,
  ): Receiver;
  onConnectedAccountDeclined(
    handler: Handler<ConnectedAccountDeclinedEvent>,
    options?: HandlerOptions,
  ): Receiver;
  onSettlementApproved(handler: Handler<SettlementApprovedEvent>, options?: HandlerOptions): Receiver;
  onSettlementDeclined(handler: Handler<SettlementDeclinedEvent>, options?: HandlerOptions): Receiver;
  /** Runs, durably and with retries, about every event that is put on hold. */
  onHeld(handler: Handler<HeldEvent>, options?: HandlerOptions): Receiver;
  /** Says that an event name is not wanted: without a handler it is then done, not held. */
  ignore(event: EventName): Receiver;
  /** The one observer of everything that happens; a second call replaces the first. It can neither slow nor break a delivery. */
  observe(observer: (notice: Notice) => void): Receiver;

  /**
   * Checks the set-up, closes registration and, with `run: "background"`, begins to run events. Idempotent; adapters
   * call it.
   * @throws PayhooksError a set-up code such as `ERR_OPTION_MISSING`, `ERR_INBOX_REQUIRED` or `ERR_NO_HANDLERS`.
   */
  start(): Promise<void>;
  /** Runs what is due, for a cron job. `deadlineMs` default 10 s, `limit` default 1,000. */
  work(options?: {
    readonly deadlineMs?: number | undefined;
    readonly limit?: number | undefined;
  }): Promise<WorkReport>;
  /** Runs one job that a push carrier brought: the text that `jobId` made. Skips its backoff. */
  run(job: string): Promise<RunReport>;
  /** One event's whole life, or null. */
  read(eventId: string): Promise<Life | null>;
  /** Events that wait for a person. */
  readonly held: HeldEntries;
  health(): Promise<Health>;
  /**
   * Answers 503 from now on, and waits for what runs. `unfinished` counts what still ran after `graceMs` (default
   * 10 s) or, in memory, is lost.
   */
  close(options?: { readonly graceMs?: number | undefined }): Promise<{ readonly unfinished: number }>;
}

const DEFAULT_WINDOW_MS = 7 * 24 * 60 * 60 * 1000;

/**
 * Makes a receiver. Does no I/O and starts nothing: keys are read and the inbox connects at `start()`, or at the
 * first delivery.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID` for options that cannot be right whatever the environment is.
 * @example
 * const receiver = createReceiver({ payments: { publicKey: process.env.PAY_PUBLIC_KEY } });
 * receiver.onDeposit(async (deposit, ctx) => credit(deposit.referenceId, deposit.amount, ctx.effectId));
 */
export function createReceiver(options: ReceiverOptions): Receiver {
  return new MountedReceiver(options);
}

class MountedReceiver implements Receiver {
  readonly held: HeldEntries;
  readonly #options: ReceiverOptions;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #notices: NoticeBoard;
  readonly #registry = new Registry();
  readonly #alerts: Alerts;
  readonly #inbox: Inbox;
  readonly #flows: { readonly payments: PaymentsFlow | null; readonly connect: Flow | null };
  readonly #endpoints: { readonly payments: PaymentsEndpoint | null; readonly connect: Endpoint | null };
  readonly #runner: ReturnType<typeof createRunner>;
  readonly #ack: "enqueued" | "handled";
  readonly #run: "background" | "after-response" | "elsewhere";
  readonly #acceptTimeoutMs: number;
  readonly #handledBudgetMs: number;
  readonly #maxInFlight: number;
  readonly #maxHeld: number;
  readonly #concurrency: number;
  readonly #maxBodyBytes: number;
  readonly #windowMs: number;
  #inFlight = 0;
  #prepared = false;
  #preparing: Promise<void> | null = null;
  #running: Promise<Running> | null = null;
  #closing: Promise<{ readonly unfinished: number }> | null = null;

  constructor(options: ReceiverOptions) {
    checkOptions(options);
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#logger = options.logger ?? consoleLogger;
    this.#notices = new NoticeBoard(this.#logger);
    this.#ack = options.ack ?? "enqueued";
    this.#run = options.run ?? "background";
    this.#acceptTimeoutMs = options.acceptTimeoutMs ?? 2_000;
    this.#handledBudgetMs = options.handledBudgetMs ?? 8_000;
    this.#maxInFlight = options.maxInFlight ?? 1_000;
    this.#maxHeld = options.maxHeld ?? 10_000;
    this.#concurrency = options.concurrency ?? 16;
    this.#maxBodyBytes = options.maxBodyBytes ?? 64 * 1024;
    this.#alerts = new Alerts(options.alerts ?? {}, this.#clock, (alert) => this.#notices.post(alert));
    this.#inbox = options.inbox ?? memoryInbox({ clock: this.#clock });
    this.#windowMs = options.windowMs ?? DEFAULT_WINDOW_MS;
    const context = { windowMs: this.#windowMs, clock: this.#clock };
    this.#flows = {
      payments: options.payments === undefined ? null : paymentsFlow(options.payments, context),
      connect: options.connect === undefined ? null : connectFlow(options.connect, context),
    };
    this.#endpoints = {
      payments: this.#flows.payments === null ? null : this.#paymentsEndpoint(this.#flows.payments),
      connect: this.#flows.connect === null ? null : this.#endpoint(this.#flows.connect),
    };
    this.#runner = createRunner({
      registry: this.#registry,
      flows: this.#flows,
      notices: this.#notices,
      logger: this.#logger,
      clock: this.#clock,
      alreadyHandled: options.alreadyHandled,
    });
    const { held } = this.#inbox;
    this.held = {
      list: (filter) => held.list(filter),
      replay: async (eventId, decision) => {
        await held.replay(eventId, decision);
        this.#notices.post({ type: "replayed", eventId, by: decision.by, note: decision.note });
      },
      discard: async (eventId, decision) => {
        await held.discard(eventId, decision);
        this.#notices.post({ type: "discarded", eventId, by: decision.by, note: decision.note });
      },
    };
  }

  get payments(): PaymentsEndpoint {
    return this.#endpoints.payments ?? flowOff("payments", "payments: { publicKey }");
  }

  get connect(): Endpoint {
    return this.#endpoints.connect ?? flowOff("connect", "connect: { secret }");
  }

  onDeposit(handlers: PaymentHandlers<DepositEvent>, options: HandlerOptions = {}): this {
    return this.#onPayment("DEPOSIT", handlers, options);
  }

  onWithdrawal(handlers: PaymentHandlers<WithdrawalEvent>, options: HandlerOptions = {}): this {
    return this.#onPayment("WITHDRAWAL", handlers, options);
  }

  onConnectedAccountApproved(
    handler: Handler<ConnectedAccountApprovedEvent>,
    options: HandlerOptions = {},
  ): this {
    return this.#onConnect("connected_account.approved", handler, options);
  }

  onConnectedAccountDeclined(
    handler: Handler<ConnectedAccountDeclinedEvent>,
    options: HandlerOptions = {},
  ): this {
    return this.#onConnect("connected_account.declined", handler, options);
  }

  onSettlementApproved(handler: Handler<SettlementApprovedEvent>, options: HandlerOptions = {}): this {
    return this.#onConnect("settlement.approved", handler, options);
  }

  onSettlementDeclined(handler: Handler<SettlementDeclinedEvent>, options: HandlerOptions = {}): this {
    return this.#onConnect("settlement.declined", handler, options);
  }

  onHeld(handler: Handler<HeldEvent>, options: HandlerOptions = {}): this {
    this.#registry.addHeld(handler, options);
    return this;
  }

  ignore(event: EventName): this {
    this.#registry.ignore(event);
    return this;
  }

  observe(observer: (notice: Notice) => void): this {
    this.#notices.observe(observer);
    return this;
  }

  /** The registry keeps handlers of all events in one type; `pick` is only called with the event they are for. */
  #onPayment<Event extends PaymentEvent>(
    name: Event["event"],
    handlers: PaymentHandlers<Event>,
    options: HandlerOptions,
  ): this {
    const byStatus = typeof handlers === "function" ? { SUCCESS: handlers } : handlers;
    checkHandlers(name, byStatus);
    this.#registry.add(
      name,
      (event) =>
        (byStatus as Partial<Record<PaymentStatus, Handler<AnyEvent>>>)[(event as PaymentEvent).status] ??
        null,
      options,
    );
    return this;
  }

  #onConnect<Event extends AnyEvent>(
    name: Event["event"],
    handler: Handler<Event>,
    options: HandlerOptions,
  ): this {
    checkHandlers(name, { handler });
    this.#registry.add(name, () => handler as Handler<AnyEvent>, options);
    return this;
  }

  async start(): Promise<void> {
    await this.#prepare();
    if (this.#run === "background") await this.#startRunning();
  }

  /** Checks what can only be checked once the environment is there, and closes registration. */
  async #prepare(): Promise<void> {
    if (this.#prepared) return;
    this.#preparing ??= this.#check().finally(() => {
      this.#preparing = null;
    });
    await this.#preparing;
  }

  async #check(): Promise<void> {
    const { inbox } = this.#options;
    if (inbox === undefined && process.env.NODE_ENV === "production") {
      throw new PayhooksError("ERR_INBOX_REQUIRED", "NODE_ENV is production and no inbox is named.", {
        fix: "Choose one: redisInbox(url) survives any process and machine, sqliteInbox(file) survives kill -9 on one machine, memoryInbox() loses acknowledged events when the process dies.",
      });
    }
    if (this.#run !== "elsewhere" && this.#registry.empty) {
      throw new PayhooksError("ERR_NO_HANDLERS", "The receiver has no handler: every event would be held.", {
        fix: 'Register one, such as receiver.onDeposit(…), before the start (is the module with your handlers imported?); or set run: "elsewhere" if another process runs them.',
      });
    }
    const warnings: [string, string][] = [];
    for (const flow of [this.#flows.payments, this.#flows.connect]) {
      if (flow === null) continue;
      for (const what of await flow.prepare()) warnings.push([what, "Use a long random secret."]);
      if (this.#run === "elsewhere") continue;
      for (const name of this.#registry.unhandled(flow.name)) {
        warnings.push([
          `No handler for ${name}: such events will be held.`,
          `Register one, or call receiver.ignore("${name}").`,
        ]);
      }
    }
    if (inbox === undefined) {
      warnings.push([
        "No inbox is named: events live in memory and die with the process.",
        "Name one for production.",
      ]);
    }
    for (const [what, fix] of warnings) this.#notices.post({ type: "warning", what, fix });
    this.#registry.close();
    this.#prepared = true;
  }

  #startRunning(): Promise<Running> {
    this.#running ??= this.#inbox
      .ready()
      .then(() => this.#inbox.run(this.#runner, { concurrency: this.#concurrency }));
    this.#running.catch(() => {
      this.#running = null;
    });
    return this.#running;
  }

  #paymentsEndpoint(flow: PaymentsFlow): PaymentsEndpoint {
    return {
      ...this.#endpoint(flow),
      ingest: (transaction, options = {}) => this.#ingest(flow, transaction, options.tenant),
    };
  }

  #endpoint(flow: Flow): Endpoint {
    const maxBodyBytes = this.#maxBodyBytes;
    return {
      flow: flow.name,
      maxBodyBytes,
      bodyTimeoutMs: this.#options.bodyTimeoutMs ?? 10_000,
      check: (head) => {
        const fault = findHeadFault(head, maxBodyBytes);
        if (fault !== null) return this.#refuse(flow, fault, "the request's head");
        return this.#closing === null ? null : this.#refuse(flow, "ERR_CLOSING", "the receiver is closing");
      },
      receive: (delivery) => this.#receive(flow, delivery),
      refuse: (code, why, remoteAddress) => this.#refuse(flow, code, why, remoteAddress ?? null),
    };
  }

  #refuse(flow: Flow, code: DeliveryErrorCode, why: string, source: string | null = null): Reply {
    const authentic = !code.startsWith("ERR_SIGNATURE_");
    const status = authentic ? ANSWER_STATUS[code] : flow.badSignatureStatus;
    if (!authentic) this.#alerts.failed(flow.name, code, source);
    if (code === "ERR_HELD_FULL") this.#alerts.heldFull(flow.name);
    this.#notices.post({ type: "refused", flow: flow.name, code, httpStatus: status, why, source });
    return refusal(code, status);
  }

  async #receive(flow: Flow, delivery: Delivery): Promise<Reply> {
    const source = delivery.remoteAddress ?? null;
    const refuse = (code: DeliveryErrorCode, why: string): Reply => this.#refuse(flow, code, why, source);
    if (this.#closing !== null) return refuse("ERR_CLOSING", "the receiver is closing");
    if (this.#inFlight >= this.#maxInFlight)
      return refuse("ERR_OVERLOADED", `${this.#inFlight} deliveries are in flight`);
    this.#inFlight++;
    try {
      const fault = findHeadFault(delivery, this.#maxBodyBytes);
      if (fault !== null) return refuse(fault, "the request's head");
      if (delivery.rawBody.byteLength > this.#maxBodyBytes)
        return refuse("ERR_BODY_TOO_LARGE", "the body's length");
      return await this.#verifyAndAccept(flow, delivery, refuse);
    } catch (error) {
      return refuse(codeOf(error), describe(error));
    } finally {
      this.#inFlight--;
    }
  }

  async #verifyAndAccept(
    flow: Flow,
    delivery: Delivery,
    refuse: (code: DeliveryErrorCode, why: string) => Reply,
  ): Promise<Reply> {
    const deadline = new Deadline(this.#clock, this.#acceptTimeoutMs);
    try {
      if (!this.#prepared) await deadline.race(this.#prepare());
      if (this.#run === "background" && this.#running === null) {
        return refuse("ERR_NOT_STARTED", 'run is "background" and receiver.start() has not been called');
      }
      const verifying = flow.verify(delivery, this.#clock.now());
      const verification =
        verifying instanceof Promise ? await deadline.race(resolving(verifying)) : verifying;
      if (!verification.ok) return refuse(verification.code, verification.why);
      this.#alerts.succeeded(flow.name);
      const { verified } = verification.reading;
      const delayMs = this.#ack === "handled" ? this.#handledBudgetMs : 0;
      const accepted = await deadline.race(this.#inbox.accept(verified, { maxHeld: this.#maxHeld, delayMs }));
      if (accepted.outcome === "expired") return refuse(...expiry(verification, accepted));
      this.#noticeAccepted(verification.reading, accepted);
      if (accepted.outcome === "stale") return RECEIVED;
      if (this.#ack === "handled") return await this.#handle(accepted, refuse);
      if (this.#run === "after-response") this.#workAfter(delivery, accepted);
      return RECEIVED;
    } finally {
      deadline.cancel();
    }
  }

  /** `ack: "handled"`: every copy is answered by its slot's state after this try. */
  async #handle(accepted: Accepted, refuse: (code: DeliveryErrorCode, why: string) => Reply): Promise<Reply> {
    const budget = new Deadline(this.#clock, this.#handledBudgetMs);
    try {
      const { state } = await budget.race(this.#inbox.runJob(this.#runner, accepted.job));
      switch (state) {
        case "done":
        case "stale":
        case "discarded":
          return RECEIVED;
        case "held":
          return this.#inbox.durability === "process"
            ? refuse("ERR_HELD", "held in memory, which may be lost")
            : RECEIVED;
        default:
          return refuse("ERR_NOT_HANDLED", `the event is ${state ?? "gone"}`);
      }
    } catch (error) {
      if (error === TIME_IS_UP)
        return refuse("ERR_NOT_HANDLED", "the handlers took longer than handledBudgetMs");
      throw error;
    } finally {
      budget.cancel();
    }
  }

  /** `run: "after-response"`: this event, then what else is due. */
  #workAfter(delivery: Delivery, accepted: Accepted): void {
    const work = (async () => {
      if (accepted.pending) await this.#inbox.runJob(this.#runner, accepted.job);
      await this.work();
    })().catch((error: unknown) =>
      this.#notices.post({ type: "inbox-error", during: "work", error: describe(error) }),
    );
    delivery.waitUntil?.(work);
  }

  #noticeAccepted({ verified }: Reading, { outcome, job, reason, previousAmount }: Accepted): void {
    const { flow, tenant, keyId } = verified.delivery;
    const facts: EventFacts = {
      flow,
      tenant,
      eventId: job.eventId,
      id: verified.id,
      event: verified.name,
      status: verified.status,
    };
    const { amount } = verified;
    if (previousAmount !== null && amount !== null)
      this.#notices.post({ type: "amount-changed", ...facts, previousAmount, amount });
    switch (outcome) {
      case "new":
      case "progress":
        return this.#notices.post({ type: "accepted", ...facts, keyId, previousAmount });
      case "resume":
      case "duplicate":
        return this.#notices.post({ type: "duplicate", ...facts, resumed: outcome === "resume" });
      case "stale":
        return this.#notices.post({ type: "stale", ...facts });
      case "held":
        return this.#notices.post({
          type: "held",
          ...facts,
          reason: reason ?? "malformed",
          detail: verified.detail,
        });
      case "expired":
        return;
    }
  }

  async #ingest(
    flow: PaymentsFlow,
    transaction: LookupTransaction,
    tenant: string = ONLY_TENANT,
  ): Promise<Ingested> {
    await this.#prepare();
    const now = this.#clock.now();
    const { reading } = withFreshness(
      flow.read(flow.fromLookup(transaction, tenant, now)),
      now,
      this.#windowMs,
    );
    const accepted = await this.#inbox.accept(reading.verified, { maxHeld: this.#maxHeld });
    this.#noticeAccepted(reading, accepted);
    return { outcome: accepted.outcome, eventId: accepted.job.eventId };
  }

  async work(options: Parameters<Receiver["work"]>[0] = {}): Promise<WorkReport> {
    await this.#prepare();
    const { deadlineMs = 10_000, limit = 1_000 } = options;
    return this.#inbox.work(this.#runner, { deadlineMs, limit, concurrency: this.#concurrency });
  }

  async run(job: string): Promise<RunReport> {
    const parsed = parseJobId(job);
    if (parsed === null) {
      throw new PayhooksError(
        "ERR_OPTION_INVALID",
        `Not a job: ${JSON.stringify(String(job).slice(0, 80))}.`,
        {
          fix: "Pass the text that the queue was given: eventId-n.",
        },
      );
    }
    await this.#prepare();
    return this.#inbox.runJob(this.#runner, parsed);
  }

  read(eventId: string): Promise<Life | null> {
    return this.#inbox.read(eventId);
  }

  health(): Promise<Health> {
    return this.#inbox.health();
  }

  close({
    graceMs = 10_000,
  }: {
    readonly graceMs?: number | undefined;
  } = {}): Promise<{ readonly unfinished: number }> {
    this.#closing ??= this.#inbox.close({ graceMs }).finally(() => this.#notices.flush());
    return this.#closing;
  }
}

const TIME_IS_UP: unique symbol = Symbol("time is up");

/** One limit of time over several steps. */
class Deadline {
  readonly #clock: Clock;
  readonly #end: number;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, ms: number) {
    this.#clock = clock;
    this.#end = clock.now() + ms;
  }

  /** Rejects with `TIME_IS_UP` when the step takes too long. The step itself goes on: its outcome is unknown. */
  async race<T>(step: Promise<T>): Promise<T> {
    const timeUp = new Promise<never>((_, reject) => {
      this.#cancel?.();
      this.#cancel = this.#clock.after(this.#end - this.#clock.now(), () => reject(TIME_IS_UP));
    });
    timeUp.catch(() => {});
    return Promise.race([step, timeUp]);
  }

  cancel(): void {
    this.#cancel?.();
  }
}

/** A resolver that fails says nothing about the signature: the sender must try again. */
async function resolving(verifying: Promise<Verification>): Promise<Verification> {
  try {
    return await verifying;
  } catch (cause) {
    throw new PayhooksError("ERR_RESOLVER_FAILED", `The key resolver failed: ${describe(cause)}`, { cause });
  }
}

function expiry(
  verification: Extract<Verification, { ok: true }>,
  { windowShrunk }: Accepted,
): [DeliveryErrorCode, string] {
  if (verification.outside === "ERR_TIMESTAMP_FUTURE")
    return [verification.outside, "signed more than 24 h in the future"];
  return [
    "ERR_TIMESTAMP_EXPIRED",
    windowShrunk === true
      ? "the memory inbox no longer knows events signed that long ago: raise maxRecords"
      : "signed longer ago than windowMs, and not recorded",
  ];
}

/** The answer for an error on the path. A set-up error is the merchant's: its own code stays in the log. */
function codeOf(error: unknown): DeliveryErrorCode {
  if (error === TIME_IS_UP) return "ERR_ACCEPT_TIMEOUT";
  if (!isPayhooksError(error)) return "ERR_INBOX_UNAVAILABLE";
  if (Object.hasOwn(ANSWER_STATUS, error.code)) return error.code as DeliveryErrorCode;
  return "ERR_MISCONFIGURED";
}

function describe(error: unknown): string {
  if (error === TIME_IS_UP) return "no answer within acceptTimeoutMs";
  return error instanceof Error ? error.message : String(error);
}

function flowOff(flow: FlowName, option: string): never {
  throw new PayhooksError("ERR_FLOW_OFF", `The ${flow} flow is off: createReceiver was not given ${flow}.`, {
    fix: `Add ${option} to its options, or do not mount this flow.`,
  });
}

function checkHandlers(name: EventName, handlers: Readonly<Record<string, unknown>>): void {
  const given = Object.entries(handlers).filter(([, handler]) => handler !== undefined);
  const wrong = given.find(([key, handler]) => typeof handler !== "function" || !HANDLER_KEYS.has(key));
  if (given.length > 0 && wrong === undefined) return;
  throw new PayhooksError(
    "ERR_OPTION_INVALID",
    wrong === undefined
      ? `No handler for ${name} was given.`
      : `The handler for ${name} under ${JSON.stringify(wrong[0])} cannot be used.`,
    {
      fix: "Give a function, or for payments an object of functions under SUCCESS, FAILED and PENDING.",
    },
  );
}

const HANDLER_KEYS: ReadonlySet<string> = new Set(["SUCCESS", "FAILED", "PENDING", "handler"]);

function checkOptions(options: ReceiverOptions): void {
  const invalid = (what: string, fix: string): never => {
    throw new PayhooksError("ERR_OPTION_INVALID", what, { fix });
  };
  if (typeof options !== "object" || options === null)
    invalid("createReceiver was given no options.", "Give it at least one flow.");
  if (options.payments === undefined && options.connect === undefined) {
    invalid("Both flows are off.", "Give payments: { publicKey }, connect: { secret }, or both.");
  }
  for (const name of Object.keys(options)) {
    if (!OPTION_NAMES.has(name))
      invalid(`There is no option "${name}".`, `Options: ${[...OPTION_NAMES].join(", ")}.`);
  }
  for (const name of POSITIVE_OPTIONS) {
    const value = options[name];
    if (value !== undefined) checkPositive(name, value);
  }
  if (options.ack !== undefined && !["enqueued", "handled"].includes(options.ack)) {
    invalid(`ack is ${JSON.stringify(options.ack)}.`, 'Use "enqueued" or "handled".');
  }
  if (options.run !== undefined && !["background", "after-response", "elsewhere"].includes(options.run)) {
    invalid(`run is ${JSON.stringify(options.run)}.`, 'Use "background", "after-response" or "elsewhere".');
  }
  if (options.run === "elsewhere" && options.ack === "handled") {
    invalid(
      'run: "elsewhere" runs no handler here, so ack: "handled" can never be given.',
      'Use ack: "enqueued".',
    );
  }
}

const POSITIVE_OPTIONS = [
  "handledBudgetMs",
  "concurrency",
  "maxInFlight",
  "maxHeld",
  "windowMs",
  "acceptTimeoutMs",
  "maxBodyBytes",
  "bodyTimeoutMs",
] as const;

const OPTION_NAMES: ReadonlySet<string> = new Set([
  "payments",
  "connect",
  "inbox",
  "ack",
  "run",
  ...POSITIVE_OPTIONS,
  "alreadyHandled",
  "alerts",
  "logger",
  "clock",
]);
