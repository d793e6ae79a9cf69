import { PayhooksError } from "./errors.ts";
import { describeValue } from "./foreign-value.ts";

/** The names of all options of a type. The compiler compares them with the type. */
export type OptionNames<Options> = { readonly [Name in keyof Options]-?: true };

/**
 * Throws `ERR_OPTION_INVALID` for an option that does not exist: a typing error in its name would otherwise leave the default in
 * force unnoticed. `owner` says whose options they are. An option that is `undefined` counts as not given.
 */
export function checkNames<Options extends object>(
  owner: string,
  options: Options,
  names: OptionNames<Options>,
): void {
  const fix = `The options are ${Object.keys(names).join(", ")}.`;
  if (typeof options !== "object" || options === null) {
    throw new PayhooksError("ERR_OPTION_INVALID", `The options of ${owner} are not an object.`, { fix });
  }
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || Object.hasOwn(names, name)) continue;
    throw new PayhooksError("ERR_OPTION_INVALID", `${owner} has no option ${JSON.stringify(name)}.`, { fix });
  }
}

/** Throws `ERR_OPTION_INVALID` for a value that is none of these. `undefined` counts as not given. */
export function checkChoice<Value extends string>(
  option: string,
  value: Value | undefined,
  values: Readonly<Record<Value, unknown>>,
): void {
  if (value === undefined || (typeof value === "string" && Object.hasOwn(values, value))) return;
  throw new PayhooksError("ERR_OPTION_INVALID", `${option} is ${describeValue(value)}.`, {
    fix: `It can be ${Object.keys(values).join(", ")}.`,
  });
}

/** Throws `ERR_OPTION_INVALID` for a value that is neither true nor false. `undefined` counts as not given. */
export function checkFlag(option: string, value: boolean | undefined): void {
  if (value === undefined || typeof value === "boolean") return;
  throw new PayhooksError("ERR_OPTION_INVALID", `${option} is ${describeValue(value)}.`, {
    fix: "Give true or false, not text or a number.",
  });
}
