/** Stores with one subtle mistake each: in a method of memory, a statement of SQLite, or a script of Redis. */

import type { RecordStore, Swap, SwapResult } from "../../../packages/core/src/inbox/contract/store.ts";
import type { MemoryStore } from "../../../packages/core/src/memory/store.ts";
import type { SqliteHandle } from "../../../packages/core/src/sqlite/handle.ts";

/** A mistake of the memory store, and the methods that make it. */
export interface MemoryMutant {
  readonly name: string;
  readonly change: (store: MemoryStore) => Partial<RecordStore>;
}

/** A mistake in the text of a statement, or of a script. */
export interface TextMutant {
  readonly name: string;
  readonly from: string;
  readonly to: string;
}

/** Changes each write on its way to the store. */
const withChangedWrites =
  (change: (item: Swap, store: MemoryStore) => Partial<Swap>): MemoryMutant["change"] =>
  (store) => ({ swap: (items) => store.swap(items.map((item) => ({ ...item, ...change(item, store) }))) });

/** Changes the result of each write. */
const withChangedResults =
  (change: (result: SwapResult, item: Swap, store: MemoryStore) => SwapResult): MemoryMutant["change"] =>
  (store) => ({
    swap: (items) => items.flatMap((item) => store.swap([item]).map((result) => change(result, item, store))),
  });

export const memoryMutants: readonly MemoryMutant[] = [
  {
    name: "takes a write that is one millisecond too old",
    change: withChangedWrites(({ key, at }, store) => ({ at: at === store.now(key) - 5_001 ? at + 1 : at })),
  },
  {
    name: "refuses a write that has exactly the maximum age",
    change: withChangedWrites(({ key, at }, store) => ({ at: at === store.now(key) - 5_000 ? at - 1 : at })),
  },
  {
    name: "takes a write that is one millisecond ahead",
    change: withChangedWrites(({ key, at }, store) => ({ at: at === store.now(key) + 1 ? at - 1 : at })),
  },
  {
    name: "answers `written` to a write that is sent again",
    change: withChangedResults((result, { version }) =>
      result.kind === "conflict" && result.current?.version === version ? { kind: "written" } : result,
    ),
  },
  {
    name: "does not return the current record to a write that is too old",
    change: withChangedResults((result, { key, at }, store) =>
      result.kind === "conflict" && at < store.now(key) - 5_000 ? { ...result, current: null } : result,
    ),
  },
  {
    name: "reports the first write of a call as a conflict if the second one conflicts",
    change: (store) => ({
      swap(items) {
        const results = store.swap(items);
        const [first, second] = results;
        return first?.kind === "written" && second?.kind === "conflict"
          ? results.map(() => ({ kind: "conflict", current: null }))
          : results;
      },
    }),
  },
  {
    name: "takes a write that expects the version of an expired record",
    change: withChangedWrites(({ key, expected }, store) => ({
      expected: expected !== null && store.read([key])[0] === null ? null : expected,
    })),
  },
  {
    name: "ends the hiding of a record when a write conflicts",
    change: withChangedResults((result, { key }, store) => {
      if (result.kind === "conflict" && result.current !== null) store.restore(key, result.current);
      return result;
    }),
  },
  {
    name: "returns a record only once if its key is read twice",
    change: (store) => ({
      read: (keys) => store.read(keys).map((found, at) => (keys.indexOf(keys[at] ?? "") < at ? null : found)),
    }),
  },
  {
    name: "ends the hiding of a taken record a millisecond early",
    change: (store) => ({ takeDue: (limit, hideMs) => store.takeDue(limit, hideMs - 1) }),
  },
  {
    name: "takes the second oldest record if the limit is 1",
    change: (store) => ({
      takeDue(limit, hideMs) {
        const isOne = limit.usual === 1;
        const found = store.takeDue({ ...limit, usual: isOne ? 2 : limit.usual }, hideMs);
        const [, second] = found.records;
        if (!isOne || second === undefined) return found;
        return { ...found, records: [second], left: { ...found.left, usual: 1 } };
      },
    }),
  },
  {
    name: "hides one record more than it returns",
    change: (store) => ({
      takeDue(limit, hideMs) {
        const usual = limit.usual === 0 ? 0 : limit.usual + 1;
        const found = store.takeDue({ ...limit, usual }, hideMs);
        return {
          ...found,
          records: found.records.slice(0, limit.usual),
          left: { ...found.left, usual: Math.max(found.left.usual, found.records.length - limit.usual) },
        };
      },
    }),
  },
  {
    name: "returns the next due time a millisecond late",
    change: (store) => ({
      takeDue(limit, hideMs) {
        const found = store.takeDue(limit, hideMs);
        return { ...found, nextDueAt: found.nextDueAt === null ? null : found.nextDueAt + 1 };
      },
    }),
  },
  {
    name: "continues a list after the time of an event, and skips others of that time",
    change: (store) => ({
      list: (filter, cursor, limit) =>
        store.list(filter, cursor === null ? null : { ...cursor, eventId: "~" }, limit),
    }),
  },
  {
    name: "leaves out events that were accepted exactly at `since`",
    change: (store) => ({
      list: ({ since, ...filter }, cursor, limit) =>
        store.list(since === undefined ? filter : { ...filter, since: since + 1 }, cursor, limit),
    }),
  },
  {
    name: "lists finished events that the filter does not ask for",
    change: (store) => ({
      async list(filter, cursor, limit) {
        const page = await store.list(filter, cursor, limit);
        if (filter.state !== undefined || cursor !== null || page.next !== null) return page;
        const finished = await store.list({ ...filter, state: "finished" }, null, limit - page.events.length);
        const events = [...page.events, ...finished.events];
        return { ...page, events: events.toSorted((a, b) => a.acceptedAt - b.acceptedAt) };
      },
    }),
  },
  {
    name: "counts a held event as waiting until its onHeld handlers have been called",
    change: (store) => ({
      counts() {
        const counts = store.counts();
        const { left } = store.takeDue({ usual: 0, patient: 0 }, 1);
        return left.usual > 0 && counts.held > 0 ? { ...counts, waiting: counts.waiting + 1 } : counts;
      },
    }),
  },
  {
    name: "says that replicas have a record that does not exist",
    change: () => ({ replicated: async () => {} }),
  },
  {
    name: "returns another datasetId each time",
    change(store) {
      let opened = 0;
      return {
        open: () => store.open(),
        get datasetId() {
          return `dataset-${opened++}`;
        },
      };
    },
  },
];

export const sqlMutants: readonly TextMutant[] = [
  {
    name: "takes the record that became due last first",
    from: "ORDER BY due_at LIMIT ?",
    to: "ORDER BY due_at DESC LIMIT ?",
  },
  {
    name: "leaves the events of a removed record to the next record in its row",
    from: "DELETE FROM events WHERE record = old.row_id;",
    to: "SELECT 1;",
  },
  {
    name: "repeats the last event of a page on the next page",
    from: "(accepted_at, event_id) > (?, ?)",
    to: "(accepted_at, event_id) >= (?, ?)",
  },
  {
    name: "lists events that were accepted exactly at `until`",
    from: "accepted_at < ?",
    to: "accepted_at <= ?",
  },
  {
    name: "keeps the reason of an event that is no longer held",
    from: "SET state = ?, reason = ?",
    to: "SET state = ?, reason = coalesce(?, reason)",
  },
  {
    name: "prunes records that expire within the next second",
    from: "WHERE expires_at <= ? LIMIT",
    to: "WHERE expires_at <= ? + 1000 LIMIT",
  },
  {
    name: "hides taken records far too long",
    from: "SET due_at = ?, due_in_ms = ? WHERE row_id",
    to: "SET due_at = ? + 1000000, due_in_ms = ? WHERE row_id",
  },
  {
    name: "trusts a due time that is too far away",
    from: "WHERE due_at IS NOT NULL AND lane = ? AND due_at - due_in_ms > ?",
    to: "WHERE due_at IS NOT NULL AND lane = ? AND due_at - due_in_ms > ? + 1e12",
  },
];

export const scriptMutants: readonly TextMutant[] = [
  { name: "refuses a write that has exactly the maximum age", from: "lag > 5000", to: "lag >= 5000" },
  {
    name: "overwrites a record when none is expected",
    from: "redis.call('GETRANGE', record, 0, math.max(#expected - 1, 0)) ~= expected",
    to: "redis.call('GETRANGE', record, 0, math.max(#expected - 1, 0)) ~= expected and expected ~= ''",
  },
  {
    name: "keeps finished records for ever",
    from: "redis.call('SET', record, text, 'PXAT', expiry)",
    to: "redis.call('SET', record, text)",
  },
  {
    name: "lets a record with new work expire at its old time",
    from: "  if expiry == '' then\n    redis.call('SET', record, text)",
    to: "  if expiry == '' then\n    redis.call('SET', record, text, 'KEEPTTL')",
  },
  {
    name: "leaves an event on the list of its old state",
    from: "redis.call('ZREM', KEYS[key + move], member)",
    to: "local _ = nil",
  },
  {
    name: "takes records a millisecond before they are due",
    from: "if times[oldest] > now then break end",
    to: "if times[oldest] > now + 1 then break end",
  },
  { name: "hides taken records for only a millisecond", from: "now + math.max(ARGV[3], 1)", to: "now + 1" },
  {
    name: "does not index the second record of a call",
    from: "for move = 1, moves do",
    to: "for move = 1, (key > 1 and 0 or moves) do",
  },
];

/** A handle whose statements have the mistake. `onChange` is called for each changed statement. */
export function withSqlMutant(
  handle: SqliteHandle,
  { from, to }: TextMutant,
  onChange: () => void,
): SqliteHandle {
  const changed = (sql: string): string => {
    if (sql.includes(from)) onChange();
    return sql.replaceAll(from, to);
  };
  return {
    exec: (sql) => handle.exec(changed(sql)),
    prepare: (sql) => handle.prepare(changed(sql)),
    close: () => handle.close(),
  };
}
