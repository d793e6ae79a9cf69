import { type Colour, paint, printJson, printText } from "./printer.ts";

/** The streams that a command prints to. */
export interface Terminal {
  /** `--json` was given. */
  readonly isJson: boolean;
  /** Prints a line of text for people. With `--json` it prints nothing. */
  line(text?: string): void;
  /** Prints a line of JSON. Without `--json` it prints nothing. */
  json(value: unknown): void;
  paint(colour: Colour, text: string): string;
}

export function createTerminal(isJson: boolean): Terminal {
  return {
    isJson,
    line(text = "") {
      if (!isJson) printText("stdout", `${text}\n`);
    },
    json(value) {
      if (isJson) printJson(value);
    },
    paint,
  };
}
