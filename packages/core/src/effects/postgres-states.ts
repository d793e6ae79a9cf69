/** The meaning of the clients' errors for PostgreSQL. Some of them put the server's code elsewhere. */
import { isServerUnavailable } from "../postgres/connection-errors.ts";
import { isError, propertyOf, stringOf } from "../protocol/foreign-value.ts";

/** The codes of an error and its causes: SQLSTATEs, and those of the clients and of Node.js. */
export function codesOf(error: unknown): readonly string[] {
  const codes: string[] = [];
  for (
    let current: unknown = error, depth = 0;
    isObject(current) && depth < 5;
    current = nextOf(current), depth++
  ) {
    const meta = propertyOf(current, "meta");
    const adapter = propertyOf(meta, "driverAdapterError");
    const candidates = [propertyOf(current, "code"), propertyOf(meta, "code")];
    codes.push(...candidates.filter((code) => typeof code === "string"));
    codes.push(...codesOfAdapter(propertyOf(adapter, "cause")));
  }
  return codes;
}

/** An error of Prisma's adapter has its facts in a cause, which is not an error itself. */
function codesOfAdapter(cause: unknown): readonly string[] {
  const kind = propertyOf(cause, "kind");
  return [
    propertyOf(cause, "originalCode"),
    propertyOf(cause, "code"),
    typeof kind === "string" ? CODE_BY_KIND[kind] : undefined,
  ].filter((state) => typeof state === "string");
}

/** The kinds of Prisma's adapters that stand for a code. */
const CODE_BY_KIND: Readonly<Record<string, string>> = {
  TransactionWriteConflict: "40001",
  AuthenticationFailed: "28P01",
  DatabaseAccessDenied: "28000",
  DatabaseDoesNotExist: "3D000",
  DatabaseNotReachable: "ECONNREFUSED",
  ConnectionClosed: "ECONNRESET",
  SocketTimeout: "ETIMEDOUT",
  TooManyConnections: "53300",
};

/** The cause; of several failures, such as those of the addresses of one host, the first. */
function nextOf(error: unknown): unknown {
  const cause = propertyOf(error, "cause");
  if (propertyOf(cause, "originalCode") !== undefined) return { meta: { driverAdapterError: { cause } } };
  return cause ?? propertyOf(propertyOf(error, "errors"), 0);
}

/**
 * Serialization failure, deadlock, lock timeout, idle-in-transaction timeout. P2034 is Prisma's code for the first two, and
 * CONNECTION_CLOSED is the code of postgres.js for the last. If the transaction was committed after all, the next attempt finds
 * its id.
 */
const REPEATABLE_CODES: ReadonlySet<string> = new Set([
  "40001",
  "40P01",
  "55P03",
  "25P03",
  "P2034",
  "CONNECTION_CLOSED",
]);

export function isPostgresRepeatable(error: unknown): boolean {
  return codesOf(error).some((code) => REPEATABLE_CODES.has(code));
}

/** Codes of clients that got no connection, or lost it: those of Node.js, postgres.js and Prisma. */
const UNREACHED_PATTERN =
  /^(?:E(?:CONN\w+|PIPE|TIMEDOUT|NOTFOUND|AI_AGAIN|HOSTUNREACH|NETUNREACH|HOSTDOWN)|CONNECT\w+|P100[128]|P2024|P2028)$/;

/** `pg` and its pool give no code for these. */
const UNREACHED_TEXT_PATTERN =
  /timeout exceeded when trying to connect|connection terminated|client has encountered a connection error|not queryable/i;

/** The server could not be reached, had no room, or accepted no writes. */
export function isPostgresUnavailable(error: unknown): boolean {
  const codes = codesOf(error);
  if (codes.some((code) => isServerUnavailable(code) || UNREACHED_PATTERN.test(code))) return true;
  return (
    codes.length === 0 &&
    isError(error) &&
    UNREACHED_TEXT_PATTERN.test(stringOf(propertyOf(error, "message")))
  );
}

/** A statement was refused because an earlier one of its transaction had failed. */
export function isTransactionAborted(error: unknown): boolean {
  return codesOf(error).includes("25P02");
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/** The text in a column of a row; empty if there is none. */
export function textIn(row: unknown, column: string): string {
  return isObject(row) ? String(row[column] ?? "") : "";
}
