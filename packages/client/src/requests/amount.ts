import { ClientError } from "../errors.ts";
import { kindOf } from "../kind-of.ts";
import type { RequestRules } from "./rules.ts";

const TWO_DECIMALS_PATTERN = /^(?:0|[1-9][0-9]{0,29})\.[0-9]{2}$/;
/** Every reader of a JSON number keeps this many digits, even one that reads it as a double. */
const MAX_NUMBER_DIGITS = 15;

/**
 * The amount as JSON text, with the digits as they were given. No floating-point number is involved. (Specification,
 * direct payment and checkout: "Two decimal places".)
 */
export function amountText(amount: unknown, { amountAs }: Pick<RequestRules, "amountAs">): string {
  if (typeof amount !== "string") {
    throw invalidAmountError(
      `amount is ${kindOf(amount)}.`,
      'Pass a decimal string with two decimals, such as "10.50".',
    );
  }
  if (!TWO_DECIMALS_PATTERN.test(amount)) {
    throw invalidAmountError(`amount is ${JSON.stringify(amount.slice(0, 40))}.`, suggestionFor(amount));
  }
  if (/^[0.]+$/.test(amount)) {
    throw invalidAmountError(`amount is ${JSON.stringify(amount)}.`, "Pass an amount greater than zero.");
  }
  if (amountAs === "string") return JSON.stringify(amount);
  if (amount.length - 1 > MAX_NUMBER_DIGITS) {
    throw invalidAmountError(
      `amount has ${amount.length - 1} digits, more than a JSON number carries safely.`,
      'Create the client with amountAs: "string".',
    );
  }
  return amount;
}

function suggestionFor(amount: string): string {
  const [, whole = "", decimals = ""] = /^([1-9][0-9]{0,29}|0)(?:\.([0-9]?))?$/.exec(amount) ?? [];
  if (whole !== "") return `Write both decimals: "${whole}.${decimals.padEnd(2, "0")}".`;
  return 'Write digits, a point and two decimals, without a sign, spaces or separators, such as "10.50".';
}

function invalidAmountError(problem: string, fix: string): ClientError {
  return new ClientError("ERR_AMOUNT_INVALID", problem, { fix, field: "amount" });
}
