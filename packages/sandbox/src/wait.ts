import type { Changes } from "./changes.ts";
import { MAX_TIMER_MS } from "./clock.ts";
import { SandboxError } from "./sandbox-error.ts";

/** Resolves with what `find` finds, now or after a later change. Rejects with `ERR_WAIT_TIMEOUT`, after 24 days at most. */
export function waitFor<Found>(
  changes: Changes,
  find: () => Found | undefined,
  timeoutMs: number,
  describe: () => string,
): Promise<Found> {
  const immediate = find();
  if (immediate !== undefined) return Promise.resolve(immediate);
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      unsubscribe();
    };
    const timer = setTimeout(
      () => {
        end();
        reject(
          new SandboxError("ERR_WAIT_TIMEOUT", `No delivery matched within ${timeoutMs} ms. ${describe()}`),
        );
      },
      Math.min(timeoutMs, MAX_TIMER_MS),
    );
    const unsubscribe = changes.subscribe(() => {
      const match = find();
      if (match === undefined) return;
      end();
      resolve(match);
    });
  });
}
