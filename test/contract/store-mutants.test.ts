/** Proves the contract of stores: each of these stores has one plausible mistake, and must fail the case that `caughtBy` names. */

import { type StoreFixture, type StoreTraits, storeContract } from "@payhooks/core/testing/store";
import { describe, expect, it } from "vitest";
import type {
  ListedEvent,
  RecordStore,
  Swap,
  SwapResult,
  VersionedRecord,
} from "../../packages/core/src/inbox/contract/store.ts";
import { isCanary } from "../../packages/core/src/inbox/record/canary.ts";
import { type MemoryStore, memoryStore } from "../../packages/core/src/memory/store.ts";
import { environmentOf } from "../../packages/core/src/time/environment.ts";

interface Mutant {
  readonly name: string;
  /** The beginning of the name of the case that must find the mistake. */
  readonly caughtBy: string;
  /** The methods that differ from the memory store. */
  readonly change: (store: MemoryStore) => Partial<RecordStore>;
}

/** Gives the memory store a scan, which it does not have, by remembering the keys that were written. */
const withScan =
  (
    page: (keys: readonly string[], store: MemoryStore) => Promise<readonly (VersionedRecord | null)[]>,
    hasAllPages = true,
  ): Mutant["change"] =>
  (store) => {
    const keys = new Set<string>();
    return {
      swap(items) {
        for (const { key } of items) keys.add(key);
        return store.swap(items);
      },
      async scan(cursor, limit) {
        const first = Number(cursor ?? 0);
        const own = [...keys].slice(first, first + limit);
        const found = await page(own, store);
        const records = own.flatMap((key, at) => {
          const versioned = found[at] ?? null;
          return versioned === null ? [] : [{ key, ...versioned, references: {} }];
        });
        const next = first + limit;
        return { records, next: next < keys.size && hasAllPages ? String(next) : null };
      },
    };
  };

/** Changes each write on its way to the store. */
const withChangedWrites =
  (change: (item: Swap, store: MemoryStore) => Partial<Swap>): Mutant["change"] =>
  (store) => ({ swap: (items) => store.swap(items.map((item) => ({ ...item, ...change(item, store) }))) });

const mutants: readonly Mutant[] = [
  {
    name: "writes without checking the version",
    caughtBy: "a write with the wrong expected version",
    change: withChangedWrites(({ key }, store) => ({ expected: store.read([key])[0]?.version ?? null })),
  },
  {
    name: "does not return the current record with a conflict",
    caughtBy: "a write that is sent again",
    change: (store) => ({
      swap: (items) =>
        store
          .swap(items)
          .map((one): SwapResult => (one.kind === "conflict" ? { ...one, current: null } : one)),
    }),
  },
  {
    name: "makes all writes of a call or none",
    caughtBy: "each write of a call",
    change: (store) => ({
      swap(items) {
        const versions = store.read(items.map(({ key }) => key)).map((one) => one?.version ?? null);
        const fits = items.every(({ expected }, at) => expected === versions[at]);
        return fits
          ? store.swap(items)
          : items.map(() => ({ kind: "not-written", cause: "another's conflict" }));
      },
    }),
  },
  {
    name: "returns the results of a call in another order",
    caughtBy: "each write of a call",
    change: (store) => ({
      swap: (items) => store.swap(items).toSorted((a, b) => (a.kind < b.kind ? -1 : 1)),
    }),
  },
  {
    name: "reads records in another order",
    caughtBy: "records are returned in the order",
    change: (store) => ({ read: (keys) => store.read(keys.toSorted()) }),
  },
  {
    name: "does not check the time of a write",
    caughtBy: "a write conflicts if its time",
    change: withChangedWrites(({ key }, store) => ({ at: store.now(key) })),
  },
  {
    name: "keeps finished records for ever",
    caughtBy: "a finished record expires at its time",
    change(store) {
      const kept = new Map<string, VersionedRecord>();
      return {
        swap(items) {
          for (const { key, version, record } of items) kept.set(key, { version, record });
          return store.swap(items);
        },
        read: (keys) => store.read(keys).map((one, at) => one ?? kept.get(keys[at] ?? "") ?? null),
      };
    },
  },
  {
    name: "takes no new record in place of an expired one",
    caughtBy: "a finished record expires at its time",
    change(store) {
      const known = new Set<string>();
      return {
        swap: (items) =>
          items.flatMap((item): readonly SwapResult[] => {
            if (item.expected === null && known.has(item.key)) return [{ kind: "conflict", current: null }];
            known.add(item.key);
            return store.swap([item]);
          }),
      };
    },
  },
  {
    name: "lets a record expire at its first expiry, even if a later write changes that",
    caughtBy: "a finished record does not expire at its old time",
    change(store) {
      const ends = new Map<string, number>();
      return {
        swap(items) {
          for (const { key, index } of items) {
            if (index.expiresAt !== null && !ends.has(key)) ends.set(key, index.expiresAt);
          }
          return store.swap(items);
        },
        read: (keys) =>
          store.read(keys).map((one, at) => {
            const key = keys[at] ?? "";
            return store.now(key) >= (ends.get(key) ?? Number.POSITIVE_INFINITY) ? null : one;
          }),
      };
    },
  },
  {
    name: "forgets which transaction a reference belongs to",
    caughtBy: "the record of a reference",
    change: (store) => ({
      read: (keys) => store.read(keys).map((one) => (one !== null && isEmpty(one) ? null : one)),
    }),
  },
  {
    name: "truncates long texts",
    caughtBy: "long and unusual texts",
    change: withChangedWrites(({ record }) => ({
      record: { ...record, tenant: record.tenant.slice(0, 20) },
    })),
  },
  {
    name: "takes the newest record first",
    caughtBy: "a poll returns the stored records",
    change: (store) => ({
      takeDue(limit, hideMs) {
        const found = store.takeDue(limit, hideMs);
        return { ...found, records: found.records.toReversed() };
      },
    }),
  },
  {
    name: "changes the version of a record that it takes",
    caughtBy: "a poll returns the stored records",
    change: (store) => ({
      takeDue(limit, hideMs) {
        const found = store.takeDue(limit, hideMs);
        return { ...found, records: found.records.map((one) => ({ ...one, version: `${one.version}x` })) };
      },
    }),
  },
  {
    name: "hides more records than it returns",
    caughtBy: "repeated polls take every due record",
    change: (store) => ({
      takeDue(limit, hideMs) {
        const found = store.takeDue({ ...limit, usual: limit.usual * 2 }, hideMs);
        return { ...found, records: found.records.slice(0, limit.usual) };
      },
    }),
  },
  {
    name: "does not hide the records that it takes",
    caughtBy: "a taken record is hidden",
    change: (store) => ({ takeDue: (limit) => store.takeDue(limit, 0) }),
  },
  {
    name: "hides the records that it takes for ever",
    caughtBy: "a taken record is hidden",
    change: (store) => ({ takeDue: (limit) => store.takeDue(limit, 1e9) }),
  },
  {
    name: "takes a record with a limit of 0",
    caughtBy: "a poll with a limit of 0",
    change: (store) => ({
      takeDue: (limit, hideMs) => store.takeDue({ ...limit, usual: Math.max(1, limit.usual) }, hideMs),
    }),
  },
  {
    name: "does not say that more records are due",
    caughtBy: "repeated polls take every due record",
    change: (store) => ({
      takeDue: (limit, hideMs) => ({ ...store.takeDue(limit, hideMs), left: { usual: 0, patient: 0 } }),
    }),
  },
  {
    name: "does not say when the next record is due",
    caughtBy: "a record is not taken before it is due",
    change: (store) => ({
      takeDue: (limit, hideMs) => ({ ...store.takeDue(limit, hideMs), nextDueAt: null }),
    }),
  },
  {
    name: "has no lanes",
    caughtBy: "a poll takes from each lane",
    change: withChangedWrites(({ index }) => ({ index: { ...index, lane: "usual" } })),
  },
  {
    name: "takes usual records when only patient ones are asked for",
    caughtBy: "a poll takes from each lane",
    change: (store) => ({
      takeDue: ({ usual, patient }, hideMs) =>
        store.takeDue({ usual: Math.max(usual, patient), patient }, hideMs),
    }),
  },
  {
    name: "says what is left in the patient lane only if it takes from that lane",
    caughtBy: "a poll says for each lane",
    change: (store) => ({
      takeDue(limit, hideMs) {
        const found = store.takeDue(limit, hideMs);
        return { ...found, left: { ...found.left, patient: limit.patient > 0 ? found.left.patient : 0 } };
      },
    }),
  },
  {
    name: "does not say when the next record of the patient lane is due",
    caughtBy: "a record in the patient lane",
    change(store) {
      const patient = new Map<string, number>();
      return {
        swap(items) {
          for (const { key, index } of items) {
            if (index.lane === "patient" && index.dueAt !== null) patient.set(key, index.dueAt);
          }
          return store.swap(items);
        },
        takeDue(limit, hideMs) {
          const found = store.takeDue(limit, hideMs);
          const isPatient = [...patient.values()].includes(found.nextDueAt ?? 0);
          return isPatient ? { ...found, nextDueAt: null } : found;
        },
      };
    },
  },
  {
    name: "puts a record with a lease into the usual lane",
    caughtBy: "a record stays in its lane",
    change: withChangedWrites(({ record, index }) => ({
      index: { ...index, lane: record.lease === null ? index.lane : "usual" },
    })),
  },
  {
    name: "leaves a record in its first lane",
    caughtBy: "a write moves its record to another lane",
    change: withChangedWrites(({ index, before }) => ({ index: { ...index, lane: (before ?? index).lane } })),
  },
  {
    name: "takes only due times in whole milliseconds",
    caughtBy: "due times may have fractions",
    change: (store) => ({
      swap: (items) =>
        items.flatMap((item): readonly SwapResult[] =>
          Number.isInteger(item.index.dueAt ?? 0)
            ? store.swap([item])
            : [{ kind: "refused", cause: "not an integer" }],
        ),
    }),
  },
  {
    name: "does not change the due time of a record",
    caughtBy: "a write can make its record due",
    change: withChangedWrites(({ index, before }) => ({
      index: { ...index, dueAt: (before ?? index).dueAt },
    })),
  },
  {
    name: "keeps a record hidden after a write",
    caughtBy: "a write ends the hiding",
    change(store) {
      const hidden = new Map<string, number>();
      return {
        takeDue(limit, hideMs) {
          const found = store.takeDue(limit, hideMs);
          const now = store.now("");
          const records = found.records.filter(({ key }) => (hidden.get(key) ?? 0) <= now);
          for (const { key } of records) hidden.set(key, now + hideMs);
          return { ...found, records };
        },
      };
    },
  },
  {
    name: "keeps a record hidden after a write that keeps the due time",
    caughtBy: "a write that keeps the due time",
    change(store) {
      const hidden = new Set<string>();
      return {
        swap(items) {
          for (const { key, index, before } of items) if (index.dueAt !== before?.dueAt) hidden.delete(key);
          return store.swap(items);
        },
        takeDue(limit, hideMs) {
          const found = store.takeDue(limit, hideMs);
          const records = found.records.filter(({ key }) => !hidden.has(key));
          for (const { key } of records) hidden.add(key);
          return { ...found, records };
        },
      };
    },
  },
  {
    name: "prefers records that were hidden to records that came later",
    caughtBy: "a record that comes out of hiding",
    change(store) {
      const hidden = new Set<string>();
      return {
        takeDue(limit) {
          const some = limit.usual === 0 ? 0 : 10;
          const { records, ...others } = store.takeDue({ ...limit, usual: some }, 0);
          const first = records.toSorted((a, b) => Number(hidden.has(b.key)) - Number(hidden.has(a.key)));
          for (const { key } of first.slice(0, limit.usual)) hidden.add(key);
          return { ...others, records: first.slice(0, limit.usual) };
        },
      };
    },
  },
  {
    name: "leaves a record whose due time is too far away out of oldestDueAt",
    caughtBy: "a record whose due time is too far away",
    change: (store) => ({
      counts() {
        const counts = store.counts();
        return { ...counts, oldestDueAt: counts.oldestDueAt === store.now("") ? null : counts.oldestDueAt };
      },
    }),
  },
  {
    name: "trusts no due time that is further away than when it was written",
    caughtBy: "a due time that is up to 5 s further",
    change: withChangedWrites(({ index, at }) => ({
      index:
        index.dueAt !== null && index.dueAt - at > index.originalDelayMs
          ? { ...index, originalDelayMs: index.originalDelayMs - 5_000 }
          : index,
    })),
  },
  {
    name: "trusts due times that a wrong clock has set",
    caughtBy: "a due time that is further away",
    change: withChangedWrites(({ index }) => ({
      index: { ...index, originalDelayMs: Number.MAX_SAFE_INTEGER },
    })),
  },
  {
    name: "continues a list after the time of the last event, and skips others of that time",
    caughtBy: "a list in pages is ordered",
    change: (store) => ({
      list: (filter, cursor, limit) =>
        store.list(filter, cursor === null ? null : { ...cursor, eventId: "~" }, limit),
    }),
  },
  {
    name: "continues a list by the number of events that were listed",
    caughtBy: "no event is skipped",
    change(store) {
      let given = 0;
      return {
        async list(filter, cursor, limit) {
          if (cursor === null) given = 0;
          const { events } = await store.list(filter, null, 1_000);
          const page = events.slice(given, given + limit);
          given += page.length;
          const last = page.at(-1);
          return { events: page, next: last === undefined || given >= events.length ? null : last };
        },
      };
    },
  },
  {
    name: "always begins a list with the oldest event",
    caughtBy: "a list begins with the newest",
    change: (store) => ({ list: (filter, cursor, limit) => store.list(filter, cursor, limit) }),
  },
  {
    name: "reverses the events of each page, but not the order of the pages",
    caughtBy: "a list begins with the newest",
    change: (store) => ({
      async list(filter, cursor, limit, first) {
        const page = await store.list(filter, cursor, limit);
        return first === "newest" ? { ...page, events: page.events.toReversed() } : page;
      },
    }),
  },
  {
    name: "finds an event only by its own labels",
    caughtBy: "an event with several readings",
    change: withChangedWrites(({ index }) => ({
      index: { ...index, events: index.events.map((event) => ({ ...event, foundBy: [] })) },
    })),
  },
  {
    name: "finds only unfinished events",
    caughtBy: "events of any state",
    change: (store) => ({
      list: ({ state, ...filter }, cursor, limit, first) =>
        store.list(state === "any" ? filter : { ...filter, state }, cursor, limit, first),
    }),
  },
  {
    name: "finds no ambiguous events among those of any state",
    caughtBy: "events of any state",
    change: (store) => ({
      async list(filter, cursor, limit, first) {
        const page = await store.list(filter, cursor, limit, first);
        if (filter.state !== "any") return page;
        const isOwn = ({ versioned: { record } }: ListedEvent): boolean =>
          "fixedFacts" in record &&
          !Object.values(record.slots).some(({ verdict }) => verdict === "ambiguous");
        return { ...page, events: page.events.filter(isOwn) };
      },
    }),
  },
  {
    name: "counts all held events under one reason",
    caughtBy: "events are counted",
    change: (store) => ({
      counts() {
        const { held, ...counts } = store.counts();
        return { ...counts, held, heldBy: held === 0 ? {} : { malformed: held } };
      },
    }),
  },
  {
    name: "does not say since when the oldest record is due",
    caughtBy: "events are counted",
    change: (store) => ({ counts: () => ({ ...store.counts(), oldestDueAt: null }) }),
  },
  {
    name: "lists finished events that the filter does not ask for",
    caughtBy: "finished events are not listed unless",
    change: (store) => ({
      list: async (filter, cursor, limit) => {
        const page = await store.list(filter, cursor, limit);
        if (filter.state !== undefined || page.events.length > 0) return page;
        return store.list({ ...filter, state: "finished" }, cursor, limit);
      },
    }),
  },
  {
    name: "ignores the `until` of a filter",
    caughtBy: "a list is filtered",
    change: (store) => ({
      list: ({ until: _, ...filter }, cursor, limit) => store.list(filter, cursor, limit),
    }),
  },
  {
    name: "lists events that were accepted exactly at `until`",
    caughtBy: "a list is filtered",
    change: (store) => ({
      list: ({ until, ...filter }, cursor, limit) =>
        store.list(until === undefined ? filter : { ...filter, until: until + 1 }, cursor, limit),
    }),
  },
  {
    name: "lists only the first event of a record",
    caughtBy: "each event of a record",
    change: withChangedWrites(({ index }) => ({ index: { ...index, events: index.events.slice(0, 1) } })),
  },
  {
    name: "counts retrying events as waiting",
    caughtBy: "events are counted",
    change: (store) => ({
      counts() {
        const counts = store.counts();
        return { ...counts, waiting: counts.waiting + counts.retrying, retrying: 0 };
      },
    }),
  },
  {
    name: "counts writes that conflicted",
    caughtBy: "the indexes agree with the records",
    change(store) {
      let wrong = 0;
      return {
        swap(items) {
          const results = store.swap(items);
          wrong += results.filter(({ kind }) => kind === "conflict").length;
          return results;
        },
        counts: () => ({ ...store.counts(), waiting: store.counts().waiting + wrong }),
      };
    },
  },
  {
    name: "has another datasetId in each process",
    caughtBy: "every process on the same data",
    change: () => ({ datasetId: Math.random().toString(36).padEnd(12, "0") }),
  },
  {
    name: "has the same datasetId for all data",
    caughtBy: "a store on other data",
    change: () => ({ datasetId: "theonlystore" }),
  },
  {
    name: "never finishes pruning",
    caughtBy: "pruning removes only expired records",
    change: () => ({ prune: async () => true }),
  },
  {
    name: "never takes a record without events",
    caughtBy: "a canary is taken and ended",
    change: (store) => ({
      takeDue(limit, hideMs) {
        const { records, ...rest } = store.takeDue(limit, hideMs);
        return { ...rest, records: records.filter(({ key }) => !isCanary(key)) };
      },
    }),
  },
  {
    name: "leaves finished records out of a scan",
    caughtBy: "a scan finds every record that has not expired",
    change: withScan(async (keys, store) =>
      store.read(keys).map((one) => (one !== null && isDone(one) ? null : one)),
    ),
  },
  {
    name: "ends a scan after its first page",
    caughtBy: "a scan finds every record that has not expired",
    change: withScan(async (keys, store) => store.read(keys), false),
  },
  {
    name: "leaves out of a scan the records that have changed since it began",
    caughtBy: "a scan finds every record that exists",
    change: withScan(async (keys, store) =>
      store.read(keys).map((one) => (one !== null && isDone(one) ? null : one)),
    ),
  },
];

function isDone({ record }: VersionedRecord): boolean {
  return "slots" in record && Object.values(record.slots).every(({ state }) => state === "done");
}

function isEmpty({ record }: VersionedRecord): boolean {
  return "slots" in record && Object.keys(record.slots).length === 0;
}

function mutantFixture(change: Mutant["change"]): StoreFixture {
  let now = Date.now();
  const store = memoryStore({ clock: { ...environmentOf(), now: () => now } });
  return {
    connect: () => Object.create(store, Object.getOwnPropertyDescriptors(change(store))) as RecordStore,
    async advance(ms) {
      now += ms;
    },
    close: async () => {},
  };
}

const EVERY_TRAIT: StoreTraits = {
  oldestOfAll: true,
  listsFinished: true,
  announces: true,
  distrustsClock: true,
  scans: true,
};

describe("a store with a mistake fails the contract", () => {
  for (const { name, caughtBy, change } of mutants) {
    it(name, async () => {
      const contract = storeContract(() => mutantFixture(change), EVERY_TRAIT);
      const [test, ...others] = contract.filter((one) => one.name.startsWith(caughtBy));
      if (test === undefined) expect.fail(`no test begins with "${caughtBy}"`);
      expect(others).toEqual([]);
      await expect(test.run()).rejects.toMatchObject({ name: "AssertionError" });
    });
  }
});
