import { sharedNow } from "./scope.ts";

/** From one moment to another, in milliseconds on the clock that all processes share. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

const EVERY_MS = 10;

/**
 * Tells whenever a timer of this process came late because the machine let it wait. While the process itself was
 * computing, that is its own slowness, and none of it is told. Gives what ends it.
 */
export function watchLag(tell: (lag: Span) => void): () => void {
  let dueAt = sharedNow() + EVERY_MS;
  let computed = process.cpuUsage();
  const timer = setInterval(() => {
    const now = sharedNow();
    const { user, system } = process.cpuUsage(computed);
    const waitedMs = Math.floor(now - dueAt - (user + system) / 1000);
    if (waitedMs > 0) tell({ from: now - waitedMs, to: now });
    dueAt = now + EVERY_MS;
    computed = process.cpuUsage();
  }, EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** How much of a span lies in none of the lags: what it would have taken on a machine that has nothing else to do. */
export function lengthWithoutLag({ from, to }: Span, lags: readonly Span[]): number {
  let ms = to - from;
  let counted = from;
  for (const lag of [...lags].sort((a, b) => a.from - b.from)) {
    const [start, end] = [Math.max(lag.from, counted), Math.min(lag.to, to)];
    if (end <= start) continue;
    ms -= end - start;
    counted = end;
  }
  return ms;
}
