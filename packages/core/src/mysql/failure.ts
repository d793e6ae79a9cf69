/** The meaning of the failures of MySQL and MariaDB. Both have the same numbers for the errors that matter here. */
import type { SwapResult } from "../inbox/contract/store.ts";
import { isPayhooksError, PayhooksError } from "../protocol/errors.ts";
import { describeError } from "../protocol/foreign-error.ts";
import { propertyOf } from "../protocol/foreign-value.ts";

/** Statements that never left this process. */
export class NotSentError extends Error {
  override readonly name = "NotSentError";
}

/** No answer came in time. The statements may have been run, or may still be. */
export class NoAnswerError extends Error {
  override readonly name = "NoAnswerError";
}

/** The server's number of the error; null if the server did not send one. */
export function errnoOf(error: unknown): number | null {
  const number = propertyOf(error, "errno");
  return typeof propertyOf(error, "sqlState") === "string" && typeof number === "number" ? number : null;
}

const isErrnoIn =
  (...numbers: readonly number[]) =>
  (error: unknown): boolean =>
    numbers.includes(errnoOf(error) ?? 0);

/**
 * The transaction has collided with another one: by a deadlock, by a write elsewhere in a cluster, or because both have made the
 * same record. It was rolled back, and may succeed at once.
 */
export const isRepeatable: (error: unknown) => boolean = isErrnoIn(1213, 3101, 1062);
/** The server accepts no writes: it is a replica, or was made read-only in a failover. */
export const isReadOnly: (error: unknown) => boolean = isErrnoIn(1290, 1792, 1836, 3100);
/** A table or a column does not exist. */
export const isTableMissing: (error: unknown) => boolean = isErrnoIn(1146, 1054);
/** The user lacks a privilege. */
export const isForbidden: (error: unknown) => boolean = isErrnoIn(1044, 1142, 1143, 1227);

/** There is no room on the disk or in the table, the node of a cluster is not ready, or too many sessions are open. */
export const isOutOfRoom: (error: unknown) => boolean = isErrnoIn(1021, 1114, 1040, 1047, 1203, 1226);
/**
 * The server has not made the write: the lock of a row was not free in time, or there is no room. After any of these,
 * the transaction is never committed, because its connection is thrown away.
 */
const isNotWritten = (error: unknown): boolean => errnoOf(error) === 1205 || isOutOfRoom(error);
/** The data is at fault: it is too long, out of range, cannot be encoded, or is larger than a packet may be. */
const isDataRefused = isErrnoIn(1406, 1264, 1366, 1048, 1153, 3140);

/**
 * The meaning of a transaction's failure for its writes. An error that is in no list counts as unknown, as the loss of the
 * connection does: the transaction may have been committed.
 */
export function writeOutcomeOf(error: unknown): Extract<SwapResult, { readonly cause: unknown }> {
  if (error instanceof NotSentError) return { kind: "not-written", cause: error.cause ?? error };
  if (isDataRefused(error)) return { kind: "refused", cause: error };
  const isUndone = [isRepeatable, isReadOnly, isTableMissing, isForbidden, isNotWritten].some((fits) =>
    fits(error),
  );
  return { kind: isUndone ? "not-written" : "unknown", cause: error };
}

/** Why there is no connection, and what to do. The first entry that fits is reported. The server's own words are not repeated. */
const REFUSALS: readonly (readonly [is: RegExp, what: string, fix: string])[] = [
  [
    /^(?:1045|1698|1251|2059)\b|^AUTH_SWITCH/,
    "the server refuses this user or the password",
    "Check user and password. Percent-encode characters such as @ : / # in an address (encodeURIComponent). MySQL tells users apart by the host they come from: 'user'@'%'.",
  ],
  [
    /^1049\b/,
    "the database does not exist",
    "Check the name at the end of the address, or make it: CREATE DATABASE name.",
  ],
  [/^1044\b/, "the user may not use this database", "GRANT ALL ON name.* TO your_user."],
  [
    /^(?:1130|1129)\b/,
    "the server does not let this host in",
    "CREATE USER your_user@host, or FLUSH HOSTS after too many errors.",
  ],
  [
    /^(?:1040|1203|1226)\b/,
    "the server has no connection left",
    "Raise max_connections, or let other programs use fewer. The inbox needs three for each process.",
  ],
  [/^(?:1053|1927)\b/, "the server is stopping", "Wait: this is tried again."],
  [/^1047\b/, "this node of the cluster is not ready", "Wait: this is tried again."],
  [
    /^(?:1290|1792|1836|3100)\b/,
    "the server accepts no writes",
    "It may be a replica, or in the middle of a failover. The address has to lead to the primary.",
  ],
  [
    /^1665\b/,
    "its binary log has the format STATEMENT, with which it takes no writes at READ COMMITTED",
    "Set binlog_format to ROW or MIXED.",
  ],
  [
    /HANDSHAKE_NO_SSL_SUPPORT/,
    "TLS is asked for, and the server has none",
    "Leave ssl out, or switch TLS on in the server.",
  ],
  [/^(?:3159|1835)\b/, "the server takes only connections with TLS", "Set ssl in the settings of the pool."],
  [
    /DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_|ERR_TLS_|CERT_|HANDSHAKE_SSL_ERROR/,
    "the server's certificate is not accepted",
    "Give the certificate of its authority as ssl.ca in the settings of a pool.",
  ],
  [
    /ENOTFOUND|EAI_AGAIN/,
    "the host of the address is not known",
    "Check the host. Inside a container, localhost is the container itself.",
  ],
  [
    /ECONNREFUSED|ENOENT/,
    "nothing answers at the address",
    "Check that the server runs, and that host and port, or the socket, are right.",
  ],
  [
    /ETIMEDOUT|EHOSTUNREACH|ENETUNREACH/,
    "the address does not answer in time",
    "Check host and port, and whether a firewall is in between.",
  ],
];

/** Explains an error of connecting in words. Its code then is that of an inbox that is away. Other errors stay as they are. */
export function explainConnectionError(error: unknown): unknown {
  if (isPayhooksError(error)) return error;
  if (error instanceof NoAnswerError)
    return openFailedError(
      "it did not answer in time",
      "Check whether it is overloaded or paused, or its tables are locked.",
      error,
    );
  if (error instanceof NotSentError) {
    const cause = explainConnectionError(error.cause ?? error);
    return isPayhooksError(cause)
      ? cause
      : openFailedError(describeError(cause), "Check the address, and the log of the server.", cause);
  }
  const text = `${errnoOf(error) ?? ""} ${String(propertyOf(error, "code") ?? "")}`.trim();
  const [, problem, fix] = REFUSALS.find(([fits]) => fits.test(text)) ?? [];
  return problem === undefined || fix === undefined ? error : openFailedError(problem, fix, error);
}

function openFailedError(problem: string, fix: string, cause: unknown): PayhooksError {
  return new PayhooksError("ERR_INBOX_UNAVAILABLE", `MySQL cannot be opened: ${problem}.`, { fix, cause });
}
