import { PayhooksError } from "./errors.ts";

const AMOUNT_PATTERN = /^[0-9]{1,30}(?:\.[0-9]{1,6})?$/;
const NORMALIZED_PATTERN = /^(?:0|[1-9][0-9]*)\.[0-9]{6}$/;

/** True for an amount as the service writes it: digits with up to six decimals (specification, Payment callback events). */
export function isAmount(text: string): boolean {
  return AMOUNT_PATTERN.test(text);
}

/**
 * Reads an amount without floating point.
 *
 * @param text digits with up to six decimals, as in `event.amount` (specification, Payment callback events).
 * @returns the amount in millionths of the currency unit.
 * @throws PayhooksError `ERR_AMOUNT_INVALID` for any other text: a sign, an exponent, white space, a comma.
 * @example parseAmount("10.500000"); // 10500000n
 */
export function parseAmount(text: string): bigint {
  if (typeof text !== "string" || !isAmount(text)) {
    throw new PayhooksError("ERR_AMOUNT_INVALID", `Not an amount: ${describeAmount(text)}.`, {
      fix: 'Pass digits with at most six decimals, as a string such as "10.500000".',
    });
  }
  const [whole = "", decimals = ""] = text.split(".");
  return BigInt(whole + decimals.padEnd(6, "0"));
}

/**
 * Writes an amount the way the service does: a decimal string with six decimal places.
 *
 * @param millionths the amount in millionths of the currency unit, not negative.
 * @throws PayhooksError `ERR_AMOUNT_INVALID` for a negative amount or one of over 30 whole digits.
 * @example formatAmount(10500000n); // "10.500000"
 */
export function formatAmount(millionths: bigint): string {
  const digits = typeof millionths === "bigint" ? millionths.toString().padStart(7, "0") : "";
  const text = `${digits.slice(0, -6)}.${digits.slice(-6)}`;
  if (!isAmount(text)) {
    throw new PayhooksError(
      "ERR_AMOUNT_INVALID",
      `Not an amount in millionths: ${describeAmount(millionths)}.`,
      {
        fix: "Pass a bigint that is not negative, such as 10500000n.",
      },
    );
  }
  return text;
}

/** Writes each value in one way, so that "10.5" and "10.500000" are the same fact. The text must be an amount. */
export function normalizeAmount(text: string): string {
  if (NORMALIZED_PATTERN.test(text)) return text;
  const [whole = "", decimals = ""] = text.split(".");
  return `${whole.replace(/^0+(?=[0-9])/, "")}.${decimals.padEnd(6, "0")}`;
}

function describeAmount(value: unknown): string {
  return typeof value === "string"
    ? JSON.stringify(value.slice(0, 40))
    : `${typeof value} ${String(value).slice(0, 40)}`;
}
