/**
 * What is there at once, or will be. An inbox in this process's memory has its answers at once; to wait for them would
 * cost a delivery a promise, a turn of the microtask queue and a timer for each step, more than the step itself.
 */
export type Awaitable<T> = T | Promise<T>;

/** True for what has to be waited for, promises of others' making included: none may be taken for its outcome. */
export function isPending<T>(value: Awaitable<T>): value is Promise<T> {
  return typeof (value as { readonly then?: unknown } | null | undefined)?.then === "function";
}

/** Takes an outcome: one of the two is called, once. */
export interface Settle<T> {
  readonly done: (value: T) => void;
  readonly fail: (error: unknown) => void;
}

/** What was settled at once, or a promise of it. Throws what failed at once. */
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
