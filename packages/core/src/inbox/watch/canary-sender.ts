import { PayhooksError } from "../../protocol/errors.ts";
import { describeError } from "../../protocol/foreign-error.ts";
import { inTime } from "../../time/in-time.ts";
import { spreadOf } from "../../time/spread.ts";
import type { DueRecord, Versioned } from "../contract/store.ts";
import { canaryKey, endedCanary, newCanary } from "../record/canary.ts";
import type { Dispatcher } from "../run/dispatcher.ts";
import type { InboxCore } from "../write/inbox-core.ts";
import type { StoreOperation } from "../write/store-operations.ts";

/** When nothing has shown for this long that an operation works, a canary is sent. */
const SILENCE_MS = 5_000;
/** An operation that fails is tried again about this often. */
const CANARY_AGAIN_MS = 1_000;
/** An answer of the store is waited for no longer than a delivery would wait. */
const CANARY_LIMIT_MS = 2_000;
/** A write that fails is repeated for as long, since a connection that was lost is often there again at once. */
const REPEATED_FOR_MS = 300;
/** A canary that is due is taken within this time, unless something is wrong. Processes poll every half second. */
const TAKEN_WITHIN_MS = 5_000;

const ACCEPTING: readonly StoreOperation[] = ["accept"];
/** The end of a canary follows when it was taken, here or in another process. */
const RUNNING: readonly StoreOperation[] = ["accept", "take"];

/** A canary that is due and was not ended yet. */
interface CanaryInFlight {
  readonly ended: Promise<void>;
  /** Called when it has ended, or when it has been waited for long enough. */
  readonly end: () => void;
  isEnded: boolean;
}

/**
 * Sends a canary when nothing real has happened for a while, or something has failed. So a store that no longer does what an
 * event needs is noticed although no event comes.
 */
export class CanarySender {
  readonly #core: InboxCore;
  readonly #dispatcher: Dispatcher;
  /** The canaries of this process that are due. */
  readonly #flights = new Map<string, CanaryInFlight>();
  /** The write of the last canary, if the store has not answered it. Then it gets no other one. */
  #writing: Promise<readonly string[]> | null = null;
  /** Why that write was not made so far. */
  #cause: unknown = null;
  /** Resolves once the last canary was accepted, or not. */
  #accepted: Promise<unknown> = Promise.resolve();
  /** Resolves once the last canary is out of the store, or is given up. */
  #sent: Promise<unknown> = Promise.resolve();
  #isAway = false;
  #isSuspected = false;
  #sentAt = Number.NEGATIVE_INFINITY;

  constructor(core: InboxCore, dispatcher: Dispatcher) {
    this.#core = core;
    this.#dispatcher = dispatcher;
  }

  /**
   * Watches until the inbox closes. A store that answers at once is in this process, and is only asked for the health. So is one whose
   * process would be kept awake.
   */
  start(): void {
    const { environment, store } = this.#core;
    if (store.immediate === true || store.sleeps === true) return;
    environment.after(this.#pauseMs() * spreadOf(environment.token()), () => {
      if (this.#core.isClosing) return;
      if (this.#isWanted(this.#shown)) this.#send();
      this.start();
    });
  }

  #pauseMs(): number {
    const { operations } = this.#core;
    if (this.#isSuspected || operations.failing !== null) return CANARY_AGAIN_MS;
    return Math.max(CANARY_AGAIN_MS, SILENCE_MS - operations.silentMs(this.#shown));
  }

  /** The operations that canaries of this process can show now. */
  get #shown(): readonly StoreOperation[] {
    return this.#dispatcher.canTake("usual") ? RUNNING : ACCEPTING;
  }

  /** Something has failed that says nothing about a single operation. A canary will show more. */
  suspect(): void {
    this.#isSuspected = true;
  }

  /** Waits until it is known whether an event could be accepted. Usually it is known. Never rejects: `operations` has the answer. */
  async known(): Promise<void> {
    if (this.#core.store.immediate === true || this.#isWanted(ACCEPTING)) this.#send();
    await this.#accepted;
  }

  /** Ends the canary that a poll has found. It may be one of another process, even of one that has died. */
  async taken(due: DueRecord): Promise<void> {
    const { operations } = this.#core;
    operations.canaryPassed("take");
    try {
      await this.#end(due.key, due);
      operations.canaryPassed("end");
    } catch (error) {
      operations.canaryFailed("end", error);
    }
    const flight = this.#flights.get(due.key);
    if (flight === undefined) return;
    flight.isEnded = true;
    flight.end();
  }

  /** Waits for no canary any more. */
  stop(): void {
    this.#core.operations.close();
    for (const { end } of this.#flights.values()) end();
  }

  /** Resolves once no canary of this process is in the store any more, or none can be removed. Only after {@link stop}. */
  async atRest(): Promise<void> {
    await this.#sent;
  }

  #isWanted(operations: readonly StoreOperation[]): boolean {
    const known = this.#core.operations;
    return this.#isSuspected || known.failing !== null || known.silentMs(operations) >= SILENCE_MS;
  }

  #send(): void {
    const { environment, store } = this.#core;
    const now = environment.monotonic();
    if (this.#isAway || (store.immediate !== true && now < this.#sentAt + CANARY_AGAIN_MS / 2)) return;
    this.#isAway = true;
    this.#isSuspected = false;
    this.#sentAt = now;
    const accepting = this.#accept();
    this.#accepted = accepting;
    this.#sent = accepting
      .then((keys) => Promise.all(keys.map((key) => this.#follow(key))))
      .finally(() => {
        this.#isAway = false;
      });
  }

  /** Resolves to the keys that were written, or to none. */
  async #accept(): Promise<readonly string[]> {
    const { operations, environment } = this.#core;
    try {
      this.#writing ??= this.#write().finally(() => {
        this.#writing = null;
      });
      const writing = this.#writing;
      const keys = await inTime(
        environment,
        CANARY_LIMIT_MS,
        () => writing,
        () => noAnswer(this.#cause),
      );
      operations.canaryPassed("accept");
      return keys;
    } catch (error) {
      operations.canaryFailed("accept", error);
      return [];
    }
  }

  async #write(): Promise<readonly string[]> {
    const { environment, store } = this.#core;
    this.#cause = null;
    const token = environment.token();
    const keys = (await store.canaryKeys?.(token)) ?? [canaryKey(token)];
    // Where no process takes anything, a canary is only written and removed.
    const isDue = this.#dispatcher.isStarted;
    if (isDue) for (const key of keys) this.#flights.set(key, newCanaryInFlight());
    try {
      const written = await Promise.all(keys.map((key) => this.#put(key, isDue)));
      await store.settled?.(written);
    } catch (error) {
      // If it was written all the same, somebody takes it.
      for (const key of keys) this.#flights.delete(key);
      throw error;
    }
    return keys;
  }

  async #put(key: string, isDue: boolean): Promise<{ readonly key: string; readonly version: string }> {
    const { version } = await this.#core.records.change<void>({
      key,
      guess: null,
      deadlineMs: REPEATED_FOR_MS,
      onFailure: (cause) => {
        this.#cause = cause;
      },
      change: (record, now) => ({
        answer: undefined,
        record: record === null ? newCanary(now, isDue) : null,
      }),
    });
    return { key, version: version ?? "" };
  }

  /** Waits until a canary is taken and ended, by whichever process. One that nobody is to take is removed at once. */
  async #follow(key: string): Promise<void> {
    const { operations, environment } = this.#core;
    const flight = this.#flights.get(key);
    const wasTaking = flight !== undefined && this.#dispatcher.canTake("usual");
    if (wasTaking) {
      this.#dispatcher.wake(0);
      await inTime(environment, TAKEN_WITHIN_MS, () => this.#taken(key, flight), notTaken).catch(() => {});
    }
    this.#flights.delete(key);
    if (flight?.isEnded === true) return;
    try {
      const wasThere = await this.#end(key);
      if (!wasTaking || this.#core.isClosing) return;
      if (!wasThere) operations.canaryPassed("take");
      // A poll that fails tells its own reason. Without a free place, nothing is taken, and nothing is wrong.
      else if (this.#dispatcher.canTake("usual") && operations.failing === null)
        operations.canaryFailed("take", notTaken());
    } catch {
      // It expires, or somebody takes it. The next canary shows what the store does.
    }
  }

  /** Waits until a canary was taken. This process hears of one that it takes itself; it asks the store about any other. */
  async #taken(key: string, flight: CanaryInFlight): Promise<void> {
    const { environment, store } = this.#core;
    for (;;) {
      await inTime(environment, CANARY_AGAIN_MS, () => flight.ended, notTaken).catch(() => {});
      if (flight.isEnded || this.#core.isClosing || !this.#flights.has(key)) return;
      try {
        const [found = null] = await store.read([key]);
        if (found === null) return;
      } catch {
        // The next poll says why.
      }
    }
  }

  /** False if it was ended before. */
  async #end(key: string, guess?: Versioned): Promise<boolean> {
    const { answer } = await this.#core.records.change<boolean>({
      key,
      guess,
      deadlineMs: REPEATED_FOR_MS,
      change: (record, now) =>
        record === null ? { answer: false, record } : { answer: true, record: endedCanary(record, now) },
    });
    return answer;
  }
}

function newCanaryInFlight(): CanaryInFlight {
  let end = (): void => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { ended, end, isEnded: false };
}

function noAnswer(cause: unknown): PayhooksError {
  const last = cause === null ? "" : ` (${describeError(cause)})`;
  return new PayhooksError(
    "ERR_INBOX_UNAVAILABLE",
    `The store has not answered within ${CANARY_LIMIT_MS} ms${last}.`,
  );
}

function notTaken(): PayhooksError {
  return new PayhooksError(
    "ERR_INBOX_UNAVAILABLE",
    `A record that was due was not handed out within ${TAKEN_WITHIN_MS} ms.`,
    { fix: "Is an index of the store damaged, or are its rows locked by another program?" },
  );
}
