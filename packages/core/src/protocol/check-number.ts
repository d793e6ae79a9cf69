import { PayhooksError } from "./errors.ts";
import { describeValue } from "./foreign-value.ts";

/** 1,000 years. A date that far from now can still be stored and shown; a `Date` ends after 275,000 years. */
const MAX_TIME_MS = 1_000 * 365 * 24 * 60 * 60_000;

/** Throws `ERR_OPTION_INVALID` unless an option is a time above zero, in milliseconds, of 1,000 years at most. */
export function checkTime(option: string, value: number): void {
  if (typeof value === "number" && value > 0 && value <= MAX_TIME_MS) return;
  throw invalidNumberError(option, value, "a number of milliseconds above zero, and 1,000 years at most");
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

function invalidNumberError(option: string, value: unknown, rule: string): PayhooksError {
  return new PayhooksError("ERR_OPTION_INVALID", `${option} is ${describeValue(value)}, not ${rule}.`, {
    fix: "Leave it out for the default.",
  });
}
