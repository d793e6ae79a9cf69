import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import { boundedMap } from "../bounded-map.ts";
import type { Changes } from "../changes.ts";
import { type Clock, isoTime } from "../clock.ts";
import type { FaultRegistry } from "../faults/faults.ts";
import type { Fault, FaultKind } from "../faults/kinds.ts";
import { SandboxError } from "../sandbox-error.ts";
import { type RetryPlan, retryDelayMs } from "./backoff.ts";
import type { Attempt, Delivery, DeliveryRecord, NewDelivery, SignedMessage } from "./delivery.ts";
import type { Signer } from "./signer.ts";
import type { Transport } from "./transport.ts";

export interface Dispatcher {
  /** Signs the message, puts it into the log and starts the first attempt. */
  send(delivery: NewDelivery): DeliveryRecord;
  replay(id: string, options?: { readonly resign?: boolean | undefined }): DeliveryRecord;
  get(id: string): DeliveryRecord | undefined;
  list(): DeliveryRecord[];
  /** Calls the listener after every attempt, until the returned function is called. */
  onAttempt(listener: (delivery: DeliveryRecord, attempt: Attempt) => void): () => void;
  /** Resolves when no attempt is under way. Waiting for a retry or a delay does not count as an attempt. */
  idle(): Promise<void>;
  /** Aborts the attempts that are under way, and forgets all deliveries. */
  clear(): void;
}

export interface DispatcherDependencies {
  readonly clock: Clock;
  readonly changes: Changes;
  readonly faults: FaultRegistry;
  readonly signer: Signer;
  readonly transport: Transport;
  readonly stamp: () => string;
  readonly retry: RetryPlan;
  /** `same`: retries repeat the signed bytes. `anew`: they get a new date and a new signature. */
  readonly signRetries: "same" | "anew";
  readonly seed: string;
  readonly maxDeliveries: number;
  readonly onAcknowledged: (delivery: Delivery) => void;
  /**
   * True until the sandbox has reported to anybody that the payment of this delivery succeeded. Always false for webhooks.
   */
  readonly isForgeable: (delivery: Delivery) => boolean;
  /** Lets the payment of this delivery fail. Returns the callback that announces it, from which a forgery is made. */
  readonly fail: (delivery: Delivery) => NewDelivery | null;
}

const DEFAULT_DELAY_MS = 2_000;
const DEFAULT_REORDER_MS = 5_000;

export function createDispatcher(dependencies: DispatcherDependencies): Dispatcher {
  const { clock, changes, faults, signer, transport, retry } = dependencies;
  const log = boundedMap<DeliveryRecord>(
    dependencies.maxDeliveries,
    ({ state }) => state === "delivered" || state === "gave-up",
  );
  const timers = new Map<string, () => void>();
  /** Functions that release the deliveries which a reorder fault holds back. */
  const heldBack = new Set<() => void>();
  const idleWaiters: (() => void)[] = [];
  const listeners = new Set<(delivery: DeliveryRecord, attempt: Attempt) => void>();
  let attemptsInFlight = 0;
  let sequence = 0;
  let generation = newGeneration();

  const update = (id: string, change: Partial<DeliveryRecord>): DeliveryRecord | undefined => {
    const record = log.get(id);
    if (record === undefined) return undefined;
    const next = { ...record, ...change };
    log.set(id, next);
    changes.publish("delivery", id);
    return next;
  };

  const wait = (ms: number, id: string): Promise<void> =>
    new Promise((resolve) => timers.set(id, clock.after(ms, resolve)));

  /** Waits until a later delivery has been sent, or the time is up. */
  const holdBack = (ms: number, id: string): Promise<void> =>
    new Promise((resolve) => {
      const release = () => {
        timers.get(id)?.();
        timers.delete(id);
        heldBack.delete(release);
        resolve();
      };
      timers.set(id, clock.after(ms, release));
      heldBack.add(release);
    });

  const post = async (
    record: DeliveryRecord,
    signed: SignedMessage,
    activeFaults: readonly Fault[],
    signal: AbortSignal,
  ): Promise<Omit<Attempt, "number">> => {
    const kinds = activeFaults.map(({ kind }) => kind);
    const has = (kind: FaultKind) => kinds.includes(kind);
    const at = isoTime(clock.now());
    const { url } = record;
    const { body, headers } = signed;
    const result = await transport.post({
      url,
      headers,
      body,
      signal,
      resetMidBody: has("reset"),
    });
    const isLost = has("drop-answer") && result.answer !== null;
    const status = result.answer?.status ?? 0;
    return {
      at,
      url,
      ...signed,
      answer: result.answer,
      error: isLost ? "the answer was dropped after delivery (fault)" : result.error,
      acknowledged: !isLost && status >= 200 && status < 300,
      durationMs: result.durationMs,
      faults: kinds,
    };
  };

  /**
   * Makes the attempts of one time: two for a duplicate. If the sandbox cannot sign a delivery, the attempt counts as
   * failed.
   */
  const makeAttempts = async (
    record: DeliveryRecord,
    signAnew: boolean,
    activeFaults: readonly Fault[],
    signal: AbortSignal,
  ): Promise<readonly Omit<Attempt, "number">[]> => {
    const faults = activeFaults.map(({ kind }) => kind);
    let signed = record.signed;
    try {
      const faultyMessage = await signer.signWith(record.message, activeFaults);
      signed = faultyMessage ?? (signAnew ? signer.sign(record.message, dependencies.stamp()) : signed);
    } catch (thrown) {
      const error = `the sandbox could not sign it: ${String(thrown)}`;
      const at = isoTime(clock.now());
      return [
        { at, url: record.url, ...signed, answer: null, error, acknowledged: false, durationMs: 0, faults },
      ];
    }
    const copies = faults.includes("duplicate") ? 2 : 1;
    return Promise.all(Array.from({ length: copies }, () => post(record, signed, activeFaults, signal)));
  };

  const attempt = async (id: string): Promise<void> => {
    timers.delete(id);
    let record = update(id, { state: "sending", dueAt: null, nextAttemptAt: null });
    if (record === undefined) return;
    const ownGeneration = generation;
    const number = record.attempts.length + 1;
    const key = [
      record.reference ?? record.sequence,
      record.event,
      record.status,
      record.replayOf ?? "",
      number,
    ];
    const { flow, event, reference } = record;
    const isSigned = record.signed.signature !== null;
    const isForgeable = dependencies.isForgeable(record);
    const facts = { scope: "delivery", flow, event, reference, isSigned, isForgeable } as const;
    const activeFaults = faults.fire(facts, key);
    const find = (kind: FaultKind) => activeFaults.find((fault) => fault.kind === kind);
    if (find("resplit")) record = replaceByFailed(record);

    const delay = find("delay");
    const reorder = find("reorder");
    if (delay) await wait(delay.delayMs ?? DEFAULT_DELAY_MS, id);
    if (reorder) await holdBack(reorder.delayMs ?? DEFAULT_REORDER_MS, id);

    attemptsInFlight += 1;
    try {
      const signAnew = number > 1 && dependencies.signRetries === "anew";
      const results = await makeAttempts(record, signAnew, activeFaults, ownGeneration.signal);
      if (ownGeneration !== generation) return;
      recordAttempts(id, results, key);
      if (!reorder) for (const release of [...heldBack]) release();
    } finally {
      attemptsInFlight -= 1;
      if (attemptsInFlight === 0) for (const resolve of idleWaiters.splice(0)) resolve();
    }
  };

  /** Replaces the delivery by the FAILED from which the forgery is made. Retries send that FAILED. */
  const replaceByFailed = (record: DeliveryRecord): DeliveryRecord => {
    const replacement = record.status === "FAILED" ? null : dependencies.fail(record);
    if (replacement === null) return record;
    const { status, message } = replacement;
    return update(record.id, { status, message, signed: signer.sign(message) }) ?? record;
  };

  /** Puts the attempts into the log, and decides what comes next. */
  const recordAttempts = (
    id: string,
    results: readonly Omit<Attempt, "number">[],
    key: readonly (string | number)[],
  ): void => {
    const record = log.get(id);
    if (record === undefined) return;
    const numbered = results.map((result, index) => ({
      ...result,
      number: record.attempts.length + 1 + index,
    }));
    const attempts = [...record.attempts, ...numbered];
    const next = decideNext({ ...record, attempts }, key);
    for (const attempt of numbered) {
      for (const listener of [...listeners]) {
        // It may be an async function, too.
        (async () => listener(next, attempt))().catch(warnAbout("A listener of onAttempt"));
      }
    }
  };

  const decideNext = (record: DeliveryRecord, key: readonly (string | number)[]): DeliveryRecord => {
    const { id, attempts } = record;
    if (attempts.some(({ acknowledged }) => acknowledged)) {
      const delivered = update(id, { attempts, state: "delivered" }) ?? record;
      dependencies.onAcknowledged(delivered);
      return delivered;
    }
    const delayMs = retryDelayMs(retry, attempts.length, dependencies.seed, key);
    if (delayMs === null) return update(id, { attempts, state: "gave-up" }) ?? record;
    return schedule({ ...record, state: "retrying" }, clock.now() + delayMs);
  };

  const startAttempt = (id: string): void => void attempt(id).catch(warnAbout("An attempt"));

  const schedule = (record: DeliveryRecord, dueAt: number): DeliveryRecord => {
    const next = { ...record, dueAt, nextAttemptAt: isoTime(dueAt) };
    log.set(record.id, next);
    const ms = dueAt - clock.now();
    if (ms > 0)
      timers.set(
        record.id,
        clock.after(ms, () => startAttempt(record.id)),
      );
    changes.publish("delivery", record.id);
    if (ms <= 0) startAttempt(record.id);
    return log.get(record.id) ?? next;
  };

  const add = (newDelivery: NewDelivery, signed: SignedMessage, replayOf: string | null): DeliveryRecord => {
    sequence += 1;
    const { flow, event, deduplicationKey, reference, status, url, message } = newDelivery;
    const now = clock.now();
    const base = {
      id: `dlv_${randomUUID()}`,
      sequence,
      flow,
      event,
      deduplicationKey,
      reference,
      status,
      url,
    };
    const start = { state: "scheduled" as const, createdAt: isoTime(now), nextAttemptAt: null, dueAt: null };
    return schedule({ ...base, ...start, replayOf, attempts: [], message, signed }, now);
  };

  return {
    send: (delivery) => add(delivery, signer.sign(delivery.message), null),
    replay(id, { resign = false } = {}) {
      const original = log.get(id);
      if (original === undefined) {
        throw new SandboxError("ERR_NOT_FOUND", `No delivery ${id} is in the dispatch log.`);
      }
      const signed = resign ? signer.sign(original.message, dependencies.stamp()) : original.signed;
      return add(original, signed, id);
    },
    get: (id) => log.get(id),
    list: () => log.values(),
    onAttempt(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    idle: () =>
      attemptsInFlight === 0 ? Promise.resolve() : new Promise((resolve) => idleWaiters.push(resolve)),
    clear() {
      generation.abort();
      generation = newGeneration();
      for (const cancel of timers.values()) cancel();
      timers.clear();
      heldBack.clear();
      log.clear();
      sequence = 0;
    },
  };
}

/** An uncaught error would end the process of the sandbox's user. */
function warnAbout(action: string): (error: unknown) => void {
  return (error) => process.emitWarning(`${action} failed: ${String(error)}`, "PayhooksSandboxWarning");
}

/** A reset aborts it, and with it every attempt that is under way. */
function newGeneration(): AbortController {
  const generation = new AbortController();
  setMaxListeners(0, generation.signal);
  return generation;
}
