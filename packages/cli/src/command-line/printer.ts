/**
 * Everything that the command line prints goes through here. A text from outside, such as the name of a field in a body that
 * was refused, may contain characters that control a terminal, colour or hide text, or turn its direction round. They are
 * printed as escapes. Only what `paint` has coloured here is in colour. A table for a program is the one exception.
 */
import { randomUUID } from "node:crypto";

/** Control and format characters, with the separators of lines and paragraphs. A line end is not one of them in a text. */
const UNSAFE_PATTERN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
const COLOUR_CODES = { red: 31, green: 32, yellow: 33, cyan: 36, bold: 1, dim: 2 } as const;
/** Precedes the code of a colour. Nobody outside of this process can know it, so no text from outside contains it. */
const PAINT_MARK = randomUUID();
const PAINT_PATTERN = new RegExp(`${PAINT_MARK}(\\d+);`);

export type Colour = keyof typeof COLOUR_CODES;

/** The two streams of the process. */
export type Stream = "stdout" | "stderr";

/** The text in a colour, for `printText` alone. */
export function paint(colour: Colour, text: string): string {
  return `${PAINT_MARK}${COLOUR_CODES[colour]};${text}${PAINT_MARK}0;`;
}

/** Prints a text. Only line ends, tabs and, on a screen, what is painted are left as they are. */
export function printText(stream: Stream, text: string): void {
  const isScreen = usesColour(stream);
  const parts = text.split(PAINT_PATTERN).map((part, i) => {
    if (i % 2 === 0) return part.replace(UNSAFE_PATTERN, escapeInText);
    return isScreen ? `\u001b[${part}m` : "";
  });
  process[stream].write(parts.join(""));
}

/** Prints a line of JSON. It is the same value to every parser, with the characters above as escapes. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value).replace(UNSAFE_PATTERN, escapeCharacter)}\n`);
}

/**
 * Prints a line of a table. A program gets each value as it is, so that it can give it back. On a terminal, the characters above are
 * escapes, a line end in a value among them.
 */
export function printTableLine(line: string): void {
  if (process.stdout.isTTY === true)
    printText("stdout", `${line.replace(UNSAFE_PATTERN, escapeCharacter)}\n`);
  else process.stdout.write(`${line}\n`);
}

/** True if a person reads the stream on a screen and has not switched colours off. */
function usesColour(stream: Stream): boolean {
  const { NO_COLOR, TERM } = process.env;
  return process[stream].isTTY === true && (NO_COLOR ?? "") === "" && TERM !== "dumb";
}

/** A character as JSON escapes it, by its code units. */
export function escapeCharacter(character: string): string {
  return character
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");
}

function escapeInText(character: string): string {
  return character === "\n" || character === "\t" ? character : escapeCharacter(character);
}

/** Makes a text from outside one line of limited length. */
export function escapeForTerminal(text: string, most = 200): string {
  const plain = text.replace(UNSAFE_PATTERN, escapeCharacter);
  return plain.length > most ? `${plain.slice(0, most)}…` : plain;
}
