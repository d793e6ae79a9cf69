/** One token of a JSON text: a string, a number or a word as it was written, or a sign. */
export type JsonToken = string;

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g;

/** Indentation beyond this depth says nothing, and would make a small body a very large text. */
const MAX_INDENT = 16;

/** The tokens of a text that is valid JSON. */
export function tokensOf(text: string): readonly JsonToken[] {
  return text.match(TOKEN) ?? [];
}

/** Where the value that begins at `start` ends: the index behind its last token. */
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

/** True for the name of a member. */
export function isName(tokens: readonly JsonToken[], at: number): boolean {
  return tokens[at + 1] === ":" && tokens[at]?.startsWith('"') === true;
}

/** Tokens as indented text. Unlike `JSON.stringify`, it leaves numbers and strings as they were written. */
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
