/**
 * True only when an error of `fetch` proves that no byte of the request left: no name, no connection, or a
 * certificate that was refused before the request was written. Everything else, known runtimes' other wordings
 * included, counts as "perhaps it arrived".
 */
export function nothingWasSent(error: unknown): boolean {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  // Several addresses were tried, and each of them failed.
  if (cause instanceof AggregateError) return cause.errors.length > 0 && cause.errors.every(isConnectFailure);
  return isConnectFailure(cause);
}

/** Node names the system call: during `connect` and `getaddrinfo` there is no connection to write to. */
function isConnectFailure(cause: unknown): boolean {
  if (typeof cause !== "object" || cause === null) return false;
  const { code, syscall } = cause as { readonly code?: unknown; readonly syscall?: unknown };
  return syscall === "connect" || syscall === "getaddrinfo" || BEFORE_THE_REQUEST.has(String(code));
}

/** undici's limit for connecting, and certificates refused by our side of the TLS handshake. */
const BEFORE_THE_REQUEST: ReadonlySet<string> = new Set([
  "UND_ERR_CONNECT_TIMEOUT",
  "CERT_HAS_EXPIRED",
  "CERT_NOT_YET_VALID",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "ERR_TLS_CERT_ALTNAME_INVALID",
]);
