/** A value, or a promise of it. */
export type Awaitable<T> = T | Promise<T>;

/** True for anything that has to be awaited, including promises of other libraries. */
export function isThenable<T>(value: Awaitable<T>): value is Promise<T> {
  return typeof (value as { readonly then?: unknown } | null | undefined)?.then === "function";
}
