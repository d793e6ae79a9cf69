import { type Awaitable, isPending } from "../awaitable.ts";
import { type Clock, sleep, systemClock } from "../clock.ts";
import { PayhooksError } from "../errors.ts";
import { describeError } from "../foreign-error.ts";
import { inboxError } from "../notices.ts";
import { ActiveRun, type RunSurroundings } from "./active-run.ts";
import { withOwnErrors } from "./failures.ts";
import { InFlight } from "./in-flight.ts";
import type {
  Accepted,
  Begun,
  Decision,
  Ending,
  Inbox,
  Job,
  LeaseData,
  ReplayDecision,
  Runner,
  RunReport,
  WorkOptions,
  WorkReport,
} from "./inbox.ts";
import type { BeginOptions, Disposition, IdempotencyStore, Queue } from "./store.ts";

/** Options of {@link composeInbox}. */
export interface ComposeOptions {
  readonly store: IdempotencyStore;
  readonly queue: Queue;
  /** What both together survive. */
  readonly durability: Inbox["durability"];
  /** How long a worker may be silent before another takes its event. Default 30 s; renewed every third of it. */
  readonly leaseMs?: number | undefined;
  /** For tests. */
  readonly clock?: Clock | undefined;
}

const DEFAULT_LEASE_MS = 30_000;
const NO_LIMIT = Number.POSITIVE_INFINITY;
/** A job whose begin failed is tried again so much later. */
const BEGIN_AGAIN_MS = 5_000;
const LANES_AT_CLOSE = 16;

/**
 * Makes an inbox from a store of idempotency records and a queue. The order of its steps is what keeps an
 * acknowledged event (docs/inboxes.md): claim, add, barrier, flag, and only then is `accept` over.
 *
 * @experimental The interfaces of store and queue may still change in a minor release.
 */
export function composeInbox(options: ComposeOptions): Inbox {
  return withOwnErrors(new ComposedInbox(options));
}

/** What became of a job, and what its queue is to do with it. */
interface Processed extends RunReport {
  readonly next: Disposition;
  readonly ending: Ending["kind"] | null;
}

class ComposedInbox implements Inbox {
  readonly durability: Inbox["durability"];
  readonly held: Inbox["held"];
  readonly #store: IdempotencyStore;
  readonly #queue: Queue;
  readonly #clock: Clock;
  readonly #leaseMs: number;
  readonly #surroundings: RunSurroundings;
  #owner: string | null = null;
  readonly #active = new InFlight<number, ActiveRun>();
  #runs = 0;
  #renewing = false;
  #consumers: { stop(): Promise<void> }[] = [];
  #lastRunner: Runner | null = null;
  #closing = false;
  #closed: Promise<{ readonly unfinished: number }> | null = null;
  #abandoned = false;

  constructor({ store, queue, durability, leaseMs = DEFAULT_LEASE_MS, clock = systemClock }: ComposeOptions) {
    this.#store = store;
    this.#queue = queue;
    this.durability = durability;
    this.#leaseMs = leaseMs;
    this.#clock = clock;
    this.#surroundings = {
      store,
      clock,
      leaseMs,
      isHandBack: () => this.#closing && queue.hurry === undefined,
      isAbandoned: () => this.#abandoned,
      accept: (event) => this.accept(event),
    };
    this.held = {
      list: (filter = {}) => store.listHeld(filter),
      replay: (eventId, decision) => this.#replay(eventId, decision),
      discard: (eventId, decision) => this.#discard(eventId, decision),
    };
  }

  async ready(): Promise<void> {
    await this.#store.ready();
    await this.#queue.ready();
  }

  accept(...[event, options = {}]: Parameters<Inbox["accept"]>): Awaitable<Accepted> {
    const { maxHeld = NO_LIMIT, delayMs = 0 } = options;
    const accepting = this.#store.accept(event, { maxHeld, delayMs });
    if (!isPending(accepting) && !accepting.pending) return accepting;
    return this.#enqueueAccepted(accepting, delayMs);
  }

  async #enqueueAccepted(accepting: Awaitable<Accepted>, delayMs: number): Promise<Accepted> {
    const accepted = await accepting;
    if (accepted.pending) await this.#enqueue(accepted.job, delayMs);
    return accepted;
  }

  /** Add, barrier, flag. Whoever dies in between has acknowledged nothing; a copy does all of it again. */
  async #enqueue(job: Job, delayMs: number): Promise<void> {
    await this.#queue.add(job, { delayMs });
    if (this.#queue.barrier !== undefined) await this.#queue.barrier();
    await this.#store.markQueued(job);
  }

  async run(...[runner, { concurrency }]: Parameters<Inbox["run"]>): ReturnType<Inbox["run"]> {
    this.#lastRunner = runner;
    const consumer = await this.#queue.consume(
      (job) => this.#process(runner, job, this.#closing ? "last" : null).then(nextOf),
      { concurrency, notify: (notice) => runner.notify(notice) },
    );
    this.#consumers.push(consumer);
    return consumer;
  }

  async work(runner: Runner, { deadlineMs, limit, concurrency }: WorkOptions): Promise<WorkReport> {
    this.#lastRunner = runner;
    await this.#queue.recover();
    const end = this.#clock.now() + deadlineMs;
    let taken = 0;
    let ran = 0;
    let failed = 0;
    const lane = async (): Promise<void> => {
      while (taken < limit && this.#clock.now() < end && !this.#closing) {
        taken++;
        const taking = await this.#queue.take();
        if (taking === null) {
          taken--;
          return;
        }
        const processed = await this.#process(runner, taking.job, null);
        await taking.settle(processed.next);
        if (processed.ran) ran++;
        else taken--;
        if (processed.ending === "retry" || processed.ending === "held") failed++;
      }
    };
    await Promise.all(Array.from({ length: Math.min(concurrency, limit) }, lane));
    const { due, nextDueAt } = await this.#queue.pending();
    return { ran, failed, remaining: due, nextDueAt };
  }

  async runJob(runner: Runner, job: Job): Promise<RunReport> {
    this.#lastRunner = runner;
    const { state, ran, next } = await this.#process(runner, job, "asked");
    if (next !== "finished") await this.#queue.add(job, { delayMs: next.againInMs });
    return { state, ran };
  }

  read(eventId: string): ReturnType<Inbox["read"]> {
    return this.#store.read(eventId);
  }

  async health(): ReturnType<Inbox["health"]> {
    try {
      return { ok: true, detail: null, ...(await this.#store.counts()) };
    } catch (error) {
      return { ok: false, detail: describeError(error), waiting: null, running: null, held: null };
    }
  }

  /** Begin, run, finish. Never rejects: a job whose begin failed is due again. */
  async #process(runner: Runner, job: Job, force: BeginOptions["force"]): Promise<Processed> {
    try {
      this.#owner ??= crypto.randomUUID();
      const beginning = this.#store.begin(job, { owner: this.#owner, leaseMs: this.#leaseMs, force });
      const begun = isPending(beginning) ? await beginning : beginning;
      return begun.kind === "leased"
        ? await this.#runUnderLease(runner, begun.lease)
        : withoutRun(begun, job, runner);
    } catch (error) {
      runner.notify(inboxError("begin", error));
      return { state: "waiting", ran: false, next: { againInMs: BEGIN_AGAIN_MS }, ending: null };
    }
  }

  async #runUnderLease(runner: Runner, data: LeaseData): Promise<Processed> {
    const run = new ActiveRun(data, runner, this.#surroundings);
    const number = ++this.#runs;
    this.#active.set(number, run);
    this.#keepRenewing();
    try {
      const ending = await runner.run(run);
      const finishing = run.finish(ending);
      const next = isPending(finishing) ? await finishing : finishing;
      if (next === null) {
        // Also when this very write was made and only its answer got lost: whoever takes the job next will see.
        return { state: "running", ran: true, next: { againInMs: 0 }, ending: ending.kind };
      }
      for (const job of next) await run.persist("hasten", () => this.#queue.hasten(job));
      return { state: stateAfter(ending, data), ran: true, next: dispositionOf(ending), ending: ending.kind };
    } finally {
      this.#active.delete(number);
    }
  }

  /** One timer renews every lease of this process. */
  #keepRenewing(): void {
    if (this.#renewing) return;
    this.#renewing = true;
    this.#clock.after(this.#leaseMs / 3, () => {
      this.#renewing = false;
      if (this.#active.size === 0) return;
      for (const [, run] of this.#active.entries()) void run.renew();
      this.#keepRenewing();
    });
  }

  async #replay(eventId: string, decision: ReplayDecision): Promise<void> {
    const job = await this.#store.replay(eventId, decision);
    if (job === null) throw notHeld(eventId);
    await this.#enqueue(job, 0);
  }

  async #discard(eventId: string, decision: Decision): Promise<void> {
    if (!(await this.#store.discard(eventId, decision))) throw notHeld(eventId);
  }

  close({ graceMs }: { readonly graceMs: number }): Promise<{ readonly unfinished: number }> {
    this.#closed ??= this.#close(graceMs);
    return this.#closed;
  }

  async #close(graceMs: number): Promise<{ readonly unfinished: number }> {
    this.#closing = true;
    const grace = sleep(this.#clock, graceMs);
    const ended = this.#finishWhatRuns().then(() => true);
    const inTime = await Promise.race([ended, grace.then(() => false)]);
    let unfinished = 0;
    if (!inTime) {
      this.#abandoned = true;
      for (const [, run] of this.#active.entries()) {
        if (run.started) unfinished++;
        run.warnOfDouble("closed-while-running");
      }
    }
    if (this.#queue.hurry !== undefined) unfinished = await this.#countLost();
    await this.#queue.close();
    await this.#store.close();
    return { unfinished };
  }

  async #finishWhatRuns(): Promise<void> {
    const stopping = Promise.all(this.#consumers.map((consumer) => consumer.stop()));
    if (this.#queue.hurry !== undefined) await this.#runTheRest();
    await stopping;
    while (this.#active.size > 0) await sleep(this.#clock, 10);
  }

  /** The queue ends with the process: everything that waits gets its last try. */
  async #runTheRest(): Promise<void> {
    await this.#queue.hurry?.();
    const runner = this.#lastRunner;
    if (runner === null) return;
    const lane = async (): Promise<void> => {
      for (let taking = await this.#queue.take(); taking !== null; taking = await this.#queue.take()) {
        const { next, ending } = await this.#process(runner, taking.job, "last");
        // That was its last try, however soon the next one would be due.
        await taking.settle(ending === "retry" ? "finished" : next);
      }
    };
    await Promise.all(Array.from({ length: LANES_AT_CLOSE }, lane));
  }

  async #countLost(): Promise<number> {
    const { waiting, running, held } = await this.#store.counts();
    return (waiting ?? 0) + (running ?? 0) + (held ?? 0);
  }
}

function nextOf({ next }: Processed): Disposition {
  return next;
}

/** What became of a job for which there was nothing to run. */
function withoutRun(begun: Exclude<Begun, { kind: "leased" }>, job: Job, runner: Runner): Processed {
  switch (begun.kind) {
    case "missing":
      runner.notify({ type: "record-missing", eventId: job.eventId });
      return { state: null, ran: false, next: "finished", ending: null };
    case "finished":
      if (begun.overtaken !== null) runner.notify({ type: "stale", ...begun.overtaken });
      return { state: begun.state, ran: false, next: "finished", ending: null };
    case "wait": {
      const state = begun.running ? "running" : "waiting";
      return { state, ran: false, next: { againInMs: begun.ms }, ending: null };
    }
  }
}

function stateAfter(ending: Ending, data: LeaseData): RunReport["state"] {
  switch (ending.kind) {
    case "done":
      return "done";
    case "held":
    case "told":
      return "held";
    case "retry":
    case "released":
      return data.mode === "tell" ? "held" : "waiting";
  }
}

function dispositionOf(ending: Ending): Disposition {
  switch (ending.kind) {
    case "done":
    case "told":
      return "finished";
    case "retry":
      return { againInMs: ending.delayMs };
    case "held":
      return ending.tell ? { againInMs: 0 } : "finished";
    case "released":
      return { againInMs: 0 };
  }
}

function notHeld(eventId: string): PayhooksError {
  return new PayhooksError(
    "ERR_HELD_NOT_FOUND",
    `No held entry has the eventId ${JSON.stringify(String(eventId).slice(0, 64))}.`,
    {
      fix: "List them with receiver.held.list(); it may have been replayed or discarded already.",
    },
  );
}
