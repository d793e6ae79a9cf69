/**
 * The table of deduplication, written a second time and in another way than the product's, from the text of the
 * documentation alone (docs/concepts/deduplication.md). The contract holds every inbox against it.
 */

/** A delivery, as far as the table looks at it. */
export interface ModelDelivery {
  /** Empty in the connect flow; `listed` is false for one that the specification does not list. */
  readonly status: string;
  readonly listed: boolean;
  readonly fixedFacts: Readonly<Record<string, string>>;
  readonly amount: string;
  readonly arrivedBy: string;
  /** Another transaction has its reference (`oneSuccessPerReference`). */
  readonly isReused?: boolean;
}

/** The answer of the table. */
export interface ModelAnswer {
  readonly outcome: "new" | "progress" | "duplicate" | "stale" | "held";
  readonly reason: Exclude<ModelSlot["verdict"], "run"> | null;
  readonly slot: string;
  /** Slots that waited and end by this delivery. */
  readonly overtaken: readonly string[];
}

/** One recorded (status, variant). */
export interface ModelSlot {
  readonly status: string;
  readonly verdict: "run" | "mismatch" | "conflict" | "unrecognized" | "reference-reused";
  state: "waiting" | "ran" | "held" | "stale";
  readonly previousStatus: string | null;
}

/** "A record keeps at most eight contradictions." */
const MAX_CONTRADICTIONS = 8;

const isPending = (status: string): boolean => status === "PENDING";

/** The record of one transaction. */
export class ReferenceModel {
  readonly slots: Map<string, ModelSlot> = new Map();
  readonly #fixedFacts: Map<string, string> = new Map();
  readonly #amounts: Map<string, string> = new Map();
  #highest: string | null = null;

  deliver(delivery: ModelDelivery): ModelAnswer {
    const { status, listed } = delivery;
    // "An unlisted status or event is decided first: its own slot, held, it sets neither rank nor facts."
    if (!listed) return this.#hold(factsSlot(delivery), delivery, "unrecognized");
    const row1 = [...this.#fixedFacts].some(
      ([field, value]) => (delivery.fixedFacts[field] ?? value) !== value,
    );
    const knownAmount = this.#amounts.get(amountKey(delivery));
    const row2 = knownAmount !== undefined && knownAmount !== delivery.amount;
    if (row1 || row2) return this.#hold(factsSlot(delivery), delivery, "mismatch");
    const slot = this.slots.get(status);
    if (slot !== undefined) {
      if (knownAmount === undefined) this.#amounts.set(amountKey(delivery), delivery.amount);
      return copyOf(status, slot); // row 3
    }
    if (delivery.isReused === true && (this.#highest === null || isPending(this.#highest))) {
      const reused = this.#hold(status, delivery, "reference-reused"); // instead of rows 4 and 5
      if (reused.slot === status) this.#amounts.set(amountKey(delivery), delivery.amount);
      return reused;
    }
    if (this.#highest === null) return this.#run(delivery, "new"); // row 4
    if (isPending(this.#highest) && !isPending(status)) return this.#run(delivery, "progress"); // row 5
    if (isPending(status)) return { outcome: "stale", reason: null, slot: status, overtaken: [] }; // row 6
    const conflict = this.#hold(status, delivery, "conflict"); // row 7
    if (conflict.slot === status) this.#amounts.set(amountKey(delivery), delivery.amount);
    return conflict;
  }

  /** Everything that waits is run. */
  run(): void {
    for (const slot of this.slots.values()) if (slot.state === "waiting") slot.state = "ran";
  }

  #hold(name: string, { status }: ModelDelivery, reason: NonNullable<ModelAnswer["reason"]>): ModelAnswer {
    const known = this.slots.get(name);
    if (known !== undefined) return copyOf(name, known);
    const kept = [...this.slots].filter(([, { verdict }]) => verdict !== "run");
    const last = kept.at(-1)?.[0] ?? name;
    // "A further one is answered like the others. It is not kept."
    if (kept.length >= MAX_CONTRADICTIONS) return { outcome: "held", reason, slot: last, overtaken: [] };
    this.slots.set(name, { status, verdict: reason, state: "held", previousStatus: null });
    return { outcome: "held", reason, slot: name, overtaken: [] };
  }

  #run(delivery: ModelDelivery, outcome: "new" | "progress"): ModelAnswer {
    const { status, fixedFacts, amount } = delivery;
    const overtaken: string[] = [];
    for (const [name, slot] of this.slots) {
      if (slot.state !== "waiting") continue;
      slot.state = "stale";
      overtaken.push(name);
    }
    this.slots.set(status, { status, verdict: "run", state: "waiting", previousStatus: this.#highest });
    this.#highest = status;
    for (const field in fixedFacts) this.#fixedFacts.set(field, fixedFacts[field] ?? "");
    this.#amounts.set(amountKey(delivery), amount);
    return { outcome, reason: null, slot: status, overtaken };
  }
}

function copyOf(name: string, { verdict }: ModelSlot): ModelAnswer {
  return { outcome: "duplicate", reason: verdict === "run" ? null : verdict, slot: name, overtaken: [] };
}

/** "Per status; amounts are compared only if they arrived in the same way." */
function amountKey({ status, arrivedBy }: ModelDelivery): string {
  return `${status} ${arrivedBy}`;
}

/** The slot of a variant: a status with its facts. */
function factsSlot({ status, fixedFacts, amount }: ModelDelivery): string {
  return JSON.stringify([status, Object.entries(fixedFacts).sort(), amount]);
}
