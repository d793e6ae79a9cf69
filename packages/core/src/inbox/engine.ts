import type { Awaitable } from "../awaitable.ts";
import { sleep } from "../clock.ts";
import { type Environment, environmentOf } from "../environment.ts";
import { describeError } from "../foreign-error.ts";
import { inboxError } from "../notices.ts";
import { Acceptor } from "./acceptor.ts";
import { Changes, unreadable } from "./changes.ts";
import { Dispatcher } from "./dispatcher.ts";
import { withOwnErrors } from "./failures.ts";
import { heldEntries } from "./held.ts";
import {
  type Accepted,
  type AcceptOptions,
  type Ending,
  type HeldEntries,
  type Inbox,
  isEventId,
  type Life,
  type Runner,
  type Running,
  type RunReport,
  recordKeyOf,
  type VerifiedEvent,
  type WorkOptions,
  type WorkReport,
} from "./inbox.ts";
import { InboxParts } from "./parts.ts";
import { isUnreadable } from "./record/codec.ts";
import { lifeOf } from "./record/decisions.ts";
import { Runs } from "./runs.ts";
import type { DueRecord, ListCursor, RecordStore } from "./store.ts";

/** Options of {@link createInbox}. */
export interface InboxOptions {
  /** How long a process may be silent before another takes its event. Default 30 s; renewed every third of it. */
  readonly leaseMs?: number | undefined;
  /** How often a process that runs events looks for what others have left. Default 500 ms. */
  readonly pollMs?: number | undefined;
  /** Time and randomness; the store has to be given the same. For tests. */
  readonly environment?: Environment | undefined;
}

const DEFAULT_LEASE_MS = 30_000;
const DEFAULT_POLL_MS = 500;
const PRUNE_EVERY_MS = 60_000;
const LANES_AT_CLOSE = 16;
const PAGE = 100;

/**
 * Makes an inbox of a store: the table of deduplication, leases, retries, what is held, and running what is due.
 *
 * @experimental The interface of a store may still change in a minor release.
 */
export function createInbox(store: RecordStore, options: InboxOptions = {}): Inbox {
  return withOwnErrors(new Engine(store, options));
}

class Engine implements Inbox {
  readonly durability: Inbox["durability"];
  readonly held: HeldEntries;
  readonly #parts: InboxParts;
  readonly #store: RecordStore;
  readonly #pollMs: number;
  readonly #runs: Runs;
  readonly #acceptor: Acceptor;
  #opening: Promise<void> | null = null;
  #isOpen = false;
  #dispatcher: Dispatcher | null = null;
  #runner: Runner | null = null;
  #unsubscribe: (() => void) | null = null;

  constructor(
    store: RecordStore,
    { leaseMs = DEFAULT_LEASE_MS, pollMs = DEFAULT_POLL_MS, environment = environmentOf() }: InboxOptions,
  ) {
    this.#store = store;
    this.durability = store.durability;
    this.#pollMs = store.endsWithProcess === true ? Number.POSITIVE_INFINITY : pollMs;
    const parts = new InboxParts(store, environment, new Changes(store, environment, leaseMs), leaseMs);
    this.#parts = parts;
    this.#runs = new Runs(
      parts,
      {
        isTaking: () => this.#dispatcher?.isTaking === true,
        due: (inMs) => this.#dispatcher?.wake(inMs),
        freed: () => this.#dispatcher?.freed(),
      },
      (event) => this.accept(event, { deadlineMs: leaseMs }),
    );
    const mayBegin = (): boolean =>
      this.#dispatcher?.isTaking === true && !this.#dispatcher.isBacklog && !parts.isClosing;
    const runnerNow = (): Runner | null => (mayBegin() ? this.#runner : null);
    this.#acceptor = new Acceptor(parts, this.#runs, {
      get runner() {
        return runnerNow();
      },
      added: (inMs) => this.#dispatcher?.added(inMs),
    });
    this.held = heldEntries({
      parts,
      ready: () => this.ready(),
      decided: () => {
        this.#acceptor.heldChanged();
        this.#dispatcher?.wake(0);
      },
    });
  }

  ready(): Promise<void> {
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = null;
      throw error;
    });
    return this.#opening;
  }

  async #open(): Promise<void> {
    await this.#store.open();
    this.#isOpen = true;
    if (this.#store.prune !== undefined) this.#pruneLater();
  }

  accept(event: VerifiedEvent, options: AcceptOptions = {}): Awaitable<Accepted> {
    if (this.#isOpen || this.#store.immediate === true) return this.#acceptor.accept(event, options);
    return this.ready().then(() => this.#acceptor.accept(event, options));
  }

  async run(...[runner, { concurrency }]: Parameters<Inbox["run"]>): Promise<Running> {
    await this.ready();
    this.#runner = runner;
    this.#runs.places.open(concurrency);
    const { environment, hideMs } = this.#parts;
    const dispatcher = new Dispatcher({
      store: this.#store,
      environment,
      hideMs,
      pollMs: this.#pollMs,
      runner,
      room: () => this.#runs.places.room,
      begin: (record) => void this.#runs.beginDue(record, { runner, inBackground: true, ended: null }),
    });
    this.#dispatcher = dispatcher;
    dispatcher.wake(0);
    try {
      this.#unsubscribe = (await this.#store.onDue?.(() => dispatcher.hinted())) ?? null;
    } catch (error) {
      // Without hints, what others accept is found at the next look.
      runner.notify(inboxError("listen", error));
    }
    return {
      pause: () => {
        dispatcher.pause();
        this.#runs.handBackWaiting();
      },
      resume: () => dispatcher.resume(),
      stop: () => {
        dispatcher.stop();
        this.#runs.handBackWaiting();
        return this.#runs.atRest();
      },
    };
  }

  async work(runner: Runner, { deadlineMs, limit, concurrency }: WorkOptions): Promise<WorkReport> {
    await this.ready();
    this.#runner ??= runner;
    const time = this.#parts.stopwatch();
    let taken = 0;
    let ran = 0;
    let failed = 0;
    const lane = async (): Promise<void> => {
      while (taken < limit && time.elapsedMs < deadlineMs && !this.#parts.isClosing) {
        taken++;
        const { records } = await this.#store.takeDue(1, this.#parts.hideMs);
        const [record] = records;
        const ending = record === undefined ? null : await this.#runDue(record, runner);
        if (ending === null) taken--;
        else ran++;
        if (ending === "retry" || ending === "held") failed++;
        if (record === undefined) return;
      }
    };
    await Promise.all(Array.from({ length: Math.min(concurrency, limit) }, lane));
    await this.#store.prune?.();
    const { left, nextDueAt } = await this.#store.takeDue(0, 0);
    return { ran, failed, remaining: left, nextDueAt };
  }

  /** How the run of a due record ended; null when there was nothing to run. */
  #runDue(record: DueRecord, runner: Runner): Promise<Ending["kind"] | null> {
    return new Promise((resolve) => {
      const ended = (_: RunReport, ending: Ending["kind"] | null): void => resolve(ending);
      void this.#runs.beginDue(record, { runner, inBackground: false, ended }).then((isBegun) => {
        if (!isBegun) resolve(null);
      });
    });
  }

  async runEvent(runner: Runner, eventId: string): Promise<RunReport> {
    await this.ready();
    this.#runner ??= runner;
    return isEventId(eventId) ? this.#runs.runNow(runner, eventId, "asked") : { state: null, ran: false };
  }

  async read(eventId: string): Promise<Life | null> {
    await this.ready();
    if (!isEventId(eventId)) return null;
    const [found = null] = await this.#store.read([recordKeyOf(eventId)]);
    if (found === null) return null;
    if (isUnreadable(found.record)) throw unreadable(found.record.unreadable);
    return lifeOf(found.record, eventId);
  }

  async health(): ReturnType<Inbox["health"]> {
    try {
      await this.ready();
      await this.#store.probe();
      const { waiting, retrying, running, held } = await this.#store.counts();
      return { ok: true, detail: null, waiting: waiting + retrying, running, held };
    } catch (error) {
      return { ok: false, detail: describeError(error), waiting: null, running: null, held: null };
    }
  }

  #pruneLater(): void {
    this.#parts.environment.after(PRUNE_EVERY_MS, () => {
      if (!this.#parts.isClosing) void this.#prune().finally(() => this.#pruneLater());
    });
  }

  async #prune(): Promise<void> {
    try {
      while (!this.#parts.isClosing && (await this.#store.prune?.()) === true);
    } catch (error) {
      this.#runner?.notify(inboxError("prune", error));
    }
  }

  async close({ graceMs }: { readonly graceMs: number }): Promise<{ readonly unfinished: number }> {
    const { environment } = this.#parts;
    this.#parts.isClosing = true;
    const letGo = environment.hold();
    try {
      this.#dispatcher?.stop();
      this.#unsubscribe?.();
      const ended = this.#finishWhatRuns().then(() => true);
      const isInTime = await Promise.race([ended, sleep(environment, graceMs).then(() => false)]);
      this.#parts.isAbandoned = !isInTime;
      const stillRunning = isInTime ? 0 : this.#runs.abandon();
      const unfinished = this.#store.endsWithProcess === true ? await this.#countLost() : stillRunning;
      await this.#store.close();
      return { unfinished };
    } finally {
      letGo();
    }
  }

  /** What was begun is handed back, or run to its end where nobody else can have it. */
  async #finishWhatRuns(): Promise<void> {
    this.#runs.startAll();
    await this.#acceptor.atRest();
    await this.#runs.atRest();
    if (this.#store.endsWithProcess === true && this.#runner !== null) await this.#runTheRest(this.#runner);
  }

  /** The store ends with the process: everything that waits gets its last try. */
  async #runTheRest(runner: Runner): Promise<void> {
    const waiting: string[] = [];
    for (const state of ["waiting", "retrying", "held"] as const) {
      let cursor: ListCursor | null = null;
      do {
        const page = await this.#store.list({ state }, cursor, PAGE);
        waiting.push(...page.events.map(({ eventId }) => eventId));
        cursor = page.next;
      } while (cursor !== null);
    }
    const lane = async (): Promise<void> => {
      for (let eventId = waiting.shift(); eventId !== undefined; eventId = waiting.shift()) {
        if (this.#parts.isAbandoned) return;
        const { state } = await this.#runs.runNow(runner, eventId, "last");
        // Whoever is to be told of what this has put on hold.
        if (state === "held") await this.#runs.runNow(runner, eventId, "last");
      }
    };
    await Promise.all(Array.from({ length: LANES_AT_CLOSE }, lane));
  }

  async #countLost(): Promise<number> {
    const { waiting, retrying, running, held } = await this.#store.counts();
    return waiting + retrying + running + held;
  }
}
