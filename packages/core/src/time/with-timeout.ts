import type { Clock } from "./clock.ts";

/**
 * Resolves with what the call answers, or rejects with the error `timeoutError()` if there is no answer within
 * `limitMs`. The call itself goes on. Its later answer, or its later error, is ignored.
 */
export async function withTimeout<T>(
  clock: Pick<Clock, "after">,
  limitMs: number,
  call: () => PromiseLike<T>,
  timeoutError: () => Error,
): Promise<T> {
  // A call that throws instead of rejecting must not leave the timer behind.
  const answer = (async () => call())();
  let cancel = (): void => {};
  const timeIsUp = new Promise<never>((_, reject) => {
    cancel = clock.after(limitMs, () => reject(timeoutError()));
  });
  try {
    return await Promise.race([answer, timeIsUp]);
  } finally {
    answer.catch(() => {});
    cancel();
  }
}
