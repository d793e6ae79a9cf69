import { randomUUID } from "node:crypto";
import { SPECIFIED_NAMES } from "../names/service-names.ts";
import { PayhooksError } from "../protocol/errors.ts";
import {
  type ConnectEvent,
  OBJECT_MEMBERS,
  objectOfEvent,
  type PaymentEvent,
  type PaymentStatus,
} from "../protocol/events.ts";
import { type CallbackField, canonicalString } from "../signature/canonical.ts";
import {
  asDelivery,
  type CallbackFields,
  type NamesOption,
  type SignedDelivery,
  signCanonicalString,
  signPaymentCallback,
  toWireFields,
} from "./signers.ts";

/** The fields of a payment callback, except `signature` (specification, Payment callback events). */
export type DocumentedFields = {
  readonly event: PaymentEvent["event"];
  readonly referenceId: string;
  readonly payTxnId: string;
  readonly status: PaymentStatus;
  /** Decimal string with six decimals: `"10.500000"`. */
  readonly amount: string;
  readonly callbackUrl: string;
  /** Null: sent, but not signed. The same holds for the other optional fields. */
  readonly message: string | null;
  readonly providerTxId: string | null;
  /** ISO 8601, UTC, up to nanoseconds. */
  readonly timestamp: string;
  readonly merchantId: string | null;
  readonly userId: string | null;
};

/** Some members of an object. A member that is undefined counts as not given. */
export type SomeMembers<T> = { readonly [Name in keyof T]?: T[Name] | undefined };

/**
 * The fields of a genuine callback, with new ids each time. By default it is a SUCCESS deposit of 10.50.
 *
 * @param now when it is signed, in milliseconds since the epoch.
 * @example signPaymentCallback(callbackFields({ referenceId: "order-1", status: "FAILED" }), keys.privateKey)
 */
export function callbackFields(
  fields: SomeMembers<DocumentedFields> = {},
  now: number = Date.now(),
): DocumentedFields {
  return {
    event: "DEPOSIT",
    referenceId: `order-${randomUUID()}`,
    payTxnId: randomUUID(),
    status: "SUCCESS",
    amount: "10.500000",
    callbackUrl: "https://merchant.example/callbacks/pay",
    message: "Payment completed",
    providerTxId: "MP-7261",
    timestamp: `${new Date(now).toISOString().slice(0, -1)}123456Z`,
    merchantId: "0b6f6e0c-6b0e-4f0e-9d7e-3f2f6a1c0001",
    userId: "user-17",
    ...definedMembers(fields),
  };
}

function definedMembers<T extends object>(members: SomeMembers<T>): Partial<T> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Partial<T>;
}

/** Like {@link callbackFields}, with any names and values: for forgeries, and for fields that the specification does not list. */
export function anyCallbackFields(fields: CallbackFields = {}, now: number = Date.now()): CallbackFields {
  return { ...callbackFields({}, now), ...fields };
}

/** The `data` of a connected-account webhook, by the event's name. */
type DataOf<Name extends ConnectEvent["event"]> = Omit<ConnectEvent<Name>["data"], "extra">;

/** A connected-account webhook as the service writes it (specification, Connected-account events). */
export interface WebhookBody<Name extends ConnectEvent["event"] = ConnectEvent["event"]> {
  readonly event: Name;
  readonly idempotency_key: string;
  /** ISO 8601, UTC. */
  readonly occurred_at: string;
  readonly data: DataOf<Name>;
}

/** The changes to a genuine webhook. In `data`, only the given members change. */
export interface WebhookChanges<Name extends ConnectEvent["event"] = ConnectEvent["event"]> {
  readonly idempotency_key?: string | undefined;
  readonly occurred_at?: string | undefined;
  readonly data?: SomeMembers<DataOf<Name>> | undefined;
}

/**
 * A genuine connected-account webhook, with new ids each time.
 *
 * @param now when it occurred, in milliseconds since the epoch.
 * @example signConnectWebhook(connectEvent("settlement.approved", { data: { amount: 5000 } }), secret)
 */
export function connectEvent<Name extends ConnectEvent["event"] = "settlement.approved">(
  event?: Name,
  { data, ...envelope }: WebhookChanges<Name> = {},
  now: number = Date.now(),
): WebhookBody<Name> {
  const genuine = anyConnectEvent(event, definedMembers(envelope), now);
  return {
    ...genuine,
    data: { ...(genuine.data as object), ...definedMembers(data ?? {}) },
  } as WebhookBody<Name>;
}

/** Like {@link connectEvent}, with any name and members: for forgeries, and for events that the specification does not list. */
export function anyConnectEvent(
  event = "settlement.approved",
  members: Readonly<Record<string, unknown>> = {},
  now: number = Date.now(),
): Readonly<Record<string, unknown>> {
  const object = objectOfEvent(event) ?? "connected_account";
  const decision = event.split(".")[1] ?? "approved";
  const data: Record<string, unknown> = { object };
  for (const [name, example] of Object.entries(OBJECT_MEMBERS[object])) {
    data[name] =
      typeof example === "number"
        ? example
        : example.replace(/_1$/, `_${randomUUID()}`).replace("approved", decision);
  }
  return {
    event,
    idempotency_key: `evt_${randomUUID()}`,
    occurred_at: new Date(now).toISOString(),
    data,
    ...members,
  };
}

/** A genuine callback with one field changed after it was signed. */
export function forgedCallback(
  fields: CallbackFields,
  changedFields: CallbackFields,
  privateKey: string,
): SignedDelivery {
  const { rawBody } = signPaymentCallback(fields, privateKey);
  return asDelivery({ ...(JSON.parse(rawBody.toString()) as object), ...changedFields });
}

/** Two bodies with the same signature: the one that the service sent, and the one that an attacker made from it. */
export interface ResplitPair {
  readonly genuine: SignedDelivery;
  readonly forged: SignedDelivery;
}

/**
 * The forgery of the canonical string (docs/concepts/security.md): a customer chose the reference of a FAILED deposit
 * in such a way that its signature also fits a SUCCESS for `victim`. The reference contains a second set of the fields
 * that follow it, and the last field of that set takes in the genuine ones.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID` if the names of the service do not allow this forgery: the status is signed before
 * the reference, or the last field cannot have any text.
 */
export function resplitPair(
  victim: string,
  privateKey: string,
  overrides: CallbackFields = {},
  { names = SPECIFIED_NAMES }: NamesOption = {},
): ResplitPair {
  const neutral = anyCallbackFields({ status: "FAILED", message: "Declined", ...overrides });
  const nameOf = (field: CallbackField): string => names.callback.fields[field].name;
  const { [nameOf("referenceId")]: _, ...fields } = toWireFields(neutral, names);
  const following = Object.keys(fields)
    .filter((name) => name > nameOf("referenceId") && fields[name] !== null)
    .sort();
  const lastText = following.at(-1) ?? "";
  const isFree = ["userId", "message", "providerTxId"].some(
    (field) => nameOf(field as CallbackField) === lastText,
  );
  if (!following.includes(nameOf("status")) || !isFree) {
    throw new PayhooksError("ERR_OPTION_INVALID", "Under these names a signature cannot be split again.", {
      fix: "For this forgery the status, and at the end a field with any text, must be signed after the reference.",
    });
  }
  const claimed = { ...fields, [nameOf("status")]: "SUCCESS" };
  const parts = (values: CallbackFields): string =>
    following.map((name) => `${name}=${String(values[name])}`).join("&");
  const reference = { [nameOf("referenceId")]: `${victim}&${parts({ ...claimed, [lastText]: "u" })}` };
  const genuineFields = { ...fields, ...reference };
  const signature = signCanonicalString(canonicalString(genuineFields), privateKey);
  const forged = { ...claimed, [nameOf("referenceId")]: victim, [lastText]: `u&${parts(fields)}`, signature };
  return { genuine: asDelivery({ ...genuineFields, signature }), forged: asDelivery(forged) };
}

/** Shuffles items. A seed always gives the same order. */
export function shuffled<T>(items: readonly T[], seed: number): T[] {
  const list = [...items];
  let state = seed >>> 0;
  const random = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  for (let i = list.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [list[i], list[j]] = [list[j] as T, list[i] as T];
  }
  return list;
}
