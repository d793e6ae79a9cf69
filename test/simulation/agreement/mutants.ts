/** Stores with one subtle mistake each. All but it is the real store's: memory, SQLite with a changed statement, Redis with a changed script. */

import type { RecordStore, Swap, SwapResult } from "../../../packages/core/src/inbox/contract/store.ts";
import type { MemoryStore } from "../../../packages/core/src/memory/store.ts";
import type { SqliteHandle } from "../../../packages/core/src/sqlite/handle.ts";

/** A mistake of the memory store, and the code that makes it. */
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

const withSwaps =
  (change: (item: Swap, store: MemoryStore) => Partial<Swap>): MemoryMutant["change"] =>
  (store) => ({ swap: (items) => store.swap(items.map((item) => ({ ...item, ...change(item, store) }))) });

const withResults =
  (change: (result: SwapResult, item: Swap, store: MemoryStore) => SwapResult): MemoryMutant["change"] =>
  (store) => ({
    swap: (items) => items.flatMap((item) => store.swap([item]).map((result) => change(result, item, store))),
  });

export const memoryMutants: readonly MemoryMutant[] = [
  {
    name: "takes a write that is one millisecond too old",
    change: withSwaps(({ key, at }, store) => ({ at: at === store.now(key) - 5_001 ? at + 1 : at })),
  },
  {
    name: "refuses a write that is as old as it may be",
    change: withSwaps(({ key, at }, store) => ({ at: at === store.now(key) - 5_000 ? at - 1 : at })),
  },
  {
    name: "takes a write that is one millisecond ahead",
    change: withSwaps(({ key, at }, store) => ({ at: at === store.now(key) + 1 ? at - 1 : at })),
  },
  {
    name: "says that a write was made which finds itself there already",
    change: withResults((result, { version }) =>
      result.kind === "conflict" && result.current?.version === version ? { kind: "written" } : result,
    ),
  },
  {
    name: "does not tell a write that is too late what is there",
    change: withResults((result, { key, at }, store) =>
      result.kind === "conflict" && at < store.now(key) - 5_000 ? { ...result, current: null } : result,
    ),
  },
  {
    name: "makes the first write of a call only, where the second one conflicts",
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
    name: "takes a write that was computed from a record which has expired since",
    change: withSwaps(({ key, expected }, store) => ({
      expected: expected !== null && store.read([key])[0] === null ? null : expected,
    })),
  },
  {
    name: "ends the hiding of a record by a write that comes to nothing",
    change: withResults((result, { key }, store) => {
      if (result.kind === "conflict" && result.current !== null) store.restore(key, result.current);
      return result;
    }),
  },
  {
    name: "knows a record once, where it is asked for twice",
    change: (store) => ({
      read: (keys) => store.read(keys).map((found, at) => (keys.indexOf(keys[at] ?? "") < at ? null : found)),
    }),
  },
  {
    name: "hides what it gives out a millisecond less",
    change: (store) => ({ takeDue: (limit, hideMs) => store.takeDue(limit, hideMs - 1) }),
  },
  {
    name: "gives out the second that waits longest, where one is asked for",
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
    name: "hides one more than it gives out",
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
    name: "tells the time of the next one a millisecond late",
    change: (store) => ({
      takeDue(limit, hideMs) {
        const found = store.takeDue(limit, hideMs);
        return { ...found, nextDueAt: found.nextDueAt === null ? null : found.nextDueAt + 1 };
      },
    }),
  },
  {
    name: "goes on behind the time of an event, and leaves out others of the same time",
    change: (store) => ({
      list: (filter, cursor, limit) =>
        store.list(filter, cursor === null ? null : { ...cursor, eventId: "~" }, limit),
    }),
  },
  {
    name: "leaves out what was accepted at the very time from which on is asked",
    change: (store) => ({
      list: ({ since, ...filter }, cursor, limit) =>
        store.list(since === undefined ? filter : { ...filter, since: since + 1 }, cursor, limit),
    }),
  },
  {
    name: "lists finished events that nobody has asked for",
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
    name: "counts a held event among those that wait, until its handlers were told of it",
    change: (store) => ({
      counts() {
        const counts = store.counts();
        const { left } = store.takeDue({ usual: 0, patient: 0 }, 1);
        return left.usual > 0 && counts.held > 0 ? { ...counts, waiting: counts.waiting + 1 } : counts;
      },
    }),
  },
  {
    name: "says that replicas have what nobody has",
    change: () => ({ replicated: async () => {} }),
  },
  {
    name: "has another datasetId after each opening",
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
    name: "gives out first what became due last",
    from: "ORDER BY due_at LIMIT ?",
    to: "ORDER BY due_at DESC LIMIT ?",
  },
  {
    name: "leaves the events of a record that is gone to the next one in its place",
    from: "DELETE FROM events WHERE record = old.row_id;",
    to: "SELECT 1;",
  },
  {
    name: "lists the event again behind which a page begins",
    from: "(accepted_at, event_id) > (?, ?)",
    to: "(accepted_at, event_id) >= (?, ?)",
  },
  { name: "takes `until` for the last time", from: "accepted_at < ?", to: "accepted_at <= ?" },
  {
    name: "keeps the reason for which an event was held",
    from: "SET state = ?, reason = ?",
    to: "SET state = ?, reason = coalesce(?, reason)",
  },
  {
    name: "prunes what expires within the next second",
    from: "WHERE expires_at <= ? LIMIT",
    to: "WHERE expires_at <= ? + 1000 LIMIT",
  },
  {
    name: "hides without end what was taken once",
    from: "SET due_at = ?, due_in_ms = ? WHERE row_id",
    to: "SET due_at = ? + 1000000, due_in_ms = ? WHERE row_id",
  },
  {
    name: "does not see that a time is too far away",
    from: "WHERE due_at IS NOT NULL AND lane = ? AND due_at - due_in_ms > ?",
    to: "WHERE due_at IS NOT NULL AND lane = ? AND due_at - due_in_ms > ? + 1e12",
  },
];

export const scriptMutants: readonly TextMutant[] = [
  { name: "refuses a write that is as old as it may be", from: "lag > 5000", to: "lag >= 5000" },
  {
    name: "writes over a record where none was expected",
    from: "redis.call('GETRANGE', record, 0, math.max(#expected - 1, 0)) ~= expected",
    to: "redis.call('GETRANGE', record, 0, math.max(#expected - 1, 0)) ~= expected and expected ~= ''",
  },
  {
    name: "keeps finished records for ever",
    from: "redis.call('SET', record, text, 'PXAT', expiry)",
    to: "redis.call('SET', record, text)",
  },
  {
    name: "lets a record go at the time that it had when it was finished",
    from: "  if expiry == '' then\n    redis.call('SET', record, text)",
    to: "  if expiry == '' then\n    redis.call('SET', record, text, 'KEEPTTL')",
  },
  {
    name: "leaves an event on the list of its old state",
    from: "redis.call('ZREM', KEYS[key + move], member)",
    to: "local _ = nil",
  },
  {
    name: "gives out what is due in a millisecond",
    from: "if times[oldest] > now then break end",
    to: "if times[oldest] > now + 1 then break end",
  },
  { name: "hides what it gives out for a millisecond", from: "now + math.max(ARGV[3], 1)", to: "now + 1" },
  {
    name: "writes the record but not where it is found, where it comes second",
    from: "for move = 1, moves do",
    to: "for move = 1, (key > 1 and 0 or moves) do",
  },
];

/** A handle whose statements have the mistake. `meet` is called for each that is changed. */
export function withSqlMutant(
  handle: SqliteHandle,
  { from, to }: TextMutant,
  meet: () => void,
): SqliteHandle {
  const changed = (sql: string): string => {
    if (sql.includes(from)) meet();
    return sql.replaceAll(from, to);
  };
  return {
    exec: (sql) => handle.exec(changed(sql)),
    prepare: (sql) => handle.prepare(changed(sql)),
    close: () => handle.close(),
  };
}
