/**
 * The contract tries an inbox in several processes on the same data. This file makes them. Each of them can die, freeze
 * or lose its connection before and after any call.
 */
import {
  type Awaitable,
  createInbox,
  type IdempotencyRecord,
  type Inbox,
  type RecordStore,
  type Swap,
  type SwapResult,
} from "@payhooks/core/inbox";
import { expect } from "vitest";
import { isCanary } from "../../packages/core/src/inbox/record/canary.ts";
import { isThenable } from "../../packages/core/src/time/awaitable.ts";
import type { Environment } from "../../packages/core/src/time/environment.ts";
import { does, nameOf } from "./write-names.ts";

/** A store, as one process opens it. */
export interface Parts {
  readonly store: RecordStore;
  /** Cuts the process off from the data at once, as its death would. */
  cut?(): void;
}

/** The traits of a fixture, which decide which cases are meant for it. */
export interface FixtureKind {
  /** True where `advance` can pass days: otherwise the cases about windows and expiry are left out. */
  readonly timeTravel: boolean;
  /** Only one process has the data, which ends with it. The cases start several on it all the same. */
  readonly endsWithProcess: boolean;
  /** The inbox does nothing by itself while there is no event, and so sends no canaries. Default false. */
  readonly sleeps?: boolean;
}

/** Fresh data, and the time in which it lives. */
export interface InboxFixture extends FixtureKind {
  /** Time and randomness of the processes. The store's own clock must show the same time. */
  readonly clock: Environment;
  /** Moves both clocks on: at once where time is injected, by waiting where it is real. */
  advance(ms: number): Promise<void>;
  /** The lease of every process. Cases measure time in leases: take a short one where time is real. */
  readonly leaseMs: number;
  open(): Parts;
  close(): Promise<void>;
  /** Plays a mistake: between the inbox and its store, or between a process and its inbox. */
  readonly mistake?: {
    readonly store?: (store: RecordStore) => RecordStore;
    readonly inbox?: (inbox: Inbox, store: RecordStore) => Inbox;
  };
}

/** A moment before or after a call of the store. Writes are named by what they do, see `write-names.ts`. */
export type Moment = "before" | "after";
/**
 * The fate of a process at such a moment; a write has a moment after it only if it was made. `fail`: the call is not made, and the
 * process gets an error that says so; after the call it is the same as `lose`. `lose`: the process gets an error that does not say
 * whether the call was made. It was not made (before), or was (after). `refuse`: the store does not take this write.
 */
export type Fate = "die" | "freeze" | "fail" | "lose" | "refuse" | undefined;
export type Fates = (moment: Moment, call: string) => Fate;

/** One process with an inbox. */
export interface Process {
  readonly inbox: Inbox;
  /** Its timers end with it. */
  readonly clock: Environment;
  /** The calls of the store that were made, in order; of each write its name, or `conflict`, or another failure. */
  readonly calls: readonly string[];
  /** Resolves when it dies. */
  readonly dead: Promise<void>;
  /** Resolves when it freezes by its `fates`. */
  readonly frozen: Promise<void>;
  /** From now on it does nothing, and nothing of it is written. */
  kill(): void;
  /** Stops its calls, renewals too, until `thaw`. Its handlers go on. */
  freeze(): void;
  thaw(): void;
}

/** Things that a process may have of its own. */
export interface ProcessOptions {
  /** Its store, changed. */
  readonly store?: (store: RecordStore) => RecordStore;
  /** Its canaries go through `store` too. Otherwise a case sees events alone: canaries meet no fate, and are no call. */
  readonly withCanaries?: boolean;
  /** Its wall clock is so many milliseconds ahead of the others'. */
  readonly aheadMs?: () => number;
}

/** Fresh data with as many processes as a case wants. */
export interface Rig extends Omit<InboxFixture, "open" | "clock" | "mistake"> {
  now(): number;
  /** Moves time on until there is an outcome. */
  until<T>(outcome: Promise<T> | T): Promise<T>;
  start(fates?: Fates, options?: ProcessOptions): Process;
}

export type MakeFixture = () => InboxFixture | Promise<InboxFixture>;

/** One behaviour that every inbox must have. Each takes fresh data, as often as it likes. */
export interface ContractCase {
  readonly name: string;
  /** Days pass in it: not for a fixture whose time is real. */
  readonly timeTravel?: true;
  /**
   * Only for a store that ends with its process, only for one that does not, or, of these, only for one whose process also watches it
   * while there is no event.
   */
  readonly only?: "ends-with-process" | "outlives-process" | "stays-awake";
  /** Tens of thousands of calls: for memory only. */
  readonly long?: true;
  run(make: MakeFixture): Promise<void>;
}

/** A case that needs fresh data once. */
export function onFreshData(
  name: string,
  run: (rig: Rig) => Promise<void>,
  needs: Pick<ContractCase, "timeTravel" | "only"> = {},
): ContractCase {
  return {
    name,
    ...needs,
    async run(make) {
      const rig = rigOn(await make());
      try {
        await run(rig);
      } finally {
        await rig.close();
      }
    },
  };
}

const MOST_STEPS = 200;

/** Starts processes on a fixture. */
export function rigOn(fixture: InboxFixture): Rig {
  const { advance, timeTravel, leaseMs, endsWithProcess } = fixture;
  /** Every record that was written, by its version: what a write changes is seen beside the one before it. */
  const written = new Map<string, IdempotencyRecord>();
  const started: Process[] = [];
  return {
    advance,
    timeTravel,
    leaseMs,
    endsWithProcess,
    now: () => fixture.clock.now(),
    async until(outcome) {
      let isThere = false;
      const settled = Promise.resolve(outcome).finally(() => {
        isThere = true;
      });
      settled.catch(() => {});
      for (let step = 0; step < MOST_STEPS && !isThere; step++) await advance(leaseMs / 8);
      return isThere ? settled : expect.fail("there is no outcome, however long one waits");
    },
    start(fates = () => undefined, options = {}) {
      const process = startProcess(fixture, written, fates, options);
      started.push(process);
      return process;
    },
    close() {
      // Stop every process that the case started.
      for (const process of started) process.kill();
      return fixture.close();
    },
  };
}

function startProcess(
  fixture: InboxFixture,
  written: Map<string, IdempotencyRecord>,
  fates: Fates,
  { store: change = (store) => store, aheadMs = () => 0, withCanaries = false }: ProcessOptions,
): Process {
  const parts = fixture.open();
  const store = change(parts.store);
  const calls: string[] = [];
  const dead = newGate();
  const frozen = newGate();
  let alive = true;
  let thawed: Gate | null = null;
  const timers = new Set<() => void>();

  const clock: Environment = {
    ...fixture.clock,
    now: () => fixture.clock.now() + aheadMs(),
    after(ms, callback) {
      if (!alive) return () => {};
      const cancel = fixture.clock.after(ms, () => {
        timers.delete(cancel);
        callback();
      });
      timers.add(cancel);
      return () => {
        timers.delete(cancel);
        cancel();
      };
    },
    nextTurn: (callback) =>
      void setImmediate(() => {
        if (alive) callback();
      }),
    keepAlive: () => () => {},
  };

  function kill(): void {
    if (!alive) return;
    alive = false;
    for (const cancel of timers) cancel();
    parts.cut?.();
    dead.open();
  }

  function freeze(): Gate {
    thawed ??= newGate();
    frozen.open();
    return thawed;
  }

  /** The fate of each of these calls. It is known at once, unless the process is frozen or dead. */
  function meet(moment: Moment, names: readonly string[]): Awaitable<readonly Fate[]> {
    if (thawed !== null) return thawed.passed.then(() => meet(moment, names));
    const met = names.map((name) => (alive ? fates(moment, name) : "die"));
    if (met.includes("die")) kill();
    if (!alive) return new Promise<never>(() => {});
    return met.includes("freeze")
      ? freeze().passed.then(() => (alive ? met : new Promise<never>(() => {})))
      : met;
  }

  /** The calls of a dead process end without an answer: nothing in it may learn that its connections are gone. */
  function whileAlive<T>(answer: Awaitable<T>): Awaitable<T> {
    if (!(answer instanceof Promise)) return answer;
    return answer.catch((error: unknown) => {
      if (alive) throw error;
      return new Promise<never>(() => {});
    });
  }

  function call<T>(name: string, proceed: () => Awaitable<T>): Awaitable<T> {
    return then(meet("before", [name]), ([before]) => {
      if (isBreak(before)) throw brokenAt("before", name);
      calls.push(name);
      return then(whileAlive(proceed()), (answer) =>
        then(meet("after", [name]), ([after]) => {
          if (isBreak(after)) throw brokenAt("after", name);
          return answer;
        }),
      );
    });
  }

  function swap(items: readonly Swap[]): Awaitable<readonly SwapResult[]> {
    const canaries = items.filter(({ key }) => isCanary(key));
    if (canaries.length === 0) return swapEvents(items);
    const rest = items.filter(({ key }) => !isCanary(key));
    return then(whileAlive(meet("before", [])), () =>
      then(whileAlive((withCanaries ? store : parts.store).swap(canaries)), (ofCanaries) =>
        then(rest.length === 0 ? [] : swapEvents(rest), (ofEvents) => {
          const results = new Map<Swap, SwapResult | undefined>([
            ...canaries.map((item, at) => [item, ofCanaries[at]] as const),
            ...rest.map((item, at) => [item, ofEvents[at]] as const),
          ]);
          return items.map((item) => results.get(item) ?? { kind: "unknown", cause: null });
        }),
      ),
    );
  }

  function swapEvents(items: readonly Swap[]): Awaitable<readonly SwapResult[]> {
    const names = items.map((item) => nameOf(item, written.get(item.expected ?? "") ?? null));
    for (const { version, record } of items) written.set(version, record);
    return then(meet("before", names), (before) => {
      const made = items.filter((_, at) => !isBreak(before[at]));
      return then(made.length === 0 ? [] : whileAlive(store.swap(made)), (results) => {
        const byVersion = new Map(made.map(({ version }, at) => [version, results[at]]));
        // A write that met another version was not made, whatever its name is.
        const outcomes = items.map(({ version }, at): string => {
          const kind = byVersion.get(version)?.kind ?? "broken";
          return kind === "written" ? (names[at] ?? "") : kind;
        });
        calls.push(...outcomes);
        return then(meet("after", outcomes), (after) =>
          items.map(({ version }, at): SwapResult => {
            const cause = brokenAt(isBreak(before[at]) ? "before" : "after", names[at] ?? "");
            if (before[at] === "fail") return { kind: "not-written", cause };
            if (before[at] === "refuse") return { kind: "refused", cause };
            const result = byVersion.get(version);
            return result === undefined || isBreak(after[at]) ? { kind: "unknown", cause } : result;
          }),
        );
      });
    });
  }

  const tapped: RecordStore = withOverrides(store, {
    open: async () => call("open", () => store.open()),
    read: (keys) => call("read", () => store.read(keys)),
    swap,
    takeDue: (limit, hideMs) => call("takeDue", () => store.takeDue(limit, hideMs)),
    list: async (filter, cursor, limit, first) =>
      call("list", () => store.list(filter, cursor, limit, first)),
    counts: () => call("counts", () => store.counts()),
    ...(store.replicated === undefined
      ? {}
      : {
          replicated: async (items) => {
            const events = items.filter(({ key }) => !isCanary(key));
            if (events.length > 0) await call("replicated", async () => store.replicated?.(events));
          },
        }),
    close: async () => (alive ? store.close() : undefined),
  });
  const { leaseMs, mistake } = fixture;
  const seen = mistake?.store?.(tapped) ?? tapped;
  const inbox = createInbox(seen, { leaseMs, pollMs: leaseMs / 6, clock });
  return {
    inbox: mistake?.inbox?.(inbox, store) ?? inbox,
    clock,
    calls,
    dead: dead.passed,
    frozen: frozen.passed,
    kill,
    freeze: () => void freeze(),
    thaw() {
      const gate = thawed;
      thawed = null;
      gate?.open();
    },
  };
}

/** A process that dies when it comes to a write that does this, at the first such moment. */
export function dyingAt(rig: Rig, moment: Moment, what: string): Process {
  return rig.start((when, call) => (when === moment && does(call, what) ? "die" : undefined));
}

/** A process that freezes when it comes to a write that does this, once. */
export function freezingAt(rig: Rig, moment: Moment, what: string): Process {
  let isFirst = true;
  return rig.start((when, call) => {
    if (!isFirst || when !== moment || !does(call, what)) return undefined;
    isFirst = false;
    return "freeze";
  });
}

/** Goes on at once where there is nothing to wait for: so an inbox in memory is tried as it is used. */
function then<T, U>(value: Awaitable<T>, next: (value: T) => Awaitable<U>): Awaitable<U> {
  return isThenable(value) ? value.then(next) : next(value);
}

function isBreak(fate: Fate): boolean {
  return fate === "fail" || fate === "lose" || fate === "refuse";
}

/** The object, some of whose methods are replaced. */
export function withOverrides<T extends object>(object: T, overrides: Partial<T>): T {
  return new Proxy(object, {
    get(target, name) {
      if (Object.hasOwn(overrides, name)) return overrides[name as keyof T];
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}

const broken = new Map<string, Error>();
/** One error per moment: their stacks tell nothing, and cost more than the call. */
function brokenAt(moment: Moment, call: string): Error {
  const what = `the connection broke ${moment} ${call}`;
  const error = broken.get(what) ?? new Error(what);
  broken.set(what, error);
  return error;
}

/** A promise that is resolved from outside. */
export interface Gate {
  readonly passed: Promise<void>;
  open(): void;
}

export function newGate(): Gate {
  let open = (): void => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open };
}
