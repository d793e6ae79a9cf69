import { printJson, printText, usesColour } from "./printer.ts";

/** Where a command prints. */
export interface Terminal {
  /** `--json` was given. */
  readonly isJson: boolean;
  /** Prints a line of text for people. With `--json` it prints nothing. */
  line(text?: string): void;
  /** Prints a line of JSON. Without `--json` it prints nothing. */
  json(value: unknown): void;
  paint(colour: Colour, text: string): string;
}

export type Colour = "red" | "green" | "yellow" | "bold" | "dim" | "cyan";

const CODES: Readonly<Record<Colour, number>> = { red: 31, green: 32, yellow: 33, cyan: 36, bold: 1, dim: 2 };

export function createTerminal(isJson: boolean): Terminal {
  const colour = usesColour(process.stdout);
  return {
    isJson,
    line(text = "") {
      if (!isJson) printText("stdout", `${text}\n`);
    },
    json(value) {
      if (isJson) printJson(value);
    },
    paint: (name, text) => (colour ? `\u001b[${CODES[name]}m${text}\u001b[0m` : text),
  };
}
