/** Proves the contract: each of these inboxes has one plausible mistake, and must fail the case that is named. */
import {
  type Disposition,
  type IdempotencyStore,
  type Job,
  memoryQueue,
  memoryStore,
  type Queue,
} from "@payhooks/core/inbox";
import { fakeClock } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { contractCases, isFor } from "./inbox-contract.ts";
import { memoryGround } from "./memory-ground.ts";
import type { Ground, MakeGround } from "./rig.ts";

type MemoryStore = ReturnType<typeof memoryStore>;

interface Mutant {
  readonly name: string;
  /** Begins the name of a case that must catch it. */
  readonly caughtBy: string;
  readonly make: MakeGround;
}

const recordOf = ({ eventId }: Pick<Job, "eventId">): string => eventId.slice(0, 32);

/** A memory ground whose store, or queue, has some methods replaced. */
function withStore(
  change: (store: MemoryStore) => Partial<IdempotencyStore>,
  queueOf: (queue: Queue, store: MemoryStore) => Partial<Queue> = () => ({}),
  groundOf: (ground: Ground) => Partial<Ground> = () => ({}),
): MakeGround {
  return () => {
    const clock = fakeClock();
    const memory = memoryStore({ environment: clock, maxRecords: 5_000, maxUnfinished: 5_000 });
    const store = { ...memory, ...change(memory) };
    const plain: Queue = { ...memoryQueue({ clock }), close: async () => {} };
    const queue: Queue = { ...plain, ...queueOf(plain, memory) };
    const ground: Ground = {
      ...memoryGround(),
      clock,
      advance: (ms) => clock.advance(ms),
      // Three deliveries are enough to catch it, and quick.
      depth: 3,
      open: () => ({ store, queue }),
    };
    return { ...ground, ...groundOf(ground) };
  };
}

/** Changes the record itself before a call. */
function meddle(
  store: MemoryStore,
  job: Pick<Job, "eventId">,
  change: (record: NonNullable<ReturnType<MemoryStore["snapshot"]>>) => void,
): void {
  const record = store.snapshot(recordOf(job));
  if (record === null) return;
  change(record);
  store.restore(recordOf(job), record);
}

const TABLE = "the table of deduplication over all pairs";

const mutants: readonly Mutant[] = [
  {
    name: "accept does not compare amounts",
    caughtBy: TABLE,
    make: withStore((store) => ({
      accept: (event, options) => store.accept({ ...event, amount: null }, options),
    })),
  },
  {
    name: "accept does not compare identities",
    caughtBy: TABLE,
    make: withStore((store) => ({
      accept: (event, options) => store.accept({ ...event, identity: {} }, options),
    })),
  },
  {
    name: "amounts are compared over sources",
    caughtBy: "look-ups beside callbacks",
    make: withStore((store) => ({
      accept: (event, options) =>
        store.accept({ ...event, delivery: { ...event.delivery, source: "callback" } }, options),
    })),
  },
  {
    name: "the id alone is remembered, as SET NX does",
    caughtBy: TABLE,
    make: withStore((store) => {
      const seen = new Map<string, Job>();
      return {
        async accept(event, options) {
          const job = seen.get(event.key);
          if (job !== undefined) {
            return {
              outcome: "duplicate",
              job,
              pending: false,
              reason: null,
              detail: null,
              previousAmount: null,
            };
          }
          const accepted = await store.accept(event, options);
          seen.set(event.key, accepted.job);
          return accepted;
        },
      };
    }),
  },
  {
    name: "every status is terminal",
    caughtBy: TABLE,
    make: withStore((store) => ({
      accept: (event, options) => store.accept(event.rank === 0 ? { ...event, rank: 1 } : event, options),
    })),
  },
  {
    name: "a mismatch is held once per transaction, not per facts",
    caughtBy: TABLE,
    make: withStore((store) => ({
      accept: (event, options) =>
        store.accept(event.rank === null ? event : { ...event, variantSlot: () => "f".repeat(16) }, options),
    })),
  },
  {
    name: "an unlisted status ranks as a terminal one",
    caughtBy: "identity fields that are absent",
    make: withStore((store) => ({
      accept: (event, options) => store.accept({ ...event, rank: event.rank ?? 1 }, options),
    })),
  },
  {
    name: "the window is not asked",
    caughtBy: "an event signed outside of the window",
    make: withStore((store) => ({
      accept: (event, options) => store.accept({ ...event, fresh: true }, options),
    })),
  },
  {
    name: "a conflict is flagged with its claim, so that its copy is a duplicate although its add failed",
    caughtBy: "an error before queue.add",
    make: withStore((store) => ({
      async accept(event, options) {
        const accepted = await store.accept(event, options);
        if (accepted.outcome === "held") await store.markQueued(accepted.job);
        return accepted;
      },
    })),
  },
  {
    name: "the flag is set before the barrier",
    caughtBy: "death before queue.barrier",
    make: withStore(
      () => ({}),
      (queue, store) => ({
        async add(job, options) {
          await queue.add(job, options);
          await store.markQueued(job);
        },
      }),
    ),
  },
  {
    name: "begin sets the flag",
    caughtBy: "a job that was taken before its barrier",
    make: withStore((store) => ({
      async begin(job, options) {
        await store.markQueued(job);
        return store.begin(job, options);
      },
    })),
  },
  {
    name: "begin has no fence: whoever writes, it counts",
    caughtBy: "a late finish of a frozen process",
    make: withStore((store) => {
      const tokens = new Map<string, string>();
      const now = (job: Job, token: string): string => tokens.get(recordOf(job)) ?? token;
      return {
        async begin(job, options) {
          const begun = await store.begin(job, options);
          if (begun.kind === "leased") tokens.set(recordOf(job), begun.lease.token);
          return begun;
        },
        renew: (job, token, leaseMs) => store.renew(job, now(job, token), leaseMs),
        step: (job, token, name, change) => store.step(job, now(job, token), name, change),
        finish: (job, token, ending) => store.finish(job, now(job, token), ending),
      };
    }),
  },
  {
    name: "finish alone is not fenced",
    caughtBy: "a late finish of a frozen process",
    make: withStore((store) => ({
      finish: (job, token, ending) =>
        store.finish(job, store.snapshot(recordOf(job))?.lease?.token ?? token, ending),
    })),
  },
  {
    name: "step alone is not fenced",
    caughtBy: "a late step of a frozen process",
    make: withStore((store) => ({
      step: (job, token, name, change) =>
        store.step(job, store.snapshot(recordOf(job))?.lease?.token ?? token, name, change),
    })),
  },
  {
    name: "renew alone is not fenced",
    caughtBy: "a late renewal",
    make: withStore((store) => ({
      renew: (job, token, leaseMs) =>
        store.renew(job, store.snapshot(recordOf(job))?.lease?.token ?? token, leaseMs),
    })),
  },
  {
    name: "a lease never lapses",
    caughtBy: "the lease of a process that died",
    make: withStore((store) => ({
      begin: (job, options) => store.begin(job, { ...options, leaseMs: Number.MAX_SAFE_INTEGER }),
    })),
  },
  {
    name: "a lease is not renewed",
    caughtBy: "a lease that is renewed",
    make: withStore(() => ({ renew: () => "ok" })),
  },
  {
    name: "slots of one transaction do not wait for each other",
    caughtBy: "two slots of one transaction",
    make: withStore((store) => ({
      async begin(job, options) {
        meddle(store, job, (record) => {
          if (record.lease?.slot !== job.eventId.slice(32)) record.lease = null;
        });
        return store.begin(job, options);
      },
    })),
  },
  {
    name: "a PENDING runs under a terminal status",
    caughtBy: "a PENDING that waits",
    make: withStore((store) => ({
      async begin(job, options) {
        meddle(store, job, (record) => {
          record.terminal = false;
        });
        return store.begin(job, options);
      },
    })),
  },
  {
    name: "a begin counts as a try",
    caughtBy: "death after store.begin",
    make: withStore((store) => ({
      async begin(job, options) {
        const begun = await store.begin(job, options);
        if (begun.kind === "leased") await store.step(job, begun.lease.token, "deposit", { kind: "started" });
        return begun;
      },
    })),
  },
  {
    name: "the start of a step is not stored",
    caughtBy: "death after store.step started",
    make: withStore((store) => ({
      step: async (job, token, name, change) =>
        change.kind === "started" ? "ok" : store.step(job, token, name, change),
    })),
  },
  {
    name: "the end of a step is not stored",
    caughtBy: "only the handlers that have not finished run again",
    make: withStore((store) => ({
      step: async (job, token, name, change) =>
        change.kind === "done" ? "ok" : store.step(job, token, name, change),
    })),
  },
  {
    name: "the backoff is skipped",
    caughtBy: "only the handlers that have not finished run again",
    make: withStore((store) => ({
      begin: (job, options) => store.begin(job, { ...options, force: "last" }),
    })),
  },
  {
    name: "a try before its time counts",
    caughtBy: "asked for before its time",
    make: withStore((store) => ({
      step: (job, token, name, change) =>
        store.step(
          job,
          token,
          name,
          change.kind === "failed-early"
            ? { ...change, before: { ...change.before, tries: change.before.tries + 1 } }
            : change,
        ),
    })),
  },
  {
    name: "a try before its time puts off the next",
    caughtBy: "a try before its time that fails does not use up",
    make: withStore((store) => ({
      step: (job, token, name, change) =>
        store.step(
          job,
          token,
          name,
          change.kind === "failed-early"
            ? { kind: "failed", delayMs: 3_600_000, error: change.error }
            : change,
        ),
    })),
  },
  {
    name: "copies have an event tried as often as they like",
    caughtBy: "asked for before its time",
    make: withStore((store) => ({
      begin: (job, options) =>
        store.begin(job, { ...options, force: options.force === null ? null : "last" }),
    })),
  },
  {
    name: "the last try before the end is rationed like any other",
    caughtBy: "close of an inbox that ends with its process tries once more",
    make: withStore((store) => ({
      begin: (job, options) =>
        store.begin(job, { ...options, force: options.force === null ? null : "asked" }),
    })),
  },
  {
    name: "a replay keeps its number",
    caughtBy: "a replay is a new job",
    make: withStore((store) => ({
      async replay(eventId, decision) {
        const job = await store.replay(eventId, decision);
        if (job === null) return null;
        meddle(store, job, (record) => {
          const slot = record.slots[eventId.slice(32)];
          if (slot !== undefined) slot.replays = 0;
        });
        return { eventId, replay: 0 };
      },
    })),
  },
  {
    name: "a replay forgets that it is to run what may have expired",
    caughtBy: "an entry that was signed too long ago",
    make: withStore((store) => ({
      replay: (eventId, decision) => store.replay(eventId, { ...decision, evenIfExpired: false }),
    })),
  },
  {
    name: "a replay that broke off cannot be repeated",
    caughtBy: "a replay that broke off before queue.add",
    make: withStore((store) => ({
      async replay(eventId, decision) {
        const waits = (await store.read(eventId))?.state !== "held";
        return waits ? null : store.replay(eventId, decision);
      },
    })),
  },
  {
    name: "a copy of what is held makes it wait again",
    caughtBy: "a duplicate never revives",
    make: withStore((store) => ({
      async accept(event, options) {
        const accepted = await store.accept(event, options);
        const again = { by: "nobody", note: "a copy came" };
        const job = accepted.reason === null ? null : await store.replay(accepted.job.eventId, again);
        return job === null ? accepted : { ...accepted, job, pending: true };
      },
    })),
  },
  {
    name: "maxHeld is not asked",
    caughtBy: "maxHeld refuses",
    make: withStore((store) => ({
      accept: (event) => store.accept(event, { maxHeld: Number.POSITIVE_INFINITY, delayMs: 0 }),
    })),
  },
  {
    name: "maxHeld refuses everything",
    caughtBy: "maxHeld refuses",
    make: withStore((store) => ({
      async accept(event, options) {
        const { held } = await store.counts();
        if (held !== null && held >= options.maxHeld) throw new Error("full");
        return store.accept(event, options);
      },
    })),
  },
  {
    name: "the held list ignores its filter",
    caughtBy: "the held list is filtered",
    make: withStore((store) => ({ listHeld: ({ limit }) => store.listHeld({ limit }) })),
  },
  {
    name: "records expire a day early",
    caughtBy: "a finished record lives",
    make: withStore((store) => ({
      accept: (event, options) =>
        store.accept({ ...event, retentionMs: event.retentionMs - 86_400_000 }, options),
    })),
  },
  {
    name: "copies do not extend a record",
    caughtBy: "every authentic delivery that reaches a record extends it",
    make: withStore((store) => ({
      async accept(event, options) {
        const before = store.snapshot(event.key)?.expiresAt;
        const accepted = await store.accept(event, options);
        if (before !== undefined) {
          meddle(store, accepted.job, (record) => {
            record.expiresAt = before;
          });
        }
        return accepted;
      },
    })),
  },
  {
    name: "the last signed time counts, not the greatest",
    caughtBy: "the greatest signed time counts",
    make: withStore((store) => ({
      async accept(event, options) {
        const accepted = await store.accept(event, options);
        meddle(store, accepted.job, (record) => {
          if (event.signedAt === null) return;
          record.signedAt = event.signedAt;
          record.expiresAt = event.signedAt + event.retentionMs;
        });
        return accepted;
      },
    })),
  },
  {
    name: "adding a job is forgotten while it is delayed",
    caughtBy: "only the handlers that have not finished run again",
    make: withStore(
      () => ({}),
      (queue) => ({
        async take() {
          const taking = await queue.take();
          return taking === null ? null : { job: taking.job, settle: () => taking.settle("finished") };
        },
      }),
    ),
  },
  {
    name: "a job is dropped once its run is over, although another should look whether it is done",
    caughtBy: "a finish whose answer was lost",
    make: withStore(
      () => ({}),
      (queue) => ({
        async take() {
          const taking = await queue.take();
          if (taking === null) return null;
          const isAgain = (next: Disposition): boolean => next !== "finished" && next.againInMs === 0;
          return {
            job: taking.job,
            settle: (next: Disposition) => taking.settle(isAgain(next) ? "finished" : next),
          };
        },
      }),
    ),
  },
  {
    name: "a reference is claimed by whatever is refused",
    caughtBy: "what is refused claims no reference",
    make: withStore((store) => {
      const owners = new Map<string, string>();
      return {
        accept(event, options) {
          const { referenceKey, key } = event;
          const owner = referenceKey === null ? undefined : owners.get(referenceKey);
          if (referenceKey !== null) owners.set(referenceKey, owner ?? key);
          const isAnothers = owner !== undefined && owner !== key;
          return store.accept(isAnothers ? { ...event, verdict: "unexpected" } : event, options);
        },
      };
    }),
  },
  {
    name: "a reference is nobody's",
    caughtBy: "of many transactions that want one reference",
    make: withStore((store) => ({
      accept: (event, options) => store.accept({ ...event, referenceKey: null }, options),
    })),
  },
  {
    name: "what remains counts all jobs that were ever added",
    caughtBy: "work stops at its limit",
    make: withStore(
      () => ({}),
      (queue) => {
        const extra: Job[] = [];
        return {
          async add(job, options) {
            await queue.add(job, options);
            extra.push(job);
          },
          pending: async () => ({ due: extra.length, nextDueAt: null }),
        };
      },
    ),
  },
  {
    name: "the queue runs more at a time than it was told",
    caughtBy: "in the background everything is run",
    make: withStore(
      () => ({}),
      (queue) => ({
        consume: (process, options) => queue.consume(process, { ...options, concurrency: 100 }),
      }),
    ),
  },
  {
    name: "the queue at its end does not hurry what is delayed",
    caughtBy: "close of an inbox that ends with its process skips backoffs",
    make: withStore(
      () => ({}),
      () => ({ hurry: async () => {} }),
    ),
  },
];

describe("the inbox contract fails an inbox where", () => {
  for (const { name, caughtBy, make } of mutants) {
    it(name, { timeout: 60_000 }, async () => {
      const cases = contractCases.filter(
        (one) => one.name.startsWith(caughtBy) && isFor(one, memoryGround()),
      );
      expect(cases).not.toEqual([]);
      const failures: unknown[] = [];
      for (const one of cases) await one.run(make).catch((error: unknown) => failures.push(error));
      expect(failures).not.toEqual([]);
      // It fails by what it asserts, not since the mutant cannot be run at all.
      for (const failure of failures) expect(failure).toMatchObject({ name: "AssertionError" });
    });
  }

  it("nothing is wrong: the same ground without a mistake passes", { timeout: 60_000 }, async () => {
    const named = new Set(mutants.map(({ caughtBy }) => caughtBy));
    for (const one of contractCases) {
      if ([...named].some((name) => one.name.startsWith(name))) await one.run(withStore(() => ({})));
    }
  });
});
