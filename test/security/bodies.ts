import type { Random } from "./random.ts";

const NAMES = [
  "amount",
  "callbackUrl",
  "event",
  "merchantId",
  "message",
  "payTxnId",
  "providerTxId",
  "referenceId",
  "status",
  "timestamp",
  "userId",
  "signature",
  "Signature",
  "signature2",
  "Amount",
  "a",
  "aa",
  "a_",
  "a0",
  "Z",
  "z",
  "zone",
  "",
  "&",
  "a=b",
  "a&b",
  "é",
  "ü",
  "ክፍያ",
  "\u{1f4b3}",
  "\uffff",
  "toString",
  "hasOwnProperty",
  "__proto__",
  "constructor",
  "1",
  "10",
  "2",
  "-1",
  '"',
  "\\",
  "\\u0061",
  "\u2028",
  "\udfff",
];
const TEXTS = [
  "",
  "SUCCESS",
  "10.500000",
  "a&status=SUCCESS",
  "=",
  "&",
  "https://m.example/?a=1&b=2",
  "ክፍያ 💳",
  '"',
  "\\",
  "\n",
  "\u0000",
  "\u2028",
  "null",
  "\u{10ffff}",
  "\ud800",
  "{}",
  "}",
  ",",
  ":",
];
const LITERALS = [
  "null",
  "true",
  "false",
  "0",
  "-0",
  "10",
  "10.0",
  "1e3",
  "1E+3",
  "0.1000",
  "12345678901234567890123",
  "[]",
  "[1, 2]",
  '{"a":[null,"]"]}',
  "{ }",
  '["x","\\"]"]',
];
const SPACES = ["", "", "", " ", "\n", "\t\r\n"];

/** A JSON object as text, with members, values and spellings at random, and now and then a name twice. */
export function randomBody(random: Random): string {
  const names = [...new Set(Array.from({ length: random.below(14) }, () => random.pick(NAMES)))];
  if (names.length > 0 && random.oneIn(8)) names.push(random.pick(names));
  const space = (): string => random.pick(SPACES);
  const members = random.shuffled(names).map((name) => {
    const value = random.oneIn(3) ? random.pick(LITERALS) : quoted(randomText(random), random);
    return `${space()}${quoted(name, random)}${space()}:${space()}${value}${space()}`;
  });
  return `{${members.length === 0 ? space() : members.join(",")}}`;
}

function randomText(random: Random): string {
  if (!random.oneIn(4)) return random.pick(TEXTS);
  return Array.from({ length: 1 + random.below(8) }, () => random.pick(TEXTS)).join("");
}

/** A JSON string in one of its many spellings. */
export function quoted(text: string, random: Random): string {
  if (!random.oneIn(4)) return JSON.stringify(text);
  const units = Array.from({ length: text.length }, (_, at) => {
    const unit = text.charCodeAt(at);
    const plain = unit > 0x1f && unit !== 0x22 && unit !== 0x5c && (unit < 0xd800 || unit > 0xdfff);
    if (plain && random.oneIn(2)) return text.charAt(at);
    if (text.charAt(at) === "/" && random.oneIn(2)) return "\\/";
    return `\\u${unit.toString(16).padStart(4, "0")}`;
  });
  return `"${units.join("")}"`;
}
