import { type JsonValue, parseJson } from "../json.ts";

/** The text that replaces a secret. */
const MASK = "[secret]";

/** Longer JSON is not parsed but shown as text, since searching it would take long. */
const MAX_JSON_CHARS = 64 * 1024;
const MAX_TEXT_CHARS = 2_000;
/**
 * How much of a text is searched. The end of the searched text is not shown, since it may be the beginning of a secret.
 */
const MAX_SEARCHED_CHARS = 20_000;

/**
 * The body of an error without secrets, in case the service, or a proxy before it, repeats what it was sent. JSON of at
 * most 64 KiB is parsed. Of anything else, these are the first 2,000 characters. Secrets are replaced in all forms: as
 * they are, escaped as in JSON, URLs or HTML, within longer base64, and in hex.
 */
export function maskBody(secrets: readonly string[], text: string): JsonValue {
  const mask = maskerOf(secrets);
  const json = text.length > MAX_JSON_CHARS ? undefined : parseJson(text);
  if (json !== undefined) return maskValue(mask, json);
  return maskText(mask, text);
}

function maskText(mask: (text: string) => string, text: string): string {
  const masked = mask(text.slice(0, MAX_SEARCHED_CHARS));
  return masked.slice(
    0,
    text.length > MAX_SEARCHED_CHARS ? Math.min(MAX_TEXT_CHARS, masked.length / 2) : MAX_TEXT_CHARS,
  );
}

function maskValue(mask: (text: string) => string, value: JsonValue): JsonValue {
  const maskNode = (node: JsonValue, depth: number): JsonValue => {
    if (typeof node === "string") return mask(node);
    if (typeof node === "number") return mask(String(node)) === String(node) ? node : MASK;
    if (typeof node !== "object" || node === null) return node;
    if (depth === MAX_DEPTH) return null;
    if (Array.isArray(node)) return node.map((member) => maskNode(member, depth + 1));
    const members = Object.entries(node).map(([name, member]) => [mask(name), maskNode(member, depth + 1)]);
    return Object.fromEntries(members) as JsonValue;
  };
  return maskNode(value, 0);
}

/** Deeper values are left out, since a hostile answer may be nested without end. */
const MAX_DEPTH = 100;

/** The members of a network error that contain no data of the request. */
const SAFE_MEMBERS = ["code", "errno", "syscall", "address", "port", "hostname"] as const;
const MAX_CAUSES = 3;

/**
 * The error that `fetch` threw, without secrets in its texts, which are cut after 2,000 characters. Other members are
 * dropped, since a custom `fetch` may add any, such as the request with its headers. Undefined for an error that throws
 * when it is read.
 */
export function maskError(secrets: readonly string[], thrown: unknown, depth = 1): unknown {
  try {
    return copyMasked(secrets, thrown, depth);
  } catch {
    return undefined;
  }
}

function copyMasked(secrets: readonly string[], thrown: unknown, depth: number): unknown {
  const masker = maskerOf(secrets);
  const mask = (text: unknown): string => maskText(masker, String(text));
  if (!(thrown instanceof Error)) return typeof thrown === "string" ? mask(thrown) : undefined;
  const inner = thrown.cause ?? (thrown as Partial<AggregateError>).errors?.[0];
  const cause = depth < MAX_CAUSES ? maskError(secrets, inner, depth + 1) : undefined;
  const masked = new Error(mask(thrown.message), cause === undefined ? undefined : { cause });
  masked.name = mask(thrown.name);
  masked.stack = mask(thrown.stack);
  for (const name of SAFE_MEMBERS) {
    const value = (thrown as Error & Partial<Record<string, unknown>>)[name];
    if (typeof value === "string") Object.assign(masked, { [name]: mask(value) });
    else if (typeof value === "number") Object.assign(masked, { [name]: value });
  }
  return masked;
}

function maskerOf(secrets: readonly string[]): (text: string) => string {
  const patterns = secrets.filter((secret) => secret !== "").flatMap(patternsOf);
  if (patterns.length === 0) return (text) => text;
  const any = new RegExp(patterns.join("|"), "g");
  return (text) => text.replace(any, MASK);
}

/** Shorter pieces of base64 or hex would be found in innocent texts too. */
const MIN_PIECE_CHARS = 8;

function patternsOf(secret: string): string[] {
  const bytes = new TextEncoder().encode(secret);
  const hex = Array.from(bytes, hexOf).join("");
  const base64 = [0, 1, 2]
    .map((before) => innerBase64(bytes, before))
    .filter((text) => text.length >= MIN_PIECE_CHARS);
  return [
    spellingsPattern(secret),
    ...base64.map((text) => spellingsPattern(text, BASE64URL_DIGITS)),
    ...(hex.length >= MIN_PIECE_CHARS ? [eitherCase(hex)] : []),
  ];
}

/** The base64 of the bytes after `before` others. Digits that also depend on the bytes around them are left out. */
function innerBase64(bytes: Uint8Array, before: number): string {
  const padded = new Uint8Array(before + bytes.length);
  padded.set(bytes, before);
  const text = btoa(String.fromCharCode(...padded));
  return text.slice(Math.ceil((before * 8) / 6), Math.floor((padded.length * 8) / 6));
}

/** The characters that base64url uses instead. */
const BASE64URL_DIGITS: Readonly<Record<string, string>> = { "+": "-", "/": "_" };
const HTML_ENTITIES: Readonly<Record<string, string>> = {
  "&": "amp",
  "<": "lt",
  ">": "gt",
  '"': "quot",
  "'": "apos",
};

/**
 * A pattern for a text in which each character may be escaped, in any of several ways, and more than once. Its
 * repetitions are bounded, so that no answer can make the search slow.
 */
function spellingsPattern(text: string, alternatives: Readonly<Record<string, string>> = {}): string {
  return Array.from(text, (character) => {
    const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index));
    const point = character.codePointAt(0) ?? 0;
    const forms = [
      literal(character),
      `(?<!\\\\)\\\\{1,32}${literal(character)}`,
      units.map((unit) => `(?<!\\\\)\\\\{1,32}u${eitherCase(unit.toString(16).padStart(4, "0"))}`).join(""),
      Array.from(
        new TextEncoder().encode(character),
        (byte) => `%(?:25){0,3}${eitherCase(hexOf(byte))}`,
      ).join(""),
      `&#0{0,6}${point};`,
      `&#[xX]0{0,6}${eitherCase(point.toString(16))};`,
    ];
    if (character === " ") forms.push("\\+");
    const name = HTML_ENTITIES[character];
    if (name !== undefined) forms.push(`&${name};`);
    const other = alternatives[character];
    if (other !== undefined) forms.push(literal(other));
    return `(?:${forms.join("|")})`;
  }).join("");
}

function literal(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
}

function eitherCase(hex: string): string {
  return hex.replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);
}

function hexOf(byte: number): string {
  return byte.toString(16).padStart(2, "0");
}
