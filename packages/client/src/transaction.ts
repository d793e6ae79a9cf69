import { ClientError } from "./errors.ts";
import type { HttpAnswer } from "./http/verdict.ts";
import { isObject, type JsonObject, type JsonValue } from "./json.ts";

/** The statuses of a transaction (specification, States and transitions). Callbacks never have `CANCELLED`. */
export const TRANSACTION_STATUSES = ["SUCCESS", "FAILED", "PENDING", "CANCELLED"] as const;

/** The status of a transaction in look-ups. */
export type TransactionStatus = (typeof TRANSACTION_STATUSES)[number];

/** The `details` of a transaction. */
export interface TransactionDetails {
  readonly RawMessage: JsonValue;
  readonly Valid: boolean;
}

/**
 * A transaction as both look-ups return it (specification, Transaction). You can pass it to `receiver.payments.ingest`
 * as it is. `id`, `reference`, `type`, `status`, `base_amount` and `updated_at` are always there. If the service leaves
 * out another member or sends it as null, it is empty (`""` or `false`) here.
 */
export interface Transaction {
  /** Assigned by the service. */
  readonly id: string;
  readonly merchant_id: string;
  /** With the country code, without a leading `+`. The specification shows a space after the country code. */
  readonly phone_number: string;
  readonly reference: string;
  /** The specification does not show the complete list. */
  readonly type: "DEPOSIT" | "WITHDRAWAL" | (string & {});
  readonly medium: string;
  readonly message: string;
  readonly details: TransactionDetails;
  readonly status: TransactionStatus;
  /**
   * The service's JSON number as the text that it wrote: `10.50` is `"10.50"`, and never a float. It is in units of the
   * currency, which a transaction does not name.
   */
  readonly base_amount: string;
  readonly callback_url: string;
  readonly success_url: string;
  readonly failed_url: string;
  readonly webhook_received: boolean;
  /** ISO 8601, UTC, as the service wrote it. */
  readonly created_at: string;
  /** ISO 8601, UTC, as the service wrote it. */
  readonly updated_at: string;
  /** Members that the specification does not have. */
  readonly extra: JsonObject;
}

const TEXT_MEMBERS = [
  "id",
  "merchant_id",
  "phone_number",
  "reference",
  "type",
  "medium",
  "message",
  "status",
  "callback_url",
  "success_url",
  "failed_url",
  "created_at",
  "updated_at",
] as const;
const REQUIRED_MEMBERS: ReadonlySet<string> = new Set(["id", "reference", "type", "status", "updated_at"]);
const DOCUMENTED_MEMBERS: ReadonlySet<string> = new Set([
  ...TEXT_MEMBERS,
  "details",
  "base_amount",
  "webhook_received",
]);

/** True if a look-up found nothing: its envelope has `success` true, and nothing but a `message` in `data`. */
export function isNotFound(json: JsonValue | undefined): boolean {
  if (!isObject(json) || json.success !== true || !isObject(json.data)) return false;
  const names = Object.keys(json.data);
  return names.length === 1 && typeof json.data.message === "string";
}

/**
 * Reads the envelope of a look-up.
 *
 * @returns null if no transaction was found.
 * @throws ClientError `ERR_ANSWER_UNREADABLE` if it is not the envelope of the specification.
 */
export function readTransaction(answer: HttpAnswer, callName: string): Transaction | null {
  const { json, text, httpStatus } = answer;
  if (isNotFound(json)) return null;
  const unreadableError = (why: string): ClientError =>
    new ClientError("ERR_ANSWER_UNREADABLE", `${callName}: ${why}.`, {
      fix: "The service's answer differs from its specification: look at it by hand, and report it.",
      httpStatus,
    });
  if (!isObject(json)) throw unreadableError("the answer is not a JSON object");
  if (json.success !== true) throw unreadableError("the answer does not say success: true");
  const { data } = json;
  if (!isObject(data)) throw unreadableError("the answer has no data object");

  const texts = {} as Record<(typeof TEXT_MEMBERS)[number], string>;
  for (const name of TEXT_MEMBERS) {
    const value = data[name] ?? "";
    if (typeof value !== "string") throw unreadableError(`data.${name} is not text`);
    if (value === "" && REQUIRED_MEMBERS.has(name)) throw unreadableError(`data.${name} is missing`);
    texts[name] = value;
  }
  const { status: state } = texts;
  if (!isStatus(state))
    throw unreadableError(
      `data.status is ${/^[A-Z]{1,20}$/.test(state) ? state : "a text"} that is not listed`,
    );
  const isReceived = data.webhook_received ?? false;
  if (typeof isReceived !== "boolean") throw unreadableError("data.webhook_received is not true or false");
  const details = data.details ?? { RawMessage: null, Valid: false };
  if (!isObject(details)) throw unreadableError("data.details is not an object");
  return Object.freeze({
    ...texts,
    status: state,
    details: Object.freeze({ RawMessage: details.RawMessage ?? null, Valid: details.Valid === true }),
    base_amount:
      amountTextOf(data.base_amount, text) ?? raise(unreadableError("data.base_amount is not a number")),
    webhook_received: isReceived,
    extra: Object.freeze(
      Object.fromEntries(Object.entries(data).filter(([name]) => !DOCUMENTED_MEMBERS.has(name))),
    ),
  });
}

/**
 * The text that a number was written with. A quote inside of a string has a backslash before it, so only names of
 * members are found. If there are several of this name, the value decides, and those that it allows are the same
 * number.
 */
function amountTextOf(value: JsonValue | undefined, answer: string): string | undefined {
  if (typeof value === "string" && value !== "") return value;
  if (typeof value !== "number") return undefined;
  const numberTexts = [...answer.matchAll(/[{,\s]"base_amount"\s*:\s*(-?[\d.eE+-]+)/g)].map(
    ([, text]) => text,
  );
  return numberTexts.findLast((text) => Number(text) === value) ?? String(value);
}

function isStatus(text: string): text is TransactionStatus {
  return (TRANSACTION_STATUSES as readonly string[]).includes(text);
}

function raise(error: ClientError): never {
  throw error;
}
