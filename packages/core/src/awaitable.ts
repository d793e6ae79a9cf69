/**
 * What is there at once, or will be. An inbox in this process's memory has its answers at once; to wait for them would
 * cost a delivery a promise, a turn of the microtask queue and a timer for each step, more than the step itself.
 */
export type Awaitable<T> = T | Promise<T>;

/** True for what has to be waited for, promises of others' making included: none may be taken for its outcome. */
export function isPending<T>(value: Awaitable<T>): value is Promise<T> {
  return typeof (value as { readonly then?: unknown } | null | undefined)?.then === "function";
}
