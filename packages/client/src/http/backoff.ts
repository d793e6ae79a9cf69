const FIRST_DELAY_MS = 250;
const MAX_DELAY_MS = 5_000;
/** If `Retry-After` asks for more, the caller has to wait. */
const MAX_RETRY_AFTER_MS = 60_000;

/**
 * The milliseconds to wait before the next attempt: 250 ms · 2ⁿ up to 5 s, ± 50 %, and at least what the service asked for.
 *
 * @param tried how many attempts have been made, from 1.
 * @returns null if the service asked for more than a minute.
 */
export function retryDelayMs(tried: number, retryAfterMs: number | undefined): number | null {
  if (retryAfterMs !== undefined && retryAfterMs > MAX_RETRY_AFTER_MS) return null;
  const backoffMs = Math.min(FIRST_DELAY_MS * 2 ** (tried - 1), MAX_DELAY_MS) * (0.5 + Math.random());
  return Math.max(Math.round(backoffMs), retryAfterMs ?? 0);
}

/** A `Retry-After` header in milliseconds from now. Undefined if it is neither whole seconds nor an HTTP date. */
export function parseRetryAfter(header: string | null, now: number): number | undefined {
  const text = header?.trim() ?? "";
  if (/^[0-9]{1,9}$/.test(text)) return Number(text) * 1_000;
  // Only the date form of HTTP is accepted. Date.parse alone would take almost anything.
  if (!/^[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8} GMT$/.test(text)) return undefined;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}
