import { parseServiceNames, type ServiceNames } from "@payhooks/core";
import type { OptionSpec } from "./form.ts";
import { readText } from "./input.ts";
import type { ParsedArguments } from "./parsed-arguments.ts";

/** The option of commands that speak as a deployment of the service. */
export const NAMES_OPTION: Readonly<Record<"names", OptionSpec>> = {
  names: {
    value: "FILE",
    help: "names of your deployment, the options of serviceNames as JSON; if it is left out, the file in PAYHOOKS_NAMES is used",
  },
};

/** Reads the names of a deployment. Undefined if no file is given. Throws `ERR_NAMES_INVALID` with all that is wrong. */
export async function readNames(args: ParsedArguments): Promise<ServiceNames | undefined> {
  const file = args.text("names") ?? process.env.PAYHOOKS_NAMES;
  return file === undefined || file === "" ? undefined : parseServiceNames(await readText(file));
}
