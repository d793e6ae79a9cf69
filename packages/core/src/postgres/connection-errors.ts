/**
 * Decides which failures of PostgreSQL belong to a connection, and which to the whole server. Inboxes and effects share this one
 * rule: a connection that can no longer be used is thrown away. The next connection may lead to another server, or to the same
 * server in a better state.
 */

import { propertyOf } from "../protocol/foreign-value.ts";

/** PostgreSQL's codes have a digit. `EPIPE` of Node.js has none. */
const SQLSTATE_PATTERN = /^(?=.*\d)[0-9A-Z]{5}$/;

/** PostgreSQL's error code of five characters; null if the server did not send one. */
export function sqlStateOf(error: unknown): string | null {
  const code = propertyOf(error, "code");
  return typeof code === "string" && SQLSTATE_PATTERN.test(code) ? code : null;
}

/**
 * The codes after which a connection cannot be used any more. 25006: the session accepts no writes, and may keep to that when
 * its server accepts them again. 25P02: a transaction that was left open was aborted. 25P03, 25P04, 57P: the server has
 * ended the session. 08, 58, XX: the two sides no longer understand each other, or the server is in trouble.
 */
const UNUSABLE_CONNECTION_PATTERN = /^(?:25006|25P0[234]|08|57P|58|XX)/;

/** The codes of a server that cannot be reached, has no room, or accepts no writes. It has done nothing. */
const UNAVAILABLE_SERVER_PATTERN = /^(?:25006|08|53|57P|58030)/;

/** True if the server's answer makes the connection unusable, as every error that ends the session does. */
export function isConnectionUnusable(error: unknown): boolean {
  const severity = propertyOf(error, "severity");
  return (
    severity === "FATAL" || severity === "PANIC" || UNUSABLE_CONNECTION_PATTERN.test(sqlStateOf(error) ?? "")
  );
}

/** True if a failed statement leaves the connection unusable. An error without a code means that the server never answered. */
export function isConnectionLost(error: unknown): boolean {
  return sqlStateOf(error) === null || isConnectionUnusable(error);
}

/** The code says that the server is unreachable for now: a refused statement may be sent again later. */
export function isServerUnavailable(code: string): boolean {
  return UNAVAILABLE_SERVER_PATTERN.test(code);
}
