import type { AmbiguousCallback, PaymentEvent } from "@payhooks/core";
import type { PaymentsClient } from "./client.ts";
import { ClientError } from "./errors.ts";
import type { Transaction } from "./transaction.ts";

type Lookup = Pick<PaymentsClient, "transactionById">;

/** The optional fields that no look-up can confirm. */
const UNCONFIRMED = ["message", "providerTxId", "userId"] as const;

/**
 * Makes a function for the receiver's `payments.confirm`, which asks the service which reading of an ambiguous callback
 * is true. It looks up the `payTxnId` of each reading. A reading is confirmed if the service's transaction agrees with
 * it on id, reference, type, status, amount, merchant and, if the service records one, callback URL. The function
 * returns the event that all confirmed readings agree on, without `message`, `providerTxId` or `userId` if they differ
 * in it. In any other case of doubt, and if there are more readings than it is given, it returns `"keep"`: the entry
 * stays held. It never returns `"discard"`.
 *
 * @param client one client or, for many merchants, a function from the tenant to its client. If that returns null, the
 * entry stays held.
 * @throws (its result) ClientError what a look-up throws, and `ERR_NOT_SETTLED` while the service still says PENDING
 * and the callback has a final status. The receiver then asks again later.
 * @example
 * createReceiver({ payments: { publicKey, confirm: confirmWithLookup(client) } });
 */
export function confirmWithLookup(
  client: Lookup | ((tenant: string) => Lookup | null | Promise<Lookup | null>),
): (callback: AmbiguousCallback) => Promise<PaymentEvent | "keep"> {
  return async ({ readings, complete, tenant }) => {
    if (!complete) return "keep";
    const lookup = typeof client === "function" ? await client(tenant) : client;
    if (lookup === null) return "keep";
    const ids = [...new Set(readings.map(({ payTxnId }) => payTxnId))];
    const found = new Map<string, Transaction>();
    // All at the same time, since the receiver allows one minute for the whole question.
    const lookUps = ids.map(async (id) => {
      const transaction = await lookUp(lookup, id);
      if (transaction !== null) found.set(id, transaction);
    });
    await Promise.all(lookUps);
    const confirmed = readings.filter((reading) => agrees(reading, found.get(reading.payTxnId)));
    if (confirmed.length > 0) return agreement(sentWhereRecorded(confirmed, found));
    const early = readings.find((reading) => isEarly(reading, found.get(reading.payTxnId)));
    if (early === undefined) return "keep";
    throw new ClientError(
      "ERR_NOT_SETTLED",
      "The service still says PENDING about a callback with a final status.",
      {
        fix: "Ask again later; the receiver does so by itself.",
        reference: early.referenceId,
      },
    );
  };
}

const REFUSALS: ReadonlySet<unknown> = new Set(["ERR_FIELD_INVALID", "ERR_FIELD_MISSING", "ERR_BAD_REQUEST"]);

/**
 * Looks a transaction up. If the client or the service refuses the id, or the service finds nothing under it, there is no such
 * transaction. An id that somebody has made up must not be in the way of the other readings.
 */
async function lookUp(client: Lookup, id: string): Promise<Transaction | null> {
  try {
    return await client.transactionById(id);
  } catch (error) {
    const { code, httpStatus } = error as { readonly code?: unknown; readonly httpStatus?: unknown };
    if (REFUSALS.has(code) || httpStatus === 404) return null;
    throw error;
  }
}

function agrees(reading: PaymentEvent, transaction: Transaction | undefined): boolean {
  return agreesButForStatus(reading, transaction) && reading.status === transaction?.status;
}

function isEarly(reading: PaymentEvent, transaction: Transaction | undefined): boolean {
  return agreesButForStatus(reading, transaction) && transaction?.status === "PENDING";
}

function agreesButForStatus(reading: PaymentEvent, transaction: Transaction | undefined): boolean {
  return (
    transaction !== undefined &&
    reading.payTxnId === transaction.id &&
    reading.referenceId === transaction.reference &&
    reading.event === transaction.type &&
    (reading.merchantId === undefined || reading.merchantId === transaction.merchant_id) &&
    isSameAmount(reading.amount, transaction.base_amount)
  );
}

/** Compares amounts as decimals: `10.500000` is `10.5`. A text that is not digits and a point is equal to nothing. */
function isSameAmount(one: string, other: string): boolean {
  const plain = plainDecimal(one);
  return plain !== null && plain === plainDecimal(other);
}

function plainDecimal(text: string): string | null {
  const [, whole, decimals = ""] = /^0*([0-9]+)(?:\.([0-9]+))?$/.exec(text) ?? [];
  return whole === undefined ? null : `${whole}.${decimals.replace(/0+$/, "")}`;
}

/**
 * Keeps the readings whose callback URL is the one that the service has recorded for the transaction. If none has it,
 * all of them are wrong. A service that records no URL sends "".
 */
function sentWhereRecorded(
  readings: readonly PaymentEvent[],
  found: ReadonlyMap<string, Transaction>,
): readonly PaymentEvent[] {
  return readings.filter(({ payTxnId, callbackUrl }) => {
    const recorded = found.get(payTxnId)?.callback_url ?? "";
    return recorded === "" || recorded === callbackUrl;
  });
}

/** The event that all these readings agree on. `"keep"` if they differ in more than optional fields. */
function agreement(readings: readonly PaymentEvent[]): PaymentEvent | "keep" {
  const [first, ...others] = readings;
  if (first === undefined) return "keep";
  const differs = (name: keyof PaymentEvent): boolean => others.some((other) => other[name] !== first[name]);
  const facts = ["payTxnId", "event", "status", "referenceId", "amount", "callbackUrl", "timestamp"] as const;
  if (facts.some(differs)) return "keep";
  const event: Record<string, unknown> = { ...first };
  if (differs("merchantId")) delete event.merchantId;
  for (const name of UNCONFIRMED) {
    if (differs(name)) delete event[name];
  }
  return Object.freeze(event) as unknown as PaymentEvent;
}
