import { PayhooksError } from "./errors.ts";

/** Throws unless an option is a number above zero. */
export function checkPositive(option: string, value: number): void {
  if (typeof value === "number" && value > 0) return;
  throw new PayhooksError("ERR_OPTION_INVALID", `${option} is ${String(value)}, not a number above zero.`, {
    fix: "Leave it out for the default.",
  });
}
