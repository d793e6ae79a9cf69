import { isLoopbackHost } from "@payhooks/pages";
import { type Clock, MAX_DURATION_MS, systemClock } from "./clock.ts";
import { RETRY_DEFAULTS, type RetryOptions, type RetryPlan } from "./deliveries/backoff.ts";
import type { FaultKind, FaultRule } from "./faults/kinds.ts";
import { type ServiceNames, type WireNames, wireNames } from "./names.ts";
import type { Outcome } from "./payments/outcomes.ts";
import { SandboxError } from "./sandbox-error.ts";
import { MEDIUMS, type Medium, type WebhookSettings } from "./wire.ts";

/** The options of `createSandbox`. All of them have defaults. Durations are in milliseconds. */
export interface SandboxOptions {
  /** The port to listen on. Default: 0, which picks a free one. */
  readonly port?: number | undefined;
  /** The address to listen on. Default: 127.0.0.1. An address that other machines can reach needs `allowRemote`. */
  readonly host?: string | undefined;
  /**
   * Lets other machines reach the sandbox, under an address of this machine or a name without a dot, such as that of a
   * container. For other names, see `allowedHosts`. Its pages need no key, so anybody who reaches it can use it.
   */
  readonly allowRemote?: boolean | undefined;
  /**
   * Host names under which the pages may be opened, besides those of this machine; for instance that of a tunnel. Ports
   * do not matter.
   */
  readonly allowedHosts?: readonly string[] | undefined;
  /**
   * The base of the addresses that the sandbox hands out (`checkout_url`). Default: the address that it listens on. The
   * checkout answers under its host name too; for the other pages, see `allowedHosts`.
   */
  readonly publicUrl?: string | undefined;
  /**
   * The keys and ids of the merchant. Those that are left out are as in the state file, or made at random. If the file
   * holds another private key than the one given, `createSandbox` throws `ERR_OPTION_INVALID`.
   */
  readonly merchant?:
    | {
        readonly merchantId?: string | undefined;
        readonly masterMerchantId?: string | undefined;
        readonly userId?: string | undefined;
        /** `<PUBLIC_KEY>:<SECRET_KEY>` */
        readonly apiKey?: string | undefined;
        readonly connectApiKey?: string | undefined;
        /** RSA in PEM. */
        readonly privateKey?: string | undefined;
      }
    | undefined;
  /** The webhook settings at the start and after a reset. Default: those in the state file, or webhooks are off. */
  readonly settings?: WebhookSettings | undefined;
  /** The faults at the start and after a reset. Default: none. */
  readonly faults?: readonly (FaultKind | FaultRule)[] | undefined;
  /** The callback address of triggered transactions that give none. */
  readonly callbackUrl?: string | undefined;
  /** The outcome of transactions that match no script. Default: `"SUCCESS"`. */
  readonly outcome?: Outcome | undefined;
  /** The time from one status to the next, if a script gives none. Default: 500. */
  readonly delayMs?: number | undefined;
  readonly retry?: RetryOptions | undefined;
  /**
   * A retry repeats the bytes and the signature of the first attempt (`"same"`), or gets a new date and a new signature
   * (`"anew"`). The specification does not say. Default: `"same"`.
   */
  readonly signRetries?: "same" | "anew" | undefined;
  /** How long an answer to a delivery may take. Default: 10 s. */
  readonly answerTimeoutMs?: number | undefined;
  /** The certificate authority, in PEM, of the receivers' HTTPS certificates. Default: those that Node.js trusts. */
  readonly ca?: string | undefined;
  /** Accepts `http://` callback and webhook addresses on this machine. Default: true. */
  readonly allowHttpLoopback?: boolean | undefined;
  /** Accepts only HTTPS addresses, redirects included. Default: false. */
  readonly strictHttps?: boolean | undefined;
  /**
   * Refuses requests that the sandbox otherwise accepts with a warning on the dashboard: those with the other call's names of
   * `redirects`. Default: false.
   */
  readonly strict?: boolean | undefined;
  /**
   * The names of a deployment, from `serviceNames` of `@payhooks/core`: of a callback's fields, of the signature's
   * header, of paths, of the medium `PAY` and of ids in answers. Default: those of the specification.
   */
  readonly names?: ServiceNames | undefined;
  /** The mediums that are accepted, to try one of the two published lists. Default: both lists together. */
  readonly mediums?: readonly Medium[] | undefined;
  /**
   * Decides the jitter, and which deliveries and calls get faults with a rate. The same seed gives the same run.
   * Default: at random.
   */
  readonly seed?: string | undefined;
  /** A JSON file that keeps keys, ids and webhook settings across restarts. It holds the private key. Default: none. */
  readonly state?: string | undefined;
  readonly limits?: { readonly [Key in keyof typeof LIMIT_DEFAULTS]?: number | undefined } | undefined;
  /** The source of time for scripts, retries and delays. Default: the platform's clock. */
  readonly clock?: Clock | undefined;
}

/** How much the sandbox keeps. Beyond that, it drops the oldest finished entries. */
export const LIMIT_DEFAULTS = { transactions: 10_000, deliveries: 5_000, accounts: 1_000, bodyBytes: 65_536 };

export interface ResolvedOptions {
  readonly port: number;
  readonly host: string;
  readonly allowRemote: boolean;
  readonly allowedHosts: readonly string[];
  readonly publicUrl: string | undefined;
  readonly merchant: NonNullable<SandboxOptions["merchant"]>;
  readonly settings: WebhookSettings | undefined;
  readonly faults: readonly (FaultKind | FaultRule)[];
  readonly callbackUrl: string | undefined;
  readonly outcome: Outcome;
  readonly delayMs: number;
  readonly retry: RetryPlan;
  readonly signRetries: "same" | "anew";
  readonly answerTimeoutMs: number;
  readonly ca: string | undefined;
  readonly allowHttpLoopback: boolean;
  readonly strictHttps: boolean;
  readonly strict: boolean;
  readonly names: WireNames;
  readonly mediums: readonly Medium[];
  readonly seed: string;
  readonly state: string | undefined;
  readonly limits: { readonly [Key in keyof typeof LIMIT_DEFAULTS]: number };
  readonly clock: Clock;
}

/** Fills in defaults. Throws `ERR_OPTION_INVALID` or `ERR_HOST_NOT_LOOPBACK`. */
export function resolveOptions(options: SandboxOptions): ResolvedOptions {
  const host = options.host ?? "127.0.0.1";
  if (!isLoopbackHost(host) && options.allowRemote !== true) {
    throw new SandboxError(
      "ERR_HOST_NOT_LOOPBACK",
      `${host} can be reached from other machines, and the sandbox asks for no password. Listen on 127.0.0.1, or pass allowRemote: true.`,
    );
  }
  const port = number("port", options.port, 0, { max: 65_535 });
  if (options.mediums?.length === 0 || options.mediums?.some((medium) => !MEDIUMS.includes(medium))) {
    throw invalidOptionError("mediums", `must hold values of ${MEDIUMS.join(", ")}`);
  }
  const { publicUrl, names } = options;
  if (names !== undefined && names?.callback?.extra === undefined) {
    throw invalidOptionError("names", "must be made by serviceNames of @payhooks/core");
  }
  if (publicUrl !== undefined && !(/^https?:\/\//i.test(publicUrl) && URL.canParse(publicUrl))) {
    throw invalidOptionError("publicUrl", "must be a full address such as https://sandbox.example");
  }
  const { retry = {}, limits = {} } = options;
  const limit = (name: keyof typeof LIMIT_DEFAULTS) =>
    number(`limits.${name}`, limits[name], LIMIT_DEFAULTS[name], { min: 1 });
  const resolved: ResolvedOptions = {
    port,
    host,
    allowRemote: options.allowRemote ?? false,
    allowedHosts: options.allowedHosts ?? [],
    publicUrl: publicUrl?.replace(/\/+$/, ""),
    merchant: options.merchant ?? {},
    settings: options.settings,
    faults: options.faults ?? [],
    callbackUrl: options.callbackUrl,
    outcome: options.outcome ?? "SUCCESS",
    delayMs: duration("delayMs", options.delayMs, 500),
    retry: {
      maxAttempts: number("retry.maxAttempts", retry.maxAttempts, RETRY_DEFAULTS.maxAttempts, { min: 1 }),
      baseMs: duration("retry.baseMs", retry.baseMs, RETRY_DEFAULTS.baseMs),
      factor: number("retry.factor", retry.factor, RETRY_DEFAULTS.factor, { min: 1 }),
      maxMs: duration("retry.maxMs", retry.maxMs, RETRY_DEFAULTS.maxMs),
      jitter: number("retry.jitter", retry.jitter, RETRY_DEFAULTS.jitter, { max: 1 }),
    },
    signRetries: options.signRetries ?? "same",
    answerTimeoutMs: duration("answerTimeoutMs", options.answerTimeoutMs, 10_000),
    ca: options.ca,
    allowHttpLoopback: options.allowHttpLoopback ?? true,
    strictHttps: options.strictHttps ?? false,
    strict: options.strict ?? false,
    names: wireNames(names),
    mediums: options.mediums ?? MEDIUMS,
    seed: options.seed ?? Math.random().toString(36).slice(2, 12),
    state: options.state,
    limits: {
      transactions: limit("transactions"),
      deliveries: limit("deliveries"),
      accounts: limit("accounts"),
      bodyBytes: limit("bodyBytes"),
    },
    clock: options.clock ?? systemClock,
  };
  checkNames("", options, resolved);
  checkNames("retry.", retry, resolved.retry);
  checkNames("limits.", limits, resolved.limits);
  return resolved;
}

/** Refuses an option that does not exist. Each one that does has a value once the defaults are filled in. */
function checkNames(prefix: string, givenOptions: object, resolved: object): void {
  for (const [name, value] of Object.entries(givenOptions)) {
    if (value !== undefined && !(name in resolved))
      throw invalidOptionError(
        prefix + name,
        `is not an option. The options are ${Object.keys(resolved).join(", ")}`,
      );
  }
}

function number(
  name: string,
  value: number | undefined,
  fallback: number,
  { min = 0, max = Number.MAX_SAFE_INTEGER }: { min?: number; max?: number } = {},
): number {
  if (value === undefined) return fallback;
  if (typeof value === "number" && value >= min && value <= max) return value;
  throw invalidOptionError(name, `must be a number from ${min} to ${max}; it is ${JSON.stringify(value)}`);
}

function duration(name: string, value: number | undefined, otherwise: number): number {
  return number(name, value, otherwise, { max: MAX_DURATION_MS });
}

function invalidOptionError(name: string, rule: string): SandboxError {
  return new SandboxError("ERR_OPTION_INVALID", `The option ${name} ${rule}.`);
}
