import type { ServiceNames } from "@payhooks/core";
import { parseSecureUrl } from "./address.ts";
import { type Clock, systemClock } from "./clock.ts";
import { ClientError } from "./errors.ts";
import { checkTimeout, type Transport } from "./http/send.ts";
import { kindOf } from "./kind-of.ts";
import { type ApiNames, apiNames } from "./names.ts";
import type { RequestRules } from "./requests/rules.ts";

/** The options of {@link createClient}, besides the keys. */
export interface ClientOptions {
  /** The address of the service, without `/api/v2`. It must use HTTPS, or HTTP to this machine. */
  readonly baseUrl: string | undefined;
  /** Another `fetch`, for instance for a proxy. Default: the platform's. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** The time limit of each attempt in milliseconds, including the reading of the answer. Default: 15,000. */
  readonly timeoutMs?: number | undefined;
  /** How many attempts a repeatable call has, including the first. Default: 3. With 1, nothing is repeated. */
  readonly attempts?: number | undefined;
  /** The size of the largest answer that is read. Default: 1 MiB. */
  readonly maxAnswerBytes?: number | undefined;
  /** How `amount` is written: as a JSON number with the given digits (`"number"`, the default) or as a string. */
  readonly amountAs?: "number" | "string" | undefined;
  /**
   * The names of a deployment, from `serviceNames` of `@payhooks/core`. The client uses the path of the connected
   * accounts, the name of the medium `PAY`, and the names of the id in answers. Default: those of the specification.
   */
  readonly names?: ServiceNames | undefined;
  /** Accepts mediums that the specification does not list. Default: false. */
  readonly allowUnknownMedium?: boolean | undefined;
  /** Accepts a `callback_url` and a `webhook_url` with `http://` to this machine, for tests. Default: false. */
  readonly allowHttpLoopback?: boolean | undefined;
  /** The source of time. Default: the platform's clock. */
  readonly clock?: Clock | undefined;
}

/**
 * The keys for the payment endpoints, sent as `X-API-Key: <PUBLIC_KEY>:<SECRET_KEY>` (specification, Authentication 1).
 */
export interface PaymentKeys {
  /** The public key of the API. It is not the RSA key that verifies callbacks. */
  readonly publicKey: string | undefined;
  readonly secretKey: string | undefined;
}

/**
 * The key for the connected-account endpoints, sent as `X-API-Key: <API_KEY>` (specification, Authentication 1). Leave
 * it out if these endpoints take the keys for payments.
 */
export interface ConnectKey {
  /** One key, or a public and a secret key joined by a colon. */
  readonly apiKey: string | undefined;
}

const OPTION_NAMES: ReadonlySet<string> = new Set<keyof (ClientOptions & PaymentKeys & ConnectKey)>([
  "baseUrl",
  "publicKey",
  "secretKey",
  "apiKey",
  "fetch",
  "timeoutMs",
  "attempts",
  "maxAnswerBytes",
  "amountAs",
  "names",
  "allowUnknownMedium",
  "allowHttpLoopback",
  "clock",
]);

/**
 * The options after all checks. `payments` and `connect` throw `ERR_OPTION_MISSING` if a key or `baseUrl` is missing.
 */
export interface Settings {
  readonly rules: RequestRules;
  readonly names: ApiNames;
  readonly secrets: readonly string[];
  payments(): Transport;
  connect(): Transport;
}

/**
 * Reads the options. A wrong option is refused at once. A missing key is refused only when it is needed, since a module
 * may also be evaluated without secrets, as in a build.
 */
export function settingsOf(options: ClientOptions & Partial<PaymentKeys & ConnectKey>): Settings {
  for (const name of Object.keys(options)) {
    if (!OPTION_NAMES.has(name))
      throw invalidOptionError(
        name,
        "is not an option of createClient",
        `The options are ${[...OPTION_NAMES].join(", ")}.`,
      );
  }
  const { amountAs = "number", allowUnknownMedium = false, allowHttpLoopback = false } = options;
  const { timeoutMs = 15_000, attempts = 3, maxAnswerBytes = 1_048_576, clock = systemClock } = options;
  if (amountAs !== "number" && amountAs !== "string")
    throw invalidOptionError("amountAs", "is neither", 'Use "number" or "string".');
  for (const [name, value] of Object.entries({ allowUnknownMedium, allowHttpLoopback })) {
    if (typeof value !== "boolean")
      throw invalidOptionError(name, `is ${kindOf(value)}`, "Use true or false.");
  }
  checkTimeout(timeoutMs);
  checkWhole("attempts", attempts, 100);
  checkWhole("maxAnswerBytes", maxAnswerBytes, 2 ** 30);
  // The global fetch is looked up for each call, in case it is replaced later, for instance for tracing.
  const fetch: typeof globalThis.fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
  const names =
    apiNames(options.names) ??
    raise(invalidOptionError("names", "was not made by serviceNames", "Pass serviceNames({ … })."));
  const baseUrl = readBaseUrl(options.baseUrl);
  const publicKey = readKey("publicKey", options.publicKey);
  const secretKey = readKey("secretKey", options.secretKey);
  const apiKey = readKey("apiKey", options.apiKey);

  const transport = (key: string): Transport => ({
    baseUrl: baseUrl ?? throwMissingOption("baseUrl"),
    key,
    fetch,
    clock,
    timeoutMs,
    attempts,
    maxAnswerBytes,
  });
  const payments = (): Transport =>
    transport(
      `${publicKey ?? throwMissingOption("publicKey")}:${secretKey ?? throwMissingOption("secretKey")}`,
    );
  return {
    rules: { amountAs, allowUnknownMedium, allowHttpLoopback, payMedium: names.payMedium },
    names,
    // Of a pair, the part before the colon is public.
    secrets: [secretKey, apiKey?.split(":").at(-1)].filter((secret) => secret !== undefined),
    payments,
    connect: () => ("apiKey" in options ? transport(apiKey ?? throwMissingOption("apiKey")) : payments()),
  };
}

function readBaseUrl(value: string | undefined): string | undefined {
  if (value === undefined || value === null || value === "") return undefined;
  const url = parseSecureUrl(value, true);
  if (typeof url === "string")
    throw invalidOptionError("baseUrl", url, "Give the service's address, such as https://api.example.com.");
  if (
    url.username !== "" ||
    url.password !== "" ||
    url.search !== "" ||
    url.hash !== "" ||
    /[?#]/.test(value)
  ) {
    throw invalidOptionError(
      "baseUrl",
      "has a user, a query or a fragment",
      "Give scheme, host and, if need be, a path.",
    );
  }
  const path = url.pathname.replace(/\/+$/, "");
  if (/\/api(?:\/v[0-9]+)?$/.test(path)) {
    throw invalidOptionError(
      "baseUrl",
      `ends with ${JSON.stringify(path)}`,
      "Leave off /api/v2: the client adds it.",
    );
  }
  return url.origin + path;
}

/** Checks a part of `X-API-Key`. No error shows its value. */
function readKey(name: keyof (PaymentKeys & ConnectKey), value: string | undefined): string | undefined {
  if (value === undefined || value === null || value === "") return undefined;
  if (typeof value !== "string")
    throw invalidOptionError(name, `is ${kindOf(value)}`, "Pass the key as a string.");
  if (value.includes("-----BEGIN")) {
    throw invalidOptionError(
      name,
      "is a key in PEM form",
      "Pass the API's key; the RSA key belongs to createReceiver.",
    );
  }
  if (name === "apiKey" ? !/^[^:]+(?::[^:]+)?$/.test(value) : value.includes(":")) {
    throw name === "apiKey"
      ? invalidOptionError(
          name,
          "is neither one key nor two joined by a colon",
          "Check how the variable is set.",
        )
      : invalidOptionError(
          name,
          "contains a colon",
          "Pass publicKey and secretKey apart; the client joins them.",
        );
  }
  if (!/^[\x21-\x7e]+$/.test(value)) {
    throw invalidOptionError(
      name,
      "contains white space or characters that no header can carry",
      "Check how the variable is set.",
    );
  }
  return value;
}

function checkWhole(name: string, value: unknown, max: number): void {
  if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= max) return;
  throw invalidOptionError(name, `is ${String(value)}`, `Give a whole number from 1 to ${max}.`);
}

function raise(error: ClientError): never {
  throw error;
}

function throwMissingOption(name: string): never {
  throw new ClientError("ERR_OPTION_MISSING", `createClient was given no ${name}.`, {
    fix: "Check that the environment variable is set.",
    field: name,
  });
}

function invalidOptionError(name: string, problem: string, fix: string): ClientError {
  return new ClientError("ERR_OPTION_INVALID", `${name} ${problem}.`, { fix, field: name });
}
