/**
 * A value, or a promise of it. An inbox in memory answers synchronously. Awaiting its answers would cost a delivery a promise,
 * a turn of the microtask queue and a timer for each step, which is more than the step itself.
 */
export type Awaitable<T> = T | Promise<T>;

/** True for anything that has to be awaited, including promises of other libraries. */
export function isPending<T>(value: Awaitable<T>): value is Promise<T> {
  return typeof (value as { readonly then?: unknown } | null | undefined)?.then === "function";
}

/** Takes an outcome. One of the two functions is called, once. */
export interface Settle<T> {
  readonly done: (value: T) => void;
  readonly fail: (error: unknown) => void;
}

/** Returns the value if `start` settles synchronously, or else a promise. Throws if it fails synchronously. */
export function awaitableOf<T>(start: (settle: Settle<T>) => void): Awaitable<T> {
  let settled: { readonly value: T } | { readonly error: unknown } | null = null;
  let later: Settle<T> | null = null;
  start({
    done(value) {
      settled = { value };
      later?.done(value);
    },
    fail(error) {
      settled = { error };
      later?.fail(error);
    },
  });
  const atOnce = settled as { readonly value: T } | { readonly error: unknown } | null;
  if (atOnce === null) {
    return new Promise((done, fail) => {
      later = { done, fail };
    });
  }
  if ("error" in atOnce) throw atOnce.error;
  return atOnce.value;
}
