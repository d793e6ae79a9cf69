/**
 * True only if an error of `fetch` proves that no byte of the request was sent: the name was not found, no connection
 * was made, or a certificate was refused before the request was written. After any other error, the request may have
 * arrived. This includes errors that other runtimes describe differently, and what throws when it is read.
 */
export function isProvenUnsent(error: unknown): boolean {
  try {
    const cause: unknown = error instanceof Error ? error.cause : undefined;
    // Several addresses were tried. All of them must have failed.
    if (cause instanceof AggregateError)
      return cause.errors.length > 0 && cause.errors.every(isConnectFailure);
    return isConnectFailure(cause);
  } catch {
    return false;
  }
}

/**
 * Node names the system call that failed. During `connect` and `getaddrinfo` there is no connection to write to yet.
 */
function isConnectFailure(cause: unknown): boolean {
  if (typeof cause !== "object" || cause === null) return false;
  const { code, syscall } = cause as { readonly code?: unknown; readonly syscall?: unknown };
  return syscall === "connect" || syscall === "getaddrinfo" || UNSENT_ERROR_CODES.has(String(code));
}

/** The codes of undici's time limit for connecting, and of certificates that our side of the TLS handshake refuses. */
const UNSENT_ERROR_CODES: ReadonlySet<string> = new Set([
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
