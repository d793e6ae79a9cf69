import type { Effects } from "../effects/effects.ts";
import type { ConnectOptions } from "../flows/connect.ts";
import type { PaymentsOptions } from "../flows/payments-options.ts";
import type { Inbox } from "../inbox/contract/inbox.ts";
import type { ServiceNames } from "../names/options.ts";
import type { AlertOptions } from "../notices/delivery-alerts.ts";
import type { LogLevel } from "../notices/log-lines.ts";
import type { LoggerOption } from "../notices/logger.ts";
import { checkNames, type OptionNames } from "../protocol/check-names.ts";
import { checkCount, checkLimit, checkTime } from "../protocol/check-number.ts";
import { invalidOptionError } from "../protocol/errors.ts";
import { describeValue } from "../protocol/foreign-value.ts";
import type { Sources } from "../sources/source.ts";
import type { Clock } from "../time/clock.ts";
import type { Instrumentation } from "./instrumentation.ts";

/** Options of {@link createReceiver}. A flow that is left out is off. */
export interface ReceiverOptions<S extends Sources = Sources> {
  /** The payments flow: per-transaction callbacks. */
  readonly payments?: PaymentsOptions | undefined;
  /** The connect flow: connected-account webhooks. */
  readonly connect?: ConnectOptions | undefined;
  /** Other senders, by names of your own: `[a-z][a-z0-9-]{0,31}`, and neither `payments` nor `connect`. */
  readonly sources?: S | undefined;
  /** The service's own names, from `serviceNames`. Default: the names of the specification. */
  readonly names?: ServiceNames | undefined;
  /** The storage of events. Default: memory. With `NODE_ENV=production`, an inbox must be named. */
  readonly inbox?: Inbox | undefined;
  /**
   * The storage of effects, so that each happens exactly once, such as `pgEffects(pool)`. With it, handlers have
   * `ctx.transaction` and `ctx.claimEffect`.
   */
  readonly effects?: Effects | undefined;
  /** When to answer 200: once the event is stored (default), or once its handlers are done. */
  readonly ack?: "enqueued" | "handled" | undefined;
  /** With `ack: "handled"`: how long the handlers may take before the answer is 503. Default 8 s. */
  readonly handledBudgetMs?: number | undefined;
  /**
   * The place where handlers run: in this process, after each response, or in another process. Default: after each
   * response if the platform has a `waitUntil` (Workers, Next.js) and `start()` was not called, otherwise in this
   * process.
   */
  readonly run?: "background" | "after-response" | "elsewhere" | undefined;
  /**
   * Called with the eventId of each event that this process has accepted but does not run itself. Use it to send a message to a
   * worker, or to call the worker's route, which then calls `receiver.run(eventId)`. The call is only a hint. If it throws, there
   * is a notice. If a hint gets lost, `receiver.work()` or a worker that runs in the background finds the event.
   */
  readonly notifyWorker?: ((eventId: string) => void | Promise<void>) | undefined;
  /** How many events run at one time in this process. Default 16. */
  readonly concurrency?: number | undefined;
  readonly limits?: Limits | undefined;
  /** How long ago an event may have been signed. Default 7 days. */
  readonly windowMs?: number | undefined;
  readonly alerts?: AlertOptions | undefined;
  /** Any logger with `info`, `warn` and `error`: the console, winston, pino, bunyan. Default: the console. */
  readonly logger?: LoggerOption | undefined;
  /** The lowest level that is logged. `"info"` also logs successes. Default `"warn"`. */
  readonly logLevel?: LogLevel | undefined;
  /** Measures or traces the receiver: `otel()` of `@payhooks/core/otel`, or `prometheusMetrics()` of `@payhooks/core/metrics`. */
  readonly instrumentation?: Instrumentation | undefined;
  /** For tests. */
  readonly clock?: Clock | undefined;
}

/** How much one process takes on at one time. Further deliveries are refused, and the service sends them again. */
interface Limits {
  /** How many unanswered deliveries there may be at one time. Further deliveries are answered 503. Default 1,000. */
  readonly maxInFlight?: number | undefined;
  /**
   * How many deliveries of one flow may wait for its key resolver at one time. Further deliveries are answered 503. For merchants
   * that the resolver has found before, the same number may wait in addition. Waiting deliveries do not count as in flight.
   * Default 100.
   */
  readonly maxResolving?: number | undefined;
  /**
   * How many entries may be held. At this limit, a delivery that would add an entry is answered 503. A tenant may have as many
   * entries as there are places left; beyond that, its deliveries are answered 503, too. Default 10,000.
   */
  readonly maxHeld?: number | undefined;
  /** The size of a body. Larger ones are answered 413. Default 64 KiB. */
  readonly maxBodyBytes?: number | undefined;
  /** How long the whole body may take. After that the answer is 408. Default 10 s. */
  readonly bodyTimeoutMs?: number | undefined;
  /** The deadline from verification to acceptance. Default 2 s. */
  readonly acceptTimeoutMs?: number | undefined;
}

/** Options that have a default, filled in. */
export interface Settings {
  readonly ack: "enqueued" | "handled";
  readonly handledBudgetMs: number;
  /** Undefined: each delivery decides, see `runOf` of the intake. */
  readonly run: "background" | "after-response" | "elsewhere" | undefined;
  readonly concurrency: number;
  readonly maxInFlight: number;
  readonly maxResolving: number;
  readonly maxHeld: number;
  readonly windowMs: number;
  readonly acceptTimeoutMs: number;
  readonly maxBodyBytes: number;
  readonly bodyTimeoutMs: number;
  readonly logLevel: LogLevel;
  readonly notifyWorker: ((eventId: string) => void | Promise<void>) | undefined;
}

const DEFAULT_SETTINGS: Settings = {
  ack: "enqueued",
  handledBudgetMs: 8_000,
  run: undefined,
  concurrency: 16,
  maxInFlight: 1_000,
  maxResolving: 100,
  maxHeld: 10_000,
  windowMs: 7 * 24 * 60 * 60 * 1000,
  acceptTimeoutMs: 2_000,
  maxBodyBytes: 64 * 1024,
  bodyTimeoutMs: 10_000,
  logLevel: "warn",
  notifyWorker: undefined,
};

/** Checks what can be checked without the environment, and fills in the defaults. Throws `ERR_OPTION_INVALID`. */
export function settingsOf(options: ReceiverOptions): Settings {
  if (typeof options !== "object" || options === null) {
    throw invalidOptionError("createReceiver was given no options.", "Give it at least one flow.");
  }
  const { sources = {} } = options;
  if (options.payments === undefined && options.connect === undefined && Object.keys(sources).length === 0) {
    throw invalidOptionError(
      "Every flow is off.",
      "Give payments: { publicKey }, connect: { secret } or sources.",
    );
  }
  checkNames("createReceiver", options, OPTION_NAMES);
  const { ack = DEFAULT_SETTINGS.ack, run, logLevel = DEFAULT_SETTINGS.logLevel, notifyWorker } = options;
  if (!["enqueued", "handled"].includes(ack)) {
    throw invalidOptionError(`ack is ${describeValue(ack)}.`, 'Use "enqueued" or "handled".');
  }
  if (run !== undefined && !["background", "after-response", "elsewhere"].includes(run)) {
    throw invalidOptionError(
      `run is ${describeValue(run)}.`,
      'Use "background", "after-response" or "elsewhere".',
    );
  }
  if (!["info", "warn", "error"].includes(logLevel)) {
    throw invalidOptionError(`logLevel is ${describeValue(logLevel)}.`, 'Use "info", "warn" or "error".');
  }
  if (run === "elsewhere" && ack === "handled") {
    throw invalidOptionError(
      'run: "elsewhere" runs no handler here, so ack: "handled" is not possible.',
      'Use ack: "enqueued".',
    );
  }
  if (notifyWorker !== undefined && typeof notifyWorker !== "function") {
    throw invalidOptionError("notifyWorker is not a function.", "Give it (eventId) => …, or leave it out.");
  }
  const { limits = {} } = options;
  checkNames("limits", limits, LIMIT_NAMES);
  const number = (name: NumberOption, check: (option: string, value: number) => void): number => {
    const value = isLimit(name) ? limits[name] : options[name];
    if (value !== undefined) check(isLimit(name) ? `limits.${name}` : name, value);
    return value ?? DEFAULT_SETTINGS[name];
  };
  return {
    ack,
    run,
    handledBudgetMs: number("handledBudgetMs", checkTime),
    concurrency: number("concurrency", checkCount),
    maxInFlight: number("maxInFlight", checkLimit),
    maxResolving: number("maxResolving", checkLimit),
    maxHeld: number("maxHeld", checkLimit),
    windowMs: number("windowMs", checkTime),
    acceptTimeoutMs: number("acceptTimeoutMs", checkTime),
    maxBodyBytes: number("maxBodyBytes", checkLimit),
    bodyTimeoutMs: number("bodyTimeoutMs", checkTime),
    logLevel,
    notifyWorker,
  };
}

type NumberOption = Exclude<keyof Settings, "ack" | "run" | "logLevel" | "notifyWorker">;

const LIMIT_NAMES: OptionNames<Limits> = {
  maxInFlight: true,
  maxResolving: true,
  maxHeld: true,
  maxBodyBytes: true,
  bodyTimeoutMs: true,
  acceptTimeoutMs: true,
};

function isLimit(name: string): name is keyof Limits {
  return Object.hasOwn(LIMIT_NAMES, name);
}

const OPTION_NAMES: OptionNames<ReceiverOptions> = {
  payments: true,
  connect: true,
  sources: true,
  names: true,
  inbox: true,
  effects: true,
  ack: true,
  handledBudgetMs: true,
  run: true,
  notifyWorker: true,
  concurrency: true,
  limits: true,
  windowMs: true,
  alerts: true,
  logger: true,
  logLevel: true,
  instrumentation: true,
  clock: true,
};
