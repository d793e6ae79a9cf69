import type { Swap, SwapResult, Versioned } from "../inbox/contract/store.ts";
import { encodeRecord } from "../inbox/record/codec.ts";
import type { Row } from "./client.ts";
import type { Write } from "./event-changes.ts";
import { fateOf } from "./failure.ts";
import type { Session } from "./session.ts";
import { runAgain, type Sessions } from "./sessions.ts";
import { swapMany } from "./swap-many.ts";
import { swapOne } from "./swap-one.ts";

/** How many writes one statement makes at most. */
const MAX_TOGETHER = 100;
/** About how many characters the records of one statement have. A longer statement only delays the others in it. */
const MAX_LENGTH = 200_000;

/** A write under way. */
interface Pending extends Write {
  readonly done: (result: SwapResult) => void;
}

/** The keys of the records that a statement has written. For other records, their state when the statement began. */
interface SwapAnswer {
  readonly written: ReadonlySet<string>;
  readonly others: ReadonlyMap<string, Versioned>;
}

export interface SwapDependencies {
  readonly schema: string;
  readonly sessions: Sessions;
  /** Learns the server's time from the first row of an answer. The question was sent at `askedAt`. */
  readonly learn: (rows: readonly Row[], askedAt: number) => void;
  readonly monotonic: () => number;
  readonly read: (session: Session, keys: readonly string[]) => Promise<readonly (Versioned | null)[]>;
  readonly versioned: (row: Row) => Versioned;
  readonly forget: (session: Session, keys: readonly string[]) => Promise<void>;
}

/**
 * Makes the writes of a process on its few sessions. Writes that arrive while all sessions are in use are gathered, and sent in
 * one statement. A write that comes alone has a plain statement, which costs the server a fraction of a statement for many.
 */
export class Writes {
  readonly #dependencies: SwapDependencies;
  #waiting: Pending[] = [];
  #isSending = false;

  constructor(dependencies: SwapDependencies) {
    this.#dependencies = dependencies;
  }

  swap(items: readonly Swap[]): Promise<readonly SwapResult[]> {
    return Promise.all(
      items.map(
        (item) =>
          new Promise<SwapResult>((done) => {
            this.#waiting.push({ item, text: encodeRecord(item.record), done });
            if (!this.#isSending) void this.#send();
          }),
      ),
    );
  }

  /** One sender waits for a session. When it has a session, and takes less than all writes, another sender waits for the rest. */
  async #send(): Promise<void> {
    this.#isSending = true;
    // By then, the other items of the same call are waiting too.
    await Promise.resolve();
    try {
      await this.#dependencies.sessions.use((session) => {
        this.#isSending = false;
        const portion = this.#take();
        if (this.#waiting.length > 0) void this.#send();
        return this.#write(session, portion);
      });
    } catch (error) {
      // No session became free.
      this.#isSending = false;
      for (const { done } of this.#waiting.splice(0)) done(fateOf(error));
    }
  }

  #take(): readonly Pending[] {
    let count = 0;
    let length = 0;
    for (const { text } of this.#waiting) {
      if (count === MAX_TOGETHER || (count > 0 && length + text.length > MAX_LENGTH)) break;
      count++;
      length += text.length;
    }
    return this.#waiting.splice(0, count).toSorted((a, b) => (a.item.key < b.item.key ? -1 : 1));
  }

  async #write(session: Session, portion: readonly Pending[]): Promise<void> {
    if (portion.length === 0) return;
    let answer: SwapAnswer;
    try {
      answer = await this.#attempt(session, portion);
    } catch (error) {
      const fate = fateOf(error);
      if (fate.kind === "refused" && portion.length > 1) {
        // One of them is at fault. Each is sent by itself, so that it does not fail the others.
        for (const one of portion) await this.#write(session, [one]);
      } else for (const { done } of portion) done(fate);
      return;
    }
    const conflicts: Pending[] = [];
    for (const one of portion) {
      const { key, expected } = one.item;
      const current = answer.others.get(key) ?? null;
      if (answer.written.has(key)) one.done({ kind: "written" });
      else if (current !== null && current.version !== expected) one.done({ kind: "conflict", current });
      else conflicts.push(one);
    }
    if (conflicts.length > 0) await this.#answerConflicts(session, conflicts);
  }

  async #attempt(session: Session, portion: readonly Pending[]): Promise<SwapAnswer> {
    const { schema, learn, monotonic, versioned } = this.#dependencies;
    const [first, ...others] = portion;
    const one = first !== undefined && others.length === 0 ? swapOne(schema, first) : null;
    const { statement, values } = one ?? swapMany(schema, portion);
    const askedAt = monotonic();
    const rows = await runAgain(session, statement, values);
    learn(rows, askedAt);
    return {
      written: new Set(String(rows[0]?.keys ?? "").split(",")),
      others: new Map(
        rows.flatMap((row) => (typeof row.key === "string" ? [[row.key, versioned(row)] as const] : [])),
      ),
    };
  }

  /**
   * Reads the records that conflicted. A statement sees only the data from its beginning, but other sessions may have written
   * since.
   */
  async #answerConflicts(session: Session, conflicts: readonly Pending[]): Promise<void> {
    const { read, forget } = this.#dependencies;
    try {
      const keys = conflicts.map(({ item }) => item.key);
      let found = await read(session, keys);
      const inTheWay = conflicts.filter(
        ({ item }, at) => item.expected === null && (found[at] ?? null) === null,
      );
      if (inTheWay.length > 0) {
        // Either an expired record still has the key, or the time of the write was wrong.
        await forget(
          session,
          inTheWay.map(({ item }) => item.key),
        );
        const { written } = await this.#attempt(session, inTheWay);
        for (const { item, done } of inTheWay) if (written.has(item.key)) done({ kind: "written" });
        found = await read(session, keys);
      }
      conflicts.forEach(({ done }, at) => {
        done({ kind: "conflict", current: found[at] ?? null });
      });
    } catch (error) {
      // Writes of the second attempt may have been made. The others were not.
      const fate = fateOf(error);
      for (const { item, done } of conflicts) {
        done(item.expected === null ? fate : { kind: "not-written", cause: fate.cause });
      }
    }
  }
}
