/** The parsers of the servers before Payhooks. Names that begin with `exact` leave its bytes as they came. */
export const EXPRESS_TRAPS: readonly string[] = [
  "json-parsed",
  "form-parsed",
  "stream-read",
  "stream-decoded",
  "exact-json-parsed",
  "exact-bytes-parsed",
  "exact-text-read",
  "exact-text-kept",
];
export const FASTIFY_TRAPS: readonly string[] = [
  "stream-read",
  "stream-replaced",
  "stream-decoded",
  "exact-bytes-left-to-the-plugin",
  "exact-bytes-kept",
  "exact-text-kept",
];
export const HONO_TRAPS: readonly string[] = [
  "exact-json-parsed",
  "exact-text-read",
  "exact-no-form-to-parse",
  "exact-bytes-read",
  "blob-read",
  "raw-request-read",
  "stream-taken",
  "exact-bytes-of-a-clone-left",
  "exact-bytes-below-a-limit",
];
export const FETCH_TRAPS: readonly string[] = [
  "json-parsed",
  "text-read",
  "bytes-read",
  "stream-taken",
  "stream-cancelled",
  "exact-bytes-of-a-clone-left",
];
export const NEXT_TRAPS: readonly string[] = [
  "json-parsed",
  "text-read",
  "bytes-read",
  "stream-taken",
  "exact-bytes-of-a-clone-left",
];
export const NESTJS_EXPRESS_TRAPS: readonly string[] = [
  "json-parsed",
  "stream-read",
  "stream-decoded",
  "exact-bytes-parsed",
  "exact-text-read",
];
export const NESTJS_FASTIFY_TRAPS: readonly string[] = ["stream-read", "stream-decoded"];
