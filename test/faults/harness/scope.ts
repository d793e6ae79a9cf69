export { newSeed, seededRandom } from "../../../packages/core/src/testing/store/random.ts";

/** The things that a test has started, which are stopped in any case. */
export class Scope {
  readonly #stops: (() => Promise<unknown> | unknown)[] = [];

  /** The last thing started is stopped first. */
  add<T>(thing: T, stop: (thing: T) => Promise<unknown> | unknown): T {
    this.#stops.push(() => stop(thing));
    return thing;
  }

  async close(): Promise<void> {
    for (const stop of this.#stops.splice(0).reverse()) await stop();
  }
}

/** Runs a test and stops everything that it has started, also when it fails. */
export async function withScope<T>(run: (scope: Scope) => Promise<T>): Promise<T> {
  const scope = new Scope();
  try {
    return await run(scope);
  } finally {
    await scope.close();
  }
}

/** Polls until the answer is not null; throws what was waited for when the time is up. */
export async function until<T>(
  what: string,
  probe: () => Promise<T | null | false> | T | null | false,
  { withinMs = 15_000, everyMs = 20 }: { readonly withinMs?: number; readonly everyMs?: number } = {},
): Promise<T> {
  const end = performance.now() + withinMs;
  for (;;) {
    const result = await probe();
    if (result !== null && result !== false) return result;
    if (performance.now() > end) throw new Error(`${what}: not within ${withinMs} ms`);
    await pause(everyMs);
  }
}

/** The interval of a poll, or a fault's planned length; never a way to wait for something. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Milliseconds on a clock that all processes of this machine share and that nobody shifts. */
export function sharedNow(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}
