import { PayhooksError } from "./errors.ts";
import { describeValue } from "./foreign-value.ts";

/** Throws `ERR_OPTION_INVALID` unless an option is a finite time above zero, in milliseconds. */
export function checkTime(option: string, value: number): void {
  if (typeof value === "number" && value > 0 && value <= Number.MAX_SAFE_INTEGER) return;
  throw invalidNumberError(option, value, "a finite number of milliseconds above zero");
}

/** Throws `ERR_OPTION_INVALID` unless an option is a whole number above zero. */
export function checkCount(option: string, value: number): void {
  if (Number.isSafeInteger(value) && value > 0) return;
  throw invalidNumberError(option, value, "a whole number above zero");
}

/** Throws `ERR_OPTION_INVALID` unless an option is a whole number, zero included. */
export function checkCountOrZero(option: string, value: number): void {
  if (Number.isSafeInteger(value) && value >= 0) return;
  throw invalidNumberError(option, value, "a whole number from 0 on");
}

/** Throws `ERR_OPTION_INVALID` unless an option is a whole number above zero, or `Infinity` for no limit. */
export function checkLimit(option: string, value: number): void {
  if (value !== Number.POSITIVE_INFINITY) checkCount(option, value);
}

function invalidNumberError(option: string, value: unknown, wanted: string): PayhooksError {
  return new PayhooksError("ERR_OPTION_INVALID", `${option} is ${describeValue(value)}, not ${wanted}.`, {
    fix: "Leave it out for the default.",
  });
}
