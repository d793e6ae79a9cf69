/** A text as others write it, and the reverse. */

const unicode = (text: string): string =>
  Array.from(
    { length: text.length },
    (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, "0")}`,
  ).join("");
const percent = (text: string): string =>
  Array.from(Buffer.from(text), (byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");
const php = (value: unknown): string => JSON.stringify(value).replaceAll("/", "\\/");
const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** Each way in which a service, or something before it, may write a text that it repeats. */
export const SPELLINGS: readonly (readonly [how: string, write: (text: string) => string])[] = [
  ["as it is, in JSON", (text) => JSON.stringify({ key: text })],
  ["as PHP writes JSON", (text) => php({ key: text })],
  ["in escapes of JSON", (text) => `{"key":"${unicode(text)}"}`],
  [
    "in escapes of JSON, in upper case",
    (text) => `{"key":"${unicode(text).replace(/[a-f]/g, (digit) => digit.toUpperCase())}"}`,
  ],
  ["as JSON in JSON", (text) => JSON.stringify({ request: php({ key: text }) })],
  [
    "as JSON in JSON in JSON",
    (text) => JSON.stringify(JSON.stringify(JSON.stringify(`{"key":"${unicode(text)}"}`))),
  ],
  ["as a name", (text) => JSON.stringify({ [text]: { deep: [text] } })],
  ["as text", (text) => `bad key ${text}!`],
  ["as a part of JSON that is cut off", (text) => `{"key":"${unicode(text)}`],
  ["in a URL", (text) => JSON.stringify({ url: `/v2?key=${encodeURIComponent(text)}` })],
  ["in a URL, every character escaped", (text) => `/v2?key=${percent(text)}`],
  ["in a URL in a URL", (text) => `/v2?back=${encodeURIComponent(encodeURIComponent(text))}`],
  ["in a form", (text) => new URLSearchParams({ key: text }).toString()],
  ["in HTML", (text) => `<p>${text.replace(/[&<>"'/]/g, (one) => `&#${one.charCodeAt(0)};`)}</p>`],
  [
    "in HTML, by name",
    (text) =>
      `<p>${text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;").replaceAll("/", "&#x2F;")}</p>`,
  ],
  ["in base64", (text) => JSON.stringify({ k: base64(text) })],
  ["in base64, as PHP writes JSON", (text) => php({ k: base64(text) })],
  ["in base64url behind something", (text) => Buffer.from(`Basic ${text}:`).toString("base64url")],
  ["in hex", (text) => Buffer.from(text).toString("hex")],
  ["in hex, in upper case", (text) => Buffer.from(text).toString("hex").toUpperCase()],
];

/** The readings of a text in each of these ways, however often it was escaped. */
export function readingsOf(text: string): string[] {
  const plain = unescaped(text);
  const words = new Set([text, plain].flatMap((one) => one.match(/[\w+/-]{8,}/g) ?? []));
  const encoded = [...words].flatMap((word) => [
    ...[0, 1, 2, 3].map((from) => Buffer.from(word.slice(from), "base64").toString("latin1")),
    ...(/^[0-9a-f]+$/i.test(word) ? [Buffer.from(word, "hex").toString("latin1")] : []),
  ]);
  return [text, plain, ...encoded];
}

const CHARACTER = /\\+u([0-9a-f]{4})|%([0-9a-f]{2})|&#x([0-9a-f]+);/gi;
const NAMES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

function unescaped(text: string): string {
  const plain = text
    .replace(CHARACTER, (_, ...digits: (string | undefined)[]) => {
      const hex = digits.slice(0, 3).find((one) => one !== undefined) ?? "0";
      return String.fromCharCode(Number.parseInt(hex, 16));
    })
    .replace(/&#(\d+);/g, (_, digits: string) => String.fromCharCode(Number(digits)))
    .replace(/&(amp|lt|gt|quot|apos);/g, (_, name: string) => NAMES[name] ?? "")
    .replaceAll("\\", "");
  return plain === text ? text : unescaped(plain);
}
