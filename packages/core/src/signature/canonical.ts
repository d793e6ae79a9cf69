/** The fields that the specification lists for a payment callback, `signature` apart, sorted by code unit. */
export const CALLBACK_FIELDS = [
  "amount",
  "callbackUrl",
  "event",
  "merchantId",
  "message",
  "payTxnId",
  "providerTxId",
  "referenceId",
  "status",
  "timestamp",
  "userId",
] as const;

/** The name of a signed field of a payment callback (specification, Payment callback events). */
export type CallbackField = (typeof CALLBACK_FIELDS)[number];

/** A field's value in the canonical string. Give a number as text, such as `"10.0"`, to keep the way it was written. */
export type CanonicalValue = string | number | boolean | null | undefined;

/**
 * The string that a payment callback's signature covers (specification, Authentication, 4). It has every field but `signature`,
 * without nulls, sorted by the name's UTF-16 code units (never by locale). Each is written `name=value`, and they are joined
 * with `&`.
 *
 * **Nothing in it is escaped**, so different bodies can have the same canonical string: a genuine `referenceId` that contains
 * `&status=SUCCESS` reads as a `status` in another body. A valid signature alone does not say which body was meant.
 * `verifyPaymentCallback` also applies the rules that make the reading unique.
 *
 * @example canonicalString({ status: "SUCCESS", amount: "10.500000", signature: "…" }); // "amount=10.500000&status=SUCCESS"
 */
export function canonicalString(fields: Readonly<Record<string, CanonicalValue>>): string {
  let text = "";
  for (const name of Object.keys(fields).sort()) {
    const value = fields[name];
    if (name === "signature" || value === null || value === undefined) continue;
    text += text === "" ? `${name}=${value}` : `&${name}=${value}`;
  }
  return text;
}
