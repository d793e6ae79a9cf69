import { CALLBACK_FIELDS } from "@payhooks/core/signature";
import type { JsonMember } from "./json-text.ts";

/** A text that may have been signed instead of this body's canonical string. */
export interface CanonicalVariant {
  readonly what: string;
  readonly fix: string;
  readonly text: string;
}

type Texts = readonly (readonly [name: string, text: string])[];

const byCodeUnit = ([a]: readonly [string, string], [b]: readonly [string, string]): number =>
  a < b ? -1 : a > b ? 1 : 0;
const joinTexts = (texts: Texts): string => texts.map(([name, text]) => `${name}=${text}`).join("&");
const documentedFields: ReadonlySet<string> = new Set(CALLBACK_FIELDS);

/** The fields as the canonical string has them: without nulls, and with numbers as they were written. */
export function textsOf(members: readonly JsonMember[]): Texts {
  const byName = new Map<string, string>();
  for (const { name, raw, value } of members) {
    if (name === "signature" || value === null) byName.delete(name);
    else byName.set(name, typeof value === "string" ? value : raw);
  }
  return [...byName];
}

export function canonicalOf(texts: Texts): string {
  return joinTexts(texts.toSorted(byCodeUnit));
}

/** Plausible differences between the signed text and this body. */
export function* canonicalVariants(members: readonly JsonMember[]): Generator<CanonicalVariant> {
  const texts = textsOf(members);
  const nulls = members.filter(({ value }) => value === null).map(({ name }) => name);
  const changedVariant = (
    what: string,
    fix: string,
    change: (text: string, name: string) => string,
  ): CanonicalVariant => ({
    what,
    fix,
    text: canonicalOf(texts.map(([name, text]) => [name, change(text, name)] as const)),
  });
  const keepBodyFix = "Forward and store the body as it arrived; do not serialise it again.";
  yield changedVariant(
    "amount lost its six decimal places: it was read as a number.",
    keepBodyFix,
    (text, name) => (name === "amount" && Number.isFinite(Number(text)) ? Number(text).toFixed(6) : text),
  );
  const numbers = new Set(members.filter(({ value }) => typeof value === "number").map(({ name }) => name));
  yield changedVariant(
    "numbers were parsed and serialised again: 10.0 became 10.",
    keepBodyFix,
    (text, name) => (numbers.has(name) && /^-?\d+$/.test(text) ? `${text}.0` : text),
  );
  yield changedVariant("white space around a value was cut off or added.", keepBodyFix, (text) =>
    text.trim(),
  );
  yield changedVariant("& < > or quotes were escaped for HTML.", keepBodyFix, (text) =>
    text
      .replaceAll("&lt;", "<")
      .replaceAll("&gt;", ">")
      .replaceAll("&quot;", '"')
      .replaceAll("&#39;", "'")
      .replaceAll("&amp;", "&"),
  );
  yield changedVariant("values were percent-encoded.", keepBodyFix, (text) => percentDecode(text));
  yield changedVariant("a + became a space, as in a form.", keepBodyFix, (text) => text.replaceAll(" ", "+"));
  yield changedVariant("characters were read as Latin-1 and written as UTF-8.", keepBodyFix, (text) =>
    Buffer.from(text, "latin1").toString("utf8"),
  );
  yield changedVariant("characters were written in another Unicode form (composed).", keepBodyFix, (text) =>
    text.normalize("NFC"),
  );
  yield changedVariant("characters were written in another Unicode form (decomposed).", keepBodyFix, (text) =>
    text.normalize("NFD"),
  );
  const senders = "The one who signed did not follow the specification (Authentication, 4).";
  yield {
    what: "null fields were signed as name=null; the specification omits them.",
    fix: senders,
    text: canonicalOf([...texts, ...nulls.map((name) => [name, "null"] as const)]),
  };
  yield {
    what: "null fields were signed as empty ones; the specification omits them.",
    fix: senders,
    text: canonicalOf([...texts, ...nulls.map((name) => [name, ""] as const)]),
  };
  yield {
    what: "empty fields were left out when it was signed; only null ones are.",
    fix: senders,
    text: canonicalOf(texts.filter(([, text]) => text !== "")),
  };
  yield {
    what: "the fields were signed in the order of the body, not sorted.",
    fix: senders,
    text: joinTexts(texts),
  };
  yield {
    what: "the names were sorted without regard to capitals; they are sorted by code unit.",
    fix: senders,
    text: joinTexts(texts.toSorted(([a], [b]) => a.toLowerCase().localeCompare(b.toLowerCase()))),
  };
  const extra = texts.filter(([name]) => !documentedFields.has(name));
  yield {
    what: "only documented fields were signed: the others were added afterwards.",
    fix: "Do not add fields after signing, or leave them out before verification.",
    text: canonicalOf(texts.filter(([name]) => documentedFields.has(name))),
  };
  for (const [added] of extra) {
    yield {
      what: `the field ${JSON.stringify(added)} was added after the body was signed.`,
      fix: "Find what adds it on the way: a proxy, a gateway, your own logging.",
      text: canonicalOf(texts.filter(([name]) => name !== added)),
    };
  }
}

function percentDecode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
