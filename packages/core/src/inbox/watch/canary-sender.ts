import { PayhooksError } from "../../protocol/errors.ts";
import { describeError } from "../../protocol/foreign-error.ts";
import { jitterOf } from "../../time/jitter.ts";
import { withTimeout } from "../../time/with-timeout.ts";
import type { DueRecord, VersionedRecord } from "../contract/store.ts";
import { canaryKey, endCanary, newCanary } from "../record/canary.ts";
import type { Dispatcher } from "../run/dispatcher.ts";
import type { InboxCore } from "../write/inbox-core.ts";
import type { StoreOperation } from "../write/store-operations.ts";

/** If an operation has had no success for this long, a canary is sent. */
const SILENCE_MS = 5_000;
/** An operation that fails is tried again about this often. */
const CANARY_PAUSE_MS = 1_000;
/** How long to wait for the store's answer: as long as a delivery would wait. */
const CANARY_TIMEOUT_MS = 2_000;
/** How long a failed write is repeated. A lost connection is often restored at once. */
const CANARY_REPEAT_MS = 300;
/** If no process takes a due canary within this time, something is wrong. Processes poll every half second. */
const CANARY_TAKE_TIMEOUT_MS = 5_000;

const ACCEPT_OPERATIONS: readonly StoreOperation[] = ["accept"];
/** The end of a canary follows when it was taken, here or in another process. */
const RUN_OPERATIONS: readonly StoreOperation[] = ["accept", "take"];

/** A canary that is due and was not ended yet. */
interface CanaryInFlight {
  readonly whenEnded: Promise<void>;
  /** Called when the canary has ended, or when the sender gives up waiting. */
  readonly end: () => void;
  isEnded: boolean;
}

/**
 * Sends a canary when no event has come for a while, or when an operation has failed. So a store that fails is noticed
 * even while no event comes.
 */
export class CanarySender {
  readonly #core: InboxCore;
  readonly #dispatcher: Dispatcher;
  /** The canaries of this process that are due. */
  readonly #flights = new Map<string, CanaryInFlight>();
  /** The write of the last canary, while the store has not answered. Until then, no other canary is sent. */
  #writing: Promise<readonly string[]> | null = null;
  /** Why this write has not succeeded so far. */
  #cause: unknown = null;
  /** Resolves once the last canary was accepted, or not. */
  #whenAccepted: Promise<unknown> = Promise.resolve();
  /** Resolves once the last canary is out of the store, or is given up. */
  #whenSent: Promise<unknown> = Promise.resolve();
  #isSending = false;
  #isRequested = false;
  #sentAt = Number.NEGATIVE_INFINITY;

  constructor(core: InboxCore, dispatcher: Dispatcher) {
    this.#core = core;
    this.#dispatcher = dispatcher;
  }

  /**
   * Watches until the inbox closes. A store that answers at once needs no watching, because it is in this process. A
   * store whose process sleeps is not watched either, because that would keep the process awake. For both, a canary is
   * sent only when a caller asks for the health.
   */
  start(): void {
    const { environment, store } = this.#core;
    if (store.immediate === true || store.sleeps === true) return;
    environment.after(this.#pauseMs() * jitterOf(environment.token()), () => {
      if (this.#core.isClosing) return;
      this.#forgetUntried();
      if (this.#isWanted(this.#testableOperations)) this.#send();
      this.start();
    });
  }

  #pauseMs(): number {
    const { operations } = this.#core;
    if (this.#isRequested || operations.failing !== null) return CANARY_PAUSE_MS;
    return Math.max(CANARY_PAUSE_MS, SILENCE_MS - operations.silentMs(this.#testableOperations));
  }

  /** The operations that a canary of this process can test now. */
  get #testableOperations(): readonly StoreOperation[] {
    return this.#dispatcher.canTake("usual") ? RUN_OPERATIONS : ACCEPT_OPERATIONS;
  }

  /** Something has failed, but not one of the operations. A canary will show whether they work. */
  request(): void {
    this.#isRequested = true;
  }

  /** Waits until `operations` says whether an event could be accepted. Usually it says so already. Never rejects. */
  async whenKnown(): Promise<void> {
    this.#forgetUntried();
    if (this.#core.store.immediate === true || this.#isWanted(ACCEPT_OPERATIONS)) this.#send();
    await this.#whenAccepted;
  }

  /** Ends the canary that a poll has found. It may be one of another process, even of one that has died. */
  async endTaken(due: DueRecord): Promise<void> {
    const { operations } = this.#core;
    operations.recordCanarySuccess("take");
    try {
      await this.#end(due.key, due);
      operations.recordCanarySuccess("end");
    } catch (error) {
      operations.recordCanaryFailure("end", error);
    }
    const flight = this.#flights.get(due.key);
    if (flight === undefined) return;
    flight.isEnded = true;
    flight.end();
  }

  /** Stops waiting for canaries. */
  stop(): void {
    this.#core.operations.close();
    for (const { end } of this.#flights.values()) end();
  }

  /** Resolves once the canaries of this process are removed from the store, or cannot be. Only after {@link stop}. */
  async atRest(): Promise<void> {
    await this.#whenSent;
  }

  /** While this process takes nothing, no canary of it can show that events can be taken again. */
  #forgetUntried(): void {
    if (!this.#dispatcher.canTake("usual")) this.#core.operations.forgetOldFailure("take");
  }

  #isWanted(operations: readonly StoreOperation[]): boolean {
    const storeOperations = this.#core.operations;
    return (
      this.#isRequested ||
      storeOperations.failing !== null ||
      storeOperations.silentMs(operations) >= SILENCE_MS
    );
  }

  #send(): void {
    const { environment, store } = this.#core;
    const now = environment.monotonic();
    if (this.#isSending || (store.immediate !== true && now < this.#sentAt + CANARY_PAUSE_MS / 2)) return;
    this.#isSending = true;
    this.#isRequested = false;
    this.#sentAt = now;
    const accepting = this.#accept();
    this.#whenAccepted = accepting;
    this.#whenSent = accepting
      .then((keys) => Promise.all(keys.map((key) => this.#follow(key))))
      .finally(() => {
        this.#isSending = false;
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
      const keys = await withTimeout(
        environment,
        CANARY_TIMEOUT_MS,
        () => writing,
        () => noAnswerError(this.#cause),
      );
      operations.recordCanarySuccess("accept");
      return keys;
    } catch (error) {
      operations.recordCanaryFailure("accept", error);
      return [];
    }
  }

  async #write(): Promise<readonly string[]> {
    const { environment, store } = this.#core;
    this.#cause = null;
    const token = environment.token();
    const keys = (await store.canaryKeys?.(token)) ?? [canaryKey(token)];
    // If no process takes events, a canary is only written and removed.
    const isDue = this.#dispatcher.isStarted;
    if (isDue) for (const key of keys) this.#flights.set(key, newCanaryInFlight());
    try {
      const versions = await Promise.all(keys.map((key) => this.#put(key, isDue)));
      await store.replicated?.(versions);
    } catch (error) {
      // If it was written after all, a process takes it.
      for (const key of keys) this.#flights.delete(key);
      throw error;
    }
    return keys;
  }

  async #put(key: string, isDue: boolean): Promise<{ readonly key: string; readonly version: string }> {
    const { version } = await this.#core.records.change<void>({
      key,
      guess: null,
      deadlineMs: CANARY_REPEAT_MS,
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

  /** Waits until any process has taken and ended a canary. A canary that no process should take is removed at once. */
  async #follow(key: string): Promise<void> {
    const { operations, environment } = this.#core;
    const flight = this.#flights.get(key);
    const wasTaking = flight !== undefined && this.#dispatcher.canTake("usual");
    if (wasTaking) {
      this.#dispatcher.wake(0);
      await withTimeout(
        environment,
        CANARY_TAKE_TIMEOUT_MS,
        () => this.#whenTaken(key, flight),
        notTakenError,
      ).catch(() => {});
    }
    this.#flights.delete(key);
    if (flight?.isEnded === true) return;
    try {
      const wasThere = await this.#end(key);
      if (!wasTaking || this.#core.isClosing) return;
      if (!wasThere) operations.recordCanarySuccess("take");
      // A failed poll reports its own reason. If no place is free, a process takes nothing, although nothing is wrong.
      else if (this.#dispatcher.canTake("usual") && operations.failing === null)
        operations.recordCanaryFailure("take", notTakenError());
    } catch {
      // The canary expires, or a process takes it. The next canary shows whether the store works.
    }
  }

  /** Waits until a canary was taken. If this process takes it, it knows at once. Otherwise it asks the store. */
  async #whenTaken(key: string, flight: CanaryInFlight): Promise<void> {
    const { environment, store } = this.#core;
    for (;;) {
      await withTimeout(environment, CANARY_PAUSE_MS, () => flight.whenEnded, notTakenError).catch(() => {});
      if (flight.isEnded || this.#core.isClosing || !this.#flights.has(key)) return;
      try {
        const [canary = null] = await store.read([key]);
        if (canary === null) return;
      } catch {
        // The next poll says why.
      }
    }
  }

  /** False if it was ended before. */
  async #end(key: string, guess?: VersionedRecord): Promise<boolean> {
    const { answer } = await this.#core.records.change<boolean>({
      key,
      guess,
      deadlineMs: CANARY_REPEAT_MS,
      change: (record, now) =>
        record === null ? { answer: false, record } : { answer: true, record: endCanary(record, now) },
    });
    return answer;
  }
}

function newCanaryInFlight(): CanaryInFlight {
  let end = (): void => {};
  const whenEnded = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { whenEnded, end, isEnded: false };
}

function noAnswerError(cause: unknown): PayhooksError {
  const last = cause === null ? "" : ` (${describeError(cause)})`;
  return new PayhooksError(
    "ERR_INBOX_UNAVAILABLE",
    `The store has not answered within ${CANARY_TIMEOUT_MS} ms${last}.`,
  );
}

function notTakenError(): PayhooksError {
  return new PayhooksError(
    "ERR_INBOX_UNAVAILABLE",
    `A record that was due was not handed out within ${CANARY_TAKE_TIMEOUT_MS} ms.`,
    { fix: "Check whether an index of the store is damaged, or another program locks its rows." },
  );
}
