import type { Effects } from "../effects/effects.ts";
import { EffectsUpkeep } from "../effects/upkeep.ts";
import { connectFlow } from "../flows/connect.ts";
import { contentsWithFlows } from "../flows/contents.ts";
import { type Flow, withFreshness } from "../flows/flow.ts";
import type { LookupTransaction } from "../flows/lookup.ts";
import { type FlowContext, type PaymentsFlow, paymentsFlow } from "../flows/payments.ts";
import type { HandlerContext } from "../handlers/handler.ts";
import { type Registration, registrationIn } from "../handlers/registration.ts";
import { Registry } from "../handlers/registry.ts";
import type { Events } from "../inbox/contract/events.ts";
import type { BackgroundRuns, Health, Inbox, Runner, WorkReport } from "../inbox/contract/inbox.ts";
import { type LeaseView, type NamedLease, takeLease, viewLease } from "../inbox/named-lease.ts";
import { isEventId, type RunReport, type StoredDelivery } from "../inbox/record/event.ts";
import { ONLY_TENANT } from "../inbox/record/keys.ts";
import { withPayhooksErrors } from "../inbox/watch/failures.ts";
import { memoryInbox } from "../memory/index.ts";
import { SPECIFIED_NAMES, serviceNames } from "../names/service-names.ts";
import { DeliveryAlerts } from "../notices/delivery-alerts.ts";
import { LogLines, loggerFromLevel } from "../notices/log-lines.ts";
import { consoleLogger, loggerOf } from "../notices/logger.ts";
import { inboxErrorNotice, type Notice, type NotReadyCode } from "../notices/notice.ts";
import { NoticeBoard } from "../notices/notice-board.ts";
import { checkNames } from "../protocol/check-names.ts";
import { checkLimit, checkTime } from "../protocol/check-number.ts";
import type { Contents } from "../protocol/contents.ts";
import { isSetupError, PayhooksError } from "../protocol/errors.ts";
import type { FlowName } from "../protocol/events.ts";
import { describeError } from "../protocol/foreign-error.ts";
import { sourceFlowsOf } from "../sources/known-sources.ts";
import type { Sources } from "../sources/source.ts";
import { Stopwatch } from "../time/clock.ts";
import { type Environment, environmentOf } from "../time/environment.ts";
import { checkTenant } from "./check-tenant.ts";
import { checkedEvents } from "./checked-events.ts";
import type { Endpoint } from "./endpoint.ts";
import { guardInstrumentation, type Instrumentation } from "./instrumentation.ts";
import { Intake } from "./intake.ts";
import { type CloseResult, Lifecycle } from "./lifecycle.ts";
import { type ReceiverOptions, type Settings, settingsOf } from "./options.ts";
import { Outcomes } from "./outcomes.ts";
import type {
  IngestResult,
  NoSources,
  PaymentsEndpoint,
  Probe,
  ReadyOptions,
  Receiver,
  SourceEndpoints,
} from "./receiver.ts";
import { createRunner } from "./runner.ts";
import { checkSetup, differenceOf } from "./setup.ts";
import { sourceRegistrationIn } from "./source-registration.ts";

/**
 * Makes a receiver. Does no I/O and starts nothing. Keys are read and the inbox connects at `start()`, or at the first
 * delivery.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID` for options that are wrong in every environment.
 * @example
 * ```ts
 * const receiver = createReceiver({ payments: { publicKey: process.env.PAY_PUBLIC_KEY } });
 * receiver.onDeposit((deposit, ctx) => credit(deposit.referenceId, deposit.amount, ctx.effectId));
 * ```
 */
export function createReceiver<Context extends HandlerContext, const S extends Sources = NoSources>(
  options: ReceiverOptions<S> & { readonly effects: Effects<Context> },
): Receiver<Context, S>;
export function createReceiver<const S extends Sources = NoSources>(
  options: ReceiverOptions<S>,
): Receiver<HandlerContext, S>;
export function createReceiver(options: ReceiverOptions): Receiver {
  const registry = new Registry();
  const receiver: Receiver = Object.assign(
    new ReceiverCore(options, registry),
    registrationIn(registry, () => receiver),
    sourceRegistrationIn(registry, options.sources ?? {}, () => receiver),
  );
  return receiver;
}

const OK_PROBE: Probe = { ok: true, code: null, detail: null };
const CLOSING_PROBE: Probe = notReadyProbe("closing", "the receiver is closing or closed");

/** For how many values of `maxDueAgeMs` the last answer is remembered. */
const MAX_READY_CODES = 10;

/** A receiver without the methods that register handlers. */
class ReceiverCore implements Omit<Receiver, keyof Registration<Receiver, HandlerContext> | "on" | "ignore"> {
  readonly sources: SourceEndpoints<Sources>;
  readonly events: Events;
  readonly effects: Effects | null;
  readonly #upkeep: EffectsUpkeep | null;
  readonly #options: ReceiverOptions;
  readonly #settings: Settings;
  readonly #clock: Environment;
  readonly #notices: NoticeBoard;
  readonly #registry: Registry;
  readonly #inbox: Inbox;
  /** The flows of this process, by their names. */
  readonly #flows: ReadonlyMap<string, Flow>;
  readonly #endpoints: { readonly payments: PaymentsEndpoint | null; readonly connect: Endpoint | null };
  readonly #runner: Runner;
  readonly #intake: Intake;
  readonly #outcomes: Outcomes;
  readonly #lifecycle: Lifecycle;
  /** The last code of `ready`, by its option. */
  readonly #lastReadyCodes = new Map<number | undefined, NotReadyCode | null>();
  /** The last error of the set-up that was reported. */
  #lastSetupError: string | null = null;

  constructor(options: ReceiverOptions, registry: Registry) {
    this.#registry = registry;
    this.#options = options;
    this.#settings = settingsOf(options);
    const { payments, connect } = options;
    const clock = environmentOf(options.clock);
    this.#clock = clock;
    const { logLevel } = this.#settings;
    const logger = loggerOf(options.logger ?? loggerFromLevel(consoleLogger, logLevel));
    const notices = new NoticeBoard(new LogLines(logger, logLevel, clock), clock);
    this.#notices = notices;
    this.#inbox = withPayhooksErrors(options.inbox ?? memoryInbox({ clock }));
    this.#inbox.observe((notice) => notices.post(notice));
    const { windowMs, acceptTimeoutMs, maxResolving } = this.#settings;
    const names = options.names === undefined ? SPECIFIED_NAMES : serviceNames(options.names);
    const notify: FlowContext["notify"] = (notice) => notices.post(notice);
    const context = { windowMs, acceptTimeoutMs, maxResolving, clock, names, notify };
    const paymentFlow = payments === undefined ? null : paymentsFlow(payments, context);
    const accountFlow = connect === undefined ? null : connectFlow(connect, context);
    const sourceFlows = sourceFlowsOf(options.sources ?? {}, context);
    const flows = [paymentFlow, accountFlow, ...sourceFlows].filter((flow) => flow !== null);
    this.#flows = new Map(flows.map((flow) => [flow.name, flow]));
    const { effects = null } = options;
    const instrumentation = this.#instrumentationOf(options);
    this.effects = effects;
    this.#upkeep = effects === null ? null : new EffectsUpkeep(effects, clock, notices);
    this.#runner = createRunner({
      registry,
      flows: this.#flows,
      notices,
      logger,
      clock,
      effects,
      instrumentation,
    });
    const { run = "background" } = this.#settings;
    this.#lifecycle = new Lifecycle({
      goal: run === "background" ? "running" : "ready",
      environment: clock,
      notify: (notice) => notices.post(notice),
      prepare: () => this.#prepare(),
      run: () => this.#run(),
      close: (options) => this.#close(options),
    });
    this.#outcomes = new Outcomes(
      notices,
      new DeliveryAlerts(options.alerts ?? {}, clock, (alert) => notices.post(alert)),
    );
    this.#intake = new Intake({
      settings: this.#settings,
      environment: clock,
      notices,
      outcomes: this.#outcomes,
      inbox: this.#inbox,
      runner: this.#runner,
      lifecycle: this.#lifecycle,
      instrumentation,
      work: () => this.work(),
      treatmentOf: (flow, event) => registry.treatmentOf(flow, event),
    });
    if (instrumentation !== null) {
      notices.watch((notice) => instrumentation.onNotice(notice));
      instrumentation.attach({ health: () => this.health() });
    }
    const endpoints = sourceFlows.map((flow) => [flow.name, this.#intake.endpoint(flow)] as const);
    this.sources = Object.freeze(Object.assign(Object.create(null), Object.fromEntries(endpoints)));
    this.#endpoints = {
      payments: paymentFlow === null ? null : this.#paymentsEndpoint(paymentFlow),
      connect: accountFlow === null ? null : this.#intake.endpoint(accountFlow),
    };
    const { events } = this.#inbox;
    this.events = checkedEvents(events, notices, this.#flows);
  }

  /** A failing instrumentation is reported once, because it may fail for each event. */
  #instrumentationOf({ instrumentation }: ReceiverOptions): Instrumentation | null {
    if (instrumentation === undefined) return null;
    let isReported = false;
    return guardInstrumentation(instrumentation, (error) => {
      if (isReported) return;
      isReported = true;
      this.#notices.post({
        type: "warning",
        what: `The instrumentation has failed: ${describeError(error)}`,
        fix: "Events are not affected, but measurements and traces are incomplete. Fix the instrumentation, or remove it.",
      });
    });
  }

  get payments(): PaymentsEndpoint {
    return this.#endpoints.payments ?? throwFlowOff("payments", "payments: { publicKey }");
  }

  get connect(): Endpoint {
    return this.#endpoints.connect ?? throwFlowOff("connect", "connect: { secret }");
  }

  observe(observer: (notice: Notice) => void): () => void {
    return this.#notices.observe(observer);
  }

  async start(): Promise<void> {
    await this.#lifecycle.start();
  }

  /** Checks what can only be checked once the environment is available, and closes registration. */
  async #prepare(): Promise<void> {
    const warnings = await checkSetup({
      hasInbox: this.#options.inbox !== undefined,
      runsElsewhere: this.#settings.run === "elsewhere",
      registry: this.#registry,
      flows: [...this.#flows.values()],
    });
    await this.#withFailureNotice(() => this.#inbox.ready());
    if (this.#settings.run !== "elsewhere") {
      await this.#upkeep?.open();
      await this.#compareHandlers();
    }
    for (const warning of warnings) this.#notices.post({ type: "warning", ...warning });
    this.#registry.close();
  }

  /** Posts a warning if the handlers differ from those of other receivers on the same data. The start does not wait for it. */
  async #compareHandlers(): Promise<void> {
    try {
      const change = await this.#inbox.compareHandlers(this.#registry.names);
      if (change !== null) this.#notices.post({ type: "warning", ...differenceOf(change) });
    } catch (error) {
      this.#notices.post(inboxErrorNotice("handlers", error));
    }
  }

  async #run(): Promise<BackgroundRuns> {
    const { concurrency } = this.#settings;
    const running = await this.#withFailureNotice(() => this.#inbox.run(this.#runner, { concurrency }));
    this.#upkeep?.begin();
    return running;
  }

  /**
   * Posts one notice about a failure, however many deliveries wait for the action. A wrong set-up is reported only when
   * it changes, because each attempt finds it again.
   */
  async #withFailureNotice<T>(action: () => Promise<T>): Promise<T> {
    try {
      return await action();
    } catch (error) {
      const setupError = isSetupError(error) ? describeError(error) : null;
      const isNewError = setupError === null || setupError !== this.#lastSetupError;
      this.#lastSetupError = setupError;
      if (isNewError && !this.#lifecycle.isClosing) this.#notices.post(inboxErrorNotice("start", error));
      throw error;
    }
  }

  #paymentsEndpoint(flow: PaymentsFlow): PaymentsEndpoint {
    return {
      ...this.#intake.endpoint(flow),
      ingest: async (transaction, options = {}) => {
        checkNames("ingest", options, { tenant: true });
        return this.#ingest(flow, transaction, options.tenant);
      },
    };
  }

  async #ingest(
    flow: PaymentsFlow,
    transaction: LookupTransaction,
    tenant: string | undefined,
  ): Promise<IngestResult> {
    checkTenant(flow, tenant, "ingest");
    await this.#lifecycle.prepare();
    const now = this.#clock.now();
    const { maxHeld } = this.#settings;
    const delivery = await flow.fromLookup(transaction, tenant ?? ONLY_TENANT, now);
    const { reading } = withFreshness(flow.read(delivery), now, flow.windowMs);
    const acceptResult = await this.#inbox.accept(reading.verified, { maxHeld });
    this.#outcomes.recordAccepted(reading, acceptResult);
    const calls: Promise<unknown>[] = [];
    this.#intake.notifyWorker(acceptResult, (call) => calls.push(call));
    // Nobody keeps the process alive for a call that is still on its way.
    await Promise.all(calls);
    return { outcome: acceptResult.outcome, eventId: acceptResult.eventId };
  }

  async work(options: Parameters<Receiver["work"]>[0] = {}): Promise<WorkReport> {
    checkNames("work", options, { deadlineMs: true, limit: true });
    const { deadlineMs = 10_000, limit = 1_000 } = options;
    checkTime("deadlineMs", deadlineMs);
    checkLimit("limit", limit);
    const { concurrency } = this.#settings;
    return this.#lifecycle.during(async () => {
      const report = await this.#inbox.work(this.#runner, { deadlineMs, limit, concurrency });
      await this.#upkeep?.pruneIfDue();
      return report;
    });
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
    return this.#lifecycle.during(() => this.#inbox.runEvent(this.#runner, eventId));
  }

  lease(name: string, lengthMs: number): Promise<NamedLease | null> {
    return takeLease(this.#inbox.texts, name, lengthMs, this.#clock.token());
  }

  viewLease(name: string): Promise<LeaseView | null> {
    return viewLease(this.#inbox.texts, name);
  }

  pause(): void {
    this.#lifecycle.pause();
  }

  resume(): void {
    this.#lifecycle.resume();
  }

  handlersOf({ flow, event, status }: Parameters<Receiver["handlersOf"]>[0]): readonly string[] {
    return this.#registry.namesFor(flow, event, status);
  }

  contents(delivery: StoredDelivery): Contents {
    return contentsWithFlows(this.#flows, delivery);
  }

  async health(): Promise<Health> {
    const health = await this.#inbox.health();
    const { startProblem } = this.#lifecycle;
    if (startProblem === null || startProblem.cause === null || this.#lifecycle.isClosing) return health;
    return { ...health, ok: false, detail: describeStartProblem(startProblem.cause), failing: "start" };
  }

  live(): Probe {
    return this.#lifecycle.isClosing ? CLOSING_PROBE : OK_PROBE;
  }

  async ready(options: ReadyOptions = {}): Promise<Probe> {
    checkNames("ready", options, { maxDueAgeMs: true });
    const { maxDueAgeMs } = options;
    if (maxDueAgeMs !== undefined) checkTime("maxDueAgeMs", maxDueAgeMs);
    const probe = await this.#ready(maxDueAgeMs);
    const lastCode = this.#lastReadyCodes.get(maxDueAgeMs) ?? null;
    const isKnown = this.#lastReadyCodes.has(maxDueAgeMs);
    if (!isKnown && this.#lastReadyCodes.size === MAX_READY_CODES) this.#lastReadyCodes.clear();
    this.#lastReadyCodes.set(maxDueAgeMs, probe.code);
    if (probe.code !== lastCode) this.#notices.post({ type: "readiness", ...probe });
    return probe;
  }

  async #ready(maxDueAgeMs: number | undefined): Promise<Probe> {
    if (this.#lifecycle.isClosing) return CLOSING_PROBE;
    const { startProblem } = this.#lifecycle;
    if (startProblem !== null) {
      return notReadyProbe(
        isSetupError(startProblem.cause) ? "misconfigured" : "not-started",
        describeStartProblem(startProblem.cause),
      );
    }
    const { ok, detail, failing, waiting, oldestDueMs } = await this.#inbox.health();
    if (!ok) return notReadyProbe(failing === "accept" ? "inbox-unavailable" : "stalled", detail ?? "");
    if (maxDueAgeMs === undefined) return OK_PROBE;
    if (waiting === null) return notReadyProbe("not-counted", "the events that are due could not be counted");
    if (oldestDueMs === null || oldestDueMs <= maxDueAgeMs) return OK_PROBE;
    return notReadyProbe(
      "overdue",
      `an event has been due for ${oldestDueMs} ms, and maxDueAgeMs is ${maxDueAgeMs}`,
    );
  }

  async close(options: { readonly graceMs?: number | undefined } = {}): Promise<{
    readonly unfinished: number;
  }> {
    checkNames("close", options, { graceMs: true });
    const { graceMs = 10_000 } = options;
    if (graceMs !== 0) checkTime("graceMs", graceMs);
    return this.#lifecycle.close({ graceMs });
  }

  /**
   * Closes the inbox first, without waiting. Events that it has begun without calling a handler go back to other processes at
   * once.
   */
  async #close({ graceMs }: { readonly graceMs: number }): Promise<CloseResult> {
    this.#upkeep?.close();
    const time = new Stopwatch(this.#clock);
    try {
      const closeResult = await this.#inbox.close({ graceMs });
      await this.#intake.drain(graceMs - time.elapsedMs);
      return closeResult;
    } finally {
      this.#notices.close();
    }
  }
}

function notReadyProbe(code: NotReadyCode, detail: string): Probe {
  return { ok: false, code, detail };
}

function describeStartProblem(cause: unknown): string {
  return cause === null
    ? "the receiver is starting"
    : `the receiver has not started: ${describeError(cause)}`;
}

function throwFlowOff(flow: FlowName, option: string): never {
  throw new PayhooksError("ERR_FLOW_OFF", `The ${flow} flow is off: createReceiver was not given ${flow}.`, {
    fix: `Add ${option} to its options, or do not mount this flow.`,
  });
}
