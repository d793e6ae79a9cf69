/**
 * The table of deduplication, written a second time and in another way than the product's, from the text of the
 * documentation alone (docs/deduplication.md). The contract holds every inbox against it.
 */

/** A delivery, as far as the table looks at it. */
export interface ModelDelivery {
  /** Empty in the connect flow; `listed` is false for one that the specification does not list. */
  readonly status: string;
  readonly listed: boolean;
  readonly identity: Readonly<Record<string, string>>;
  readonly amount: string;
  readonly source: string;
}

/** What the table answers. */
export interface ModelAnswer {
  readonly outcome: "new" | "progress" | "resume" | "duplicate" | "stale" | "held";
  readonly reason: "mismatch" | "conflict" | "unrecognized" | null;
  readonly slot: string;
}

/** One claimed (status, variant). */
export interface ModelSlot {
  readonly status: string;
  readonly verdict: "run" | "mismatch" | "conflict" | "unrecognized";
  /** Its delivery came to its end at least once, so that a copy is acknowledged without more ado. */
  acknowledged: boolean;
  /** Overtaken by a terminal status before it ran. */
  stale: boolean;
  readonly previousStatus: string | null;
}

const isPending = (status: string): boolean => status === "PENDING";

/** The record of one transaction. */
export class ReferenceModel {
  readonly slots: Map<string, ModelSlot> = new Map();
  readonly #identity: Map<string, string> = new Map();
  readonly #amounts: Map<string, string> = new Map();
  #highest: string | null = null;

  /** `completes`: it was queued and flagged; otherwise the process died right after the claim. */
  deliver(delivery: ModelDelivery, completes: boolean): ModelAnswer {
    const answer = this.#answer(delivery);
    const slot = this.slots.get(answer.slot);
    if (slot !== undefined && completes && answer.outcome !== "stale") slot.acknowledged = true;
    return answer;
  }

  get terminal(): boolean {
    return this.#highest !== null && !isPending(this.#highest);
  }

  #answer(delivery: ModelDelivery): ModelAnswer {
    const { status, listed } = delivery;
    // "An unlisted status or event is decided first: its own slot, held, it sets neither rank nor facts."
    if (!listed) return this.#hold(factsSlot(delivery), delivery, "unrecognized");
    const row1 = [...this.#identity].some(([field, value]) => (delivery.identity[field] ?? value) !== value);
    const knownAmount = this.#amounts.get(amountKey(delivery));
    const row2 = knownAmount !== undefined && knownAmount !== delivery.amount;
    if (row1 || row2) return this.#hold(factsSlot(delivery), delivery, "mismatch");
    const slot = this.slots.get(status);
    if (slot !== undefined) {
      if (!this.#amounts.has(amountKey(delivery))) this.#amounts.set(amountKey(delivery), delivery.amount);
      return this.#copy(status, slot); // rows 3 and 4
    }
    if (this.#highest === null) return this.#run(delivery, "new"); // row 5
    if (isPending(this.#highest) && !isPending(status)) return this.#run(delivery, "progress"); // row 6
    if (this.terminal && isPending(status)) return { outcome: "stale", reason: null, slot: status }; // row 7
    this.#amounts.set(amountKey(delivery), delivery.amount);
    return this.#hold(status, delivery, "conflict"); // row 8
  }

  #copy(name: string, slot: ModelSlot): ModelAnswer {
    const reason = slot.verdict === "run" ? null : slot.verdict;
    if (slot.acknowledged) return { outcome: "duplicate", reason, slot: name };
    if (slot.verdict === "run" && isPending(slot.status) && this.terminal) {
      slot.stale = true;
      return { outcome: "stale", reason, slot: name };
    }
    return { outcome: "resume", reason, slot: name };
  }

  #hold(
    name: string,
    { status }: ModelDelivery,
    reason: "mismatch" | "conflict" | "unrecognized",
  ): ModelAnswer {
    const known = this.slots.get(name);
    if (known !== undefined) return this.#copy(name, known);
    this.slots.set(name, {
      status,
      verdict: reason,
      acknowledged: false,
      stale: false,
      previousStatus: null,
    });
    return { outcome: "held", reason, slot: name };
  }

  #run(delivery: ModelDelivery, outcome: "new" | "progress"): ModelAnswer {
    const { status, identity, amount } = delivery;
    this.slots.set(status, {
      status,
      verdict: "run",
      acknowledged: false,
      stale: false,
      previousStatus: this.#highest,
    });
    this.#highest = status;
    for (const field in identity) this.#identity.set(field, identity[field] ?? "");
    this.#amounts.set(amountKey(delivery), amount);
    return { outcome, reason: null, slot: status };
  }
}

/** "Per status; amounts are compared with the same source only." */
function amountKey({ status, source }: ModelDelivery): string {
  return `${status} ${source}`;
}

/** The slot of a variant: a status with its facts. */
function factsSlot({ status, identity, amount }: ModelDelivery): string {
  return JSON.stringify([status, Object.entries(identity).sort(), amount]);
}
