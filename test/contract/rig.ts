/**
 * What the contract needs of a store and a queue to try an inbox: several processes on the same data, each of which
 * can die, freeze or lose its connection between any two steps.
 */
import type { Clock } from "@payhooks/core";
import {
  type Awaitable,
  composeInbox,
  type IdempotencyStore,
  type Inbox,
  type Queue,
} from "@payhooks/core/inbox";

/** A store and a queue, as one process opens them. */
export interface Parts {
  readonly store: IdempotencyStore;
  readonly queue: Queue;
  /**
   * Cuts the process off from the data at once, as its death would: what it had taken is then recovered by the queue's
   * own means. Left out where the queue lives in this process: what was taken is then given back to it.
   */
  cut?(): void;
}

/** Fresh data, and the time in which it lives. */
export interface Ground {
  /** The clock of the processes. The store's own clock must show the same time. */
  readonly clock: Clock;
  /** Moves both clocks on: at once where time is injected, by waiting where it is real. */
  advance(ms: number): Promise<void>;
  /** True where `advance` can pass days: otherwise the cases about windows and expiry are skipped. */
  readonly timeTravel: boolean;
  /** The lease of every process. Cases measure time in leases: take a short one where time is real. */
  readonly leaseMs: number;
  /** Length of the sequences in the exhaustive run of the table. */
  readonly depth: number;
  readonly durability: Inbox["durability"];
  /** `in-steps`: claim, add, barrier, flag (docs/inboxes.md, steps 2–5). `at-once`: the store's accept does all of it in one. */
  readonly accepts: "in-steps" | "at-once";
  open(): Parts;
  close(): Promise<void>;
}

/** A moment before or after a call of store or queue, such as `store.step done`. */
export type Moment = "before" | "after";
/** What happens to a process at such a moment; `fail` is an error whose call was not (before) or was (after) done. */
export type Fate = "die" | "fail" | "freeze" | undefined;
export type Fates = (moment: Moment, call: string) => Fate;

/** One process with an inbox. */
export interface Process {
  readonly inbox: Inbox;
  /** Its timers end with it. */
  readonly clock: Clock;
  /** The calls of store and queue that were begun, in order. */
  readonly calls: readonly string[];
  /** Resolves when it dies. */
  readonly dead: Promise<void>;
  /** Resolves when it freezes by its `fates`. */
  readonly frozen: Promise<void>;
  /** From now on it does nothing, and what it had taken is for others. */
  kill(): void;
  /** Stops its calls and its renewals, until `thaw`. Its handlers go on. */
  freeze(): void;
  thaw(): void;
}

/** Fresh data with as many processes as a case wants. */
export interface Rig extends Omit<Ground, "open" | "clock"> {
  now(): number;
  start(fates?: Fates): Process;
}

export type MakeGround = () => Ground | Promise<Ground>;

/** One behaviour that every inbox must have. Each takes fresh data, as often as it likes. */
export interface ContractCase {
  readonly name: string;
  /** Days pass in it: skipped where time is real. */
  readonly timeTravel?: true;
  /** Only for a queue that ends with its process, or only for one that does not. */
  readonly only?: "ends-with-process" | "outlives-process";
  /** Only for a store that accepts in this way. */
  readonly accepts?: Ground["accepts"];
  run(make: MakeGround): Promise<void>;
}

/** A case that needs fresh data once. */
export function onFreshData(
  name: string,
  run: (rig: Rig) => Promise<void>,
  needs: Pick<ContractCase, "timeTravel" | "only" | "accepts"> = {},
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

/** Lays processes on the ground. */
export function rigOn(ground: Ground): Rig {
  const { advance, timeTravel, leaseMs, depth, durability, accepts } = ground;
  return {
    advance,
    timeTravel,
    leaseMs,
    depth,
    durability,
    accepts,
    now: () => ground.clock.now(),
    start: (fates = () => undefined) => startProcess(ground, fates),
    close: () => ground.close(),
  };
}

function startProcess(ground: Ground, fates: Fates): Process {
  const parts = ground.open();
  const calls: string[] = [];
  const dead = newGate();
  const frozen = newGate();
  let alive = true;
  let thawed: { readonly passed: Promise<void>; open(): void } | null = null;
  const timers = new Set<() => void>();
  const ends = new Set<() => void>();
  const taken = new Set<() => void>();

  const clock: Clock = {
    now: () => ground.clock.now(),
    after(ms, callback) {
      if (!alive) return () => {};
      const cancel = ground.clock.after(ms, () => {
        timers.delete(cancel);
        callback();
      });
      timers.add(cancel);
      return () => {
        timers.delete(cancel);
        cancel();
      };
    },
  };

  function kill(): void {
    if (!alive) return;
    alive = false;
    for (const cancel of timers) cancel();
    for (const end of ends) end();
    for (const give of taken) give();
    parts.cut?.();
    dead.open();
  }

  function freeze(): void {
    thawed ??= newGate();
    // Where the queue's own means would take its jobs away after a while, the queue in this process needs help.
    for (const give of taken) give();
    frozen.open();
  }

  /** Null where nothing is to be waited for: the table is run over a million calls. */
  function meet(moment: Moment, call: string): Promise<void> | null {
    if (thawed !== null) return thawed.passed.then(() => meet(moment, call) ?? undefined);
    const fate = alive ? fates(moment, call) : "die";
    if (fate === "freeze") freeze();
    if (fate === "die") kill();
    if (!alive) return new Promise<never>(() => {});
    if (fate === "fail") return Promise.reject(brokenAt(moment, call));
    return fate === "freeze" ? gateOf(thawed) : null;
  }

  async function call<T>(name: string, proceed: () => Awaitable<T>): Promise<T> {
    const before = meet("before", name);
    if (before !== null) await before;
    calls.push(name);
    const answer = await proceed();
    const after = meet("after", name);
    if (after !== null) await after;
    return answer;
  }

  const { store, queue } = parts;
  const tappedStore = withOverrides<IdempotencyStore>(store, {
    accept: (event, options) => call("store.accept", () => store.accept(event, options)),
    markQueued: (job) => call("store.markQueued", () => store.markQueued(job)),
    begin: (job, options) => call("store.begin", () => store.begin(job, options)),
    renew: (job, token, leaseMs) => call("store.renew", () => store.renew(job, token, leaseMs)),
    step: (job, token, name, change) =>
      call(`store.step ${change.kind}`, () => store.step(job, token, name, change)),
    finish: (job, token, ending) =>
      call(`store.finish ${ending.kind}`, () => store.finish(job, token, ending)),
    replay: (eventId, decision) => call("store.replay", () => store.replay(eventId, decision)),
    discard: (eventId, decision) => call("store.discard", () => store.discard(eventId, decision)),
  });
  const tappedQueue = withOverrides<Queue>(queue, {
    add: (job, options) => call("queue.add", () => queue.add(job, options)),
    // A point to die at also where there is no barrier to wait for.
    barrier: () => call("queue.barrier", async () => queue.barrier?.()),
    async consume(process, options) {
      const consumer = await queue.consume(async (job) => {
        const died = newGate();
        if (parts.cut === undefined) taken.add(died.open);
        const disposition = await Promise.race([process(job), died.passed.then(() => ({ againInMs: 0 }))]);
        taken.delete(died.open);
        return disposition;
      }, options);
      ends.add(() => void consumer.stop());
      return consumer;
    },
    async take() {
      if (!alive) return new Promise<never>(() => {});
      const taking = await queue.take();
      if (taking === null) return null;
      const give = (): void => {
        taken.delete(give);
        if (parts.cut === undefined) void taking.settle({ againInMs: 0 });
      };
      taken.add(give);
      return {
        job: taking.job,
        async settle(disposition) {
          if (!alive) return new Promise<never>(() => {});
          if (taken.delete(give)) await taking.settle(disposition);
        },
      };
    },
  });
  const { durability, leaseMs } = ground;
  return {
    inbox: composeInbox({ store: tappedStore, queue: tappedQueue, durability, leaseMs, clock }),
    clock,
    calls,
    dead: dead.passed,
    frozen: frozen.passed,
    kill,
    freeze,
    thaw() {
      const gate = thawed;
      thawed = null;
      gate?.open();
    },
  };
}

/** Read here, since the compiler does not see that `freeze` has made one. */
function gateOf(gate: { readonly passed: Promise<void> } | null): Promise<void> | null {
  return gate?.passed ?? null;
}

/** The object, some of whose methods are replaced. */
function withOverrides<T extends object>(object: T, overrides: Partial<T>): T {
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
export function newGate(): { readonly passed: Promise<void>; open(): void } {
  let open = (): void => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open };
}
