/** Proves the contract: each of these inboxes has one plausible mistake, and must fail the case that `caughtBy` names. */
import type { EventSelection } from "@payhooks/core";
import {
  type IdempotencyRecord,
  type Inbox,
  isUnreadable,
  type RecordStore,
  type Swap,
  type SwapResult,
  type VersionedRecord,
} from "@payhooks/core/inbox";
import { describe, expect, it } from "vitest";
import type {
  AcceptOptions,
  RunEnd,
  RunHandle,
  Runner,
} from "../../packages/core/src/inbox/contract/inbox.ts";
import type { VerifiedEvent } from "../../packages/core/src/inbox/record/event.ts";
import type { HandlerChange } from "../../packages/core/src/inbox/record/handler-state.ts";
import { indexOf } from "../../packages/core/src/inbox/record/index-of.ts";
import { hashOf } from "../../packages/core/src/inbox/record/keys.ts";
import { ZERO_PER_LANE } from "../../packages/core/src/inbox/record/lane.ts";
import type { SubjectAnswer } from "../../packages/core/src/inbox/record/subject.ts";
import { Crowds } from "../../packages/core/src/inbox/run/crowds.ts";
import { Dispatcher } from "../../packages/core/src/inbox/run/dispatcher.ts";
import { Places } from "../../packages/core/src/inbox/run/places.ts";
import { Run } from "../../packages/core/src/inbox/run/run.ts";
import { Runs } from "../../packages/core/src/inbox/run/runs.ts";
import { SubjectTurn } from "../../packages/core/src/inbox/run/subject-turn.ts";
import { EventReader } from "../../packages/core/src/inbox/search/event-reader.ts";
import { type AsyncContext, emptyContext } from "../../packages/core/src/time/async-context.ts";
import { isThenable } from "../../packages/core/src/time/awaitable.ts";
import { Stopwatch } from "../../packages/core/src/time/clock.ts";
import { contractCases, isFor } from "./inbox-contract.ts";
import { type FixtureKind, type InboxFixture, withOverrides } from "./inbox-processes.ts";
import {
  memoryInboxFixture,
  memoryKind,
  sharedMemoryInboxFixture,
  sharedMemoryKind,
} from "./memory-inbox-fixture.ts";

interface Mutant {
  readonly name: string;
  /** The beginning of the names of the cases that must find the mistake. */
  readonly caughtBy: string;
  readonly mistake?: InboxFixture["mistake"];
  /** Replaces a member of the engine, until the returned function is called. */
  readonly replace?: () => () => void;
  /** Several processes share the data. */
  readonly shared?: true;
}

type Records = Map<string, IdempotencyRecord>;

/** Changes each write on its way to the store. `before` is the record that was written there last. */
function withChangedWrites(
  change: (
    item: Swap,
    before: IdempotencyRecord | null,
  ) => Partial<Pick<Swap, "record" | "index" | "version" | "expected">>,
): Mutant["mistake"] {
  const stored: Records = new Map();
  return {
    store: (store) =>
      withOverrides<RecordStore>(store, {
        swap(items) {
          const changed = items.map(
            (item): Swap => ({ ...item, ...change(item, stored.get(item.key) ?? null) }),
          );
          const keep = (results: readonly SwapResult[]): readonly SwapResult[] => {
            for (const [at, { key, record }] of changed.entries()) {
              if (results[at]?.kind === "written") stored.set(key, record);
            }
            return results;
          };
          const swapping = store.swap(changed);
          return isThenable(swapping) ? swapping.then(keep) : keep(swapping);
        },
      }),
  };
}

/** A changed copy of a write's record, with the index of the copy. */
function withChangedRecord(
  { key, record }: Swap,
  change: (record: IdempotencyRecord) => void,
): Pick<Swap, "record" | "index"> {
  const copy = structuredClone(record);
  change(copy);
  return { record: copy, index: indexOf(key, copy) };
}

/** Changes the results of writes. */
function withChangedResults(
  change: (result: SwapResult, results: readonly SwapResult[]) => SwapResult,
): Mutant["mistake"] {
  return {
    store: (store) =>
      withOverrides<RecordStore>(store, {
        async swap(items) {
          const results = await store.swap(items);
          return results.map((result) => change(result, results));
        },
      }),
  };
}

function withStore(change: (store: RecordStore) => Partial<RecordStore>): Mutant["mistake"] {
  return { store: (store) => withOverrides<RecordStore>(store, change(store)) };
}

function withInbox(change: (inbox: Inbox, store: RecordStore) => Partial<Inbox>): Mutant["mistake"] {
  return { inbox: (inbox, store) => withOverrides<Inbox>(inbox, change(inbox, store)) };
}

/** Changes decisions and lists of an inbox. */
function withEvents(change: (events: Inbox["events"]) => Partial<Inbox["events"]>): Mutant["mistake"] {
  return withInbox(({ events }) => ({ events: { ...events, ...change(events) } }));
}

/** The selection without one field of its filter. */
function withoutField(field: "amount" | "reason", which: EventSelection): EventSelection {
  return typeof which === "string" || Array.isArray(which) ? which : { ...which, [field]: undefined };
}

/** Changes the event, or the options, before the inbox gets them. */
function withChangedEvents(change: (event: VerifiedEvent) => VerifiedEvent): Mutant["mistake"];
function withChangedEvents(
  change: (event: VerifiedEvent) => VerifiedEvent,
  changeOptions: (options: AcceptOptions) => AcceptOptions,
): Mutant["mistake"];
function withChangedEvents(
  change: (event: VerifiedEvent) => VerifiedEvent,
  changeOptions: (options: AcceptOptions) => AcceptOptions = (options) => options,
): Mutant["mistake"] {
  return withInbox((inbox) => ({
    accept: (event, options = {}) => inbox.accept(change(event), changeOptions(options)),
  }));
}

/** Changes the runner that an inbox gets. */
function withChangedRunner(change: (runner: Runner) => Partial<Runner>): Mutant["mistake"] {
  const changed = (runner: Runner): Runner => withOverrides<Runner>(runner, change(runner));
  return withInbox((inbox) => ({
    run: (runner, options) => inbox.run(changed(runner), options),
    work: (runner, options) => inbox.work(changed(runner), options),
    runEvent: (runner, eventId) => inbox.runEvent(changed(runner), eventId),
  }));
}

/** Changes the handler states that a run writes. */
function withHandlerChanges(
  change: (changes: readonly HandlerChange[]) => readonly HandlerChange[],
): Mutant["mistake"] {
  return withChangedRunner((runner) => ({
    async run(run) {
      const end = await runner.run(
        withOverrides<RunHandle>(run, { write: (changes) => run.write(change(changes)) }),
      );
      return { ...end, changes: change(end.changes), onWritten: () => end.onWritten() };
    },
  }));
}

/** Replaces a member of an object of the engine. The returned function undoes that. */
function replaceMember<Part extends object>(
  part: Part,
  name: keyof Part,
  descriptor: PropertyDescriptor,
): () => void {
  const own = Object.getOwnPropertyDescriptor(part, name);
  if (own === undefined) throw new Error(`there is no ${String(name)}`);
  Object.defineProperty(part, name, { configurable: true, ...descriptor });
  return () => void Object.defineProperty(part, name, own);
}

/** Runs write under the token of the current lease, whichever run has it. */
function unfenced(name: "writeEnd" | "write" | "renew"): Pick<Mutant, "mistake" | "replace"> {
  const tokens = new Map<string, string>();
  const own = Run.prototype[name] as (...given: unknown[]) => unknown;
  return {
    mistake: withChangedWrites(({ key, record }) => {
      if (record.lease !== null) tokens.set(key, record.lease.token);
      return {};
    }),
    replace: () =>
      replaceMember(Run.prototype, name, {
        value(this: Run, ...given: unknown[]) {
          const { key, token } = this.input;
          Object.defineProperty(this.input, "token", {
            configurable: true,
            get: () => tokens.get(key) ?? token,
          });
          return own.apply(this, given);
        },
      }),
  };
}

/** Replaces some answers of subjects by others. */
function withSubjectAnswers(instead: Partial<Record<SubjectAnswer, SubjectAnswer>>): () => void {
  const own = SubjectTurn.prototype.take;
  return replaceMember(SubjectTurn.prototype, "take", {
    async value(this: SubjectTurn, ...given: Parameters<typeof own>) {
      const answer = await own.apply(this, given);
      return instead[answer] ?? answer;
    },
  });
}

const TABLE = "the table of deduplication over all pairs";
const ONLY_UNFINISHED = "only the handlers that have not finished run again";

const mutants: readonly Mutant[] = [
  {
    name: "amounts are not compared",
    caughtBy: TABLE,
    mistake: withChangedEvents((event) => ({ ...event, amount: null })),
  },
  {
    name: "fixed facts are not compared",
    caughtBy: TABLE,
    mistake: withChangedEvents((event) => ({ ...event, fixedFacts: {} })),
  },
  {
    name: "amounts that arrived in different ways are compared",
    caughtBy: "look-ups beside callbacks",
    mistake: withChangedEvents((event) => ({
      ...event,
      delivery: { ...event.delivery, arrivedBy: "callback" },
    })),
  },
  {
    name: "events are deduplicated by their id alone, as SET NX does",
    caughtBy: TABLE,
    mistake: withInbox((inbox) => {
      const seen = new Map<string, string>();
      return {
        async accept(event, options) {
          const eventId = seen.get(event.key);
          const copy = { reason: null, detail: null, previousAmount: null, isBegun: false, overtaken: [] };
          if (eventId !== undefined) return { outcome: "duplicate", eventId, ...copy };
          const accepted = await inbox.accept(event, options);
          seen.set(event.key, accepted.eventId);
          return accepted;
        },
      };
    }),
  },
  {
    name: "every status is terminal",
    caughtBy: TABLE,
    mistake: withChangedEvents((event) => (event.rank === 0 ? { ...event, rank: 1 } : event)),
  },
  {
    name: "all mismatches of a transaction are held as one event",
    caughtBy: TABLE,
    mistake: withChangedEvents((event) =>
      event.rank === null ? event : { ...event, variantSlot: () => "f".repeat(16) },
    ),
  },
  {
    name: "an unlisted status ranks as a terminal one",
    caughtBy: "fixed facts that are absent",
    mistake: withChangedEvents((event) => ({ ...event, rank: event.rank ?? 1 })),
  },
  {
    name: "the time window of an event is not checked",
    caughtBy: "an event signed outside of the window",
    mistake: withChangedEvents((event) => ({ ...event, isWithinWindow: true })),
  },
  {
    name: "handlers do not get the previous status",
    caughtBy: TABLE,
    mistake: withChangedRunner((runner) => ({
      run: (run) =>
        runner.run(withOverrides<RunHandle>(run, { input: { ...run.input, previousStatus: null } })),
    })),
  },
  {
    name: "a PENDING that waits is not overtaken",
    caughtBy: "a PENDING that waits",
    mistake: withChangedWrites((item, before) =>
      withChangedRecord(item, (record) => {
        const isNewEvent = Object.keys(record.slots).length > Object.keys(before?.slots ?? {}).length;
        for (const [key, slot] of Object.entries(record.slots)) {
          const slotBefore = before?.slots[key];
          if (isNewEvent && slot.state === "stale" && slotBefore !== undefined)
            record.slots[key] = structuredClone(slotBefore);
        }
      }),
    ),
  },
  {
    name: "the last write wins, without a check for conflicts",
    caughtBy: "of many decisions at the same time",
    shared: true,
    mistake: {
      store: (store) =>
        withOverrides<RecordStore>(store, {
          async swap(items) {
            const results = await store.swap(items);
            return Promise.all(
              results.map(async (result, at): Promise<SwapResult> => {
                const item = items[at];
                if (result.kind !== "conflict" || result.current === null || item === undefined)
                  return result;
                const [again = result] = await store.swap([{ ...item, expected: result.current.version }]);
                return again;
              }),
            );
          },
        }),
    },
  },
  {
    name: "the end of a run is not fenced",
    caughtBy: "a late finish of a frozen process",
    ...unfenced("writeEnd"),
  },
  {
    name: "changes of handler states are not fenced",
    caughtBy: "a late handler change of a frozen process",
    ...unfenced("write"),
  },
  { name: "renewals are not fenced", caughtBy: "a late renewal", ...unfenced("renew") },
  {
    name: "a lease never lapses",
    caughtBy: "the lease of a process that died",
    mistake: withChangedWrites((item) =>
      withChangedRecord(item, (record) => {
        if (record.lease === null) return;
        record.lease.originalLengthMs = 1_000_000_000;
        record.lease.until = item.at + record.lease.originalLengthMs;
      }),
    ),
  },
  {
    name: "a running event is not due when its lease has ended",
    caughtBy: "the lease of a process that died",
    mistake: withChangedWrites(({ record, index }) =>
      record.lease === null ? {} : { index: { ...index, dueAt: null } },
    ),
  },
  {
    name: "a lease ends at once",
    caughtBy: "two slots of one transaction",
    mistake: withChangedWrites((item) =>
      withChangedRecord(item, (record) => {
        if (record.lease !== null) record.lease.until = item.at;
      }),
    ),
  },
  {
    name: "a lease is not renewed",
    caughtBy: "a lease that is renewed",
    replace: () => replaceMember(Run.prototype, "renew", { value: async () => {} }),
  },
  {
    name: "a handler is called even if its lease has ended",
    caughtBy: "no handler is called under a lease that has run out",
    replace: () => replaceMember(Run.prototype, "mayCall", { value: () => "yes" }),
  },
  {
    name: "a run that waits for its turn keeps its place",
    caughtBy: "a run that waits without its place leaves its place to others",
    replace: () =>
      replaceMember(Run.prototype, "waitWithoutPlace", {
        value: (turn: Promise<void>) => turn.then(() => true),
      }),
  },
  {
    name: "close waits for a run that is waiting for its turn",
    caughtBy: "close hands back a run that waits without its place",
    shared: true,
    replace: () => replaceMember(Run.prototype, "waitNoLonger", { value: () => {} }),
  },
  {
    name: "the age of a lease is measured only by a clock that stops while the machine sleeps",
    caughtBy: "no handler is called under a lease that has run out meanwhile, since the machine slept",
    replace: () => {
      const own = Object.getOwnPropertyDescriptor(Stopwatch.prototype, "elapsedMs")?.get;
      return replaceMember(Stopwatch.prototype, "elapsedMs", {
        get(this: Stopwatch) {
          // On a clock that stands still, less than a lease has passed.
          return Math.min(Number(own?.call(this)), 1);
        },
      });
    },
  },
  {
    name: "a handler that must not run twice is stored as started when its run begins",
    caughtBy: "a handler with onCrash",
    mistake: withChangedRunner((runner) => ({
      firstHandler: (input) => runner.firstHandler(input) ?? "deposit",
    })),
  },
  {
    name: "the start of a handler is not stored",
    caughtBy: 'death after the write "done"',
    mistake: withHandlerChanges((changes) => changes.filter(({ kind }) => kind !== "started")),
  },
  {
    name: "the end of a handler is not stored",
    caughtBy: ONLY_UNFINISHED,
    mistake: withHandlerChanges((changes) => changes.filter(({ kind }) => kind !== "done")),
  },
  {
    name: "the result of the last handler takes a separate write",
    caughtBy: "an event with 1 handler is 2 writes",
    mistake: withChangedRunner((runner) => ({
      async run(run): Promise<RunEnd> {
        const end = await runner.run(run);
        await run.write(end.changes);
        return { ...end, changes: [], onWritten: () => end.onWritten() };
      },
    })),
  },
  {
    name: "the start of the first handler takes a separate write",
    caughtBy: "an event with 1 handler is 2 writes",
    mistake: withChangedRunner(() => ({ firstHandler: () => null })),
  },
  {
    name: "a start without a call counts as an attempt",
    caughtBy: "an event that was begun before a close",
    shared: true,
    mistake: withHandlerChanges((changes) => changes.filter(({ kind }) => kind !== "undone")),
  },
  {
    name: "the backoff is skipped",
    caughtBy: ONLY_UNFINISHED,
    mistake: withChangedWrites((item) =>
      withChangedRecord(item, (record) => {
        for (const { work } of Object.values(record.slots)) {
          if (work === null || work.dueAt <= item.at) continue;
          work.dueAt = item.at;
          for (const [name, step] of Object.entries(work.handlerStates))
            work.handlerStates[name] = { ...step, dueAt: item.at };
        }
      }),
    ),
  },
  {
    name: "an early attempt that fails uses up an attempt",
    caughtBy: "asked for before its time",
    mistake: withHandlerChanges((changes) =>
      changes.map((change) =>
        change.kind === "undone" && change.before !== null
          ? { ...change, before: { ...change.before, attempts: change.before.attempts + 1 } }
          : change,
      ),
    ),
  },
  {
    name: "an early attempt delays the next attempt",
    caughtBy: "an attempt before its time that fails does not use up",
    mistake: withHandlerChanges((changes) =>
      changes.map((change) =>
        change.kind === "undone" && change.before !== null
          ? { ...change, before: { ...change.before, dueAt: change.before.dueAt + 3_600_000 } }
          : change,
      ),
    ),
  },
  {
    name: "copies cause any number of early attempts",
    caughtBy: "asked for before its time",
    mistake: withChangedWrites((item) =>
      withChangedRecord(item, (record) => {
        for (const { work } of Object.values(record.slots)) if (work !== null) work.begunEarlyAt = null;
      }),
    ),
  },
  {
    name: "the last attempt before a close is limited like other early attempts",
    caughtBy: "close of an inbox that ends with its process tries once more",
    replace: () => {
      const own = Runs.prototype.runNow;
      return replaceMember(Runs.prototype, "runNow", {
        value(this: Runs, runner: Runner, eventId: string) {
          return own.call(this, runner, eventId, "requested", emptyContext);
        },
      });
    },
  },
  {
    name: "the writes of a batch are answered in the context of its first request",
    caughtBy: "a handler is called in the context of the request",
    shared: true,
    replace: () => {
      const contexts = Object.getPrototypeOf(emptyContext) as AsyncContext;
      const own = contexts.run;
      return replaceMember(contexts, "run", {
        value<T>(this: AsyncContext, call: () => T): T {
          return this === emptyContext ? call() : (own.call(this, call) as T);
        },
      });
    },
  },
  {
    name: "handlers are called outside the context of their request",
    caughtBy: "a handler is called in the context of the request",
    replace: () => {
      const own = Runs.prototype.start;
      return replaceMember(Runs.prototype, "start", {
        value(this: Runs, run: Run) {
          run.context = emptyContext;
          own.call(this, run);
        },
      });
    },
  },
  {
    name: "no notice reports events that are held at the close",
    caughtBy: "close of an inbox that ends with its process skips backoffs",
    mistake: withChangedRunner((runner) => ({
      async run(run) {
        const end = await runner.run(run);
        return end.outcome.kind === "held" ? { ...end, outcome: { ...end.outcome, onHeld: [] } } : end;
      },
    })),
  },
  {
    name: "a replay is not counted",
    caughtBy: "a replay makes a held event wait again",
    mistake: withChangedWrites((item) =>
      withChangedRecord(item, (record) => {
        for (const slot of Object.values(record.slots)) slot.replays = 0;
      }),
    ),
  },
  {
    name: "a replay ignores evenIfExpired",
    caughtBy: "an entry that was signed too long ago",
    mistake: withInbox((inbox) => ({
      events: withOverrides(inbox.events, {
        replay: (eventId, decision) => inbox.events.replay(eventId, { ...decision, evenIfExpired: false }),
      }),
    })),
  },
  {
    name: "a decision does not check the revision of the entry",
    caughtBy: "a replay is refused if the entry is no longer as it was seen",
    mistake: withInbox((inbox) => ({
      events: withOverrides(inbox.events, {
        replay: (eventId, { revision: _, ...decision }) => inbox.events.replay(eventId, decision),
        discard: (eventId, { revision: _, ...decision }) => inbox.events.discard(eventId, decision),
      }),
    })),
  },
  {
    name: "a copy of a held event replays it",
    caughtBy: "a duplicate never revives",
    mistake: withInbox((inbox) => ({
      async accept(event, options) {
        const accepted = await inbox.accept(event, options);
        const isCopy = accepted.outcome === "duplicate" && accepted.reason !== null;
        if (isCopy) await inbox.events.replay(accepted.eventId, { by: "nobody", note: "a copy came" });
        return accepted;
      },
    })),
  },
  {
    name: "maxHeld is ignored",
    caughtBy: "maxHeld refuses",
    mistake: withChangedEvents(
      (event) => event,
      ({ maxHeld: _, ...options }) => options,
    ),
  },
  {
    name: "an event that another receiver has marked as handled still waits",
    caughtBy: "an event that another receiver has handled before",
    mistake: withInbox((inbox) => ({
      accept: async (event, { runAtOnce, ...options } = {}) => ({
        ...(await inbox.accept(event, options)),
        ...(runAtOnce !== undefined && { whenHandled: Promise.resolve({ state: "done", ran: true }) }),
      }),
    })),
  },
  {
    name: "a mark of a running event is reported as done",
    caughtBy: "a mark while a handler runs",
    mistake: withInbox((inbox) => ({
      async accept(event, options) {
        const { whenHandled, ...accepted } = await inbox.accept(event, options);
        if (whenHandled === undefined) return accepted;
        const report = await whenHandled;
        return {
          ...accepted,
          whenHandled: Promise.resolve({ ...report, state: report.ran ? report.state : "done" }),
        };
      },
    })),
  },
  {
    name: "two tenants with the same event id share a record",
    caughtBy: "an event that another receiver has handled for one tenant",
    mistake: withChangedEvents((event) => ({ ...event, key: hashOf([event.id], event.key.length) })),
  },
  {
    name: "one tenant may use up maxHeld",
    caughtBy: "no tenant takes the whole room",
    mistake: withChangedEvents((event) => ({ ...event, delivery: { ...event.delivery, tenant: "" } })),
  },
  {
    name: "when maxHeld is reached, every event is refused",
    caughtBy: "maxHeld refuses",
    mistake: withInbox((inbox) => ({
      async accept(event, options) {
        const { held } = await inbox.health();
        if (held !== null && held >= (options?.maxHeld ?? Number.POSITIVE_INFINITY)) throw new Error("full");
        return inbox.accept(event, options);
      },
    })),
  },
  {
    name: "held events are counted only once",
    caughtBy: "an entry that a process has held itself counts at once",
    shared: true,
    mistake: withStore((store) => {
      let first: ReturnType<RecordStore["counts"]> | null = null;
      return {
        counts() {
          first ??= store.counts();
          return first;
        },
      };
    }),
  },
  {
    name: "the held list ignores its filter",
    caughtBy: "the held list is filtered",
    mistake: withStore((store) => ({
      list: (filter, cursor, limit) => store.list({ state: filter.state }, cursor, limit),
    })),
  },
  {
    name: "the held list continues by position, and skips events that move up",
    caughtBy: "the list skips nothing",
    mistake: withStore((store) => {
      let passed = 0;
      return {
        async list(filter, cursor, limit) {
          const all = await store.list(filter, null, 10_000);
          if (cursor === null) passed = 0;
          const events = all.events.slice(passed, passed + limit);
          passed += events.length;
          const last = events.at(-1);
          return { events, next: passed < all.events.length && last !== undefined ? last : null };
        },
      };
    }),
  },
  {
    name: "copies are not counted",
    caughtBy: "an event's life has its copies",
    mistake: withChangedWrites((item) =>
      withChangedRecord(item, (record) => {
        for (const { work } of Object.values(record.slots)) if (work !== null) delete work.copies;
      }),
    ),
  },
  {
    name: "the history of an event is deleted when the event ends",
    caughtBy: "an event's life has its copies",
    mistake: withChangedWrites((item) =>
      withChangedRecord(item, (record) => {
        for (const slot of Object.values(record.slots)) delete slot.past;
      }),
    ),
  },
  {
    name: "every finished event keeps a history",
    caughtBy: "an event that was done at its first attempt",
    mistake: withChangedWrites((item) =>
      withChangedRecord(item, (record) => {
        for (const slot of Object.values(record.slots)) {
          const history = [{ at: item.at, what: slot.state }];
          if (slot.work === null) slot.past ??= { history, copies: 0, lastCopyAt: null };
        }
      }),
    ),
  },
  {
    name: "a copy of a done event causes a write",
    caughtBy: "an event that was done at its first attempt",
    mistake: withInbox((inbox, store) => ({
      async accept(event, options) {
        const accepted = await inbox.accept(event, options);
        if (accepted.outcome === "duplicate") {
          await rewrite(store, event.key, (record) => {
            for (const slot of Object.values(record.slots)) {
              slot.past = { history: [], copies: (slot.past?.copies ?? 0) + 1, lastCopyAt: null };
            }
          });
        }
        return accepted;
      },
    })),
  },
  {
    name: "an entry is not found by the references and ids of its readings",
    caughtBy: "an entry with several readings",
    mistake: withChangedEvents(({ foundBy: _, ...event }) => event),
  },
  {
    name: "the age of the oldest waiting event is not reported",
    caughtBy: "an event is found by its id",
    mistake: withStore((store) => ({
      counts: async () => ({ ...(await store.counts()), oldestDueAt: null }),
    })),
  },
  {
    name: "the cursor of a list is ignored",
    caughtBy: "a list is given page by page",
    mistake: withStore((store) => ({
      list: (filter, _, limit, first) => store.list(filter, null, limit, first),
    })),
  },
  {
    name: "records expire a day early",
    caughtBy: "a finished record lives",
    mistake: withChangedEvents((event) => ({ ...event, retentionMs: event.retentionMs - 86_400_000 })),
  },
  {
    name: "a later delivery does not extend the life of its record",
    caughtBy: "every delivery that was signed later",
    mistake: withChangedWrites((item, before) =>
      withChangedRecord(item, (record) => {
        if (before !== null && record.lease === null && before.lease === null)
          record.expiresAt = before.expiresAt;
      }),
    ),
  },
  {
    name: "the signing time of the last delivery counts, not the latest signing time",
    caughtBy: "the greatest signed time counts",
    mistake: withInbox((inbox, store) => ({
      async accept(event, options) {
        const accepted = await inbox.accept(event, options);
        await rewrite(store, event.key, (record) => {
          if (event.signedAt === null) return;
          record.signedAt = event.signedAt;
          record.expiresAt = event.signedAt + event.retentionMs;
        });
        return accepted;
      },
    })),
  },
  {
    name: "an event that waits or is held expires",
    caughtBy: "an event that waits or is held does not expire",
    mistake: withChangedWrites(({ index, record }) => ({ index: { ...index, expiresAt: record.expiresAt } })),
  },
  {
    name: "a retry is never due",
    caughtBy: ONLY_UNFINISHED,
    mistake: withChangedWrites(({ index, at }) => ({
      index: { ...index, dueAt: index.dueAt !== null && index.dueAt > at ? null : index.dueAt },
    })),
  },
  {
    name: "a refused delivery claims its reference",
    caughtBy: "a refused delivery claims no reference",
    mistake: withInbox((inbox) => {
      const owners = new Map<string, string>();
      return {
        accept(event, options) {
          const { referenceKey, key } = event;
          const owner = referenceKey === null ? undefined : owners.get(referenceKey);
          if (referenceKey !== null) owners.set(referenceKey, owner ?? key);
          const isAnothers = owner !== undefined && owner !== key;
          return inbox.accept(isAnothers ? { ...event, verdict: "unexpected" } : event, options);
        },
      };
    }),
  },
  {
    name: "no reference is claimed",
    caughtBy: "of many transactions that want one reference",
    mistake: withChangedEvents((event) => ({ ...event, referenceKey: null })),
  },
  {
    name: "a claimed reference does not name its owner",
    caughtBy: "death after the claim of a reference",
    mistake: withChangedWrites((item) =>
      Object.keys(item.record.slots).length > 0 ? {} : { record: { ...item.record, id: "f".repeat(32) } },
    ),
  },
  ...[
    "a claim stands as long as its record is kept by an event that is held after its own end",
    "a claim lives as long as its record when a later copy of another event prolongs that",
  ].map(
    (caughtBy): Mutant => ({
      name: "a claim that may expire is not prolonged with its record",
      caughtBy,
      mistake: withChangedWrites((item, before) =>
        before === null || Object.keys(item.record.slots).length > 0 || !before.isClosed
          ? {}
          : withChangedRecord(item, (claim) => {
              claim.isClosed = true;
              claim.expiresAt = before.expiresAt;
            }),
      ),
    }),
  ),
  {
    name: "finished events still count as remaining",
    caughtBy: "work stops at its limit",
    mistake: withStore((store) => {
      const keys = new Set<string>();
      return {
        swap(items) {
          for (const { key } of items) keys.add(key);
          return store.swap(items);
        },
        takeDue: async (limit, hideMs) => ({
          ...(await store.takeDue(limit, hideMs)),
          left: { usual: keys.size, patient: 0 },
        }),
      };
    }),
  },
  {
    name: "the limit of concurrency is ignored",
    caughtBy: "in the background everything is run",
    mistake: withInbox((inbox) => ({ run: (runner) => inbox.run(runner, { concurrency: 100 }) })),
  },
  {
    name: "events are begun at acceptance although no place is free",
    caughtBy: "without a free place nothing is begun",
    replace: () => replaceMember(Places.prototype, "takeableCount", { value: () => 100 }),
  },
  {
    name: "new events run before events that have waited",
    caughtBy: "without a free place nothing is begun",
    shared: true,
    replace: () => replaceMember(Dispatcher.prototype, "isBacklog", { value: () => false }),
  },
  ...["few events of one tenant", "few events of one name", "work takes from both"].map((caughtBy) => ({
    name: `all events wait in one lane: ${caughtBy}`,
    caughtBy,
    replace: () => replaceMember(Crowds.prototype, "assignLane", { value: () => "usual" }),
  })),
  {
    name: "the events of all tenants are one crowd",
    caughtBy: "few events of one tenant",
    mistake: withChangedEvents((event) => ({ ...event, delivery: { ...event.delivery, tenant: "" } })),
  },
  {
    name: "the events of all names are one crowd",
    caughtBy: "few events of one name",
    mistake: withChangedEvents((event) => ({ ...event, name: "DEPOSIT" })),
  },
  {
    name: "places are kept free for others although only a crowd waits",
    caughtBy: "a flood that is alone",
    replace() {
      const own = Places.prototype.open;
      return replaceMember(Places.prototype, "open", {
        value(this: Places, concurrency: number | null) {
          own.call(this, concurrency);
          this.keepFree();
        },
      });
    },
  },
  {
    name: "a crowd takes every free place although others wait",
    caughtBy: "a flood has half of the places",
    replace: () => replaceMember(Places.prototype, "keepFree", { value: () => {} }),
  },
  {
    name: "a crowd waits until no other event is due",
    caughtBy: "work takes from both",
    mistake: withStore((store) => ({
      async takeDue({ usual, patient }, hideMs) {
        const { left } = await store.takeDue(ZERO_PER_LANE, 0);
        const all = left.usual > 0 ? { usual: usual + patient, patient: 0 } : { usual, patient };
        return store.takeDue(all, hideMs);
      },
    })),
  },
  {
    name: "an older event runs after a newer one",
    caughtBy: "an older event that arrives after",
    replace: () => withSubjectAnswers({ overtaken: "acquired" }),
  },
  {
    name: "an event does not wait for the running event of its subject",
    caughtBy: "while an event runs",
    replace: () => withSubjectAnswers({ busy: "acquired" }),
  },
  {
    name: "the second of two events with the same time is run",
    caughtBy: "of two events that were signed at the same time",
    replace: () => withSubjectAnswers({ equal: "acquired" }),
  },
  {
    name: "an event runs although its subject may be forgotten",
    caughtBy: "an event that waited until its subject may be forgotten",
    replace: () => withSubjectAnswers({ forgotten: "acquired" }),
  },
  {
    name: "an earlier event stays held when a later one runs",
    caughtBy: "an event that is held ends as stale",
    replace: () => replaceMember(SubjectTurn.prototype, "take", { value: async () => "acquired" }),
  },
  {
    name: "the lease of a subject is not released",
    caughtBy: "an event without a subject costs",
    replace: () => replaceMember(SubjectTurn.prototype, "release", { value: async () => {} }),
  },
  {
    name: "the order of a subject is the order in which its events arrived",
    caughtBy: "the order of a subject",
    replace() {
      const own = EventReader.prototype.subjectOrder;
      return replaceMember(EventReader.prototype, "subjectOrder", {
        async value(this: EventReader, eventId: string) {
          const order = await own.call(this, eventId);
          return order && { ...order, events: order.events.toSorted((a, b) => a.acceptedAt - b.acceptedAt) };
        },
      });
    },
  },
  {
    name: "a process runs an event a second time while it is running",
    caughtBy: "a process does not run a second time",
    replace: () => replaceMember(Runs.prototype, "has", { value: () => false }),
  },
  {
    name: "an event that must be handled before the answer is only stored",
    caughtBy: "an event that is to be handled before its answer",
    mistake: withInbox((inbox) => ({
      async accept(event, { runAtOnce, ...options } = {}) {
        const accepted = await inbox.accept(event, options);
        return { ...accepted, whenHandled: Promise.resolve({ state: "waiting", ran: false }) };
      },
    })),
  },
  {
    name: "an event that its caller wants to run is due at once",
    caughtBy: "an event that its caller wants to run",
    mistake: withChangedEvents(
      (event) => event,
      ({ delayMs: _, ...options }) => options,
    ),
  },
  {
    name: "a paused process goes on beginning events",
    caughtBy: "while it is paused",
    mistake: withInbox((inbox) => ({
      run: async (runner, options) => ({ ...(await inbox.run(runner, options)), pause: () => {} }),
    })),
  },
  {
    name: "stop does not wait for running handlers",
    caughtBy: "stop takes nothing more",
    mistake: withInbox((inbox) => ({
      async run(runner, options) {
        const run = await inbox.run(runner, options);
        return {
          ...run,
          stop: async () => {
            void run.stop();
          },
        };
      },
    })),
  },
  {
    name: "a write that is sent again is not recognised by its version",
    caughtBy: "an accept whose answer is lost",
    mistake: withChangedWrites(({ version, expected }) => ({
      version: `${version}'`,
      expected,
    })),
  },
  {
    name: "a begin that is sent again is not recognised by its token",
    caughtBy: 'the answer to the write "begin" is lost, and another process',
    mistake: withChangedWrites((item) =>
      withChangedRecord(item, (record) => {
        for (const slot of Object.values(record.slots)) slot.runToken = null;
      }),
    ),
  },
  {
    name: "a write with an unknown outcome is computed again",
    caughtBy: "a write whose outcome is unknown is sent again",
    mistake: withChangedResults((result) =>
      result.kind === "unknown" ? { kind: "not-written", cause: result.cause } : result,
    ),
  },
  {
    name: "a write with an unknown outcome counts as made",
    caughtBy: "nothing is acknowledged while nobody knows",
    mistake: withChangedResults((result) => (result.kind === "unknown" ? { kind: "written" } : result)),
  },
  {
    name: "a write that was not made counts as made",
    caughtBy: "while the store writes nothing",
    mistake: withChangedResults((result) => (result.kind === "not-written" ? { kind: "written" } : result)),
  },
  {
    name: "a whole batch is refused because of one write",
    caughtBy: "one event that the store does not take",
    shared: true,
    mistake: withChangedResults(
      (result, results) => results.find(({ kind }) => kind === "refused") ?? result,
    ),
  },
  {
    name: "copies are answered from the memory of the process",
    caughtBy: "a copy is a duplicate only by what the store says",
    mistake: withStore((store) => {
      const known = new Map<string, VersionedRecord>();
      return {
        async read(keys) {
          const found = await store.read(keys);
          return keys.map((key, at) => known.get(key) ?? found[at] ?? null);
        },
        swap(items) {
          const unknown = items.filter(({ key }) => known.has(key));
          if (unknown.length > 0 && items.every(({ expected }) => expected === null)) {
            return items.map(
              ({ key }): SwapResult => ({ kind: "conflict", current: known.get(key) ?? null }),
            );
          }
          for (const { key, version, record } of items) known.set(key, { version, record });
          return store.swap(items);
        },
      };
    }),
  },
  {
    name: "an acceptance does not wait for replicas",
    caughtBy: "where replicas are to have it",
    mistake: withStore(() => ({ replicated: async () => {} })),
  },
  {
    name: "a copy does not wait for replicas",
    caughtBy: "where replicas are to have it",
    mistake: withStore((store) => {
      const seen = new Set<string>();
      return {
        async replicated(items) {
          const unseen = items.filter(({ key }) => !seen.has(key));
          for (const { key } of items) seen.add(key);
          if (unseen.length > 0) await store.replicated?.(unseen);
        },
      };
    }),
  },
  {
    name: "a filter compares amounts as numbers",
    caughtBy: "lists and decisions are narrowed",
    mistake: withEvents(({ list }) => ({
      list: async ({ amount, ...query } = {}) => {
        const page = await list(query);
        const { min, max } = amount ?? {};
        const isIn = (text: string | null): boolean =>
          text !== null && Number(text) >= Number(min ?? 0) && Number(text) <= Number(max ?? Infinity);
        return amount === undefined
          ? page
          : { ...page, events: page.events.filter((one) => isIn(one.amount)) };
      },
    })),
  },
  {
    name: "a decision ignores the amount of its filter",
    caughtBy: "lists and decisions are narrowed",
    mistake: withEvents(({ discard }) => ({
      discard: (which, decision) => discard(withoutField("amount", which), decision),
    })),
  },
  {
    name: "an erasure ignores the reason of its filter",
    caughtBy: "an erasure by reason takes",
    mistake: withEvents(({ erase }) => ({
      erase: (which, decision) => erase(withoutField("reason", which), decision),
    })),
  },
  {
    name: "an interrupted bulk retry does not know which events it has made due",
    caughtBy: "a retry that was interrupted goes on",
    mistake: withEvents(({ retryNow }) => ({
      retryNow: (which, { name: _, ...decision }) => retryNow(which, decision),
    })),
  },
  {
    name: "a bulk retry makes all attempts due at once",
    caughtBy: "attempts come due at the rate",
    mistake: withEvents(({ retryNow }) => ({
      retryNow: (which, decision) => retryNow(which, { ...decision, perSecond: Number.POSITIVE_INFINITY }),
    })),
  },
  {
    name: "an attempt that is brought forward calls every handler again",
    caughtBy: "a person makes the next attempt due",
    mistake: withStore((store) => ({
      swap: (items) =>
        store.swap(
          items.map((item) => ({
            ...item,
            ...withChangedRecord(item, ({ slots }) => {
              for (const { work } of Object.values(slots)) {
                if (work?.history.at(-1)?.what === "attempt brought forward") work.handlerStates = {};
              }
            }),
          })),
        ),
    })),
  },
  {
    name: "an unreadable record counts as missing",
    caughtBy: "a record of a newer version is left alone",
    mistake: withStore((store) => {
      const known = new Map<string, VersionedRecord>();
      return {
        async takeDue(limit, hideMs) {
          const due = await store.takeDue(limit, hideMs);
          const records = due.records.filter(({ record }) => !isUnreadable(record));
          // No notice reports the unreadable records, and no other process gets them.
          known.clear();
          return { ...due, records };
        },
        read: async (keys) =>
          (await store.read(keys)).map((found) =>
            found !== null && isUnreadable(found.record) ? null : found,
          ),
      };
    }),
  },
];

/** Changes a record in the store without the inbox. */
async function rewrite(
  store: RecordStore,
  key: string,
  change: (record: IdempotencyRecord) => void,
): Promise<void> {
  const [found = null] = await store.read([key]);
  if (found === null || isUnreadable(found.record)) return;
  const record = structuredClone(found.record);
  change(record);
  await store.swap([
    {
      key,
      expected: found.version,
      version: `${found.version}'`,
      record,
      index: indexOf(key, record),
      before: indexOf(key, found.record),
      at: store.now(key),
      shouldAnnounce: false,
    },
  ]);
}

function fixtureOf({ shared, mistake }: Pick<Mutant, "shared" | "mistake">): InboxFixture {
  const fixture = shared === true ? sharedMemoryInboxFixture() : memoryInboxFixture();
  return mistake === undefined ? fixture : { ...fixture, mistake };
}

function kindOf({ shared }: Pick<Mutant, "shared">): FixtureKind {
  return shared === true ? sharedMemoryKind : memoryKind;
}

describe("the inbox contract fails an inbox where", () => {
  for (const { name, caughtBy, replace = () => () => {}, ...kind } of mutants) {
    it(name, async () => {
      const cases = contractCases.filter((one) => one.name.startsWith(caughtBy) && isFor(one, kindOf(kind)));
      expect(cases).not.toEqual([]);
      const failures: unknown[] = [];
      const undo = replace();
      for (const one of cases) {
        await one.run(() => fixtureOf(kind)).catch((error: unknown) => failures.push(error));
      }
      undo();
      expect(failures).not.toEqual([]);
      // An assertion must fail. Any other error could mean that the mutant cannot run at all.
      for (const failure of failures) expect(failure).toMatchObject({ name: "AssertionError" });
    });
  }
});
