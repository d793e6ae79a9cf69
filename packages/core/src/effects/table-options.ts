/** Checks of the options that the effects of several databases have. */
import { PayhooksError } from "../protocol/errors.ts";

const TABLE_NAME_PATTERN = /^[A-Za-z_][A-Za-z0-9_]{0,62}(?:\.[A-Za-z_][A-Za-z0-9_]{0,62})?$/;

/** Checks that a name needs no quotes. Throws `ERR_OPTION_INVALID`. */
export function checkTable(table: string): string {
  if (TABLE_NAME_PATTERN.test(table)) return table;
  throw new PayhooksError("ERR_OPTION_INVALID", `table is ${JSON.stringify(String(table).slice(0, 80))}.`, {
    fix: 'Use a name such as "payhooks_effects" or "shop.payhooks_effects".',
  });
}

/** A whole number of milliseconds as a text. Throws `ERR_OPTION_INVALID`. */
export function checkMilliseconds(option: string, value: number): string {
  if (Number.isSafeInteger(value) && value > 0) return String(value);
  throw new PayhooksError(
    "ERR_OPTION_INVALID",
    `${option} is ${String(value)}, not a whole number above zero.`,
    { fix: "Leave it out for the default." },
  );
}
