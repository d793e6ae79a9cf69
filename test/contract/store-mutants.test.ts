/** Proves the contract of stores: each of these has one plausible mistake, and must fail the case that is named. */

import { type StoreFixture, type StoreTraits, storeContract } from "@payhooks/core/testing/store";
import { describe, expect, it } from "vitest";
import type {
  ListedEvent,
  RecordStore,
  Swap,
  SwapResult,
  Versioned,
} from "../../packages/core/src/inbox/contract/store.ts";
import { isCanary } from "../../packages/core/src/inbox/record/canary.ts";
import { type MemoryStore, memoryStore } from "../../packages/core/src/memory/store.ts";
import { environmentOf } from "../../packages/core/src/time/environment.ts";

interface Mutant {
  readonly name: string;
  /** Begins the name of the case that must catch it. */
  readonly caughtBy: string;
  /** The difference to the memory store. */
  readonly change: (store: MemoryStore) => Partial<RecordStore>;
}

/** Gives the memory store a scan, which it does not have, by remembering the keys that were written. */
const withScan =
  (
    page: (keys: readonly string[], store: MemoryStore) => Promise<readonly (Versioned | null)[]>,
    isWhole = true,
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
        return { records, next: next < keys.size && isWhole ? String(next) : null };
      },
    };
  };

/** Each write is changed on its way. */
const withSwaps =
  (change: (item: Swap, store: MemoryStore) => Partial<Swap>): Mutant["change"] =>
  (store) => ({ swap: (items) => store.swap(items.map((item) => ({ ...item, ...change(item, store) }))) });

const mutants: readonly Mutant[] = [
  {
    name: "writes whatever the version is",
    caughtBy: "a write that was computed from another version",
    change: withSwaps(({ key }, store) => ({ expected: store.read([key])[0]?.version ?? null })),
  },
  {
    name: "does not say what it has instead",
    caughtBy: "a write that is sent a second time",
    change: (store) => ({
      swap: (items) =>
        store
          .swap(items)
          .map((one): SwapResult => (one.kind === "conflict" ? { ...one, current: null } : one)),
    }),
  },
  {
    name: "writes all of a call or nothing",
    caughtBy: "each write of a call stands by itself",
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
    name: "answers in an order of its own",
    caughtBy: "each write of a call stands by itself",
    change: (store) => ({
      swap: (items) => store.swap(items).toSorted((a, b) => (a.kind < b.kind ? -1 : 1)),
    }),
  },
  {
    name: "reads in an order of its own",
    caughtBy: "records are read in the order",
    change: (store) => ({ read: (keys) => store.read(keys.toSorted()) }),
  },
  {
    name: "trusts every clock",
    caughtBy: "a write whose time is ahead",
    change: withSwaps(({ key }, store) => ({ at: store.now(key) })),
  },
  {
    name: "keeps finished records for ever",
    caughtBy: "a finished record goes at its time",
    change(store) {
      const kept = new Map<string, Versioned>();
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
    name: "takes no new record where an expired one was",
    caughtBy: "a finished record goes at its time",
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
    name: "lets a record go at the first time that it had, whatever comes later",
    caughtBy: "a finished record that gets new work",
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
    name: "forgets whom a reference belongs to",
    caughtBy: "a record without events, that a reference",
    change: (store) => ({
      read: (keys) => store.read(keys).map((one) => (one !== null && isEmpty(one) ? null : one)),
    }),
  },
  {
    name: "cuts long texts",
    caughtBy: "texts stay as they are",
    change: withSwaps(({ record }) => ({ record: { ...record, tenant: record.tenant.slice(0, 20) } })),
  },
  {
    name: "gives out the one that came last first",
    caughtBy: "what is due is taken as it is",
    change: (store) => ({
      takeDue(limit, hideMs) {
        const found = store.takeDue(limit, hideMs);
        return { ...found, records: found.records.toReversed() };
      },
    }),
  },
  {
    name: "gives a record that it gives out a new version",
    caughtBy: "what is due is taken as it is",
    change: (store) => ({
      takeDue(limit, hideMs) {
        const found = store.takeDue(limit, hideMs);
        return { ...found, records: found.records.map((one) => ({ ...one, version: `${one.version}x` })) };
      },
    }),
  },
  {
    name: "takes more than it gives out",
    caughtBy: "everything that is due is taken",
    change: (store) => ({
      takeDue(limit, hideMs) {
        const found = store.takeDue({ ...limit, usual: limit.usual * 2 }, hideMs);
        return { ...found, records: found.records.slice(0, limit.usual) };
      },
    }),
  },
  {
    name: "does not hide the records that it gives out",
    caughtBy: "what was taken is hidden",
    change: (store) => ({ takeDue: (limit) => store.takeDue(limit, 0) }),
  },
  {
    name: "hides the records that it gives out for good",
    caughtBy: "what was taken is hidden",
    change: (store) => ({ takeDue: (limit) => store.takeDue(limit, 1e9) }),
  },
  {
    name: "takes one when it is asked for none",
    caughtBy: "a poll that may take nothing",
    change: (store) => ({
      takeDue: (limit, hideMs) => store.takeDue({ ...limit, usual: Math.max(1, limit.usual) }, hideMs),
    }),
  },
  {
    name: "does not say that more is due",
    caughtBy: "everything that is due is taken",
    change: (store) => ({
      takeDue: (limit, hideMs) => ({ ...store.takeDue(limit, hideMs), left: { usual: 0, patient: 0 } }),
    }),
  },
  {
    name: "does not say when the next one is due",
    caughtBy: "what is due later is taken",
    change: (store) => ({
      takeDue: (limit, hideMs) => ({ ...store.takeDue(limit, hideMs), nextDueAt: null }),
    }),
  },
  {
    name: "has no lanes",
    caughtBy: "each lane gives as many",
    change: withSwaps(({ index }) => ({ index: { ...index, lane: "usual" } })),
  },
  {
    name: "gives out the usual ones where only patient ones are asked for",
    caughtBy: "each lane gives as many",
    change: (store) => ({
      takeDue: ({ usual, patient }, hideMs) =>
        store.takeDue({ usual: Math.max(usual, patient), patient }, hideMs),
    }),
  },
  {
    name: "tells of a lane only if it is asked for some of it",
    caughtBy: "a poll says for each lane",
    change: (store) => ({
      takeDue(limit, hideMs) {
        const found = store.takeDue(limit, hideMs);
        return { ...found, left: { ...found.left, patient: limit.patient > 0 ? found.left.patient : 0 } };
      },
    }),
  },
  {
    name: "does not know when the next one of the patient lane is due",
    caughtBy: "what is due later in the patient lane",
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
    change: withSwaps(({ record, index }) => ({
      index: { ...index, lane: record.lease === null ? index.lane : "usual" },
    })),
  },
  {
    name: "leaves a record in the lane in which it came",
    caughtBy: "a write moves its record to another lane",
    change: withSwaps(({ index, before }) => ({ index: { ...index, lane: (before ?? index).lane } })),
  },
  {
    name: "takes whole milliseconds only",
    caughtBy: "times may have fractions",
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
    name: "leaves a record where it was due first",
    caughtBy: "a write moves its record's time",
    change: withSwaps(({ index, before }) => ({ index: { ...index, dueAt: (before ?? index).dueAt } })),
  },
  {
    name: "keeps a record hidden that was written since",
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
    name: "keeps a record hidden whose write leaves its time",
    caughtBy: "a write that leaves its record's time",
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
    name: "gives out records that were hidden before those that came since",
    caughtBy: "what comes out of hiding",
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
    name: "does not know since when a time is due that is too far away",
    caughtBy: "what is due by a time that is too far away",
    change: (store) => ({
      counts() {
        const counts = store.counts();
        return { ...counts, oldestDueAt: counts.oldestDueAt === store.now("") ? null : counts.oldestDueAt };
      },
    }),
  },
  {
    name: "believes no time that is further away than when it was written",
    caughtBy: "a time that is up to 5 s further",
    change: withSwaps(({ index, at }) => ({
      index:
        index.dueAt !== null && index.dueAt - at > index.delayWhenWrittenMs
          ? { ...index, delayWhenWrittenMs: index.delayWhenWrittenMs - 5_000 }
          : index,
    })),
  },
  {
    name: "believes in times that a wrong clock has set",
    caughtBy: "a time that is further away",
    change: withSwaps(({ index }) => ({ index: { ...index, delayWhenWrittenMs: Number.MAX_SAFE_INTEGER } })),
  },
  {
    name: "goes on behind the time of the last event, not behind the event",
    caughtBy: "events are listed by the time",
    change: (store) => ({
      list: (filter, cursor, limit) =>
        store.list(filter, cursor === null ? null : { ...cursor, eventId: "~" }, limit),
    }),
  },
  {
    name: "goes on after so many events as it has given",
    caughtBy: "nothing is skipped",
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
    name: "begins with the oldest event, whatever is asked for",
    caughtBy: "a list begins with the newest",
    change: (store) => ({ list: (filter, cursor, limit) => store.list(filter, cursor, limit) }),
  },
  {
    name: "gives the events of a page the other way round, and goes on as before",
    caughtBy: "a list begins with the newest",
    change: (store) => ({
      async list(filter, cursor, limit, first) {
        const page = await store.list(filter, cursor, limit);
        return first === "newest" ? { ...page, events: page.events.toReversed() } : page;
      },
    }),
  },
  {
    name: "knows an entry by its own labels only",
    caughtBy: "an entry with several readings",
    change: withSwaps(({ index }) => ({
      index: { ...index, events: index.events.map((event) => ({ ...event, foundBy: [] })) },
    })),
  },
  {
    name: "finds only unfinished events",
    caughtBy: "events are found by what they name",
    change: (store) => ({
      list: ({ state, ...filter }, cursor, limit, first) =>
        store.list(state === "any" ? filter : { ...filter, state }, cursor, limit, first),
    }),
  },
  {
    name: "finds events by their own references only",
    caughtBy: "events are found by what they name",
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
    name: "counts held events under one reason",
    caughtBy: "events are counted",
    change: (store) => ({
      counts() {
        const { held, ...counts } = store.counts();
        return { ...counts, held, heldBy: held === 0 ? {} : { malformed: held } };
      },
    }),
  },
  {
    name: "does not say since when the oldest is due",
    caughtBy: "events are counted",
    change: (store) => ({ counts: () => ({ ...store.counts(), oldestDueAt: null }) }),
  },
  {
    name: "lists finished events that nobody has asked for",
    caughtBy: "finished events are on no list",
    change: (store) => ({
      list: async (filter, cursor, limit) => {
        const page = await store.list(filter, cursor, limit);
        if (filter.state !== undefined || page.events.length > 0) return page;
        return store.list({ ...filter, state: "finished" }, cursor, limit);
      },
    }),
  },
  {
    name: "ignores until when events were accepted",
    caughtBy: "a list is filtered",
    change: (store) => ({
      list: ({ until: _, ...filter }, cursor, limit) => store.list(filter, cursor, limit),
    }),
  },
  {
    name: "takes `until` for the last time, not for the first one behind",
    caughtBy: "a list is filtered",
    change: (store) => ({
      list: ({ until, ...filter }, cursor, limit) =>
        store.list(until === undefined ? filter : { ...filter, until: until + 1 }, cursor, limit),
    }),
  },
  {
    name: "lists the first event of a record only",
    caughtBy: "each event of a record",
    change: withSwaps(({ index }) => ({ index: { ...index, events: index.events.slice(0, 1) } })),
  },
  {
    name: "counts events that are to be tried again among those that were never tried",
    caughtBy: "events are counted",
    change: (store) => ({
      counts() {
        const counts = store.counts();
        return { ...counts, waiting: counts.waiting + counts.retrying, retrying: 0 };
      },
    }),
  },
  {
    name: "counts a write that came to nothing",
    caughtBy: "the indexes follow the records",
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
    caughtBy: "its datasetId belongs to the data",
    change: () => ({ datasetId: Math.random().toString(36).padEnd(12, "0") }),
  },
  {
    name: "has the same datasetId everywhere",
    caughtBy: "other data has another datasetId",
    change: () => ({ datasetId: "theonlystore" }),
  },
  {
    name: "never comes to the end of its pruning",
    caughtBy: "pruning takes what has expired",
    change: () => ({ prune: async () => true }),
  },
  {
    name: "never hands out a record that has no event",
    caughtBy: "a canary, which has no event",
    change: (store) => ({
      takeDue(limit, hideMs) {
        const { records, ...rest } = store.takeDue(limit, hideMs);
        return { ...rest, records: records.filter(({ key }) => !isCanary(key)) };
      },
    }),
  },
  {
    name: "leaves finished records out of a scan",
    caughtBy: "a scan finds every record",
    change: withScan(async (keys, store) =>
      store.read(keys).map((one) => (one !== null && isDone(one) ? null : one)),
    ),
  },
  {
    name: "ends a scan with its first page",
    caughtBy: "a scan finds every record",
    change: withScan(async (keys, store) => store.read(keys), false),
  },
  {
    name: "leaves out of a scan the records that have changed since it began",
    caughtBy: "a scan misses nothing",
    change: withScan(async (keys, store) =>
      store.read(keys).map((one) => (one !== null && isDone(one) ? null : one)),
    ),
  },
];

function isDone({ record }: Versioned): boolean {
  return "slots" in record && Object.values(record.slots).every(({ state }) => state === "done");
}

function isEmpty({ record }: Versioned): boolean {
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
