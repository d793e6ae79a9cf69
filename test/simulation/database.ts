/** The merchant's database: transactions, one unique key, and all that may happen on the way to it. */
import type { EffectInsertResult, OwnClient } from "@payhooks/core/effects";
import type { Chronicle } from "./chronicle.ts";
import type { Dice } from "./dice.ts";
import type { Owner, Timeline } from "./timeline.ts";

/** A process that has connections to the database. */
type Client = Owner & { readonly number: number };

/** The error with which the database refuses a statement. */
class Refusal extends Error {
  readonly code: "rolled back" | "lock" | "statement" | "connection";

  constructor(code: Refusal["code"]) {
    super(code);
    this.code = code;
  }
}

interface DatabaseOptions {
  readonly dice: Dice;
  readonly timeline: Timeline;
  readonly chronicle: Chronicle;
  /** How long a transaction may wait for a lock, or stand idle. */
  readonly maxWaitMs: number;
}

/** A transaction, as its client has it. */
export interface SimulatedTransaction {
  /** Enters an effect into the books. */
  book(effectId: string): Promise<void>;
}

interface Transaction extends SimulatedTransaction {
  readonly client: Client;
  readonly number: number;
  readonly ids: Map<string, "begun" | "done">;
  readonly bookings: string[];
  /** Set by a statement that failed: nothing of it can be committed any more. */
  isBroken: boolean;
  isOver: boolean;
  /** Its commit was sent. It arrives even if the client dies. */
  isCommitting: boolean;
  endIdle: () => void;
}

/** Some ms, each way. */
const WAY_MS = 3;

export class SimulatedDatabase {
  readonly #options: DatabaseOptions;
  readonly #ids = new Map<string, "begun" | "done">();
  readonly #open = new Set<Transaction>();
  /** Looks again whenever a transaction ends. */
  readonly #waiting = new Set<() => void>();
  #numbers = 0;

  constructor(options: DatabaseOptions) {
    this.#options = options;
  }

  /** The client of one process. */
  clientOf(client: Client): OwnClient<SimulatedTransaction> {
    return {
      transaction: async (work) => {
        const tx = this.#begin(client);
        try {
          const value = await work(tx);
          await this.#commit(tx);
          return value;
        } catch (error) {
          this.#end(tx);
          throw error;
        }
      },
      insert: (tx, id, as) => this.#insert(tx as Transaction, id, as),
      finish: (tx, id) =>
        this.#ask(tx as Transaction, () => {
          const { ids } = tx as Transaction;
          if (ids.get(id) !== "begun") return false;
          ids.set(id, "done");
          return true;
        }),
      isRepeatable: (error) =>
        error instanceof Refusal && (error.code === "rolled back" || error.code === "lock"),
    };
  }

  /** Ends the connections of a process that is gone. */
  drop(client: Client): void {
    for (const tx of this.#open) if (tx.client === client && !tx.isCommitting) this.#end(tx);
  }

  #begin(client: Client): Transaction {
    const tx: Transaction = {
      client,
      number: this.#numbers++,
      ids: new Map(),
      bookings: [],
      isBroken: false,
      isOver: false,
      isCommitting: false,
      endIdle: () => {},
      book: (effectId) =>
        this.#ask(tx, () => {
          if (this.#happens(0.1, "statement", tx)) throw new Refusal("statement");
          if (this.#happens(0.05, "rolled back", tx)) throw new Refusal("rolled back");
          tx.bookings.push(effectId);
        }),
    };
    this.#open.add(tx);
    this.#idle(tx);
    return tx;
  }

  #insert(tx: Transaction, id: string, as: "begun" | "done"): Promise<EffectInsertResult> {
    const { timeline, maxWaitMs } = this.#options;
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const holder = [...this.#open].find((other) => other !== tx && other.ids.has(id));
        if (holder !== undefined && !tx.isOver) return;
        this.#waiting.delete(look);
        giveUp();
        this.#ask(tx, (): EffectInsertResult => {
          const found = this.#ids.get(id);
          if (found !== undefined) return { found };
          // Another transaction stored this id while the statement was on its way.
          if ([...this.#open].some((other) => other !== tx && other.ids.has(id)))
            throw new Refusal("rolled back");
          tx.ids.set(id, as);
          return { found: "nothing" };
        }).then(resolve, reject);
      };
      const giveUp = timeline.at(timeline.now + maxWaitMs, tx.client, () => {
        this.#waiting.delete(look);
        tx.isBroken = true;
        reject(new Refusal("lock"));
      });
      this.#waiting.add(look);
      look();
    });
  }

  async #commit(tx: Transaction): Promise<void> {
    tx.isCommitting = true;
    await this.#ask(tx, () => {
      const { booked } = this.#options.chronicle;
      if (!tx.isBroken) {
        for (const [id, as] of tx.ids) this.#ids.set(id, as);
        for (const effect of tx.bookings) booked.set(effect, (booked.get(effect) ?? 0) + 1);
      }
      // As in PostgreSQL: the commit of a transaction that failed rolls it back, and reports no error.
      this.#end(tx);
    });
    if (this.#happens(0.05, "answer", tx)) throw new Refusal("connection");
  }

  /** Sends a statement, carries it out, and sends the answer back. A client that died in between gets no answer. */
  #ask<T>(tx: Transaction, statement: () => T): Promise<T> {
    const { timeline } = this.#options;
    const { client } = tx;
    tx.endIdle();
    return new Promise((resolve, reject) => {
      const sentAt = Math.max(timeline.now, client.frozenUntil);
      timeline.at(sentAt + this.#way("there", tx), null, () => {
        let answer: () => void;
        try {
          if (tx.isOver) throw new Refusal("connection");
          if (tx.isBroken && !tx.isCommitting) throw new Refusal("statement");
          const value = statement();
          answer = () => resolve(value);
        } catch (error) {
          tx.isBroken = true;
          answer = () => reject(error);
        }
        this.#idle(tx);
        timeline.at(timeline.now + this.#way("back", tx), client, answer);
      });
    });
  }

  /** Ends the transaction of a client that has sent nothing for too long: a frozen process must not keep an id for ever. */
  #idle(tx: Transaction): void {
    const { timeline, maxWaitMs } = this.#options;
    tx.endIdle();
    if (tx.isOver) return;
    tx.endIdle = timeline.at(timeline.now + maxWaitMs, null, () => this.#end(tx));
  }

  #end(tx: Transaction): void {
    if (tx.isOver) return;
    tx.isOver = true;
    tx.endIdle();
    this.#open.delete(tx);
    for (const look of [...this.#waiting]) look();
  }

  #happens(probability: number, what: string, tx: Transaction): boolean {
    return this.#options.dice.chance(probability, `database ${what}`, tx.number, tx.bookings.length);
  }

  #way(which: string, tx: Transaction): number {
    return this.#options.dice.between(0, WAY_MS, `database ${which}`, tx.number, this.#numbers);
  }
}
