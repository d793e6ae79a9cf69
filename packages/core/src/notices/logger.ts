import { PayhooksError } from "../protocol/errors.ts";
import { isThenable } from "../time/awaitable.ts";

/** Lines that a person should see. `console`, winston and most loggers fit. */
export interface Logger {
  /** Logs a success. */
  info(message: string, facts?: Readonly<Record<string, unknown>>): void;
  /** Logs a problem that a person should look at in time. */
  warn(message: string, facts?: Readonly<Record<string, unknown>>): void;
  /** Logs a failure. */
  error(message: string, facts?: Readonly<Record<string, unknown>>): void;
}

type Method = (...given: never[]) => unknown;

/**
 * Methods that are called with the facts and then the message. As functions they would hide the types of a logger written inline.
 */
interface FactsFirst {
  readonly info: object;
  readonly warn: object;
  readonly error: object;
}

/**
 * A logger that may be given: one that takes the message first, or one that takes the facts first. The second kind is
 * recognised by a method that every logger of its library has: `bindings` of pino, `addSerializers` of bunyan.
 */
export type LoggerOption =
  | (Logger & { readonly bindings?: undefined; readonly addSerializers?: undefined })
  | (FactsFirst & { readonly bindings: Method; readonly addSerializers?: unknown })
  | (FactsFirst & { readonly bindings?: unknown; readonly addSerializers: Method });

const KINDS_OF_FACTS_FIRST = ["bindings", "addSerializers"] as const;

const LEVELS = ["info", "warn", "error"] as const;

type Write = (...given: readonly unknown[]) => unknown;

/**
 * A given logger, to be called with the message first. An error or a rejection of the logger is ignored, because
 * logging must not break the work that it reports.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID` if a method is missing.
 */
export function loggerOf(option: LoggerOption): Logger {
  const log = option as unknown as Readonly<Record<string, Write | undefined>>;
  const missingMethods = LEVELS.filter((level) => typeof log?.[level] !== "function");
  if (missingMethods.length > 0) {
    throw new PayhooksError("ERR_OPTION_INVALID", `The logger has no ${missingMethods.join(", no ")}.`, {
      fix: "Give it { info, warn, error }, each called with a message and an object of facts, such as { info: (message, facts) => log.log(message, facts), … }.",
    });
  }
  const isFactsFirst = KINDS_OF_FACTS_FIRST.some((method) => typeof log[method] === "function");
  const write =
    (level: (typeof LEVELS)[number]): Logger["info"] =>
    (message, facts) => {
      try {
        const inOrder = facts === undefined ? [message] : isFactsFirst ? [facts, message] : [message, facts];
        const answer = log[level]?.(...inOrder);
        if (isThenable(answer)) answer.then(undefined, () => {});
      } catch {
        // The error of a logger can be reported nowhere else.
      }
    };
  return { info: write("info"), warn: write("warn"), error: write("error") };
}

/** The default logger. */
export const consoleLogger: Logger = {
  info: (message, facts) => console.info(`payhooks: ${message}`, ...(facts === undefined ? [] : [facts])),
  warn: (message, facts) => console.warn(`payhooks: ${message}`, ...(facts === undefined ? [] : [facts])),
  error: (message, facts) => console.error(`payhooks: ${message}`, ...(facts === undefined ? [] : [facts])),
};
