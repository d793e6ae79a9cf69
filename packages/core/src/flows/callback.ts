import { isAmount } from "../amount.ts";
import { parseTimestamp } from "../events.ts";
import { type JsonBody, parseJsonBody, rawMembers } from "../json.ts";
import { CALLBACK_FIELDS, type CallbackField } from "../signature/canonical.ts";

/** A callback's fields as the canonical string has them: every field but `signature` that is not null, as text. */
export type CallbackTexts = ReadonlyMap<string, string>;

/** A payment callback's body, read but not yet judged. */
export interface CallbackBody {
  readonly json: JsonBody;
  readonly texts: CallbackTexts;
  readonly canonical: string;
  /** The specification lists all of its fields, as nearly always: there is nothing undocumented to judge. */
  readonly onlyDocumented: boolean;
}

/** What the rules need to know of the options. */
export interface CallbackRules {
  /** `payments.extraFields`: undocumented fields that every callback carries. */
  readonly extraFields: ReadonlySet<string>;
  /** `payments.expect.callbackUrl`: URLs that are known as a whole. */
  readonly pinnedUrls: ReadonlySet<string>;
  /** A resolver chose the keys by `merchantId`, so it must be there. */
  readonly merchantIdRequired: boolean;
  /** `payments.expect.merchantId`; empty: any. */
  readonly pinnedMerchantIds: ReadonlySet<string>;
  /** False for look-ups: a transaction may have been created without one. */
  readonly callbackUrlRequired: boolean;
}

/** A broken rule. R1–R3 make a body malformed; R4 and R5 leave more than one reading of its signature. */
export interface Violation {
  readonly rule: "R1" | "R2" | "R3" | "R4" | "R5" | "JSON";
  readonly reason: "malformed" | "ambiguous";
  /** What is wrong, naming fields but not their values. */
  readonly detail: string;
}

const documented: ReadonlySet<string> = new Set(CALLBACK_FIELDS);
const NAME = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;
const CODE = /^[A-Z_]{1,64}$/;

/** True for a field of the specification. */
export function isDocumented(name: string): name is CallbackField {
  return documented.has(name);
}

/** True for a name that R1 allows. */
export function isFieldName(name: string): boolean {
  return NAME.test(name) && name !== "constructor" && name !== "prototype";
}

/** Reads a callback's body; null when it is not a JSON object, so that there is nothing to verify. */
export function readCallback(rawBody: Uint8Array): CallbackBody | null {
  const json = parseJsonBody(rawBody);
  if (json === null) return null;
  const texts = new Map<string, string>();
  let canonical = "";
  let raw: Map<string, string> | null = null;
  const names = sortedNames(json);
  for (const name of names) {
    const value = json.object[name];
    if (value === null || value === undefined) continue;
    let text: string;
    if (typeof value === "string") text = value;
    else {
      raw ??= rawMembers(json.text);
      text = raw.get(name) ?? "";
    }
    texts.set(name, text);
    canonical += canonical === "" ? `${name}=${text}` : `&${name}=${text}`;
  }
  return { json, texts, canonical, onlyDocumented: names === CALLBACK_FIELDS };
}

/** Names but `signature`, by code unit. The documented ones are sorted already, and seldom is there another. */
function sortedNames({ object }: JsonBody): readonly string[] {
  const names = Object.keys(object);
  let known = 0;
  for (const name of names) if (documented.has(name) || name === "signature") known++;
  return known === names.length ? CALLBACK_FIELDS : names.filter((name) => name !== "signature").sort();
}

/**
 * Applies the rules R1–R5, under which a canonical string has one reading as far as documented fields go.
 * `docs/security.md` explains the attack and each rule. Only meaningful once the signature is verified.
 *
 * @returns the first broken rule, or null.
 */
export function findViolation(body: CallbackBody, rules: CallbackRules): Violation | null {
  const { json, texts, onlyDocumented } = body;
  if (json.flaw !== null) return malformed("JSON", `the body has ${json.flaw}`);
  // UTF-8 has no surrogates: only an escape can spell half of a pair.
  const hasEscapes = json.text.includes("\\u");
  for (const name of Object.keys(json.object)) {
    const isKnown = documented.has(name);
    if (!isKnown && !isFieldName(name)) return malformed("R1", "a field has a name that is not allowed");
    const value = json.object[name];
    if (typeof value === "string") {
      if (hasEscapes && hasLoneSurrogate(value)) return malformed("R2", `${name} is not well-formed text`);
    } else if (typeof value === "object" && value !== null) {
      return malformed("R2", `${name} is an array or an object`);
    } else if (isKnown && value !== null) {
      return malformed("R2", `${name} is not a string`);
    }
  }
  const missing = findMalformedField(texts, rules);
  if (missing !== null) return malformed("R3", missing);
  for (const name of rules.extraFields) {
    if (!texts.has(name)) return ambiguous("R5", `${name} is declared in payments.extraFields but missing`);
  }
  return findAmbiguousValue(texts, rules) ?? (onlyDocumented ? null : findAmbiguousName(texts, rules));
}

/** R3: what is wrong with a required field, or null. */
export function findMalformedField(texts: CallbackTexts, rules: CallbackRules): string | null {
  const amount = texts.get("amount");
  if (amount === undefined || !isAmount(amount)) return "amount is not digits with up to six decimals";
  const url = texts.get("callbackUrl");
  const urlMissing = url === undefined && !rules.callbackUrlRequired;
  if (!urlMissing && !isAbsoluteUrl(url ?? "")) return "callbackUrl is not an absolute URL";
  if (!CODE.test(texts.get("event") ?? "")) return "event is not an upper-case name";
  if (!CODE.test(texts.get("status") ?? "")) return "status is not an upper-case name";
  if (!texts.get("payTxnId")) return "payTxnId is missing or empty";
  if (!texts.get("referenceId")) return "referenceId is missing or empty";
  if (parseTimestamp(texts.get("timestamp")) === null) return "timestamp is not an ISO 8601 UTC time";
  if (rules.merchantIdRequired && !texts.get("merchantId")) return "merchantId is missing or empty";
  return null;
}

/** The last text that was one: a merchant's callbacks nearly all name the same. */
let lastUrl = "";

function isAbsoluteUrl(text: string): boolean {
  if (text === "" || (text !== lastUrl && !URL.canParse(text))) return false;
  lastUrl = text;
  return true;
}

/** R4: a value that could swallow, or be cut into, further fields. */
function findAmbiguousValue(texts: CallbackTexts, { pinnedUrls }: CallbackRules): Violation | null {
  for (const name of texts.keys()) {
    const text = texts.get(name) ?? "";
    if (!text.includes("&")) continue;
    if (name === "callbackUrl") {
      // Its own name: an undocumented field before it may have carried a whole callbackUrl (decision 0002).
      const [, word] = /&(event|callbackUrl)=/.exec(text) ?? [];
      if (word !== undefined && !pinnedUrls.has(text)) {
        return ambiguous(
          "R4",
          `callbackUrl contains &${word}= (pin it in payments.expect.callbackUrl if it is yours)`,
        );
      }
    } else if (name === "message") {
      for (const [, word = ""] of text.matchAll(/&([A-Za-z]\w*)(?==)/g)) {
        if (documented.has(word) || texts.has(word)) return ambiguous("R4", `message contains &${word}=`);
      }
    } else if (name === "referenceId") {
      if (/&[A-Za-z]\w*=/.test(text))
        return ambiguous("R4", "referenceId contains an & that begins another field");
    } else {
      return ambiguous("R4", `${name} contains an &`);
    }
  }
  return null;
}

/** R5: an undeclared name where the end of a free-text field could have been cut off to make it. */
function findAmbiguousName(texts: CallbackTexts, rules: CallbackRules): Violation | null {
  for (const [name, field] of undeclaredNames(texts, rules)) {
    if (field === "providerTxId" || field === "referenceId" || field === "userId") {
      return ambiguous(
        "R5",
        `the undocumented field ${name} follows ${field} (declare it in payments.extraFields if the service sends it)`,
      );
    }
  }
  return null;
}

/** Undocumented, undeclared names with the documented field that they follow in sorted order, others between them or not. */
export function undeclaredNames(
  texts: CallbackTexts,
  { extraFields }: CallbackRules,
): readonly [name: string, after: CallbackField | null][] {
  const undeclared: [string, CallbackField | null][] = [];
  let field: CallbackField | null = null;
  for (const name of texts.keys()) {
    if (isDocumented(name)) field = name;
    else if (!extraFields.has(name)) undeclared.push([name, field]);
  }
  return undeclared;
}

/**
 * Documented fields whose reading is not certain: an optional one may be the cut-off end of an undocumented value in
 * front of it (decision 0009). A field that is in every genuine body cannot have been cut off.
 */
export function uncertainFields(
  { texts, onlyDocumented }: CallbackBody,
  rules: CallbackRules,
): readonly string[] {
  if (onlyDocumented) return NONE;
  const uncertain: string[] = [];
  let mayBeCutOff = false;
  for (const name of texts.keys()) {
    if (isAlwaysThere(name, rules)) mayBeCutOff = false;
    else if (!isDocumented(name)) mayBeCutOff = true;
    else if (mayBeCutOff) uncertain.push(name);
  }
  return uncertain;
}

const NONE: readonly string[] = [];

function isAlwaysThere(name: string, rules: CallbackRules): boolean {
  if (name === "merchantId") return rules.merchantIdRequired || rules.pinnedMerchantIds.size > 0;
  if (name === "message" || name === "providerTxId" || name === "userId") return false;
  return isDocumented(name) || rules.extraFields.has(name);
}

/** `String.prototype.isWellFormed` is not there on Node 20 in every build. */
function hasLoneSurrogate(text: string): boolean {
  return (
    /[\ud800-\udfff]/.test(text) &&
    /(?:[\ud800-\udbff](?![\udc00-\udfff]))|(?:(?<![\ud800-\udbff])[\udc00-\udfff])/.test(text)
  );
}

function malformed(rule: Violation["rule"], detail: string): Violation {
  return { rule, reason: "malformed", detail };
}

function ambiguous(rule: Violation["rule"], detail: string): Violation {
  return { rule, reason: "ambiguous", detail };
}
