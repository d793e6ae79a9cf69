import { randomUUID } from "node:crypto";
import { boundedMap } from "../bounded-map.ts";
import type { Changes } from "../changes.ts";
import { type Clock, isoTime } from "../clock.ts";
import type { Merchant } from "../keys/merchant.ts";
import type { WireNames } from "../names.ts";
import { SandboxError } from "../sandbox-error.ts";
import type { Medium, Transaction, TransactionStatus } from "../wire.ts";
import { MEDIUM_TEXTS, newProviderTxId } from "./mediums.ts";
import type { Order } from "./order.ts";
import type { Scripts } from "./outcomes.ts";
import { formatPhoneNumber } from "./phone-number.ts";
import type { Step } from "./step.ts";

/** One status that a transaction had. */
export interface StatusEntry {
  readonly status: TransactionStatus;
  /** ISO 8601. */
  readonly at: string;
  readonly message: string;
}

/** A step that is still to come. */
export interface ComingStep extends Step {
  /** Milliseconds since the epoch. */
  readonly dueAt: number;
}

/** A transaction, with the facts that look-ups do not show. */
export interface TransactionRecord {
  readonly transaction: Transaction;
  readonly order: Order;
  /** The transaction's id at the provider. Null until there is one. */
  readonly providerTxId: string | null;
  readonly history: readonly StatusEntry[];
  readonly coming: readonly ComingStep[];
  /** True for a checkout whose customer has not paid, failed or cancelled yet. */
  readonly awaitsCustomer: boolean;
}

export interface Transactions {
  /** Throws `ERR_PARAMETERS` when the reference is taken. */
  create(order: Order): TransactionRecord;
  /**
   * Makes the decision of a checkout's customer: to pay with a medium (then the script continues), to fail or to
   * cancel.
   */
  decide(id: string, decision: "pay" | "fail" | "cancel", medium: Medium | null): TransactionRecord;
  /** Moves a transaction to a status now, and drops the steps that were still to come. */
  setStatus(id: string, step: Omit<Step, "afterMs">): TransactionRecord;
  /** Ends a transaction as FAILED without a callback, as if it had never succeeded. */
  fail(id: string): TransactionRecord;
  markReceived(id: string): void;
  get(id: string): TransactionRecord | undefined;
  byReference(reference: string): TransactionRecord | undefined;
  list(): TransactionRecord[];
  clear(): void;
}

export interface TransactionsDependencies {
  readonly clock: Clock;
  readonly changes: Changes;
  readonly scripts: Scripts;
  readonly merchant: () => Merchant;
  readonly names: WireNames;
  readonly delayMs: number;
  readonly maxTransactions: number;
  /** Called before a transaction begins, and so before any of its callbacks. */
  readonly onBegin: (order: Order) => void;
  /** Called when a transaction ends without a callback, and when it is forgotten. */
  readonly onEnd: (record: TransactionRecord) => void;
  /** Called for every step that a callback announces. */
  readonly announce: (record: TransactionRecord) => void;
}

const PENDING_MESSAGE = "The transaction is being processed.";

export function createTransactions(dependencies: TransactionsDependencies): Transactions {
  const { clock, changes, scripts, names } = dependencies;
  const timers = new Map<string, () => void>();
  const idOfReference = new Map<string, string>();
  const forget = (record: TransactionRecord) => {
    const { transaction } = record;
    timers.get(transaction.id)?.();
    timers.delete(transaction.id);
    idOfReference.delete(transaction.reference);
    dependencies.onEnd(record);
  };
  const records = boundedMap<TransactionRecord>(
    dependencies.maxTransactions,
    ({ transaction, coming }) => transaction.status !== "PENDING" && coming.length === 0,
    forget,
  );

  const store = (record: TransactionRecord): TransactionRecord => {
    const { id, reference } = record.transaction;
    records.set(id, record);
    idOfReference.set(reference, id);
    changes.publish("transaction", id);
    return record;
  };

  const getOrThrow = (id: string): TransactionRecord => {
    const record = records.get(id);
    if (record === undefined) throw new SandboxError("ERR_NOT_FOUND", `There is no transaction ${id}.`);
    return record;
  };

  /** Waits for the next step, if there is one. */
  const scheduleNextStep = (id: string): void => {
    const next = records.get(id)?.coming[0];
    if (next === undefined) timers.delete(id);
    else
      timers.set(
        id,
        clock.after(Math.max(0, next.dueAt - clock.now()), () => takeStep(id)),
      );
  };

  const takeStep = (id: string): void => {
    const record = records.get(id);
    const [step, ...coming] = record?.coming ?? [];
    if (record === undefined || step === undefined) return;
    apply({ ...record, coming }, step);
    scheduleNextStep(id);
  };

  const apply = (record: TransactionRecord, step: Step): TransactionRecord => {
    const { status } = step;
    const at = isoTime(clock.now());
    const medium = record.order.medium;
    const message = step.message ?? messageOf(status, medium);
    if (status === "PENDING" && record.transaction.status !== "PENDING") {
      // A final status does not become PENDING again. This simulates an old callback that arrives late.
      const lateCallback = {
        ...record,
        providerTxId: null,
        transaction: { ...record.transaction, status, message },
      };
      if (step.callback !== false) dependencies.announce(lateCallback);
      return store(record);
    }
    const isFailed = status === "FAILED";
    const rawFailure = medium === null ? message : MEDIUM_TEXTS[medium].rawFailure;
    const details = { RawMessage: isFailed ? rawFailure : null, Valid: !isFailed && status !== "CANCELLED" };
    const isKnown = (status === "SUCCESS" || isFailed) && medium !== null;
    const next = store({
      ...record,
      awaitsCustomer: record.awaitsCustomer && status === "PENDING",
      providerTxId: record.providerTxId ?? (isKnown ? newProviderTxId(medium) : null),
      history: [...record.history, { status, at, message }],
      transaction: { ...record.transaction, status, message, details, updated_at: at },
    });
    if (names.status(status) !== null && step.callback !== false) dependencies.announce(next);
    else if (status !== "PENDING" && next.coming.length === 0) dependencies.onEnd(next);
    // A fault may have turned it into a FAILED while it was announced.
    return records.get(next.transaction.id) ?? next;
  };

  const start = (record: TransactionRecord): TransactionRecord => {
    const { order } = record;
    let dueAt = clock.now();
    const path = scripts.pathOf({ ...order, event: order.type, medium: order.medium ?? "" });
    const coming = path.map((step) => {
      dueAt += step.afterMs ?? dependencies.delayMs;
      return { ...step, dueAt };
    });
    const started = store({ ...record, awaitsCustomer: false, coming });
    scheduleNextStep(started.transaction.id);
    return started;
  };

  const cancelSteps = (id: string): TransactionRecord => {
    const record = getOrThrow(id);
    timers.get(id)?.();
    timers.delete(id);
    return { ...record, coming: [] };
  };

  return {
    create(order) {
      if (idOfReference.has(order.reference)) {
        const problem = { field: "reference", message: "must be unique; it was used before" };
        const errorText = `The reference ${JSON.stringify(order.reference)} was used before.`;
        throw new SandboxError("ERR_PARAMETERS", errorText, { problems: [problem] });
      }
      dependencies.onBegin(order);
      const at = isoTime(clock.now());
      const message = PENDING_MESSAGE;
      const awaitsCustomer = order.supportedMediums !== null;
      const transaction: Transaction = {
        id: randomUUID(),
        merchant_id: order.onBehalfOf ?? dependencies.merchant().merchantId,
        phone_number: formatPhoneNumber(order.phoneNumber),
        reference: order.reference,
        type: order.type,
        medium: order.medium === null ? "" : names.medium(order.medium),
        message,
        details: { RawMessage: null, Valid: true },
        status: "PENDING",
        base_amount: Number(order.amount),
        callback_url: order.callbackUrl ?? "",
        success_url: order.successUrl ?? "",
        failed_url: order.failedUrl ?? "",
        webhook_received: false,
        created_at: at,
        updated_at: at,
      };
      const history = [{ status: "PENDING" as const, at, message }];
      const record = { transaction, order, providerTxId: null, history, coming: [], awaitsCustomer };
      return awaitsCustomer ? store(record) : start(record);
    },
    decide(id, decision, medium) {
      const record = getOrThrow(id);
      if (!record.awaitsCustomer) {
        throw new SandboxError("ERR_NOT_POSSIBLE", "This checkout was already decided.");
      }
      const offered = record.order.supportedMediums ?? [];
      if (decision === "cancel") return apply(record, { status: "CANCELLED" });
      if (medium === null || !offered.includes(medium)) {
        const problems = [{ field: "medium", message: `must be one of ${offered.join(", ")}` }];
        throw new SandboxError("ERR_PARAMETERS", "Choose one of the mediums offered.", { problems });
      }
      const chosenRecord = {
        ...record,
        order: { ...record.order, medium },
        transaction: { ...record.transaction, medium: names.medium(medium) },
      };
      return decision === "pay" ? start(chosenRecord) : apply(chosenRecord, { status: "FAILED" });
    },
    setStatus: (id, step) => apply(cancelSteps(id), step),
    fail(id) {
      const record = cancelSteps(id);
      if (record.transaction.status === "FAILED") return store(record);
      const history = record.history.filter(({ status }) => status !== "SUCCESS");
      return apply({ ...record, history }, { status: "FAILED", callback: false });
    },
    markReceived(id) {
      const record = records.get(id);
      if (record === undefined || record.transaction.webhook_received) return;
      store({ ...record, transaction: { ...record.transaction, webhook_received: true } });
    },
    get: (id) => records.get(id),
    byReference: (reference) => records.get(idOfReference.get(reference) ?? ""),
    list: () => records.values(),
    clear() {
      for (const cancel of timers.values()) cancel();
      timers.clear();
      idOfReference.clear();
      records.clear();
    },
  };
}

function messageOf(status: TransactionStatus, medium: Medium | null): string {
  if (status === "PENDING") return PENDING_MESSAGE;
  if (status === "CANCELLED") return "The customer cancelled the transaction.";
  if (status === "SUCCESS") return "The transaction was completed successfully.";
  return medium === null ? "The transaction failed." : MEDIUM_TEXTS[medium].failure;
}
