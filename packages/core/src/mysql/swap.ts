import type { Swap, SwapResult, VersionedRecord } from "../inbox/contract/store.ts";
import { encodeRecord } from "../inbox/record/codec.ts";
import type { EventLabels } from "../inbox/record/index-of.ts";
import { isPayhooksError, PayhooksError } from "../protocol/errors.ts";
import { MAX_WRITE_AGE_MS } from "../sql/due-bound.ts";
import type { Connections, Row, Statement } from "./client.ts";
import { NotSentError, writeOutcomeOf } from "./failure.ts";
import { deleteRecords, NOW_SQL, readRecords, toWholeMs, UNEXPIRED_SQL } from "./statements.ts";

/** How many writes one transaction makes at most, and about how many characters their records have. */
const MAX_BATCH_WRITES = 100;
const MAX_BATCH_CHARS = 200_000;

export interface SwapDependencies {
  readonly prefix: string;
  readonly connections: Connections;
  /** Learns the server's time from rows. The question was sent at `askedAt`. */
  readonly learnServerTime: (rows: readonly Row[], askedAt: number) => void;
  readonly monotonic: () => number;
  readonly read: (keys: readonly string[]) => Promise<readonly (VersionedRecord | null)[]>;
  readonly toRecord: (row: Row) => VersionedRecord;
}

/** A write, with the text of its record. */
interface PendingWrite {
  readonly item: Swap;
  readonly text: string;
  readonly settle: (result: SwapResult) => void;
}

/** Makes the writes of a process. Those that arrive while its connections are busy are gathered, and made by one transaction. */
export class Writes {
  readonly #dependencies: SwapDependencies;
  readonly #maxTransactions: number;
  #queue: PendingWrite[] = [];
  #busyCount = 0;

  /** @param maxTransactions how many transactions are under way at most */
  constructor(dependencies: SwapDependencies, maxTransactions: number) {
    this.#dependencies = dependencies;
    this.#maxTransactions = maxTransactions;
  }

  swap(items: readonly Swap[]): Promise<readonly SwapResult[]> {
    const results = items.map(
      (item) =>
        new Promise<SwapResult>((settle) => {
          this.#queue.push({ item, text: encodeRecord(item.record), settle });
        }),
    );
    this.#sendNext();
    return Promise.all(results);
  }

  #sendNext(): void {
    while (this.#busyCount < this.#maxTransactions && this.#queue.length > 0) {
      this.#busyCount++;
      void this.#send(this.#nextBatch()).finally(() => {
        this.#busyCount--;
        this.#sendNext();
      });
    }
  }

  #nextBatch(): readonly PendingWrite[] {
    let length = 0;
    const end = this.#queue.findIndex(({ text }, index) => {
      length += text.length;
      return index === MAX_BATCH_WRITES || (index > 0 && length > MAX_BATCH_CHARS);
    });
    const batch = this.#queue.splice(0, end < 0 ? this.#queue.length : end);
    return batch.sort((a, b) => (a.item.key < b.item.key ? -1 : 1));
  }

  async #send(writes: readonly PendingWrite[]): Promise<void> {
    try {
      const conflicts = await sendTransaction(this.#dependencies, writes);
      for (const { item, settle } of writes) if (!conflicts.has(item)) settle({ kind: "written" });
      // If a record has this very version, the same write was made before, so the answer leaves out its text.
      const unread = [...conflicts].flatMap(([{ key }, current]) => (current === null ? [key] : []));
      const currentRecords =
        unread.length === 0 ? [] : await this.#dependencies.read(unread).catch(throwNotSent);
      for (const { item, settle } of writes) {
        if (!conflicts.has(item)) continue;
        const current = conflicts.get(item) ?? currentRecords[unread.indexOf(item.key)] ?? null;
        settle({ kind: "conflict", current });
      }
    } catch (error) {
      const outcome: SwapResult = isPayhooksError(error)
        ? { kind: "refused", cause: error }
        : writeOutcomeOf(error);
      if (outcome.kind === "refused" && writes.length > 1) {
        // One of them is at fault. Each is sent by itself, so that it does not fail the others.
        for (const write of writes) await this.#send([write]);
        return;
      }
      for (const { settle } of writes) settle(outcome);
      // Without a connection for these, there is none for those behind them.
      if (error instanceof NotSentError) for (const { settle } of this.#queue.splice(0)) settle(outcome);
    }
  }
}

/**
 * The stored records of a conflict could not be read. Their writes were not made, so this counts as a failure before
 * the writes were sent.
 */
function throwNotSent(cause: unknown): never {
  throw new NotSentError("the records were not read", { cause });
}

/** The writes that were not made, each with the stored record. Null stands for one that was not read. */
async function sendTransaction(
  { prefix, connections, learnServerTime, monotonic, toRecord }: SwapDependencies,
  writes: readonly PendingWrite[],
): Promise<ReadonlyMap<Swap, VersionedRecord | null>> {
  const { statements, indexes } = packetOf(prefix, writes);
  const packet = connections.textOf(statements);
  if (Buffer.byteLength(packet) >= connections.maxPacketBytes)
    throw packetTooLargeError(connections.maxPacketBytes);
  const askedAt = monotonic();
  const answers = await connections.send(packet);
  const rows = answers.at(-1) as readonly Row[];
  learnServerTime(rows, askedAt);
  const rowsByKey = new Map(rows.map((row) => [row.key, row]));
  const conflicts = new Map<Swap, VersionedRecord | null>();
  for (const [item, index] of indexes) {
    if ((answers[index] as { readonly affectedRows: number }).affectedRows > 0) continue;
    const row = rowsByKey.get(item.key);
    conflicts.set(item, row === undefined ? null : toRecord(row));
  }
  return conflicts;
}

/**
 * One transaction, in one packet, so that no lock waits for this process. Rows are locked in the order of their keys. A record is
 * written if it still has the expected version, or if there is none and none was expected. A version belongs to one write. So the
 * statements about events change something only if the record has this write's version.
 */
function packetOf(
  prefix: string,
  writes: readonly PendingWrite[],
): { readonly statements: readonly Statement[]; readonly indexes: ReadonlyMap<Swap, number> } {
  const statements: Statement[] = [["START TRANSACTION"]];
  const indexes = new Map<Swap, number>();
  const addedKeys = writes.flatMap(({ item }) => (item.expected === null ? [item.key] : []));
  if (addedKeys.length > 0) {
    const deleteSql = deleteRecords(prefix, `${prefix}_records r FORCE INDEX (by_key)`);
    statements.push([`${deleteSql} WHERE r.\`key\` IN (?) AND r.expires_at <= ${NOW_SQL}`, addedKeys]);
  }
  for (const { item, text } of writes) {
    indexes.set(item, statements.push(writeStatement(prefix, item, text)) - 1);
    statements.push(...eventStatements(prefix, item));
  }
  const [keys, versions] = [writes.map(({ item }) => item.key), writes.map(({ item }) => item.version)];
  statements.push(["COMMIT"], readRecords(prefix, keys, versions));
  return { statements, indexes };
}

function writeStatement(
  prefix: string,
  { key, expected, version, index, at }: Swap,
  text: string,
): Statement {
  const timelyCondition = `? BETWEEN ${NOW_SQL} - ${MAX_WRITE_AGE_MS} AND ${NOW_SQL}`;
  const [dueAt, expiresAt, madeAt] = [toWholeMs(index.dueAt), toWholeMs(index.expiresAt), Math.ceil(at)];
  // It is null if one of the two is, so a record that is never due stays so.
  const dueSql = `GREATEST(?, ${NOW_SQL} - ${MAX_WRITE_AGE_MS})`;
  const values = [version, text, index.lane, dueAt, expiresAt];
  if (expected === null) {
    return [
      `INSERT INTO ${prefix}_records (\`key\`, version, text, lane, due_at, expires_at)
      SELECT ?, ?, ?, ?, ${dueSql}, ? FROM DUAL
      WHERE ${timelyCondition} AND NOT EXISTS (SELECT 1 FROM ${prefix}_records r WHERE r.\`key\` = ?)`,
      key,
      ...values,
      madeAt,
      key,
    ];
  }
  return [
    `UPDATE ${prefix}_records r SET r.version = ?, r.text = ?, r.lane = ?, r.due_at = ${dueSql}, r.expires_at = ?
    WHERE r.\`key\` = ? AND r.version = ? AND ${UNEXPIRED_SQL} AND ${timelyCondition}`,
    ...values,
    key,
    expected,
    madeAt,
  ];
}

/** Statements for the events that the write adds, changes or takes away. */
function eventStatements(
  prefix: string,
  { key, version, expected, index, before }: Swap,
): readonly Statement[] {
  const oldById = new Map(
    (expected === null ? [] : (before?.events ?? [])).map((labels) => [labels.eventId, labels]),
  );
  const statements: Statement[] = [];
  const writtenCondition = "r.`key` = ? AND r.version = ?";
  for (const labels of index.events) {
    const old = oldById.get(labels.eventId);
    oldById.delete(labels.eventId);
    if (old !== undefined && old.state === labels.state && old.reason === labels.reason) continue;
    statements.push([
      `INSERT INTO ${prefix}_events
        (record, event_id, state, reason, flow, tenant, id, event, status, reference_id, accepted_at)
      SELECT r.row_id, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM ${prefix}_records r WHERE ${writtenCondition}
      ON DUPLICATE KEY UPDATE state = ?, reason = ?`,
      ...columnsOf(labels),
      key,
      version,
      labels.state,
      labels.reason,
    ]);
    for (const text of old === undefined ? labels.foundBy : []) {
      statements.push([
        `INSERT INTO ${prefix}_readings (record, text) SELECT r.row_id, ? FROM ${prefix}_records r WHERE ${writtenCondition}
        ON DUPLICATE KEY UPDATE text = ?`,
        text,
        key,
        version,
        text,
      ]);
    }
  }
  if (oldById.size > 0) {
    statements.push([
      `DELETE s FROM ${prefix}_records r JOIN ${prefix}_readings s ON s.record = r.row_id WHERE ${writtenCondition}`,
      key,
      version,
    ]);
    statements.push([
      `DELETE e FROM ${prefix}_records r JOIN ${prefix}_events e ON e.record = r.row_id
      WHERE ${writtenCondition} AND e.event_id IN (?)`,
      key,
      version,
      [...oldById.keys()],
    ]);
  }
  return statements;
}

function columnsOf(labels: EventLabels): readonly (string | number | null)[] {
  const { eventId, state, reason, flow, tenant, id, event, status, referenceId, acceptedAt } = labels;
  return [eventId, state, reason, flow, tenant, id, event, status, referenceId, acceptedAt];
}

function packetTooLargeError(limit: number): PayhooksError {
  return new PayhooksError(
    "ERR_MYSQL_UNSUITABLE",
    `An event does not fit into a packet of MySQL, which may have ${limit} bytes.`,
    { fix: "Raise max_allowed_packet of the server to 16 MB or more." },
  );
}
