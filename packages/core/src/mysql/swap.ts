import type { Swap, SwapResult, Versioned } from "../inbox/contract/store.ts";
import { encodeRecord } from "../inbox/record/codec.ts";
import type { EventLabels } from "../inbox/record/index-of.ts";
import { isPayhooksError, PayhooksError } from "../protocol/errors.ts";
import { MAX_AGE_MS } from "../sql/due-bound.ts";
import type { Connections, Row, Statement } from "./client.ts";
import { fateOf, NotSent } from "./failure.ts";
import { deleteRecords, NOW, readRecords, UNEXPIRED, whole } from "./statements.ts";

/** How many writes one transaction makes at most, and about how many characters their records have. */
const MAX_TOGETHER = 100;
const MAX_LENGTH = 200_000;

export interface SwapDependencies {
  readonly prefix: string;
  readonly connections: Connections;
  /** Learns the server's time from rows. The question was sent at `askedAt`. */
  readonly learn: (rows: readonly Row[], askedAt: number) => void;
  readonly monotonic: () => number;
  readonly read: (keys: readonly string[]) => Promise<readonly (Versioned | null)[]>;
  readonly versioned: (row: Row) => Versioned;
}

/** A write, with the text of its record. */
interface Write {
  readonly item: Swap;
  readonly text: string;
  readonly done: (result: SwapResult) => void;
}

/** Makes the writes of a process. Those that arrive while its connections are busy are gathered, and made by one transaction. */
export class Writes {
  readonly #dependencies: SwapDependencies;
  readonly #atOnce: number;
  #waiting: Write[] = [];
  #busy = 0;

  /** @param atOnce how many transactions are under way at most */
  constructor(dependencies: SwapDependencies, atOnce: number) {
    this.#dependencies = dependencies;
    this.#atOnce = atOnce;
  }

  swap(items: readonly Swap[]): Promise<readonly SwapResult[]> {
    const results = items.map(
      (item) =>
        new Promise<SwapResult>((done) => {
          this.#waiting.push({ item, text: encodeRecord(item.record), done });
        }),
    );
    this.#begin();
    return Promise.all(results);
  }

  #begin(): void {
    while (this.#busy < this.#atOnce && this.#waiting.length > 0) {
      this.#busy++;
      void this.#make(this.#take()).finally(() => {
        this.#busy--;
        this.#begin();
      });
    }
  }

  #take(): readonly Write[] {
    let length = 0;
    const end = this.#waiting.findIndex(({ text }, at) => {
      length += text.length;
      return at === MAX_TOGETHER || (at > 0 && length > MAX_LENGTH);
    });
    const taken = this.#waiting.splice(0, end < 0 ? this.#waiting.length : end);
    return taken.sort((a, b) => (a.item.key < b.item.key ? -1 : 1));
  }

  async #make(writes: readonly Write[]): Promise<void> {
    try {
      const conflicts = await transact(this.#dependencies, writes);
      for (const { item, done } of writes) if (!conflicts.has(item)) done({ kind: "written" });
      // If a record has this very version, the same write was made before, so the answer leaves out its text.
      const unread = [...conflicts].flatMap(([{ key }, current]) => (current === null ? [key] : []));
      const read = unread.length === 0 ? [] : await this.#dependencies.read(unread).catch(asNotSent);
      for (const { item, done } of writes) {
        if (!conflicts.has(item)) continue;
        const current = conflicts.get(item) ?? read[unread.indexOf(item.key)] ?? null;
        done({ kind: "conflict", current });
      }
    } catch (error) {
      const fate: SwapResult = isPayhooksError(error) ? { kind: "refused", cause: error } : fateOf(error);
      if (fate.kind === "refused" && writes.length > 1) {
        // One of them is at fault. Each is sent by itself, so that it does not fail the others.
        for (const one of writes) await this.#make([one]);
        return;
      }
      for (const { done } of writes) done(fate);
      // Without a connection for these, there is none for those behind them.
      if (error instanceof NotSent) for (const { done } of this.#waiting.splice(0)) done(fate);
    }
  }
}

/**
 * The stored records of a conflict could not be read. Their writes were not made, so this counts as a failure before
 * the writes were sent.
 */
function asNotSent(cause: unknown): never {
  throw new NotSent("the records were not read", { cause });
}

/** The writes that were not made, each with the stored record. Null stands for one that was not read. */
async function transact(
  { prefix, connections, learn, monotonic, versioned }: SwapDependencies,
  writes: readonly Write[],
): Promise<ReadonlyMap<Swap, Versioned | null>> {
  const { statements, indexes } = packetOf(prefix, writes);
  const packet = connections.textOf(statements);
  if (Buffer.byteLength(packet) >= connections.maxPacketBytes) throw tooLarge(connections.maxPacketBytes);
  const askedAt = monotonic();
  const answers = await connections.send(packet);
  const rows = answers.at(-1) as readonly Row[];
  learn(rows, askedAt);
  const read = new Map(rows.map((row) => [row.key, row]));
  const conflicts = new Map<Swap, Versioned | null>();
  for (const [item, index] of indexes) {
    if ((answers[index] as { readonly affectedRows: number }).affectedRows > 0) continue;
    const row = read.get(item.key);
    conflicts.set(item, row === undefined ? null : versioned(row));
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
  writes: readonly Write[],
): { readonly statements: readonly Statement[]; readonly indexes: ReadonlyMap<Swap, number> } {
  const statements: Statement[] = [["START TRANSACTION"]];
  const indexes = new Map<Swap, number>();
  const added = writes.flatMap(({ item }) => (item.expected === null ? [item.key] : []));
  if (added.length > 0) {
    const expired = deleteRecords(prefix, `${prefix}_records r FORCE INDEX (by_key)`);
    statements.push([`${expired} WHERE r.\`key\` IN (?) AND r.expires_at <= ${NOW}`, added]);
  }
  for (const { item, text } of writes) {
    indexes.set(item, statements.push(writeOf(prefix, item, text)) - 1);
    statements.push(...eventsOf(prefix, item));
  }
  const [keys, versions] = [writes.map(({ item }) => item.key), writes.map(({ item }) => item.version)];
  statements.push(["COMMIT"], readRecords(prefix, keys, versions));
  return { statements, indexes };
}

function writeOf(prefix: string, { key, expected, version, index, at }: Swap, text: string): Statement {
  const isTimely = `? BETWEEN ${NOW} - ${MAX_AGE_MS} AND ${NOW}`;
  const [dueAt, expiresAt, madeAt] = [whole(index.dueAt), whole(index.expiresAt), Math.ceil(at)];
  // It is null if one of the two is, so a record that is never due stays so.
  const due = `GREATEST(?, ${NOW} - ${MAX_AGE_MS})`;
  const values = [version, text, index.lane, dueAt, expiresAt];
  if (expected === null) {
    return [
      `INSERT INTO ${prefix}_records (\`key\`, version, text, lane, due_at, expires_at)
      SELECT ?, ?, ?, ?, ${due}, ? FROM DUAL
      WHERE ${isTimely} AND NOT EXISTS (SELECT 1 FROM ${prefix}_records r WHERE r.\`key\` = ?)`,
      key,
      ...values,
      madeAt,
      key,
    ];
  }
  return [
    `UPDATE ${prefix}_records r SET r.version = ?, r.text = ?, r.lane = ?, r.due_at = ${due}, r.expires_at = ?
    WHERE r.\`key\` = ? AND r.version = ? AND ${UNEXPIRED} AND ${isTimely}`,
    ...values,
    key,
    expected,
    madeAt,
  ];
}

/** Statements for the events that the write adds, changes or takes away. */
function eventsOf(prefix: string, { key, version, expected, index, before }: Swap): readonly Statement[] {
  const known = new Map((expected === null ? [] : (before?.events ?? [])).map((one) => [one.eventId, one]));
  const statements: Statement[] = [];
  const isWritten = "r.`key` = ? AND r.version = ?";
  for (const labels of index.events) {
    const old = known.get(labels.eventId);
    known.delete(labels.eventId);
    if (old !== undefined && old.state === labels.state && old.reason === labels.reason) continue;
    statements.push([
      `INSERT INTO ${prefix}_events
        (record, event_id, state, reason, flow, tenant, id, event, status, reference_id, accepted_at)
      SELECT r.row_id, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM ${prefix}_records r WHERE ${isWritten}
      ON DUPLICATE KEY UPDATE state = ?, reason = ?`,
      ...columnsOf(labels),
      key,
      version,
      labels.state,
      labels.reason,
    ]);
    for (const text of old === undefined ? labels.foundBy : []) {
      statements.push([
        `INSERT INTO ${prefix}_readings (record, text) SELECT r.row_id, ? FROM ${prefix}_records r WHERE ${isWritten}
        ON DUPLICATE KEY UPDATE text = ?`,
        text,
        key,
        version,
        text,
      ]);
    }
  }
  if (known.size > 0) {
    statements.push([
      `DELETE s FROM ${prefix}_records r JOIN ${prefix}_readings s ON s.record = r.row_id WHERE ${isWritten}`,
      key,
      version,
    ]);
    statements.push([
      `DELETE e FROM ${prefix}_records r JOIN ${prefix}_events e ON e.record = r.row_id
      WHERE ${isWritten} AND e.event_id IN (?)`,
      key,
      version,
      [...known.keys()],
    ]);
  }
  return statements;
}

function columnsOf(labels: EventLabels): readonly (string | number | null)[] {
  const { eventId, state, reason, flow, tenant, id, event, status, referenceId, acceptedAt } = labels;
  return [eventId, state, reason, flow, tenant, id, event, status, referenceId, acceptedAt];
}

function tooLarge(limit: number): PayhooksError {
  return new PayhooksError(
    "ERR_MYSQL_UNSUITABLE",
    `An event does not fit into a packet of MySQL, which may have ${limit} bytes.`,
    { fix: "Raise max_allowed_packet of the server to 16 MB or more." },
  );
}
