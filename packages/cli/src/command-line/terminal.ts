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

/** True if a person reads the stream on a screen and has not switched colours off. */
export function usesColour(stream: { readonly isTTY?: boolean }): boolean {
  const { NO_COLOR, TERM } = process.env;
  return stream.isTTY === true && (NO_COLOR ?? "") === "" && TERM !== "dumb";
}

export function createTerminal(isJson: boolean): Terminal {
  const colour = usesColour(process.stdout);
  return {
    isJson,
    line(text = "") {
      if (!isJson) process.stdout.write(`${text}\n`);
    },
    json(value) {
      if (isJson) process.stdout.write(`${JSON.stringify(value)}\n`);
    },
    paint: (name, text) => (colour ? `\u001b[${CODES[name]}m${text}\u001b[0m` : text),
  };
}

/** Makes a text from outside safe to print: on one line, without characters that would control the terminal. */
export function shown(text: string, most = 200): string {
  const plain = text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) => {
    return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`;
  });
  return plain.length > most ? `${plain.slice(0, most)}…` : plain;
}
