import { LRUCache } from "lru-cache";
import { checkNames } from "../protocol/check-names.ts";
import { checkCount, checkLimit } from "../protocol/check-number.ts";
import { ANSWER_STATUS, type DeliveryErrorCode } from "../protocol/errors.ts";
import type { FlowName } from "../protocol/events.ts";
import type { Clock } from "../time/clock.ts";
import type { Alert } from "./notice.ts";

/** Options of the alerts. */
export interface AlertOptions {
  /** How many failures, of one address or of all, within the window raise an alert. Default 10. */
  readonly threshold?: number | undefined;
  /** The rolling window. Default 5 minutes. */
  readonly windowMs?: number | undefined;
  /** The same alert is not repeated for this long. Default 15 minutes. */
  readonly cooldownMs?: number | undefined;
}

/** How many addresses are counted separately. If there are more, the least recently seen is dropped. */
const MAX_ADDRESSES = 1_000;
/** How many addresses are named within a cool-down, each in an alert of its own. A sender can make up any number of them. */
const MAX_NAMED_ADDRESSES = 10;
/** A rolling count consists of this many parts of the window. */
const WINDOW_PARTS = 10;

/** A count over the last window, exact to a tenth of it, in constant memory. */
class RollingCount {
  readonly #parts = new Array<number>(WINDOW_PARTS).fill(0);
  #newestPart = 0;

  add(now: number, windowMs: number): void {
    this.#advance(now, windowMs);
    const index = this.#newestPart % WINDOW_PARTS;
    this.#parts[index] = (this.#parts[index] ?? 0) + 1;
  }

  total(now: number, windowMs: number): number {
    this.#advance(now, windowMs);
    return this.#parts.reduce((sum, part) => sum + part, 0);
  }

  clear(): void {
    this.#parts.fill(0);
  }

  #advance(now: number, windowMs: number): void {
    const part = Math.floor((now * WINDOW_PARTS) / windowMs);
    const steps = Math.min(part - this.#newestPart, WINDOW_PARTS);
    for (let i = 1; i <= steps; i++) this.#parts[(part - steps + i) % WINDOW_PARTS] = 0;
    if (part > this.#newestPart) this.#newestPart = part;
  }
}

interface FlowCounts {
  readonly failures: RollingCount;
  /** Failures since the last success. */
  readonly failuresSinceSuccess: RollingCount;
  hasFailedSinceSuccess: boolean;
  readonly addresses: LRUCache<string, RollingCount>;
  /** Authentic deliveries that were not stored, by the code of their answer. */
  readonly refusals: Map<DeliveryErrorCode, RollingCount>;
  /** Addresses that were named in an alert. */
  readonly namedAddresses: RollingCount;
  /** Alerts in their cool-down. They are not raised again until it is over. */
  readonly raisedAlerts: LRUCache<string, true>;
}

/**
 * Counts verification failures by flow and address (specification: repeated failures are a security signal). It distinguishes a
 * wrong key, with which every delivery fails, from an address that probes while others succeed. It also counts authentic
 * deliveries that were refused, so that a person learns about a wrong clock.
 */
export class DeliveryAlerts {
  readonly #threshold: number;
  readonly #windowMs: number;
  readonly #cooldownMs: number;
  readonly #clock: Clock;
  readonly #post: (alert: Alert) => void;
  readonly #flows = new Map<FlowName, FlowCounts>();

  constructor(options: AlertOptions, clock: Clock, post: (alert: Alert) => void) {
    checkNames("alerts", options, { threshold: true, windowMs: true, cooldownMs: true });
    const { threshold = 10, windowMs = 5 * 60_000, cooldownMs = 15 * 60_000 } = options;
    checkLimit("alerts.threshold", threshold);
    checkCount("alerts.windowMs", windowMs);
    checkCount("alerts.cooldownMs", cooldownMs);
    this.#threshold = threshold;
    this.#windowMs = windowMs;
    this.#cooldownMs = cooldownMs;
    this.#clock = clock;
    this.#post = post;
  }

  /** A delivery was authentic. */
  recordSuccess(flow: FlowName): void {
    const counts = this.#flows.get(flow);
    if (counts?.hasFailedSinceSuccess !== true) return;
    counts.hasFailedSinceSuccess = false;
    counts.failuresSinceSuccess.clear();
  }

  /** A delivery was not authentic. True for the first one of its address within the window. */
  recordFailure(flow: FlowName, code: DeliveryErrorCode, address: string | null): boolean {
    const now = this.#clock.monotonic();
    const counts = this.#countsOf(flow);
    counts.failures.add(now, this.#windowMs);
    counts.failuresSinceSuccess.add(now, this.#windowMs);
    counts.hasFailedSinceSuccess = true;
    const name = address ?? "";
    const ofAddress = counts.addresses.get(name) ?? new RollingCount();
    ofAddress.add(now, this.#windowMs);
    counts.addresses.set(name, ofAddress);
    const failures = ofAddress.total(now, this.#windowMs);
    const failuresSinceSuccess = counts.failuresSinceSuccess.total(now, this.#windowMs);
    if (failuresSinceSuccess >= this.#threshold)
      this.#raise("all-failing", { flow, code, address: null, failures: failuresSinceSuccess });
    else if (failures >= this.#threshold) this.#raiseProbing(counts, { flow, code, address, failures });
    return failures === 1;
  }

  /**
   * Raises an alert that names the address. If there are too many addresses, the alert only says how many, because they
   * may be made up.
   */
  #raiseProbing(counts: FlowCounts, facts: Pick<Alert, "flow" | "code" | "address" | "failures">): void {
    const now = this.#clock.monotonic();
    if (counts.namedAddresses.total(now, this.#cooldownMs) >= MAX_NAMED_ADDRESSES) {
      const failures = counts.failures.total(now, this.#windowMs);
      if (!counts.raisedAlerts.has(alertKeyOf("probing", facts.address)))
        this.#raise("probing", { ...facts, address: null, failures });
    } else if (this.#raise("probing", facts)) {
      counts.namedAddresses.add(now, this.#cooldownMs);
    }
  }

  /** An event was refused because too many are held. */
  recordHeldFull(flow: FlowName): void {
    this.#raise("held-full", { flow, code: "ERR_HELD_FULL", address: null, failures: 1 });
  }

  /**
   * An authentic delivery was not stored. A 4xx raises an alert at once: the service gets it for each retry, so the
   * event may be lost. A 5xx is only counted, because the next attempt may succeed. If the sender does not retry
   * (`isLast`), it raises an alert at once, too. True if an alert was raised.
   */
  recordRefusal(flow: FlowName, code: DeliveryErrorCode, isLast: boolean = false): boolean {
    const { refusals } = this.#countsOf(flow);
    const count = refusals.get(code) ?? new RollingCount();
    refusals.set(code, count);
    const now = this.#clock.monotonic();
    count.add(now, this.#windowMs);
    const failures = count.total(now, this.#windowMs);
    if (failures < (isLast || ANSWER_STATUS[code] < 500 ? 1 : this.#threshold)) return false;
    return this.#raise("refused", { flow, code, address: null, failures });
  }

  /** Raises an alert, and begins its cool-down. False, without an alert, during the cool-down of the same alert. */
  #raise(kind: Alert["kind"], facts: Pick<Alert, "flow" | "code" | "address" | "failures">): boolean {
    const key = alertKeyOf(kind, kind === "refused" ? facts.code : facts.address);
    const { raisedAlerts } = this.#countsOf(facts.flow);
    if (raisedAlerts.has(key)) return false;
    raisedAlerts.set(key, true);
    const isOfAddresses = kind === "all-failing" || kind === "probing";
    const addresses = isOfAddresses ? this.#activeAddresses(facts.flow) : 0;
    this.#post({ type: "alert", kind, ...facts, addresses, windowMs: this.#windowMs });
    return true;
  }

  #activeAddresses(flow: FlowName): number {
    const now = this.#clock.monotonic();
    let activeCount = 0;
    for (const count of this.#countsOf(flow).addresses.values()) {
      if (count.total(now, this.#windowMs) > 0) activeCount++;
    }
    return activeCount;
  }

  #countsOf(flow: FlowName): FlowCounts {
    let counts = this.#flows.get(flow);
    if (counts === undefined) {
      counts = {
        failures: new RollingCount(),
        failuresSinceSuccess: new RollingCount(),
        hasFailedSinceSuccess: false,
        addresses: new LRUCache({ max: MAX_ADDRESSES }),
        refusals: new Map(),
        namedAddresses: new RollingCount(),
        raisedAlerts: new LRUCache({
          max: MAX_ADDRESSES,
          ttl: this.#cooldownMs,
          ttlResolution: 0,
          perf: { now: () => this.#clock.monotonic() },
        }),
      };
      this.#flows.set(flow, counts);
    }
    return counts;
  }
}

function alertKeyOf(kind: Alert["kind"], address: string | null): string {
  return `${kind} ${address ?? ""}`;
}
