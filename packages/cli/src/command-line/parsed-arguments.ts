import { parseArgs } from "node:util";
import { UsageError } from "./errors.ts";
import { COMMON_OPTIONS, type CommandForm, type OptionSpec } from "./form.ts";
import { usageOf } from "./help.ts";
import { findNearest } from "./nearest.ts";

/** The options and arguments of one call. The methods that read a value throw a {@link UsageError} if it is wrong. */
export class ParsedArguments {
  readonly positionals: readonly string[];
  /** The words after `--`, for another program. */
  readonly rest: readonly string[];
  readonly #values: ReadonlyMap<string, readonly (string | true)[]>;

  constructor(
    values: ReadonlyMap<string, readonly (string | true)[]>,
    positionals: readonly string[],
    rest: readonly string[],
  ) {
    this.#values = values;
    this.positionals = positionals;
    this.rest = rest;
  }

  flag(name: string): boolean {
    return this.#values.has(name);
  }

  texts(name: string): readonly string[] {
    const values = this.#values.get(name) ?? [];
    return values.filter((value) => typeof value === "string");
  }

  /** The value of an option. If it was given several times, the last one counts. */
  text(name: string): string | undefined {
    return this.texts(name).at(-1);
  }

  requiredText(name: string, why: string): string {
    const value = this.text(name);
    if (value === undefined || value === "") throw new UsageError(`--${name} is missing: ${why}.`);
    return value;
  }

  number(
    name: string,
    { min = 0, max = Number.MAX_SAFE_INTEGER }: { readonly min?: number; readonly max?: number } = {},
  ): number | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    const number = Number(value);
    if (value.trim() === "" || !Number.isInteger(number) || number < min || number > max) {
      const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
      throw new UsageError(`--${name} must be a whole number ${range}; it is ${JSON.stringify(value)}.`);
    }
    return number;
  }

  choice<const Choice extends string>(name: string, choices: readonly Choice[]): Choice | undefined {
    const value = this.text(name);
    return value === undefined ? undefined : parseChoice(`--${name}`, value, choices);
  }

  url(name: string): URL | undefined {
    const value = this.text(name);
    return value === undefined ? undefined : parseHttpUrl(`--${name}`, value);
  }
}

/** Returns the choice that the value names. For any other value, the error suggests the nearest choice. */
export function parseChoice<const Choice extends string>(
  label: string,
  value: string,
  choices: readonly Choice[],
): Choice {
  const match = choices.find((choice) => choice === value);
  if (match !== undefined) return match;
  const near =
    findNearest(value, choices) ?? choices.find((choice) => choice.toLowerCase() === value.toLowerCase());
  const hint = near === undefined ? "" : ` Did you mean ${near}?`;
  throw new UsageError(
    `${label} must be one of ${choices.join(", ")}; it is ${JSON.stringify(value)}.${hint}`,
  );
}

export function parseHttpUrl(label: string, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url !== null && /^https?:$/.test(url.protocol)) return url;
  throw new UsageError(
    `${label} must be a full URL such as http://127.0.0.1:3000/callbacks/pay; it is ${JSON.stringify(text)}.`,
  );
}

/** Reads the words after the command's name. */
export function readArguments(command: CommandForm, args: readonly string[]): ParsedArguments {
  const specs: Readonly<Record<string, OptionSpec>> = { ...command.options, ...COMMON_OPTIONS };
  const options = Object.fromEntries(
    Object.entries(specs).map(([name, spec]) => {
      return [
        name,
        { type: spec.value === undefined ? ("boolean" as const) : ("string" as const), multiple: true },
      ];
    }),
  );
  const help = { short: "h", ...options.help, type: "boolean" as const };
  const { tokens } = parseArgs({
    args: [...args],
    options: { ...options, help },
    allowPositionals: true,
    strict: false,
    tokens: true,
  });
  const values = new Map<string, (string | true)[]>();
  const positionals: string[] = [];
  let end = args.length;
  for (const token of tokens) {
    if (token.kind === "option-terminator") {
      end = token.index;
      if (command.hasProgramArguments) break;
    } else if (token.kind === "positional") positionals.push(token.value);
    else {
      const earlierValues = values.get(token.name) ?? [];
      values.set(token.name, [...earlierValues, valueFor(command, specs, token)]);
    }
  }
  const parsed = new ParsedArguments(
    values,
    positionals,
    command.hasProgramArguments ? args.slice(end + 1) : [],
  );
  if (!parsed.flag("help")) checkPositionals(command, positionals);
  return parsed;
}

function valueFor(
  command: CommandForm,
  specs: Readonly<Record<string, OptionSpec>>,
  token: {
    readonly name: string;
    readonly rawName: string;
    readonly value?: string | undefined;
    readonly inlineValue?: boolean | undefined;
  },
): string | true {
  const { name, rawName, value, inlineValue } = token;
  const spec = Object.hasOwn(specs, name) ? specs[name] : undefined;
  if (spec === undefined) {
    const near = findNearest(name, Object.keys(specs));
    const hint = near === null ? "" : ` Did you mean --${near}?`;
    throw new UsageError(`Unknown option ${rawName}.${hint}`, `See payhooks ${command.name} --help`);
  }
  if (spec.value === undefined) {
    if (inlineValue) throw new UsageError(`--${name} takes no value.`);
    return true;
  }
  const isOption = inlineValue !== true && /^-./.test(value ?? "") && !/^-\d/.test(value ?? "");
  if (value === undefined || isOption) {
    const hint = isOption ? `If it begins with -, write --${name}=VALUE.` : "";
    throw new UsageError(`--${name} needs a value: --${name} ${spec.value}`, hint);
  }
  return value;
}

function checkPositionals(command: CommandForm, positionals: readonly string[]): void {
  const { least, most } = command.arguments;
  const form = usageOf(command).join("\n");
  if (positionals.length < least) throw new UsageError("An argument is missing.", form);
  if (positionals.length > most) {
    throw new UsageError(`Unexpected argument ${JSON.stringify(positionals[most])}.`, form);
  }
}
