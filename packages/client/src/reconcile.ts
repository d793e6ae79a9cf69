import type { Ingested, LookupTransaction } from "@payhooks/core";
import type { PaymentsClient } from "./client.ts";
import { ClientError } from "./errors.ts";
import type { Transaction } from "./transaction.ts";

/** The part of a receiver that accepts the results of look-ups. */
export interface LookupSink {
  readonly payments: {
    /** Accepts a transaction and deduplicates it, as `receiver.payments.ingest` does. */
    ingest(
      transaction: LookupTransaction,
      options?: { readonly tenant?: string | undefined },
    ): Promise<Ingested>;
  };
}

/** The options of {@link reconcile}. */
export interface ReconcileOptions {
  readonly client: Pick<PaymentsClient, "transactionByReference">;
  /** References that have had no final callback, such as those of your open orders. */
  readonly references: Iterable<string> | AsyncIterable<string>;
  /** How many look-ups run at the same time, from 1 to 100. Default: 4. */
  readonly concurrency?: number | undefined;
  /** The time limit of each attempt of a look-up, in milliseconds. Default: the client's. */
  readonly timeoutMs?: number | undefined;
  /** Stops the run: no further look-up begins, and those under way are aborted. */
  readonly signal?: AbortSignal | undefined;
  /** The tenant of these references, for a receiver of many merchants. */
  readonly tenant?: string | undefined;
  /** Called with each result as soon as there is one. If it throws, the run stops. */
  readonly onResult?: ((result: ReconcileResult) => void | Promise<void>) | undefined;
}

/** What became of one reference. */
export type ReconcileResult =
  | {
      readonly reference: string;
      /** The receiver's decision: `new` and `progress` run, `duplicate` was known before, `held` waits for a person. */
      readonly outcome: Ingested["outcome"];
      readonly eventId: string;
      readonly transaction: Transaction;
    }
  /** No callback ever has this status, so there is no event. Close the order yourself. */
  | { readonly reference: string; readonly outcome: "cancelled"; readonly transaction: Transaction }
  | { readonly reference: string; readonly outcome: "not-found" }
  | { readonly reference: string; readonly outcome: "error"; readonly error: unknown };

/** What {@link reconcile} did. */
export interface ReconcileReport {
  /** In the order in which they were settled. */
  readonly results: readonly ReconcileResult[];
  /** How many results have each outcome. */
  readonly counts: Readonly<Partial<Record<ReconcileResult["outcome"], number>>>;
  /** The references for the next run: those that failed, and those that an abort left over. */
  readonly remaining: readonly string[];
  /** True if the signal stopped the run. An asynchronous source has then not been read to its end. */
  readonly aborted: boolean;
}

/**
 * Looks up transactions that had no final callback, and passes them to `receiver.payments.ingest`. The receiver
 * deduplicates them, so a result that also arrives as a callback runs only once. An error with one reference does not
 * stop the others. A run can be repeated at any time.
 *
 * @throws ClientError `ERR_OPTION_INVALID`. Apart from that, only what `references` or `onResult` throw.
 * @example
 * const { counts, remaining } = await reconcile(receiver, { client, references: openOrders });
 */
export async function reconcile(receiver: LookupSink, options: ReconcileOptions): Promise<ReconcileReport> {
  const { client, references, concurrency = 4, timeoutMs, signal, tenant, onResult } = options;
  if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > 100) {
    throw new ClientError("ERR_OPTION_INVALID", `concurrency is ${String(concurrency)}.`, {
      fix: "Give a whole number from 1 to 100.",
      field: "concurrency",
    });
  }
  if (typeof references === "string") {
    throw new ClientError("ERR_OPTION_INVALID", "references is one string.", {
      fix: "Pass a list: [reference].",
      field: "references",
    });
  }
  const source = queueOf(references);
  const results: ReconcileResult[] = [];
  const leftOver: string[] = [];
  const failed: string[] = [];
  let broken: { readonly error: unknown } | null = null;
  const isAborted = (): boolean => signal?.aborted === true;

  async function settle(reference: string): Promise<ReconcileResult> {
    try {
      const transaction = await client.transactionByReference(reference, { signal, timeoutMs });
      if (transaction === null) return { reference, outcome: "not-found" };
      if (transaction.status === "CANCELLED") return { reference, outcome: "cancelled", transaction };
      const { outcome, eventId } = await receiver.payments.ingest(transaction, { tenant });
      return { reference, outcome, eventId, transaction };
    } catch (error) {
      return { reference, outcome: "error", error };
    }
  }

  async function work(): Promise<void> {
    while (broken === null && !isAborted()) {
      const reference = await source.next();
      if (reference === undefined) return;
      const result = await settle(reference);
      if (result.outcome === "error" && isAborted()) {
        leftOver.push(reference);
        return;
      }
      results.push(result);
      if (result.outcome === "error") failed.push(reference);
      await onResult?.(result);
    }
  }

  try {
    const workers = Array.from({ length: concurrency }, () =>
      work().catch((error: unknown) => {
        broken ??= { error };
      }),
    );
    await Promise.all(workers);
    if (broken !== null) throw (broken as { readonly error: unknown }).error;
    leftOver.push(...source.rest());
  } finally {
    await source.close();
  }
  const counts: Partial<Record<ReconcileResult["outcome"], number>> = {};
  for (const { outcome } of results) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return { results, counts, remaining: [...failed, ...leftOver], aborted: isAborted() };
}

/** Hands references to several workers, one by one. */
interface ReferenceQueue {
  /** The next reference. Undefined at the end. */
  next(): Promise<string | undefined>;
  /** The references that are left over after a stop. An asynchronous source is not read for them. */
  rest(): string[];
  close(): Promise<void>;
}

function queueOf(references: Iterable<string> | AsyncIterable<string>): ReferenceQueue {
  if (Symbol.iterator in references) {
    const iterator = references[Symbol.iterator]();
    const take = (): string | undefined => {
      const { done, value } = iterator.next();
      return done === true ? undefined : value;
    };
    return {
      next: async () => take(),
      rest() {
        const rest: string[] = [];
        for (let one = take(); one !== undefined; one = take()) rest.push(one);
        return rest;
      },
      close: async () => {},
    };
  }
  const iterator = references[Symbol.asyncIterator]();
  // Generators queue overlapping calls themselves. Other iterators may not.
  let last: Promise<unknown> = Promise.resolve();
  let ended = false;
  return {
    next() {
      const taken = last.then(async () => {
        if (ended) return undefined;
        const { done, value } = await iterator.next();
        ended = done === true;
        return ended ? undefined : value;
      });
      last = taken.catch(() => {
        ended = true;
      });
      return taken;
    },
    rest: () => [],
    async close() {
      if (!ended) await iterator.return?.();
    },
  };
}
