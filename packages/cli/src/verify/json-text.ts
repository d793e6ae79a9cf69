/** A member of a JSON object. `raw` is its value exactly as it was written, `value` is the parsed one. */
export interface JsonMember {
  readonly name: string;
  readonly raw: string;
  readonly value: unknown;
}

const TOKEN_PATTERN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/** The members of a JSON object in their order, duplicates included. Null if the text is not a JSON object. */
export function membersOf(text: string): JsonMember[] | null {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) return null;
  const members: JsonMember[] = [];
  let depth = 0;
  let name: string | null = null;
  let start = 0;
  for (const { 0: token, index } of text.matchAll(TOKEN_PATTERN)) {
    if (depth === 1 && name === null && token.startsWith('"')) name = JSON.parse(token) as string;
    else if (depth === 1 && token === ":") start = index + 1;
    else if (token === "{" || token === "[") depth++;
    else if (token === "}" || token === "]" || token === ",") {
      if (depth === 1 && name !== null) {
        const raw = text.slice(start, index).trim();
        members.push({ name, raw, value: JSON.parse(raw) });
        name = null;
      }
      if (token !== ",") depth--;
    }
  }
  return members;
}

/** One way to write JSON. */
export interface Spelling {
  readonly what: string;
  write(value: unknown): string;
}

/** Writes the characters that a pattern finds as `\u` escapes. */
const escapeCharacters = (text: string, characters: RegExp): string =>
  text.replace(characters, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);

const escapeNonAscii = (text: string): string => escapeCharacters(text, /[\u007f-\uffff]/g);

/** Writes spaces after commas and colons, as Python's json.dumps does. */
function stringifySpaced(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(stringifySpaced).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(
    ([name, member]) => `${JSON.stringify(name)}: ${stringifySpaced(member)}`,
  );
  return `{${members.join(", ")}}`;
}

function sortMembers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortMembers);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members.map(([name, member]) => [name, sortMembers(member)]));
}

/** The ways in which common programs write the same value. */
export const SPELLINGS: readonly Spelling[] = [
  { what: "compact, as JSON.stringify writes it", write: (value) => JSON.stringify(value) },
  { what: "indented by two spaces", write: (value) => JSON.stringify(value, null, 2) },
  { what: "indented by four spaces", write: (value) => JSON.stringify(value, null, 4) },
  { what: "indented by tabs", write: (value) => JSON.stringify(value, null, "\t") },
  { what: "with spaces after commas and colons, as Python's json.dumps writes it", write: stringifySpaced },
  {
    what: "with spaces and \\u escapes, as Python's json.dumps writes it",
    write: (value) => escapeNonAscii(stringifySpaced(value)),
  },
  { what: "compact with \\u escapes", write: (value) => escapeNonAscii(JSON.stringify(value)) },
  {
    what: "compact with escaped slashes, as PHP's json_encode writes it",
    write: (value) => escapeNonAscii(JSON.stringify(value).replaceAll("/", "\\/")),
  },
  {
    what: "compact with <, > and & escaped, as Go's encoding/json writes it",
    write: (value) => escapeCharacters(JSON.stringify(value), /[<>&\u2028\u2029]/g),
  },
  { what: "compact with sorted names", write: (value) => JSON.stringify(sortMembers(value)) },
];
