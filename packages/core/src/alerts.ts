import { LRUCache } from "lru-cache";
import type { Clock } from "./clock.ts";
import type { DeliveryErrorCode } from "./errors.ts";
import type { FlowName } from "./events.ts";
import type { Alert } from "./notices.ts";

/** Options of the alerts. */
export interface AlertOptions {
  /** Failures of one source, or of all, within the window before an alert. Default 10. */
  readonly threshold?: number | undefined;
  /** The rolling window. Default 5 minutes. */
  readonly windowMs?: number | undefined;
  /** The same alert is not repeated for this long. Default 15 minutes. */
  readonly cooldownMs?: number | undefined;
}

/** Sources that are counted apart; a flood of more evicts the quietest. */
const MAX_SOURCES = 1_000;
/** A rolling count is kept in so many parts of the window. */
const PARTS = 10;

/** A count over the last window, exact to a tenth of it, in constant memory. */
class RollingCount {
  readonly #parts = new Array<number>(PARTS).fill(0);
  #newest = 0;

  add(now: number, windowMs: number): void {
    this.#advance(now, windowMs);
    const at = this.#newest % PARTS;
    this.#parts[at] = (this.#parts[at] ?? 0) + 1;
  }

  total(now: number, windowMs: number): number {
    this.#advance(now, windowMs);
    return this.#parts.reduce((sum, part) => sum + part, 0);
  }

  #advance(now: number, windowMs: number): void {
    const part = Math.floor((now * PARTS) / windowMs);
    const steps = Math.min(part - this.#newest, PARTS);
    for (let i = 1; i <= steps; i++) this.#parts[(part - steps + i) % PARTS] = 0;
    if (part > this.#newest) this.#newest = part;
  }
}

interface FlowCounts {
  readonly verified: RollingCount;
  readonly failed: RollingCount;
  readonly sources: LRUCache<string, RollingCount>;
}

/**
 * Counts verification failures by flow and source (specification: repeated failures are a security signal), and
 * tells a wrong key, with which nothing verifies, from a source that probes while others succeed.
 */
export class Alerts {
  readonly #threshold: number;
  readonly #windowMs: number;
  readonly #clock: Clock;
  readonly #post: (alert: Alert) => void;
  readonly #flows = new Map<FlowName, FlowCounts>();
  readonly #recent: LRUCache<string, true>;

  constructor(options: AlertOptions, clock: Clock, post: (alert: Alert) => void) {
    this.#threshold = options.threshold ?? 10;
    this.#windowMs = options.windowMs ?? 5 * 60_000;
    this.#clock = clock;
    this.#post = post;
    this.#recent = new LRUCache({
      max: MAX_SOURCES,
      ttl: options.cooldownMs ?? 15 * 60_000,
      ttlResolution: 0,
      perf: clock,
    });
  }

  /** A delivery was authentic. */
  succeeded(flow: FlowName): void {
    this.#countsOf(flow).verified.add(this.#clock.now(), this.#windowMs);
  }

  /** A delivery was not authentic. */
  failed(flow: FlowName, code: DeliveryErrorCode, source: string | null): void {
    const now = this.#clock.now();
    const counts = this.#countsOf(flow);
    counts.failed.add(now, this.#windowMs);
    const name = source ?? "";
    const ofSource = counts.sources.get(name) ?? new RollingCount();
    ofSource.add(now, this.#windowMs);
    counts.sources.set(name, ofSource);
    const nothingVerifies = counts.verified.total(now, this.#windowMs) === 0;
    const failures = (nothingVerifies ? counts.failed : ofSource).total(now, this.#windowMs);
    if (failures < this.#threshold) return;
    const kind = nothingVerifies ? "all-failing" : "probing";
    const named = nothingVerifies ? null : source;
    if (this.#isRecent(kind, flow, named)) return;
    const sources = this.#activeSources(counts, now);
    this.#post({
      type: "alert",
      kind,
      flow,
      code,
      source: named,
      failures,
      sources,
      windowMs: this.#windowMs,
    });
  }

  /** An event was refused because too many are held. */
  heldFull(flow: FlowName): void {
    if (this.#isRecent("held-full", flow, null)) return;
    const code = "ERR_HELD_FULL";
    this.#post({
      type: "alert",
      kind: "held-full",
      flow,
      code,
      source: null,
      failures: 1,
      sources: 0,
      windowMs: this.#windowMs,
    });
  }

  /** True within the cool-down of the same alert; otherwise the cool-down begins. */
  #isRecent(kind: Alert["kind"], flow: FlowName, source: string | null): boolean {
    const key = `${kind} ${flow} ${source ?? ""}`;
    if (this.#recent.has(key)) return true;
    this.#recent.set(key, true);
    return false;
  }

  #activeSources({ sources }: FlowCounts, now: number): number {
    let active = 0;
    for (const count of sources.values()) if (count.total(now, this.#windowMs) > 0) active++;
    return active;
  }

  #countsOf(flow: FlowName): FlowCounts {
    let counts = this.#flows.get(flow);
    if (counts === undefined) {
      counts = {
        verified: new RollingCount(),
        failed: new RollingCount(),
        sources: new LRUCache({ max: MAX_SOURCES }),
      };
      this.#flows.set(flow, counts);
    }
    return counts;
  }
}
