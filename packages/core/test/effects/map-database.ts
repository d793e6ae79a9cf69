/** A database with transactions in this process's memory, for what effects do whatever the client is. */
import {
  type EffectContext,
  type EffectInsertResult,
  type Effects,
  type EffectsOptions,
  effects,
} from "../../src/effects/index.ts";

/** A transaction of {@link MapDatabase}. */
export interface MapTransaction {
  /** Adds to an account, once it commits. */
  add(account: string, amount: number): void;
  /** As a statement that fails does in PostgreSQL: the commit will be a rollback. */
  fail(): void;
  /** As a function does that commits by itself. */
  commit(): void;
  /** As a function does that rolls back by itself. */
  rollBack(): void;
}

class Transaction implements MapTransaction {
  state: "open" | "aborted" | "committed" | "rolled back" = "open";
  readonly ids: Map<string, "begun" | "done"> = new Map();
  readonly added: (readonly [string, number])[] = [];
  readonly #apply: (transaction: Transaction) => void;

  constructor(apply: (transaction: Transaction) => void) {
    this.#apply = apply;
  }

  add(account: string, amount: number): void {
    this.added.push([account, amount]);
  }

  fail(): void {
    this.state = "aborted";
  }

  commit(): void {
    if (this.state === "open") this.#apply(this);
    this.state = "committed";
  }

  rollBack(): void {
    this.state = "rolled back";
  }
}

/** Accounts, and the ids of effects. */
export class MapDatabase {
  readonly accounts: Map<string, number> = new Map();
  readonly ids: Map<string, "begun" | "done"> = new Map();
  /** The errors of the next transactions, before they begin. */
  readonly refusals: unknown[] = [];
  /** The errors of the next transactions, at their commit. */
  readonly failures: Error[] = [];
  begun = 0;
  rolledBack = 0;
  /** Resolves when a commit may go through. */
  commitGate: Promise<void> = Promise.resolve();
  committing = 0;

  async transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    if (this.refusals.length > 0) throw this.refusals.shift();
    this.begun++;
    const tx = new Transaction((one) => this.#apply(one));
    try {
      const value = await work(tx);
      this.committing++;
      await this.commitGate;
      const failure = this.failures.shift();
      if (failure !== undefined) throw failure;
      tx.commit();
      return value;
    } catch (error) {
      this.rolledBack++;
      throw error;
    }
  }

  async insert(tx: Transaction, id: string, as: "begun" | "done"): Promise<EffectInsertResult> {
    const found = tx.ids.get(id) ?? this.ids.get(id);
    if (found !== undefined) return { found };
    tx.ids.set(id, as);
    return { found: "nothing" };
  }

  async finish(tx: Transaction, id: string): Promise<boolean> {
    if (tx.state === "aborted") throw new Error("a statement had failed");
    if (tx.ids.get(id) !== "begun" || tx.state !== "open") return false;
    tx.ids.set(id, "done");
    return true;
  }

  effects(options: EffectsOptions = {}): Effects<EffectContext<MapTransaction>> {
    return effects<MapTransaction>(
      {
        transaction: (work) => this.transaction(work),
        insert: (tx, id, as) => this.insert(tx as Transaction, id, as),
        finish: (tx, id) => this.finish(tx as Transaction, id),
        hasEnded: async (tx) => ["committed", "rolled back"].includes((tx as Transaction).state),
        isRepeatable: (error) => error instanceof Error && error.message === "deadlock",
        isUnavailable: (error) => error instanceof Error && error.message === "read-only",
      },
      options,
    );
  }

  #apply({ ids, added }: Transaction): void {
    for (const [id, as] of ids) this.ids.set(id, as);
    for (const [account, amount] of added) {
      this.accounts.set(account, (this.accounts.get(account) ?? 0) + amount);
    }
  }
}
