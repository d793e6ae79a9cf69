/** An inbox watches itself: what health says of a store that does not do all that an event needs (docs/operating/operations.md). */
import type { Awaitable, RecordStore, Swap, SwapResult } from "@payhooks/core/inbox";
import { expect } from "vitest";
import { isCanary } from "../../packages/core/src/inbox/record/canary.ts";
import type { UndatedNotice } from "../../packages/core/src/notices/notice.ts";
import { isThenable } from "../../packages/core/src/time/awaitable.ts";
import { type ContractCase, onFreshData, type Process, type Rig, withOverrides } from "./inbox-processes.ts";
import { newId, sampleEvent, sampleRunner } from "./sample-events.ts";

/** A store that can lose one of its abilities. */
interface StoreFault {
  isOpen: boolean;
  readonly store: (store: RecordStore) => RecordStore;
}

const away = Object.assign(new Error("not now"), { code: "E_AWAY" });

/** The faulty store makes no write that this is true of. */
function withoutWrites(isMeant: (item: Swap) => boolean): StoreFault {
  const fault: StoreFault = {
    isOpen: false,
    store: (store) =>
      withOverrides(store, {
        swap(items) {
          const rest = items.filter((item) => !fault.isOpen || !isMeant(item));
          return then(rest.length === 0 ? [] : store.swap(rest), (results) => {
            const made = new Map(rest.map((item, at) => [item, results[at]]));
            return items.map((item) => made.get(item) ?? { kind: "not-written", cause: away });
          });
        },
      }),
  };
  return fault;
}

/** The faulty store answers the question for what is due in this way. */
function withTakeAnswer(answer: () => ReturnType<RecordStore["takeDue"]>): StoreFault {
  const fault: StoreFault = {
    isOpen: false,
    store: (store) =>
      withOverrides(store, {
        takeDue: (limit, hideMs) => (fault.isOpen ? answer() : store.takeDue(limit, hideMs)),
      }),
  };
  return fault;
}

function then(
  results: Awaitable<readonly SwapResult[]>,
  next: (results: readonly SwapResult[]) => readonly SwapResult[],
): Awaitable<readonly SwapResult[]> {
  return isThenable(results) ? results.then(next) : next(results);
}

const isNew = ({ expected }: Swap): boolean => expected === null;
const isEnd = ({ index, before }: Swap): boolean =>
  before?.events.some(({ state }) => state !== "finished") === true &&
  index.events.every(({ state }) => state === "finished");

/** Without an event, only a process that stays awake sees what a store does. */
const staysAwake = { only: "stays-awake" } as const;

/** A process that runs events, and its notices. */
async function running(rig: Rig, fault?: StoreFault) {
  const process = rig.start(undefined, { ...(fault && { store: fault.store }), withCanaries: true });
  const notices: UndatedNotice[] = [];
  process.inbox.observe((notice) => notices.push(notice));
  const runner = sampleRunner();
  await process.inbox.ready();
  await process.inbox.run(runner, { concurrency: 4 });
  const noticesOf = (type: "stalled" | "recovered") =>
    notices.flatMap((notice) => (notice.type === type ? [notice.during] : []));
  return { inbox: process.inbox, runner, noticesOf };
}

/** Lets time pass until something is true. */
async function advanceUntil(rig: Rig, what: () => boolean | Promise<boolean>): Promise<void> {
  for (let step = 0; step < 200 && !(await what()); step++) await rig.advance(rig.leaseMs / 8);
  expect(await what()).toBe(true);
}

const isOk = async (rig: Rig, inbox: Process["inbox"]): Promise<boolean> =>
  (await rig.until(inbox.health())).ok;

/** While the store lacks the ability, an event shows it, health says it, the notices tell it once, and all is well again. */
function noticed(
  name: string,
  during: "accept" | "take" | "end",
  make: () => StoreFault,
  { hasEvents }: { readonly hasEvents: boolean },
): ContractCase {
  return onFreshData(
    name,
    async (rig) => {
      const fault = make();
      const { inbox, runner, noticesOf } = await running(rig, fault);
      await advanceUntil(rig, () => isOk(rig, inbox));
      fault.isOpen = true;
      const accept = (): Promise<unknown> =>
        rig.until(
          (async () =>
            inbox.accept(sampleEvent(newId(), rig.now()), { deadlineMs: rig.leaseMs / 8 }))().catch(
            () => null,
          ),
        );
      if (hasEvents) await accept();
      await advanceUntil(rig, async () => {
        // Sooner or later an event comes that shows what a canary did not.
        if (hasEvents && during === "accept") await accept();
        return noticesOf("stalled").includes(during);
      });
      expect(await rig.until(inbox.health())).toMatchObject({ ok: false, failing: during });
      expect(noticesOf("stalled")).toEqual([during]);
      expect(noticesOf("recovered")).toEqual([]);
      fault.isOpen = false;
      if (hasEvents) await accept();
      await advanceUntil(rig, () => isOk(rig, inbox));
      expect(noticesOf("recovered")).toEqual([during]);
      const ran = runner.ran.length;
      await accept();
      await advanceUntil(rig, () => runner.ran.length > ran);
      expect(await inbox.events.counts()).toMatchObject({ waiting: 0, held: 0 });
    },
    hasEvents ? { only: "outlives-process" } : staysAwake,
  );
}

export const watchCases: readonly ContractCase[] = [
  onFreshData(
    "an idle process sends canaries: they are in no list and no count, no handler sees them, and nothing of them stays",
    async (rig) => {
      const { inbox, runner, noticesOf } = await running(rig);
      let sent = 0;
      const watcher = rig.start(undefined, {
        withCanaries: true,
        store: (store) =>
          withOverrides(store, {
            swap(items) {
              sent += items.filter(({ key, expected }) => isCanary(key) && expected === null).length;
              return store.swap(items);
            },
          }),
      });
      await watcher.inbox.ready();
      for (let step = 0; step < 12 || sent < 2; step++) {
        await rig.advance(Math.min(1_000, rig.leaseMs));
        expect(await inbox.events.counts()).toMatchObject({ waiting: 0, retrying: 0, running: 0, held: 0 });
        expect(await inbox.events.list()).toEqual({ events: [], next: null, unreadable: null });
        expect(await rig.until(inbox.health())).toMatchObject({ ok: true, oldestDueMs: null });
      }
      expect(runner.ran).toEqual([]);
      expect([noticesOf("stalled"), noticesOf("recovered")]).toEqual([[], []]);
    },
    staysAwake,
  ),
  onFreshData(
    "a canary of a process that died is ended by another one",
    async (rig) => {
      let written = false;
      const dying = rig.start(undefined, {
        withCanaries: true,
        store: (store) =>
          withOverrides(store, {
            swap(items) {
              const isOfCanary = items.some(({ key, expected }) => isCanary(key) && expected === null);
              return thenDo(store.swap(items), () => {
                if (!isOfCanary) return;
                written = true;
                dying.kill();
              });
            },
          }),
      });
      await dying.inbox.ready();
      await dying.inbox.run(sampleRunner(), { concurrency: 1 });
      await advanceUntil(rig, () => written);
      const successor = rig.start();
      const work = () =>
        successor.inbox.work(sampleRunner(), { deadlineMs: 60_000, limit: 100, concurrency: 1 });
      await advanceUntil(rig, async () => {
        const { ran, remaining, nextDueAt } = await rig.until(work());
        expect(ran).toBe(0);
        return remaining === 0 && nextDueAt === null;
      });
    },
    staysAwake,
  ),
  noticed(
    "takes that fail are reported by the health and by one notice",
    "take",
    () => withTakeAnswer(() => Promise.reject(away)),
    {
      hasEvents: false,
    },
  ),
  noticed(
    "takes that find nothing although something is due are reported by the health and by one notice",
    "take",
    () => withTakeAnswer(async () => ({ records: [], left: { usual: 0, patient: 0 }, nextDueAt: null })),
    { hasEvents: false },
  ),
  noticed(
    "ends that cannot be written are reported, although everything else works",
    "end",
    () => withoutWrites(isEnd),
    {
      hasEvents: true,
    },
  ),
  noticed(
    "a store that takes no new record is reported although no event comes",
    "accept",
    () => withoutWrites(isNew),
    { hasEvents: false },
  ),
  noticed(
    "a store that takes canaries and no event is reported all the same",
    "accept",
    () => withoutWrites((item) => isNew(item) && !isCanary(item.key)),
    { hasEvents: true },
  ),
];

function thenDo<T>(value: Awaitable<T>, action: () => void): Awaitable<T> {
  if (!isThenable(value)) {
    action();
    return value;
  }
  return value.then((result) => {
    action();
    return result;
  });
}
