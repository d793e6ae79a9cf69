/**
 * Looks up open payments again and again, so that a callback that never comes is noticed. One process at a time does
 * so: the process that has a lease of the receiver's inbox. The state that must survive it (whose turn it is, who was
 * given up) is in the lease's note.
 */
import type { LeaseView, NamedLease } from "@payhooks/core";
import type { PaymentsClient } from "./client.ts";
import { type Clock, quietClock, sleep } from "./clock.ts";
import { ClientError } from "./errors.ts";
import type { CallOptions } from "./http/send.ts";
import { kindOf } from "./kind-of.ts";
import { limitedCall } from "./limited-call.ts";
import { type LookupReceiver, type ReconcileResult, reconcile } from "./reconcile.ts";
import { emptyNote, type Mark, markOf, noteIn, recordGivenUp, textOf, type WatchNote } from "./watch-note.ts";

/** The lease that all watchers of one inbox share. The console looks at its note. */
const WATCH_LEASE = "payhooks-missed-callbacks";
const LEASE_LENGTH_MS = 60_000;
/** A process that finds the lease taken asks again after this time at most. */
const LEASE_RECHECK_MS = 30_000;
/** How long `open`, `onResult` and `onGivenUp` may take. Without a limit, the lease would be kept for a call that never ends. */
const CALL_TIMEOUT_MS = 10 * 60_000;
/** How long `onResult` and `onGivenUp` may still take after a stop, so that their end is noted. */
const CALLBACK_GRACE_MS = 5_000;

/** The part of a receiver that {@link watch} needs. */
export interface WatchedReceiver extends LookupReceiver {
  /** Takes the lease of a task, as `receiver.lease` does. */
  lease(name: string, lengthMs: number): Promise<NamedLease | null>;
  /** The note of a task, as `receiver.viewLease` gives it. */
  viewLease(name: string): Promise<LeaseView | null>;
}

/** A payment that has had no final callback. */
export interface OpenPayment {
  /** Your reference of the payment. */
  readonly reference: string;
  /** When you sent the payment to the service: a `Date`, or milliseconds since the epoch. */
  readonly since: Date | number;
  /** The tenant whose payment it is, for a receiver of many merchants. */
  readonly tenant?: string | undefined;
}

/** The options of {@link watch}. */
export interface WatchOptions {
  /** Looks payments up. */
  readonly client: Pick<PaymentsClient, "transactionByReference">;
  /** Your payments that are still open, however old. Called once in each round, in one process. */
  readonly open: () =>
    | Iterable<OpenPayment>
    | AsyncIterable<OpenPayment>
    | Promise<Iterable<OpenPayment> | AsyncIterable<OpenPayment>>;
  /** The pause between the end of a round and the next round. Default: 5 minutes. */
  readonly everyMs?: number | undefined;
  /**
   * How old a payment must be before it is looked up. Default: 15 minutes. A payment dated more than this in the future
   * is looked up too, since its clock was wrong.
   */
  readonly minAgeMs?: number | undefined;
  /** How old a payment must be before it is given up. It is looked up once more before that. Default: 3 days. */
  readonly giveUpAfterMs?: number | undefined;
  /**
   * Called when a payment is given up, with the last look-up, which has succeeded. It is not looked up any more. If
   * this throws, or the process dies in it, the payment is looked up and this is called again in the next round.
   */
  readonly onGivenUp: (payment: OpenPayment, last: ReconcileResult) => void | Promise<void>;
  /** How many look-ups there are in a minute at most. Default: 60. */
  readonly perMinute?: number | undefined;
  /** The time limit of each attempt of a look-up, in milliseconds. Default: the client's. */
  readonly timeoutMs?: number | undefined;
  /** Further headers of a look-up, such as a header that names a connected merchant. */
  readonly headers?: ((payment: OpenPayment) => CallOptions["headers"]) | undefined;
  /** Called with the result of each look-up. If it throws, the payment is looked up again in the next round. */
  readonly onResult?: ((result: ReconcileResult, payment: OpenPayment) => void | Promise<void>) | undefined;
  /**
   * Called if a round fails, such as when `open` throws, and for each payment that is left for the next round: because
   * `headers`, `onResult` or `onGivenUp` throws for it, its `since` is not a time or its reference is not text. The round
   * continues with the other payments. At the end of a round whose look-ups failed, it is called once, with
   * `ERR_LOOKUP_FAILED`. If `open`, `onResult` or `onGivenUp` has not settled after 10 minutes, the error is `ERR_TIMEOUT`.
   * Default: a line on stderr that names the error and its cause, without their messages.
   */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** The source of time. Default: the platform's clock. Its timers do not keep the process alive. */
  readonly clock?: Clock | undefined;
}

/** A running {@link watch}. */
export interface Watch {
  /**
   * Begins no further look-up, aborts the current look-up, and lets another process continue. A call of `onResult` or
   * `onGivenUp` has five seconds to settle. Call it before `receiver.close()`.
   */
  stop(): Promise<void>;
}

const OPTION_NAMES: { readonly [Name in keyof Required<WatchOptions>]: true } = {
  client: true,
  open: true,
  everyMs: true,
  minAgeMs: true,
  giveUpAfterMs: true,
  onGivenUp: true,
  perMinute: true,
  timeoutMs: true,
  headers: true,
  onResult: true,
  onError: true,
  clock: true,
};

const MINUTE_MS = 60_000;

/**
 * Begins to watch for callbacks that never come. Every `everyMs`, one of all processes on the receiver's inbox asks for
 * your open payments, looks up those that are old enough, and passes the results to `receiver.payments.ingest`, as
 * {@link reconcile} does. So a handler runs once, even if the callback comes after all. Call it in every process, once
 * for each inbox.
 *
 * @throws ClientError `ERR_OPTION_INVALID`.
 * @example
 * const watching = watch(receiver, { client, open: () => orders.open(), onGivenUp: ({ reference }) => orders.review(reference) });
 */
export function watch(receiver: WatchedReceiver, options: WatchOptions): Watch {
  const settings = settingsOf(options);
  const stopping = new AbortController();
  const { signal } = stopping;
  const { clock, onError } = settings;

  async function run(): Promise<void> {
    while (!signal.aborted) {
      let waitMs = settings.everyMs;
      try {
        waitMs = await runRoundIfDue(receiver, settings, signal);
      } catch (error) {
        if (isClosing(error)) return;
        reportError(onError, error);
      }
      await sleep(clock, Math.max(waitMs, 1), signal);
    }
  }

  const running = run();
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/** Does a round if one is due and no other process does it. Resolves to the time until the next question. */
async function runRoundIfDue(
  receiver: WatchedReceiver,
  settings: Settings,
  signal: AbortSignal,
): Promise<number> {
  const { clock, everyMs } = settings;
  // A time that is further away than `everyMs` was written by a clock that was ahead, or with a longer `everyMs`.
  const leftOf = ({ nextAt }: WatchNote): number => {
    const leftMs = nextAt - clock.now();
    return leftMs > everyMs ? 0 : leftMs;
  };
  const view = await receiver.viewLease(WATCH_LEASE);
  if (view?.isTaken === true) return Math.min(everyMs, LEASE_RECHECK_MS);
  if (view !== null && leftOf(noteIn(view.note)) > 0) return leftOf(noteIn(view.note));
  const lease = await receiver.lease(WATCH_LEASE, LEASE_LENGTH_MS);
  if (lease === null) return Math.min(everyMs, LEASE_RECHECK_MS);
  const note = noteIn(lease.note);
  if (leftOf(note) > 0) {
    await lease.end(lease.note);
    return leftOf(note);
  }
  return new WatchRound(receiver, settings, signal, lease, note).run();
}

/** An open payment, and its mark in the note of the lease. */
interface Candidate {
  readonly payment: OpenPayment;
  readonly mark: Mark;
}

class WatchRound {
  readonly #receiver: WatchedReceiver;
  readonly #settings: Settings;
  readonly #lease: NamedLease;
  /** Aborted when the watch stops, or the lease is lost. */
  readonly #roundAbort = new AbortController();
  readonly #stop: AbortSignal;
  #note: WatchNote;
  /** The error of the first look-up that failed. */
  #firstFailure: { readonly error: unknown } | null = null;
  #renewedAt: number;
  #cancelRenewal = (): void => {};

  constructor(
    receiver: WatchedReceiver,
    settings: Settings,
    stop: AbortSignal,
    lease: NamedLease,
    note: WatchNote,
  ) {
    this.#receiver = receiver;
    this.#settings = settings;
    this.#stop = stop;
    this.#lease = lease;
    this.#renewedAt = settings.clock.now();
    const { givenUp, last } = note;
    this.#note = { ...emptyNote(), givenUp, last, beganAt: this.#renewedAt };
  }

  async run(): Promise<number> {
    const { clock, everyMs } = this.#settings;
    const end = (): void => this.#roundAbort.abort();
    this.#stop.addEventListener("abort", end, { once: true });
    if (this.#stop.aborted) end();
    this.#scheduleRenewal();
    const errors: unknown[] = [];
    await this.#lookUpAll().catch((error) => {
      if (this.#isAbort(error)) return;
      this.#note.trouble = nameOf(error);
      errors.push(error);
    });
    this.#cancelRenewal();
    this.#stop.removeEventListener("abort", end);
    const isComplete = !this.#roundAbort.signal.aborted;
    // A round that was broken off is continued at once by another process.
    if (isComplete) {
      this.#note.endedAt = clock.now();
      this.#note.nextAt = clock.now() + everyMs;
      this.#note.last = null;
    }
    this.#reportFailures();
    // If the inbox fails too, the first error says more.
    await this.#lease.end(textOf(this.#note)).catch((error) => errors.push(error));
    if (errors.length > 0) throw errors[0];
    return everyMs;
  }

  async #lookUpAll(): Promise<void> {
    const { clock, minAgeMs, perMinute } = this.#settings;
    const payments = await this.#readOpen();
    // Once a payment is no longer open, it does not matter any more that it was given up.
    const marks = new Set(payments.map(({ mark }) => mark));
    this.#note.givenUp = this.#note.givenUp.filter((mark) => marks.has(mark));
    // A payment that is dated far ahead may be of any age: the clock that dated it was wrong.
    const due = payments.filter(
      ({ payment, mark }) => Math.abs(this.#ageOf(payment)) >= minAgeMs && !this.#note.givenUp.includes(mark),
    );
    this.#note.open = payments.length;
    this.#note.due = due.length;
    // The payments that the last round did not reach, since it was broken off, come first.
    const reachedCount = due.findIndex(({ mark }) => mark === this.#note.last) + 1;
    const inOrder = [...due.slice(reachedCount), ...due.slice(0, reachedCount)];
    for (const [index, candidate] of inOrder.entries()) {
      if (index > 0) await sleep(clock, MINUTE_MS / perMinute, this.#roundAbort.signal);
      if (this.#roundAbort.signal.aborted) return;
      if (!(await this.#handlePayment(candidate))) continue;
      recordGivenUp(this.#note, candidate.mark);
      if (!(await this.#lease.renew(textOf(this.#note)))) this.#roundAbort.abort();
    }
  }

  /** The open payments that can be looked up. */
  async #readOpen(): Promise<readonly Candidate[]> {
    const { open, onError } = this.#settings;
    let isAwaited = true;
    const read = async (): Promise<readonly Candidate[]> => {
      const payments: Candidate[] = [];
      for await (const payment of await open()) {
        if (!isAwaited) break;
        const problem = paymentErrorOf(payment);
        if (problem === null) payments.push({ payment, mark: markOf(payment) });
        else reportError(onError, problem);
      }
      return payments;
    };
    try {
      return await this.#callOwn("open", read, 0);
    } finally {
      isAwaited = false;
    }
  }

  #callOwn<T>(name: string, call: () => T | Promise<T>, graceMs = CALLBACK_GRACE_MS): Promise<T> {
    const { clock } = this.#settings;
    const { signal } = this.#roundAbort;
    return limitedCall(`${name} of watch`, call, { clock, timeoutMs: CALL_TIMEOUT_MS, signal, graceMs });
  }

  /** True if a call was not waited for, because the watch stops or the lease is lost. */
  #isAbort(error: unknown): boolean {
    const { aborted, reason } = this.#roundAbort.signal;
    return aborted && error === reason;
  }

  /**
   * Looks up one payment, and calls `onResult` or `onGivenUp`. If one of them throws, or takes too long, the payment is looked up again in
   * the next round, and the other payments are still looked up in this round. Resolves to true if it was given up.
   */
  async #handlePayment({ payment, mark }: Candidate): Promise<boolean> {
    const { giveUpAfterMs, onGivenUp, onError } = this.#settings;
    try {
      const result = await this.#lookUp(payment);
      if (result === null) return false;
      this.#note.last = mark;
      if (result.isFinal || result.outcome === "error" || this.#ageOf(payment) < giveUpAfterMs) return false;
      await this.#callOwn("onGivenUp", () => onGivenUp(payment, result.result));
      return true;
    } catch (error) {
      this.#note.last = mark;
      if (this.#isAbort(error)) return false;
      this.#note.trouble = nameOf(error);
      reportError(onError, error);
      return false;
    }
  }

  #ageOf({ since }: OpenPayment): number {
    return this.#settings.clock.now() - millisecondsOf(since);
  }

  /** Null if it was aborted. */
  async #lookUp(payment: OpenPayment) {
    const { client, timeoutMs, headers, onResult } = this.#settings;
    const { results, settled } = await reconcile(this.#receiver, {
      client,
      references: [payment.reference],
      concurrency: 1,
      timeoutMs,
      headers: headers?.(payment),
      tenant: payment.tenant,
      signal: this.#roundAbort.signal,
    });
    const [result] = results;
    if (result === undefined) return null;
    const { outcome } = result;
    if (outcome === "error") {
      this.#firstFailure ??= { error: result.error };
      this.#note.trouble = nameOf(result.error);
    }
    this.#note.counts[outcome] = (this.#note.counts[outcome] ?? 0) + 1;
    if (onResult !== undefined) await this.#callOwn("onResult", () => onResult(result, payment));
    return { result, outcome, isFinal: settled.length > 0 };
  }

  /** Once in a round, since a service that is away fails every look-up. */
  #reportFailures(): void {
    if (this.#firstFailure === null) return;
    const { error } = this.#firstFailure;
    const { counts } = this.#note;
    const lookUps = Object.values(counts).reduce((sum, count) => sum + count, 0);
    const problem = `${counts.error} of ${lookUps} look-ups failed, the first of them with ${nameOf(error)}.`;
    const fix =
      "See its cause. Until they succeed, nobody knows how these payments have ended, and none of them is given up.";
    reportError(this.#settings.onError, new ClientError("ERR_LOOKUP_FAILED", problem, { fix, cause: error }));
  }

  /** Keeps the lease while the round lasts. */
  #scheduleRenewal(): void {
    this.#cancelRenewal = this.#settings.clock.after(LEASE_LENGTH_MS / 3, () => void this.#renewLease());
  }

  async #renewLease(): Promise<void> {
    const { clock } = this.#settings;
    try {
      if (await this.#lease.renew(textOf(this.#note))) this.#renewedAt = clock.now();
      else this.#roundAbort.abort();
    } catch {
      // The store does not answer. Once the lease is over, another process may have it.
      if (clock.now() - this.#renewedAt > LEASE_LENGTH_MS / 2) this.#roundAbort.abort();
    }
    if (!this.#roundAbort.signal.aborted && this.#note.endedAt === null) this.#scheduleRenewal();
  }
}

/**
 * The error of a payment that cannot be looked up, or whose age is unknown: it would be given up at once. Null if it is right.
 */
function paymentErrorOf(payment: unknown): ClientError | null {
  if (typeof payment !== "object" || payment === null) {
    return wrongPaymentError("open", `An open payment is ${kindOf(payment)}.`);
  }
  const { reference, since, tenant } = payment as Readonly<Record<string, unknown>>;
  if (typeof reference !== "string") {
    return wrongPaymentError("reference", `reference of an open payment is ${kindOf(reference)}.`);
  }
  const quotedReference = JSON.stringify(reference.slice(0, 100));
  if (tenant !== undefined && tenant !== null && typeof tenant !== "string") {
    return wrongPaymentError("tenant", `tenant of the open payment ${quotedReference} is ${kindOf(tenant)}.`);
  }
  if (Number.isFinite(millisecondsOf(since))) return null;
  const sinceText =
    typeof since === "number" || since instanceof Date ? millisecondsOf(since) : kindOf(since);
  return wrongPaymentError("since", `since of the open payment ${quotedReference} is ${sinceText}.`);
}

function wrongPaymentError(field: string, problem: string): ClientError {
  const fix =
    "Give { reference, since }, with since as a Date or in milliseconds. It is left out until then.";
  return invalidOptionError(field, problem, fix);
}

/** In milliseconds since the epoch; NaN for a value that is neither a date nor a number. A date may come from another realm. */
function millisecondsOf(since: unknown): number {
  try {
    const time: unknown = Object(since).valueOf();
    return typeof time === "number" ? time : Number.NaN;
  } catch {
    return Number.NaN;
  }
}

type DefaultedOption = "everyMs" | "minAgeMs" | "giveUpAfterMs" | "perMinute" | "onError" | "clock";
/** The options, with the defaults filled in. */
type Settings = Omit<WatchOptions, DefaultedOption> & {
  readonly [Name in DefaultedOption]: NonNullable<WatchOptions[Name]>;
};

function settingsOf(options: WatchOptions): Settings {
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(OPTION_NAMES, name)) {
      throw invalidOptionError(
        name,
        `${name} is not an option of watch.`,
        `The options are ${Object.keys(OPTION_NAMES).join(", ")}.`,
      );
    }
  }
  for (const name of ["open", "onGivenUp"] as const) {
    if (typeof options[name] !== "function") {
      throw invalidOptionError(name, `${name} is not a function.`, `Give watch a function as ${name}.`);
    }
  }
  const numberOf = (name: "everyMs" | "minAgeMs" | "giveUpAfterMs" | "perMinute", by: number): number => {
    const value = options[name] ?? by;
    if (Number.isFinite(value) && value > 0) return value;
    throw invalidOptionError(name, `${name} is ${String(value)}.`, "Give a finite number above zero.");
  };
  return {
    ...options,
    everyMs: numberOf("everyMs", 5 * MINUTE_MS),
    minAgeMs: numberOf("minAgeMs", 15 * MINUTE_MS),
    giveUpAfterMs: numberOf("giveUpAfterMs", 3 * 24 * 60 * MINUTE_MS),
    perMinute: numberOf("perMinute", 60),
    onError: options.onError ?? writeLine,
    clock: options.clock ?? quietClock,
  };
}

/** Names an error without its message, since the message may name a customer. */
function nameOf(error: unknown): string {
  const { name, code } = (error ?? {}) as { readonly name?: unknown; readonly code?: unknown };
  const words = [name, code].filter((word) => typeof word === "string" && word !== "").join(" ");
  // It goes into the note of a lease, which has little room.
  return words.slice(0, 200) || "an error";
}

function writeLine(error: unknown): void {
  const field = error instanceof ClientError && error.field !== undefined ? ` (${error.field})` : "";
  const cause =
    error instanceof Error && error.cause !== undefined ? `, because of ${nameOf(error.cause)}` : "";
  console.error(`payhooks: watch: ${nameOf(error)}${field}${cause}. The next round comes as usual.`);
}

function reportError(onError: (error: unknown) => void, error: unknown): void {
  // It may be an async function, whose rejection would end the process.
  (async () => onError(error))().catch(writeLine);
}

function isClosing(error: unknown): boolean {
  return (error as { readonly code?: unknown } | null)?.code === "ERR_CLOSING";
}

function invalidOptionError(field: string, problem: string, fix: string): ClientError {
  return new ClientError("ERR_OPTION_INVALID", problem, { fix, field });
}
