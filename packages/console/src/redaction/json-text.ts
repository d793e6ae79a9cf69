/** One token of a JSON text: a string, a number or a word, as it was written, or a punctuation mark. */
export type JsonToken = string;

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g;

/**
 * Deeper levels are not indented further: it would not help a reader, and a small body could become a very large text.
 */
const MAX_INDENT = 16;

/** The tokens of a text that is valid JSON. */
export function tokensOf(text: string): readonly JsonToken[] {
  return text.match(TOKEN) ?? [];
}

/** The index after the last token of the value that begins at `start`. */
export function endOfValue(tokens: readonly JsonToken[], start: number): number {
  let depth = 0;
  for (let i = start; i < tokens.length; i++) {
    const token = tokens[i];
    if (token === "{" || token === "[") depth++;
    else if (token === "}" || token === "]") depth--;
    if (depth === 0) return i + 1;
  }
  return tokens.length;
}

/** True if a token is the name of a member. */
export function isName(tokens: readonly JsonToken[], at: number): boolean {
  return tokens[at + 1] === ":" && tokens[at]?.startsWith('"') === true;
}

/** Writes tokens as indented text. Unlike `JSON.stringify`, it leaves numbers and strings as they were written. */
export function indented(tokens: readonly JsonToken[]): string {
  let text = "";
  let depth = 0;
  const line = (): string => `\n${"  ".repeat(Math.min(depth, MAX_INDENT))}`;
  tokens.forEach((token, i) => {
    if (token === "{" || token === "[") {
      depth++;
      text += token;
      if (tokens[i + 1] !== "}" && tokens[i + 1] !== "]") text += line();
    } else if (token === "}" || token === "]") {
      depth--;
      if (tokens[i - 1] !== "{" && tokens[i - 1] !== "[") text += line();
      text += token;
    } else if (token === ",") {
      text += token + line();
    } else if (token === ":") {
      text += ": ";
    } else {
      text += token;
    }
  });
  return text;
}
