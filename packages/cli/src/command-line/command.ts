import type { Given } from "./given.ts";
import type { Terminal } from "./terminal.ts";

/** One option of a command. */
export interface OptionSpec {
  /** What stands for the value in the help; an option without one is a switch. */
  readonly value?: string;
  readonly multiple?: boolean;
  readonly help: string;
  /** Shown in the help, where there is a fixed one. */
  readonly default?: string;
}

/** One command of `payhooks`. */
export interface Command {
  readonly name: string;
  /** One line, for the list of commands. */
  readonly summary: string;
  /** What follows `payhooks <name>`; one line per form. */
  readonly usage: readonly string[];
  readonly options: Readonly<Record<string, OptionSpec>>;
  /** Everything that the options do not say, in paragraphs. */
  readonly notes: readonly string[];
  /** Whole command lines that work as they are. */
  readonly examples: readonly string[];
  /** What is required before the options: arguments, at least and at most so many. */
  readonly arguments: { readonly least: number; readonly most: number };
  /** True when everything after `--` belongs to another program. */
  readonly passesOn?: boolean;
  /** Resolves with the exit code. */
  run(given: Given, terminal: Terminal): Promise<number>;
}

/** Options that every command has. */
export const COMMON_OPTIONS: Readonly<Record<string, OptionSpec>> = {
  json: { help: "print JSON for programs instead of text" },
  help: { help: "show this help" },
};
