import type { IngestResult, LookupTransaction } from "@payhooks/core";
import type { PaymentsClient } from "./client.ts";
import { ClientError } from "./errors.ts";
import type { CallOptions } from "./http/send.ts";
import type { Transaction } from "./transaction.ts";

/** The part of a receiver that accepts the results of look-ups. */
export interface LookupReceiver {
  readonly payments: {
    /** Accepts a transaction and deduplicates it, as `receiver.payments.ingest` does. */
    ingest(
      transaction: LookupTransaction,
      options?: { readonly tenant?: string | undefined },
    ): Promise<IngestResult>;
  };
}

type Texts = Iterable<string> | AsyncIterable<string>;

/** The transactions for {@link reconcile} to look up: either references or ids. */
export type PaymentToReconcile =
  | {
      readonly client: Pick<PaymentsClient, "transactionByReference">;
      /** References that have had no final callback, such as those of your open orders. */
      readonly references: Texts;
      readonly ids?: undefined;
    }
  | {
      readonly client: Pick<PaymentsClient, "transactionById">;
      /** Ids of transactions (`payTxnId`), such as the candidates of an ambiguous event. */
      readonly ids: Texts;
      readonly references?: undefined;
    };

/** The options of {@link reconcile}. */
export type ReconcileOptions = PaymentToReconcile & {
  /** How many look-ups run at the same time, from 1 to 100. Default: 4. */
  readonly concurrency?: number | undefined;
  /** The time limit of each attempt of a look-up, in milliseconds. Default: the client's. */
  readonly timeoutMs?: number | undefined;
  /** Further headers of each look-up, such as the header that names a connected merchant. */
  readonly headers?: CallOptions["headers"];
  /** Stops the run: no further look-up begins, and those under way are aborted. */
  readonly signal?: AbortSignal | undefined;
  /** The tenant whose transactions these are, for a receiver of many merchants. */
  readonly tenant?: string | undefined;
  /** Called with each result as soon as there is one. If it throws, the run stops. */
  readonly onResult?: ((result: ReconcileResult) => void | Promise<void>) | undefined;
};

/** The result for one reference, or for one id. */
export type ReconcileResult = (
  | { readonly reference: string; readonly id?: undefined }
  | { readonly id: string; readonly reference?: undefined }
) &
  (
    | {
        /** The receiver's decision: `new` and `progress` run, `duplicate` was known before, `held` waits for a person. */
        readonly outcome: IngestResult["outcome"];
        readonly eventId: string;
        readonly transaction: Transaction;
      }
    /** No callback ever has this status, so there is no event. Close the order yourself. */
    | { readonly outcome: "cancelled"; readonly transaction: Transaction }
    | { readonly outcome: "not-found" }
    | { readonly outcome: "error"; readonly error: unknown }
  );

/** The counts of one {@link reconcile}. */
export interface ReconcileReport {
  /** In the order in which they were settled. */
  readonly results: readonly ReconcileResult[];
  /** How many results have each outcome. */
  readonly counts: Readonly<Partial<Record<ReconcileResult["outcome"], number>>>;
  /**
   * Those that the service says are SUCCESS or FAILED, and the receiver knows as such: their handlers have run or will run, or
   * their events are held.
   */
  readonly settled: readonly string[];
  /** The references or ids for the next run: those that failed, and those that an abort left over. */
  readonly remaining: readonly string[];
  /** True if the signal stopped the run. An asynchronous source has then not been read to its end. */
  readonly aborted: boolean;
}

/**
 * Looks up transactions that had no final callback, or that an ambiguous event may be about, and passes them to
 * `receiver.payments.ingest`. The receiver deduplicates them, so a result that also arrives as a callback runs only
 * once. An error with one transaction does not stop the others. A run can be repeated at any time.
 *
 * @throws ClientError `ERR_OPTION_INVALID`. Apart from that, only the errors of the list or of `onResult`.
 * @example
 * const { counts, remaining } = await reconcile(receiver, { client, references: openOrders });
 */
export async function reconcile(
  receiver: LookupReceiver,
  options: ReconcileOptions,
): Promise<ReconcileReport> {
  const { concurrency = 4, timeoutMs, headers, signal, tenant, onResult } = options;
  if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > 100) {
    const problem = `concurrency is ${String(concurrency)}.`;
    throw invalidOptionError("concurrency", problem, "Give a whole number from 1 to 100.");
  }
  const { texts, lookUp, keyOf } = lookUpsOf(options);
  const source = queueOf(texts, signal);
  const results: ReconcileResult[] = [];
  const settled: string[] = [];
  const unprocessed: string[] = [];
  const failed: string[] = [];
  let fatal: { readonly error: unknown } | null = null;
  const isAborted = (): boolean => signal?.aborted === true;

  async function lookUpAndIngest(text: string): Promise<ReconcileResult> {
    try {
      const transaction = await lookUp(text, { signal, timeoutMs, headers });
      if (transaction === null) return { ...keyOf(text), outcome: "not-found" };
      const { status } = transaction;
      if (status === "CANCELLED") return { ...keyOf(text), outcome: "cancelled", transaction };
      const { outcome, eventId } = await receiver.payments.ingest(transaction, { tenant });
      const isFinal = status === "SUCCESS" || status === "FAILED";
      if (isFinal && outcome !== "expired" && outcome !== "stale") settled.push(text);
      return { ...keyOf(text), outcome, eventId, transaction };
    } catch (error) {
      return { ...keyOf(text), outcome: "error", error };
    }
  }

  async function runWorker(): Promise<void> {
    while (fatal === null && !isAborted()) {
      const { done, value: text } = await source.next();
      if (done === true) return;
      const result = await lookUpAndIngest(text);
      if (result.outcome === "error" && isAborted()) {
        unprocessed.push(text);
        return;
      }
      results.push(result);
      if (result.outcome === "error") failed.push(text);
      await onResult?.(result);
    }
  }

  try {
    const workers = Array.from({ length: concurrency }, () =>
      runWorker().catch((error: unknown) => {
        fatal ??= { error };
      }),
    );
    await Promise.all(workers);
    if (fatal !== null) throw (fatal as { readonly error: unknown }).error;
    unprocessed.push(...source.rest());
  } finally {
    await source.close();
  }
  const counts: Partial<Record<ReconcileResult["outcome"], number>> = {};
  for (const { outcome } of results) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return { results, counts, settled, remaining: [...failed, ...unprocessed], aborted: isAborted() };
}

/** The transactions to look up, and the way to do it. */
interface LookUps {
  readonly texts: Texts;
  readonly lookUp: PaymentsClient["transactionById"];
  readonly keyOf: (text: string) => { readonly reference: string } | { readonly id: string };
}

function lookUpsOf({ client, references, ids }: PaymentToReconcile): LookUps {
  if ((ids === undefined) === (references === undefined)) {
    throw invalidOptionError("ids", "reconcile needs references or ids, and not both.", "Pass one of them.");
  }
  if (ids !== undefined) {
    return {
      texts: listOf("ids", ids),
      lookUp: (id, options) => client.transactionById(id, options),
      keyOf: (id) => ({ id }),
    };
  }
  return {
    texts: listOf("references", references),
    lookUp: (reference, options) => client.transactionByReference(reference, options),
    keyOf: (reference) => ({ reference }),
  };
}

function listOf(field: "references" | "ids", texts: Texts): Texts {
  if (typeof texts !== "string") return texts;
  throw invalidOptionError(field, `${field} is one string.`, "Pass a list of one: [text].");
}

function invalidOptionError(field: string, problem: string, fix: string): ClientError {
  return new ClientError("ERR_OPTION_INVALID", problem, { fix, field });
}

/** Hands references or ids to several workers, one by one. */
interface TextQueue {
  /** The end comes after an abort, too. */
  next(): Promise<IteratorResult<string, undefined>>;
  /** Those that are left over after a stop. An asynchronous source is not read for them. */
  rest(): string[];
  /** Ends an asynchronous source. Does not wait for one that is still waiting for its next text. */
  close(): Promise<void>;
}

const END = { done: true, value: undefined } as const;

function queueOf(texts: Texts, signal: AbortSignal | undefined): TextQueue {
  if (Symbol.iterator in texts) {
    const iterator = texts[Symbol.iterator]();
    return {
      next: async () => iterator.next(),
      rest() {
        const rest: string[] = [];
        for (let next = iterator.next(); next.done !== true; next = iterator.next()) rest.push(next.value);
        return rest;
      },
      close: async () => {},
    };
  }
  const iterator = texts[Symbol.asyncIterator]();
  // Generators queue overlapping calls themselves. Other iterators may not.
  let lastCall: Promise<unknown> = Promise.resolve();
  let hasEnded = false;
  let isWaiting = false;
  const read = async (): Promise<IteratorResult<string, undefined>> => {
    if (hasEnded || signal?.aborted === true) return END;
    isWaiting = true;
    const next = await unlessAborted(iterator.next(), signal);
    if (next === null) return END;
    isWaiting = false;
    hasEnded = next.done === true;
    return next;
  };
  return {
    next() {
      const next = lastCall.then(read);
      lastCall = next.catch(() => {
        hasEnded = true;
      });
      return next;
    },
    rest: () => [],
    async close() {
      if (hasEnded) return;
      const closing = iterator.return?.();
      if (isWaiting) closing?.catch(() => {});
      else await closing;
    },
  };
}

/** Null if the signal aborts first. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T | null> {
  return new Promise((resolve, reject) => {
    const end = (): void => resolve(null);
    signal?.addEventListener("abort", end, { once: true });
    promise.then(resolve, reject).finally(() => signal?.removeEventListener("abort", end));
  });
}
