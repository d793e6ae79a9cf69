import type { Swap, SwapResult, VersionedRecord } from "../inbox/contract/store.ts";
import { encodeRecord } from "../inbox/record/codec.ts";
import type { Row } from "./client.ts";
import type { RecordWrite } from "./event-changes.ts";
import { writeOutcomeOf } from "./failure.ts";
import type { Session } from "./session.ts";
import { runWithRetries, type Sessions } from "./sessions.ts";
import { swapMany } from "./swap-many.ts";
import { swapOne } from "./swap-one.ts";

/** How many writes one statement makes at most. */
const MAX_BATCH_WRITES = 100;
/** About how many characters the records of one statement have. A longer statement only delays the others in it. */
const MAX_BATCH_CHARS = 200_000;

/** A write under way. */
interface PendingWrite extends RecordWrite {
  readonly settle: (result: SwapResult) => void;
}

/** The keys of the records that a statement has written. For other records, their state when the statement began. */
interface SwapAnswer {
  readonly writtenKeys: ReadonlySet<string>;
  readonly currentRecords: ReadonlyMap<string, VersionedRecord>;
}

export interface SwapDependencies {
  readonly schema: string;
  readonly sessions: Sessions;
  /** Learns the server's time from the first row of an answer. The question was sent at `askedAt`. */
  readonly learnServerTime: (rows: readonly Row[], askedAt: number) => void;
  readonly monotonic: () => number;
  readonly read: (session: Session, keys: readonly string[]) => Promise<readonly (VersionedRecord | null)[]>;
  readonly toRecord: (row: Row) => VersionedRecord;
  readonly deleteExpired: (session: Session, keys: readonly string[]) => Promise<void>;
}

/**
 * Makes the writes of a process on its few sessions. Writes that arrive while all sessions are in use are gathered, and sent in
 * one statement. A write that comes alone has a plain statement, which costs the server a fraction of a statement for many.
 */
export class Writes {
  readonly #dependencies: SwapDependencies;
  #queue: PendingWrite[] = [];
  #isSending = false;

  constructor(dependencies: SwapDependencies) {
    this.#dependencies = dependencies;
  }

  swap(items: readonly Swap[]): Promise<readonly SwapResult[]> {
    return Promise.all(
      items.map(
        (item) =>
          new Promise<SwapResult>((settle) => {
            this.#queue.push({ item, text: encodeRecord(item.record), settle });
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
        const batch = this.#nextBatch();
        if (this.#queue.length > 0) void this.#send();
        return this.#write(session, batch);
      });
    } catch (error) {
      // No session became free.
      this.#isSending = false;
      for (const { settle } of this.#queue.splice(0)) settle(writeOutcomeOf(error));
    }
  }

  #nextBatch(): readonly PendingWrite[] {
    let count = 0;
    let length = 0;
    for (const { text } of this.#queue) {
      if (count === MAX_BATCH_WRITES || (count > 0 && length + text.length > MAX_BATCH_CHARS)) break;
      count++;
      length += text.length;
    }
    return this.#queue.splice(0, count).toSorted((a, b) => (a.item.key < b.item.key ? -1 : 1));
  }

  async #write(session: Session, batch: readonly PendingWrite[]): Promise<void> {
    if (batch.length === 0) return;
    let answer: SwapAnswer;
    try {
      answer = await this.#sendBatch(session, batch);
    } catch (error) {
      const outcome = writeOutcomeOf(error);
      if (outcome.kind === "refused" && batch.length > 1) {
        // One of them is at fault. Each is sent by itself, so that it does not fail the others.
        for (const write of batch) await this.#write(session, [write]);
      } else for (const { settle } of batch) settle(outcome);
      return;
    }
    const conflicts: PendingWrite[] = [];
    for (const write of batch) {
      const { key, expected } = write.item;
      const current = answer.currentRecords.get(key) ?? null;
      if (answer.writtenKeys.has(key)) write.settle({ kind: "written" });
      else if (current !== null && current.version !== expected) write.settle({ kind: "conflict", current });
      else conflicts.push(write);
    }
    if (conflicts.length > 0) await this.#answerConflicts(session, conflicts);
  }

  async #sendBatch(session: Session, batch: readonly PendingWrite[]): Promise<SwapAnswer> {
    const { schema, learnServerTime, monotonic, toRecord } = this.#dependencies;
    const [first, ...others] = batch;
    const singleStatement = first !== undefined && others.length === 0 ? swapOne(schema, first) : null;
    const { statement, values } = singleStatement ?? swapMany(schema, batch);
    const askedAt = monotonic();
    const rows = await runWithRetries(session, statement, values);
    learnServerTime(rows, askedAt);
    return {
      writtenKeys: new Set(String(rows[0]?.keys ?? "").split(",")),
      currentRecords: new Map(
        rows.flatMap((row) => (typeof row.key === "string" ? [[row.key, toRecord(row)] as const] : [])),
      ),
    };
  }

  /**
   * Reads the records that conflicted. A statement sees only the data from its beginning, but other sessions may have written
   * since.
   */
  async #answerConflicts(session: Session, conflicts: readonly PendingWrite[]): Promise<void> {
    const { read, deleteExpired } = this.#dependencies;
    try {
      const keys = conflicts.map(({ item }) => item.key);
      let storedRecords = await read(session, keys);
      const insertsToRetry = conflicts.filter(
        ({ item }, index) => item.expected === null && (storedRecords[index] ?? null) === null,
      );
      if (insertsToRetry.length > 0) {
        // Either an expired record still has the key, or the time of the write was wrong.
        await deleteExpired(
          session,
          insertsToRetry.map(({ item }) => item.key),
        );
        const { writtenKeys: written } = await this.#sendBatch(session, insertsToRetry);
        for (const { item, settle } of insertsToRetry) if (written.has(item.key)) settle({ kind: "written" });
        storedRecords = await read(session, keys);
      }
      conflicts.forEach(({ settle }, index) => {
        settle({ kind: "conflict", current: storedRecords[index] ?? null });
      });
    } catch (error) {
      // Writes of the second attempt may have been made. The others were not.
      const outcome = writeOutcomeOf(error);
      for (const { item, settle } of conflicts) {
        settle(item.expected === null ? outcome : { kind: "not-written", cause: outcome.cause });
      }
    }
  }
}
