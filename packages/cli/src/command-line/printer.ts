/**
 * Everything that the command line prints goes through here. A text from outside, such as the name of a field in a body that
 * was refused, may contain characters that control a terminal, hide text, or turn its direction round. They are printed as
 * escapes.
 */

/** Control and format characters, with the separators of lines and paragraphs. A line end is not one of them in a text. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
/** The colours and styles that `paint` writes. */
const COLOUR = new RegExp(`(${"\u001b"}\\[(?:0|1|2|31|32|33|36)m)`);

/** The two streams of the process. */
export type Stream = "stdout" | "stderr";

/** Prints a text. Only line ends, tabs and, on a screen, the colours of the command line are left as they are. */
export function printText(stream: Stream, text: string): void {
  const keepsColour = usesColour(process[stream]);
  const parts = keepsColour ? text.split(COLOUR) : [text];
  const clean = parts.map((part, i) => (i % 2 === 1 ? part : part.replace(UNSAFE, escapedInText)));
  process[stream].write(clean.join(""));
}

/** Prints a line of JSON. It is the same value to every parser, with the characters above as escapes. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value).replace(UNSAFE, escaped)}\n`);
}

/** True if a person reads the stream on a screen and has not switched colours off. */
export function usesColour(stream: { readonly isTTY?: boolean }): boolean {
  const { NO_COLOR, TERM } = process.env;
  return stream.isTTY === true && (NO_COLOR ?? "") === "" && TERM !== "dumb";
}

/** A character as JSON escapes it, by its code units. */
export function escaped(character: string): string {
  return character
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");
}

function escapedInText(character: string): string {
  return character === "\n" || character === "\t" ? character : escaped(character);
}

/** Makes a text from outside one line of limited length. */
export function shown(text: string, most = 200): string {
  const plain = text.replace(UNSAFE, escaped);
  return plain.length > most ? `${plain.slice(0, most)}…` : plain;
}
