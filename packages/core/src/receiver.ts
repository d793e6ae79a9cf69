import { Alerts } from "./alerts.ts";
import { type Clock, systemClock } from "./clock.ts";
import { PayhooksError } from "./errors.ts";
import type {
  ConnectedAccountApprovedEvent,
  ConnectedAccountDeclinedEvent,
  DepositEvent,
  EventName,
  FlowName,
  SettlementApprovedEvent,
  SettlementDeclinedEvent,
  WithdrawalEvent,
} from "./events.ts";
import { connectFlow } from "./flows/connect.ts";
import { type Flow, ONLY_TENANT, type SetupWarning } from "./flows/flow.ts";
import type { LookupTransaction } from "./flows/lookup.ts";
import { type PaymentsFlow, paymentsFlow } from "./flows/payments.ts";
import type { Handler, HandlerOptions, HeldEvent, PaymentHandlers } from "./handlers.ts";
import { withOwnErrors } from "./inbox/failures.ts";
import {
  type AcceptOutcome,
  type Health,
  type HeldEntries,
  type Inbox,
  isEventId,
  type Life,
  type Runner,
  type Running,
  type RunReport,
  type WorkReport,
} from "./inbox/inbox.ts";
import { memoryInbox } from "./inbox/memory/index.ts";
import { type Endpoint, Intake } from "./intake.ts";
import { fromLevel, LogLines } from "./log-lines.ts";
import { consoleLogger, inboxError, type Notice, NoticeBoard } from "./notices.ts";
import { type ReceiverOptions, type Settings, settingsOf } from "./options.ts";
import { Registry } from "./registry.ts";
import { createRunner } from "./runner.ts";

/** The payments flow of a receiver. */
export interface PaymentsEndpoint extends Endpoint {
  /**
   * Feeds the result of a transaction look-up through the table of deduplication, so that a result that arrives both
   * ways runs once. `updated_at` is its signed time.
   * @param options `tenant` as the resolver names it: required where one chooses the keys, and refused where none does.
   * @throws PayhooksError `ERR_TRANSACTION_INVALID`, `ERR_OPTION_MISSING` or `ERR_OPTION_INVALID` for the tenant,
   * `ERR_CLOSING` after `close()`, or what the inbox throws.
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

  /**
   * Registers a handler of `DEPOSIT`: a function runs on SUCCESS only, an object has one for each status that is wanted
   * (specification, Payment callback events). Another status is acknowledged and done.
   * @throws PayhooksError `ERR_OPTION_INVALID`, `ERR_HANDLER_NAME`, `ERR_HANDLER_DUPLICATE`, `ERR_REGISTRATION_CLOSED`.
   */
  onDeposit(handlers: PaymentHandlers<DepositEvent>, options?: HandlerOptions): Receiver;
  /**
   * Registers a handler of `WITHDRAWAL`, as `onDeposit` does of deposits.
   * @throws PayhooksError `ERR_OPTION_INVALID`, `ERR_HANDLER_NAME`, `ERR_HANDLER_DUPLICATE`, `ERR_REGISTRATION_CLOSED`.
   */
  onWithdrawal(handlers: PaymentHandlers<WithdrawalEvent>, options?: HandlerOptions): Receiver;
  /**
   * Registers a handler of `connected_account.approved`: the service approved the KYC of a connected merchant
   * (specification, Connected-account events).
   * @throws PayhooksError `ERR_OPTION_INVALID`, `ERR_HANDLER_NAME`, `ERR_HANDLER_DUPLICATE`, `ERR_REGISTRATION_CLOSED`.
   */
  onConnectedAccountApproved(
    handler: Handler<ConnectedAccountApprovedEvent>,
    options?: HandlerOptions,
  ): Receiver;
  /**
   * Registers a handler of `connected_account.declined`: the service declined the KYC of a connected merchant.
   * @throws PayhooksError `ERR_OPTION_INVALID`, `ERR_HANDLER_NAME`, `ERR_HANDLER_DUPLICATE`, `ERR_REGISTRATION_CLOSED`.
   */
  onConnectedAccountDeclined(
    handler: Handler<ConnectedAccountDeclinedEvent>,
    options?: HandlerOptions,
  ): Receiver;
  /**
   * Registers a handler of `settlement.approved`. The service does not send settlement events yet (specification,
   * Connected-account events).
   * @throws PayhooksError `ERR_OPTION_INVALID`, `ERR_HANDLER_NAME`, `ERR_HANDLER_DUPLICATE`, `ERR_REGISTRATION_CLOSED`.
   */
  onSettlementApproved(handler: Handler<SettlementApprovedEvent>, options?: HandlerOptions): Receiver;
  /**
   * Registers a handler of `settlement.declined`. The service does not send settlement events yet.
   * @throws PayhooksError `ERR_OPTION_INVALID`, `ERR_HANDLER_NAME`, `ERR_HANDLER_DUPLICATE`, `ERR_REGISTRATION_CLOSED`.
   */
  onSettlementDeclined(handler: Handler<SettlementDeclinedEvent>, options?: HandlerOptions): Receiver;
  /**
   * Registers a handler that runs, durably and with retries, about every event that is put on hold.
   * @throws PayhooksError `ERR_OPTION_INVALID`, `ERR_HANDLER_NAME`, `ERR_HANDLER_DUPLICATE`, `ERR_REGISTRATION_CLOSED`.
   */
  onHeld(handler: Handler<HeldEvent>, options?: HandlerOptions): Receiver;
  /**
   * Says that an event name is not wanted: it is then done when it arrives, not held.
   * @throws PayhooksError `ERR_OPTION_INVALID` when the event has a handler, `ERR_REGISTRATION_CLOSED`.
   */
  ignore(event: EventName): Receiver;
  /** The one observer of everything that happens; a second call replaces the first. It can neither slow nor break a delivery. */
  observe(observer: (notice: Notice) => void): Receiver;

  /**
   * Checks the set-up, closes registration and, with `run: "background"` or no `run` at all, begins to run events.
   * Idempotent; adapters call it.
   * @throws PayhooksError a set-up code such as `ERR_OPTION_MISSING`, `ERR_INBOX_REQUIRED` or `ERR_NO_HANDLERS`.
   */
  start(): Promise<void>;
  /** Runs what is due, for a cron job. `deadlineMs` default 10 s, `limit` default 1,000. */
  work(options?: {
    readonly deadlineMs?: number | undefined;
    readonly limit?: number | undefined;
  }): Promise<WorkReport>;
  /**
   * Runs one event now, such as one that `notifyWorker` named. Skips its backoff, at most once a second; a try before its
   * time that fails does not count against `maxTries`.
   * @throws PayhooksError `ERR_OPTION_INVALID` for a text that is no eventId.
   */
  run(eventId: string): Promise<RunReport>;
  /**
   * Begins no further run in this process until `resume()`: deliveries are accepted, and what runs goes on. Other
   * processes go on running. For a deploy of what the handlers depend on.
   */
  pause(): void;
  /** Begins to run events again after `pause()`. */
  resume(): void;
  /** One event's whole life, or null. */
  read(eventId: string): Promise<Life | null>;
  /** Events that wait for a person. */
  readonly held: HeldEntries;
  /** Whether the inbox answers, and how much waits in it. */
  health(): Promise<Health>;
  /**
   * Answers 503 from now on, and waits for what runs. `unfinished` counts what still ran after `graceMs` (default
   * 10 s) or, in memory, is lost.
   */
  close(options?: { readonly graceMs?: number | undefined }): Promise<{ readonly unfinished: number }>;
}

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
  readonly #settings: Settings;
  readonly #clock: Clock;
  readonly #notices: NoticeBoard;
  readonly #registry = new Registry();
  readonly #inbox: Inbox;
  readonly #flows: { readonly payments: PaymentsFlow | null; readonly connect: Flow | null };
  readonly #endpoints: { readonly payments: PaymentsEndpoint | null; readonly connect: Endpoint | null };
  readonly #runner: Runner;
  readonly #intake: Intake;
  #prepared = false;
  #preparing: Promise<void> | null = null;
  #isRunning = false;
  #paused = false;
  #running: Promise<Running> | null = null;
  #closing: Promise<{ readonly unfinished: number }> | null = null;

  constructor(options: ReceiverOptions) {
    this.#options = options;
    this.#settings = settingsOf(options);
    const { payments, connect, clock = systemClock } = options;
    this.#clock = clock;
    const { logLevel } = this.#settings;
    const logger = options.logger ?? fromLevel(consoleLogger, logLevel);
    const notices = new NoticeBoard(new LogLines(logger, logLevel, clock), clock);
    this.#notices = notices;
    this.#inbox = withOwnErrors(options.inbox ?? memoryInbox({ clock }));
    const { windowMs, acceptTimeoutMs, maxResolving } = this.#settings;
    const context = { windowMs, acceptTimeoutMs, maxResolving, clock };
    this.#flows = {
      payments: payments === undefined ? null : paymentsFlow(payments, context),
      connect: connect === undefined ? null : connectFlow(connect, context),
    };
    const { alreadyHandled } = options;
    this.#runner = createRunner({
      registry: this.#registry,
      flows: this.#flows,
      notices,
      logger,
      clock,
      alreadyHandled,
    });
    this.#intake = new Intake({
      settings: this.#settings,
      clock,
      notices,
      alerts: new Alerts(options.alerts ?? {}, clock, (alert) => notices.post(alert)),
      inbox: this.#inbox,
      runner: this.#runner,
      lifecycle: {
        isPrepared: () => this.#prepared,
        isStarting: () => this.#running !== null,
        isRunning: () => this.#isRunning,
        isClosing: () => this.#closing !== null,
        prepare: () => this.#prepare(),
        start: () => this.start(),
        work: () => this.work(),
      },
    });
    this.#endpoints = {
      payments: this.#flows.payments === null ? null : this.#paymentsEndpoint(this.#flows.payments),
      connect: this.#flows.connect === null ? null : this.#intake.endpoint(this.#flows.connect),
    };
    const { held } = this.#inbox;
    this.held = {
      list: (filter) => held.list(filter),
      replay: async (eventId, decision) => {
        await held.replay(eventId, decision);
        notices.post({ type: "replayed", eventId, by: decision.by, note: decision.note });
      },
      discard: async (eventId, decision) => {
        await held.discard(eventId, decision);
        notices.post({ type: "discarded", eventId, by: decision.by, note: decision.note });
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
    this.#registry.addPayment("DEPOSIT", handlers, options);
    return this;
  }

  onWithdrawal(handlers: PaymentHandlers<WithdrawalEvent>, options: HandlerOptions = {}): this {
    this.#registry.addPayment("WITHDRAWAL", handlers, options);
    return this;
  }

  onConnectedAccountApproved(
    handler: Handler<ConnectedAccountApprovedEvent>,
    options: HandlerOptions = {},
  ): this {
    this.#registry.addConnect("connected_account.approved", handler, options);
    return this;
  }

  onConnectedAccountDeclined(
    handler: Handler<ConnectedAccountDeclinedEvent>,
    options: HandlerOptions = {},
  ): this {
    this.#registry.addConnect("connected_account.declined", handler, options);
    return this;
  }

  onSettlementApproved(handler: Handler<SettlementApprovedEvent>, options: HandlerOptions = {}): this {
    this.#registry.addConnect("settlement.approved", handler, options);
    return this;
  }

  onSettlementDeclined(handler: Handler<SettlementDeclinedEvent>, options: HandlerOptions = {}): this {
    this.#registry.addConnect("settlement.declined", handler, options);
    return this;
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

  async start(): Promise<void> {
    await this.#prepare();
    const { run = "background" } = this.#settings;
    if (run === "background" && this.#closing === null) await this.#startRunning();
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
    if (this.#settings.run !== "elsewhere" && this.#registry.empty) {
      throw new PayhooksError("ERR_NO_HANDLERS", "The receiver has no handler: every event would be held.", {
        fix: 'Register one, such as receiver.onDeposit(…), before the start (is the module with your handlers imported?); or set run: "elsewhere" if another process runs them.',
      });
    }
    const warnings: SetupWarning[] = [];
    for (const flow of [this.#flows.payments, this.#flows.connect]) {
      if (flow === null) continue;
      warnings.push(...(await flow.prepare()));
      if (this.#settings.run === "elsewhere") continue;
      for (const name of this.#registry.unhandled(flow.name)) {
        warnings.push({
          what: `No handler for ${name}: such events will be held.`,
          fix: `Register one, or call receiver.ignore("${name}").`,
        });
      }
    }
    if (inbox === undefined) {
      warnings.push({
        what: "No inbox is named: events live in memory and die with the process.",
        fix: "Name one for production.",
      });
    }
    await this.#connect();
    for (const warning of warnings) this.#notices.post({ type: "warning", ...warning });
    this.#registry.close();
    this.#prepared = true;
  }

  async #startRunning(): Promise<void> {
    this.#running ??= this.#runInbox();
    const running = this.#running;
    try {
      await running;
      this.#isRunning = true;
    } catch (error) {
      // The next delivery tries again.
      if (this.#running === running) this.#running = null;
      throw error;
    }
  }

  async #connect(): Promise<void> {
    try {
      await this.#inbox.ready();
    } catch (error) {
      this.#notices.post(inboxError("start", error));
      throw error;
    }
  }

  /** Tells once why it failed, however many deliveries wait for it. */
  async #runInbox(): Promise<Running> {
    try {
      const running = await this.#inbox.run(this.#runner, { concurrency: this.#settings.concurrency });
      if (this.#paused) running.pause();
      return running;
    } catch (error) {
      this.#notices.post(inboxError("start", error));
      throw error;
    }
  }

  #paymentsEndpoint(flow: PaymentsFlow): PaymentsEndpoint {
    return {
      ...this.#intake.endpoint(flow),
      ingest: (transaction, options = {}) => this.#ingest(flow, transaction, options.tenant),
    };
  }

  async #ingest(
    flow: PaymentsFlow,
    transaction: LookupTransaction,
    tenant: string | undefined,
  ): Promise<Ingested> {
    checkTenant(flow, tenant);
    this.#refuseWhenClosing();
    await this.#prepare();
    // Connecting takes its time: an event taken in after the close could be lost with nobody told.
    this.#refuseWhenClosing();
    const now = this.#clock.now();
    const { maxHeld } = this.#settings;
    const delivery = flow.fromLookup(transaction, tenant ?? ONLY_TENANT, now);
    const { reading } = flow.readAsNew(delivery, now);
    const accepted = await this.#inbox.accept(reading.verified, { maxHeld });
    this.#intake.notice(reading, accepted);
    return { outcome: accepted.outcome, eventId: accepted.eventId };
  }

  #refuseWhenClosing(): void {
    if (this.#closing === null) return;
    throw new PayhooksError("ERR_CLOSING", "The receiver is closing: the look-up was not taken in.", {
      fix: "Ingest it again where a receiver runs.",
    });
  }

  async work(options: Parameters<Receiver["work"]>[0] = {}): Promise<WorkReport> {
    await this.#prepare();
    const { deadlineMs = 10_000, limit = 1_000 } = options;
    return this.#inbox.work(this.#runner, { deadlineMs, limit, concurrency: this.#settings.concurrency });
  }

  async run(eventId: string): Promise<RunReport> {
    if (!isEventId(eventId)) {
      throw new PayhooksError(
        "ERR_OPTION_INVALID",
        `Not an eventId: ${JSON.stringify(String(eventId).slice(0, 80))}.`,
        {
          fix: "Pass the 48 hex digits that notifyWorker was called with, or that ctx.eventId and notices have.",
        },
      );
    }
    await this.#prepare();
    return this.#inbox.runEvent(this.#runner, eventId);
  }

  pause(): void {
    this.#paused = true;
    void this.#running?.then(
      (running) => running.pause(),
      () => {},
    );
  }

  resume(): void {
    this.#paused = false;
    void this.#running?.then(
      (running) => running.resume(),
      () => {},
    );
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
    this.#closing ??= this.#inbox.close({ graceMs }).finally(() => this.#notices.close());
    return this.#closing;
  }
}

/** A look-up that is recorded under another tenant than its callback would run a second time. */
function checkTenant({ hasTenants }: PaymentsFlow, tenant: string | undefined): void {
  if (hasTenants && !tenant) {
    throw new PayhooksError(
      "ERR_OPTION_MISSING",
      "ingest was given no tenant, and a resolver chooses the keys.",
      {
        fix: "Pass { tenant } as the resolver names it for this merchant, so that the look-up meets its callback.",
      },
    );
  }
  if (!hasTenants && tenant) {
    throw new PayhooksError("ERR_OPTION_INVALID", "ingest was given a tenant, and there is only one.", {
      fix: "Leave { tenant } out: with fixed keys no event belongs to a tenant.",
    });
  }
}

function flowOff(flow: FlowName, option: string): never {
  throw new PayhooksError("ERR_FLOW_OFF", `The ${flow} flow is off: createReceiver was not given ${flow}.`, {
    fix: `Add ${option} to its options, or do not mount this flow.`,
  });
}
