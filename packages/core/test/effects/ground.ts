/** A database with transactions in this process's memory, for what effects do whatever the client is. */
import { type EffectContext, type Effects, type EffectsOptions, effects } from "../../src/effects/index.ts";

/** A transaction of {@link MapDatabase}. */
export interface MapTransaction {
  /** Adds to an account, once it commits. */
  add(account: string, amount: number): void;
  /** As a statement that fails does in PostgreSQL: the commit will be a rollback. */
  fail(): void;
  /** As a function does that commits by itself. */
  commit(): void;
}

class Transaction implements MapTransaction {
  state: "open" | "aborted" | "committed" = "open";
  readonly ids: string[] = [];
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
}

/** Accounts, and the ids of effects. */
export class MapDatabase {
  readonly accounts: Map<string, number> = new Map();
  readonly ids: Set<string> = new Set();
  /** What the next transactions fail with at their commit. */
  readonly failures: Error[] = [];
  begun = 0;
  rolledBack = 0;
  /** Resolves when a commit may go through. */
  commitGate: Promise<void> = Promise.resolve();
  committing = 0;

  async transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
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

  async insert(tx: Transaction, id: string): Promise<boolean> {
    if (this.ids.has(id) || tx.ids.includes(id)) return false;
    tx.ids.push(id);
    return true;
  }

  effects(options: EffectsOptions = {}): Effects<EffectContext<MapTransaction>> {
    return effects<MapTransaction>(
      {
        transaction: (work) => this.transaction(work),
        insert: (tx, id) => this.insert(tx as Transaction, id),
        isIntact: async (tx) => (tx as Transaction).state === "open",
        isRepeatable: (error) => error instanceof Error && error.message === "deadlock",
      },
      options,
    );
  }

  #apply({ ids, added }: Transaction): void {
    for (const id of ids) this.ids.add(id);
    for (const [account, amount] of added) {
      this.accounts.set(account, (this.accounts.get(account) ?? 0) + amount);
    }
  }
}
