/**
 * The facts that Payhooks reports about an error of other code: a driver, a store, a resolver, the runtime. Such an error may
 * contain all the data that this code got. A Redis driver keeps the command with the whole body, a query builder writes all
 * parameters into its message, an invalid URL shows its password. So only parts that are known to contain no data are passed on:
 * the error's kind, its codes, the texts of a fixed list, and where it was thrown.
 */

import { isError, propertyOf, stringOf } from "./foreign-value.ts";

/** The error in one line: `ReplyError: OOM, evalsha`. Errors of Payhooks keep their message, because Payhooks wrote it. */
export function describeError(error: unknown): string {
  const descriptions: string[] = [];
  for (
    let cause: unknown = error;
    cause !== undefined && descriptions.length < MAX_CAUSES;
    cause = causeOf(cause)
  ) {
    descriptions.push(describeOne(cause));
  }
  return descriptions.join(", caused by ");
}

/** The stack of the error, without its message: one stack frame a line. Null if the error does not say. */
function framesOf(error: unknown): string | null {
  if (!isError(error)) return null;
  const [stack, message] = [propertyOf(error, "stack"), propertyOf(error, "message")];
  if (typeof stack !== "string" || typeof message !== "string") return null;
  const messageStart = message === "" ? -1 : stack.indexOf(message);
  const frames = (messageStart < 0 ? stack : stack.slice(messageStart + message.length))
    .split("\n")
    .filter((line) => FRAME_PATTERN.test(line));
  return frames.length === 0 ? null : frames.slice(0, MAX_FRAMES).join("\n");
}

/**
 * The place in the code at which the problem began. For an error of Payhooks, this is the place of its cause. Without a cause,
 * the message says enough.
 */
export function originOf(error: unknown): string | null {
  return framesOf(isOurs(error) ? propertyOf(error, "cause") : error);
}

/** A copy of an error, to keep as the cause of another one. It has the kind, the code and the frames, but no data. */
export function errorWithoutData(error: unknown): Error {
  if (isOurs(error)) return error;
  const name = nameOf(error);
  const copy = new Error(describeError(error));
  Object.defineProperty(copy, "name", { value: name, configurable: true, writable: true });
  const code = codeOf(error);
  if (code !== null) Object.defineProperty(copy, "code", { value: code, enumerable: true });
  copy.stack = [copy.message, framesOf(error)].filter((part) => part !== null).join("\n");
  return copy;
}

const MAX_CAUSES = 3;
const MAX_FRAMES = 10;
const FRAME_PATTERN = /^ +at [^"'{}]{1,500}(?::\d+|native|<anonymous>|index \d+)\)?$/;
const NAME_PATTERN = /^[A-Za-z][A-Za-z0-9]{0,63}$/;
const CODE_PATTERN = /^[A-Za-z0-9_]{1,40}$/;
const WORD_PATTERN = /^[A-Za-z_|.]{1,32}$/;
const ADDRESS_PATTERN = /^[0-9A-Fa-f.:]{2,45}$/;
/** The word that an error of Redis begins with: OOM, READONLY, WRONGPASS. */
const REPLY_PATTERN = /^[A-Z][A-Z0-9]{1,31}(?= |$)/;

/** Texts of drivers that give no code for these errors. */
const KNOWN_ERROR_TEXTS = [
  // ioredis
  "Command timed out",
  "Connection is closed",
  "Stream isn't writeable",
  "Socket timeout",
  "Reached the max retries per request limit",
  "Command aborted due to connection close",
  "Failed to refresh slots cache",
  "None of startup nodes is available",
  "All sentinels are unreachable",
  // Redis
  "max number of clients reached",
  "invalid password",
  "without any password configured",
  "unknown command",
  "DB index is out of range",
  // SQLite
  "database or disk is full",
  "disk I/O error",
  "database disk image is malformed",
  "attempt to write a readonly database",
  "unable to open database file",
  "database is locked",
  "database table is locked",
  "file is not a database",
  "database is not open",
  "database connection is not open",
  // URL, fetch
  "Invalid URL",
  "fetch failed",
] as const;

function describeOne(error: unknown): string {
  if (isOurs(error)) return `${error.code}: ${stringOf(propertyOf(error, "message"))}`;
  if (!isObject(error)) return `a thrown ${error === null ? "null" : typeof error}`;
  const [message, syscall, address, port, command] = ["message", "syscall", "address", "port", "command"].map(
    (name) => propertyOf(error, name),
  );
  const text = typeof message === "string" ? message : "";
  const reply = nameOf(error) === "ReplyError" ? (REPLY_PATTERN.exec(text)?.[0] ?? null) : null;
  const target = matches(address, ADDRESS_PATTERN)
    ? ` ${address}${Number.isInteger(port) ? `:${port}` : ""}`
    : "";
  const facts = [
    codeOf(error) ?? reply,
    matches(syscall, WORD_PATTERN) ? syscall + target : null,
    KNOWN_ERROR_TEXTS.find((errorText) => text.includes(errorText)) ?? null,
    nameOfCommand(command),
  ].filter((fact) => fact !== null);
  return facts.length === 0 ? nameOf(error) : `${nameOf(error)}: ${facts.join(", ")}`;
}

function nameOf(error: unknown): string {
  const name = propertyOf(error, "name");
  return matches(name, NAME_PATTERN) ? name : "Error";
}

function nameOfCommand(command: unknown): string | null {
  const name = propertyOf(command, "name");
  return matches(name, WORD_PATTERN) ? name : null;
}

function codeOf(error: unknown): string | null {
  const code = propertyOf(error, "code");
  if (Number.isInteger(code)) return String(code);
  return matches(code, CODE_PATTERN) ? code : null;
}

/**
 * The cause of an error. Drivers have other names for it too. If there are several errors, for several addresses or nodes, one of
 * them is enough. For an error of Payhooks, the message names the cause.
 */
function causeOf(error: unknown): unknown {
  if (!isObject(error) || isOurs(error)) return undefined;
  const cause = propertyOf(error, "cause") ?? propertyOf(error, "lastNodeError");
  return cause ?? propertyOf(propertyOf(error, "errors"), 0) ?? undefined;
}

/** True for an error of Payhooks. `isPayhooksError` cannot be used here, because its module imports this one. */
function isOurs(error: unknown): error is Error & { readonly code: string } {
  return isError(error) && propertyOf(error, "name") === "PayhooksError" && codeOf(error) !== null;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

function matches(value: unknown, pattern: RegExp): value is string {
  return typeof value === "string" && pattern.test(value);
}
