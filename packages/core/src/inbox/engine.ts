import { inboxErrorNotice, type UndatedNotice } from "../notices/notice.ts";
import { checkTime } from "../protocol/check-number.ts";
import { PayhooksError } from "../protocol/errors.ts";
import { emptyContext } from "../time/async-context.ts";
import { type Clock, sleep } from "../time/clock.ts";
import { type Environment, environmentOf } from "../time/environment.ts";
import { Acceptor } from "./accept/acceptor.ts";
import type { InboxEvents } from "./contract/events.ts";
import { compareHandlers } from "./contract/handler-sets.ts";
import type {
  AcceptOptions,
  BackgroundRuns,
  Inbox,
  RunEventOptions,
  Runner,
  WorkOptions,
  WorkReport,
} from "./contract/inbox.ts";
import type { Seal } from "./contract/seal.ts";
import type { ListCursor, RecordStore } from "./contract/store.ts";
import type { SharedTexts } from "./contract/texts.ts";
import { decisions } from "./decide/decide.ts";
import { type BeginDue, DueWorker } from "./due-worker.ts";
import { Pruning } from "./pruning.ts";
import { isCanary } from "./record/canary.ts";
import { type AcceptResult, isEventId, type RunReport, type VerifiedEvent } from "./record/event.ts";
import { Crowds } from "./run/crowds.ts";
import { Dispatcher } from "./run/dispatcher.ts";
import { Places } from "./run/places.ts";
import type { Run } from "./run/run.ts";
import { Runs } from "./run/runs.ts";
import { EventReader } from "./search/event-reader.ts";
import { CanarySender } from "./watch/canary-sender.ts";
import { withPayhooksErrors } from "./watch/failures.ts";
import { HealthCheck } from "./watch/health.ts";
import { KnownRecords } from "./watch/known-records.ts";
import { LossWatch } from "./watch/loss-watch.ts";
import { InboxCore } from "./write/inbox-core.ts";
import { Records } from "./write/records.ts";
import { sharedTexts } from "./write/shared-texts.ts";

/** Options of {@link createInbox}. */
export interface InboxOptions {
  /**
   * How long a process may be silent before another process takes its event. Default 30 s; a lease is renewed every third of
   * it.
   */
  readonly leaseMs?: number | undefined;
  /** How often a process that runs events polls for events of other processes. Default 500 ms. */
  readonly pollMs?: number | undefined;
  /** Seals the stored data. Default: it is stored in the clear. */
  readonly seal?: Seal | undefined;
  /** For tests: a clock, or everything that the inbox takes from outside. Give the store the same one. */
  readonly clock?: Clock | Environment | undefined;
}

const DEFAULT_LEASE_MS = 30_000;
const DEFAULT_POLL_MS = 500;
const PRUNE_INTERVAL_MS = 60_000;
const WORKERS_AT_CLOSE = 16;
const PAGE_SIZE = 100;

/**
 * Makes an inbox of a store. The inbox adds the table of deduplication, leases, retries, the held list, and the runs of events
 * that are due.
 *
 * @experimental The interface of a store may still change in a minor release.
 * @throws PayhooksError `ERR_OPTION_INVALID` for a `leaseMs` or `pollMs` that is not a number above zero, or that is more than
 * 1,000 years.
 */
export function createInbox(store: RecordStore, options: InboxOptions = {}): Inbox {
  return withPayhooksErrors(new Engine(store, options));
}

class Engine implements Inbox {
  readonly durability: Inbox["durability"];
  readonly events: InboxEvents;
  readonly texts: SharedTexts;
  readonly #core: InboxCore;
  readonly #store: RecordStore;
  readonly #dispatcher: Dispatcher;
  readonly #runs: Runs;
  readonly #acceptor: Acceptor;
  readonly #canary: CanarySender;
  readonly #losses: LossWatch;
  readonly #health: HealthCheck;
  readonly #pruning: Pruning;
  readonly #dueWorker: DueWorker;
  #opening: Promise<void> | null = null;
  #isOpen = false;
  #isClosed = false;
  #runner: Runner | null = null;
  #unsubscribe: (() => void) | null = null;
  /** Resolves once no pruning by the timer is under way. */
  #whenPruned: Promise<void> = Promise.resolve();

  constructor(
    plainStore: RecordStore,
    { leaseMs = DEFAULT_LEASE_MS, pollMs = DEFAULT_POLL_MS, ...options }: InboxOptions,
  ) {
    checkTime("leaseMs", leaseMs);
    checkTime("pollMs", pollMs);
    const environment = environmentOf(options.clock);
    const store =
      options.seal?.wrap(plainStore, environment, (notice) => this.#core.notify(notice)) ?? plainStore;
    this.#store = store;
    this.durability = store.durability;
    const knownRecords = new KnownRecords();
    const records = new Records(store, environment, leaseMs, (item) => knownRecords.onWritten(item));
    const core = new InboxCore(store, environment, records, leaseMs);
    this.#core = core;
    const places = new Places(environment);
    const crowds = new Crowds(places, environment);
    // Until `run`, the dispatcher takes nothing.
    this.#dispatcher = new Dispatcher({
      core,
      places,
      crowds,
      pollMs: isAlone(store) ? Number.POSITIVE_INFINITY : pollMs,
    });
    const canary = new CanarySender(core, this.#dispatcher);
    this.#canary = canary;
    this.#runs = new Runs({
      core,
      places,
      crowds,
      dispatcher: this.#dispatcher,
      // An event that a run releases counts as part of that run, so a close waits for it.
      accept: (event, options = {}) => this.#acceptor.accept(event, options),
    });
    this.#acceptor = new Acceptor(core, this.#runs, this.#dispatcher);
    this.#losses = new LossWatch(core, knownRecords, () => canary.request());
    this.#pruning = new Pruning(core);
    this.#dueWorker = new DueWorker(core, this.#pruning, (...due) => this.#beginDue(...due));
    const reader = new EventReader(core, () => this.ready());
    const decisionMethods = decisions({
      core,
      ready: () => this.ready(),
      onDecided: () => {
        this.#acceptor.onHeldChanged();
        this.#dispatcher.wake(0);
      },
    });
    this.events = {
      get: (eventId) => reader.get(eventId),
      list: (query, flows) => reader.list(query, flows),
      referenceHolder: (eventId) => reader.referenceHolder(eventId),
      subjectOrder: (eventId) => reader.subjectOrder(eventId),
      counts: () => reader.counts(),
      ...decisionMethods,
    };
    this.texts = sharedTexts(records, () => this.ready());
    this.#health = new HealthCheck(core, () => this.ready(), this.#losses, canary, reader);
  }

  observe(notify: (notice: UndatedNotice) => void): void {
    this.#core.notify = notify;
  }

  ready(): Promise<void> {
    if (this.#isClosed || (this.#core.isClosing && !this.#isOpen)) return Promise.reject(inboxClosedError());
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = null;
      throw error;
    });
    return this.#opening;
  }

  async #open(): Promise<void> {
    await this.#store.open();
    this.#isOpen = true;
    for (const warning of this.#store.warnings ?? []) this.#core.notify({ type: "warning", ...warning });
    this.#losses.start();
    this.#canary.start();
    if (this.#store.prune === undefined) return;
    if (this.#store.sleeps === true) this.#whenPruned = this.#prune();
    else this.#pruneLater();
  }

  async compareHandlers(handlers: readonly string[]): ReturnType<Inbox["compareHandlers"]> {
    await this.ready();
    return compareHandlers(this.#store, handlers, () => !this.#core.isClosing);
  }

  async accept(event: VerifiedEvent, options: AcceptOptions = {}): Promise<AcceptResult> {
    if (!this.#isOpen) await this.ready();
    // Such a store ends with the process. An event that is accepted after the final count would be lost, unnoticed.
    const isOver = this.#isClosed || (this.#core.isClosing && this.#store.endsWithProcess === true);
    if (isOver) throw inboxClosedError();
    return this.#acceptor.accept(event, options);
  }

  async run(...[runner, { concurrency }]: Parameters<Inbox["run"]>): Promise<BackgroundRuns> {
    await this.ready();
    if (this.#core.isClosing) throw inboxClosedError();
    this.#runner = runner;
    this.#runs.places.open(concurrency);
    const dispatcher = this.#dispatcher;
    this.#unsubscribe?.();
    dispatcher.start(
      runner,
      (due) => void this.#beginDue(due, { runner, inBackground: true }, () => dispatcher.isTaking),
    );
    try {
      this.#unsubscribe = (await this.#store.onDue?.(() => dispatcher.onHint())) ?? null;
      if (this.#core.isClosing) this.#unsubscribe?.();
    } catch (error) {
      // Without announcements, events of other processes are found at the next poll.
      if (!this.#core.isClosing) runner.notify(inboxErrorNotice("listen", error));
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

  async work(runner: Runner, options: WorkOptions): Promise<WorkReport> {
    await this.ready();
    this.#runner ??= runner;
    return this.#dueWorker.run(runner, options);
  }

  /** Begins the next event of a record that the store handed out. A canary ends here, because it is not an event. */
  async #beginDue(...[due, request, isWanted]: Parameters<BeginDue>): Promise<Run | null> {
    if (!isCanary(due.key)) return this.#runs.beginDue(due, request, isWanted);
    await this.#canary.endTaken(due);
    return null;
  }

  async runEvent(
    runner: Runner,
    eventId: string,
    { context = emptyContext, afterOthers = false }: RunEventOptions = {},
  ): Promise<RunReport> {
    await this.ready();
    this.#runner ??= runner;
    if (!isEventId(eventId)) return { state: null, ran: false };
    if (afterOthers) await this.#runs.waitForOthers(eventId);
    return this.#runs.runNow(runner, eventId, "requested", context);
  }

  health(): ReturnType<Inbox["health"]> {
    return this.#health.check();
  }

  #pruneLater(): void {
    this.#core.environment.after(PRUNE_INTERVAL_MS, () => {
      if (this.#core.isClosing) return;
      this.#whenPruned = this.#prune();
      void this.#whenPruned.then(() => this.#pruneLater());
    });
  }

  async #prune(): Promise<void> {
    try {
      await this.#pruning.pruneAll();
    } catch (error) {
      if (!this.#core.isClosing) this.#core.notify(inboxErrorNotice("prune", error));
    }
  }

  async close({ graceMs }: { readonly graceMs: number }): Promise<{ readonly unfinished: number }> {
    const { environment } = this.#core;
    this.#core.isClosing = true;
    this.#canary.stop();
    const stopKeepingAlive = environment.keepAlive();
    try {
      this.#dispatcher.stop();
      this.#unsubscribe?.();
      const draining = this.#drain().then(() => true);
      const isInTime = await Promise.race([draining, sleep(environment, graceMs).then(() => false)]);
      this.#core.isAbandoned = !isInTime;
      const stillRunning = isInTime ? 0 : this.#runs.abandon();
      return { unfinished: this.#store.endsWithProcess === true ? await this.#countLost() : stillRunning };
    } finally {
      this.#isClosed = true;
      this.#core.records.close();
      try {
        await this.#store.close();
      } finally {
        stopKeepingAlive();
      }
    }
  }

  /** Hands back the events that were begun. If no other process can take them, runs them to their end. */
  async #drain(): Promise<void> {
    this.#runs.startAll();
    // A connection that is still being opened would stay open.
    await this.#opening?.catch(() => {});
    await this.#acceptor.atRest();
    // A poll that is under way may still begin events. They are handed back before the store closes.
    await this.#dispatcher.atRest();
    await this.#dueWorker.atRest();
    await this.#runs.atRest();
    await this.#canary.atRest();
    if (this.#store.endsWithProcess === true && this.#runner !== null)
      await this.#runWaitingEvents(this.#runner);
    await this.#whenPruned;
  }

  /** The store ends with the process, so every waiting event gets one last attempt. */
  async #runWaitingEvents(runner: Runner): Promise<void> {
    const eventIds: string[] = [];
    for (const state of ["waiting", "retrying", "held"] as const) {
      let cursor: ListCursor | null = null;
      do {
        const page = await this.#store.list({ state }, cursor, PAGE_SIZE);
        eventIds.push(...page.events.map(({ eventId }) => eventId));
        cursor = page.next;
      } while (cursor !== null);
    }
    const worker = async (): Promise<void> => {
      for (let eventId = eventIds.shift(); eventId !== undefined; eventId = eventIds.shift()) {
        if (this.#core.isAbandoned) return;
        const { state } = await this.#runs.runNow(runner, eventId, "last", emptyContext);
        // The last attempts may have put events on hold. Their onHeld handlers run now.
        if (state === "held") await this.#runs.runNow(runner, eventId, "last", emptyContext);
      }
    };
    await Promise.all(Array.from({ length: WORKERS_AT_CLOSE }, worker));
  }

  async #countLost(): Promise<number> {
    const { waiting, retrying, running, held } = await this.#store.counts();
    return waiting + retrying + running + held;
  }
}

/** True if no other process can store events in this store. */
function isAlone({ endsWithProcess, sleeps }: RecordStore): boolean {
  return endsWithProcess === true || sleeps === true;
}

function inboxClosedError(): PayhooksError {
  return new PayhooksError("ERR_CLOSING", "The inbox is closing or closed. Nothing was accepted or run.", {
    fix: "Use it only before its receiver is closed.",
  });
}
