import type { CallbackTexts } from "./callback.ts";

/** The part of a looked-up transaction that an event needs (specification, Transaction). */
export interface LookupTransaction {
  readonly id: string;
  readonly reference: string;
  readonly type: string;
  readonly status: string;
  /** The raw JSON text of the number, or the number. */
  readonly base_amount: string | number;
  readonly callback_url: string;
  readonly updated_at: string;
  readonly merchant_id?: string | undefined;
  readonly message?: string | undefined;
}

/** The fields of a callback about the same transaction. */
export function textsOfLookup(transaction: LookupTransaction): CallbackTexts {
  const { id, reference, type, status, base_amount, callback_url, updated_at, merchant_id, message } =
    transaction;
  const texts = new Map<string, string>();
  const put = (name: string, value: unknown): void => {
    const text = typeof value === "number" ? String(value) : value;
    if (typeof text === "string" && text !== "") texts.set(name, text);
  };
  put("amount", base_amount);
  put("callbackUrl", callback_url);
  put("event", type);
  put("merchantId", merchant_id);
  put("message", message);
  put("payTxnId", id);
  put("referenceId", reference);
  put("status", status);
  put("timestamp", updated_at);
  return texts;
}
