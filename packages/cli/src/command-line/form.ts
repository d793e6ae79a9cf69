/** One option of a command. */
export interface OptionSpec {
  /** The placeholder for the value in the help. An option without one is a switch. */
  readonly value?: string;
  readonly multiple?: boolean;
  readonly help: string;
  /** The default as the help shows it, if there is one. */
  readonly default?: string;
}

/** How a command is called, and what its help says. */
export interface CommandForm {
  readonly name: string;
  /** One line, for the list of commands. */
  readonly summary: string;
  /** The text after `payhooks <name>`, one line for each form. */
  readonly usage: readonly string[];
  readonly options: Readonly<Record<string, OptionSpec>>;
  /** Everything that the options do not say, in paragraphs. */
  readonly notes: readonly string[];
  /** Whole command lines that work as they are. */
  readonly examples: readonly string[];
  /** How many arguments the command takes besides its options. */
  readonly arguments: { readonly least: number; readonly most: number };
  /** True if everything after `--` belongs to another program. */
  readonly hasProgramArguments?: boolean;
}

/** Options that every command has. */
export const COMMON_OPTIONS: Readonly<Record<string, OptionSpec>> = {
  json: { help: "print JSON for programs instead of text" },
  help: { help: "show this help" },
};
