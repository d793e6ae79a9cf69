import { isAmount } from "../protocol/amount.ts";
import { type JsonBody, type JsonValue, parseJsonBody, rawMembers } from "../protocol/json.ts";
import { parseTimestamp } from "../protocol/timestamp.ts";
import { CALLBACK_FIELDS, type CallbackField } from "../signature/canonical.ts";

/** A callback's fields as the canonical string has them: every field but `signature` that is not null, as text. */
export type CallbackTexts = ReadonlyMap<string, string>;

/** The envelope of a payment callback: what its body says about its signature. Everything else is read from what was signed. */
export interface CallbackBody {
  /** What the signature covers, as its UTF-8 bytes read: an unpaired surrogate has become U+FFFD. */
  readonly canonical: string;
  /** The field `signature`, whatever it is. */
  readonly signature: JsonValue | undefined;
  /** `merchantId` as the body spells it, by which a resolver finds the keys. */
  readonly merchantId: string | undefined;
}

/** How often the service sends a field: with every callback, or with some. */
export type Sent = "always" | "sometimes";

/** What the options say about callbacks. */
export interface CallbackRules {
  /** `payments.extraFields`: undocumented fields whose values only the service chooses, and how often it sends each. */
  readonly extraFields: ReadonlyMap<string, Sent>;
  /** `payments.expect.callbackUrl`: URLs that are known completely. */
  readonly pinnedUrls: ReadonlySet<string>;
  /** True if a resolver chooses the keys by `merchantId`, so that an event must have one. */
  readonly merchantIdRequired: boolean;
  /** `payments.expect.merchantId`; empty: any. */
  readonly pinnedMerchantIds: ReadonlySet<string>;
  /** False for look-ups, since a transaction may have been created without one. */
  readonly callbackUrlRequired: boolean;
}

/** What is known about a field's values in the bodies that the service sends. */
export interface FieldForm {
  /** True if every body has it. These fields decide how money moves. */
  readonly required: boolean;
  /**
   * True if the service makes the value, so that it never contains an `&`. Other values may come from a customer or a merchant.
   */
  readonly madeByService: boolean;
  /** True for a well-formed value. It is not called for what follows an `&` in the value. */
  readonly fits: (text: string) => boolean;
  /** How a held entry's detail describes a value that is not well formed. */
  readonly fault: string;
}

const CODE = /^[A-Z_]{1,64}$/;
const isCode = (text: string): boolean => CODE.test(text);
const isPresent = (text: string): boolean => text !== "";
const isAnything = (): boolean => true;

/** The specification's fields (Payment callback events). */
export const FIELD_FORMS: Readonly<Record<CallbackField, FieldForm>> = {
  amount: {
    required: true,
    madeByService: true,
    fits: isAmount,
    fault: "amount is not digits with up to six decimals",
  },
  callbackUrl: {
    required: true,
    madeByService: false,
    fits: isAbsoluteUrl,
    fault: "callbackUrl is not an absolute URL",
  },
  event: { required: true, madeByService: true, fits: isCode, fault: "event is not an upper-case name" },
  merchantId: { required: false, madeByService: true, fits: isAnything, fault: "" },
  message: { required: false, madeByService: false, fits: isAnything, fault: "" },
  payTxnId: { required: true, madeByService: true, fits: isPresent, fault: "payTxnId is missing or empty" },
  providerTxId: { required: false, madeByService: false, fits: isAnything, fault: "" },
  referenceId: {
    required: true,
    madeByService: false,
    fits: isPresent,
    fault: "referenceId is missing or empty",
  },
  status: { required: true, madeByService: true, fits: isCode, fault: "status is not an upper-case name" },
  timestamp: {
    required: true,
    madeByService: true,
    fits: (text) => parseTimestamp(text) !== null,
    fault: "timestamp is not an ISO 8601 date and time with its zone",
  },
  userId: { required: false, madeByService: false, fits: isAnything, fault: "" },
};

const documented: ReadonlySet<string> = new Set(CALLBACK_FIELDS);
const NAME = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;

/** True for a field of the specification. */
export function isDocumented(name: string): name is CallbackField {
  return documented.has(name);
}

/** True for a name that `payments.extraFields` may declare. */
export function isFieldName(name: string): boolean {
  return NAME.test(name) && name !== "constructor" && name !== "prototype";
}

/** Opens a callback's body; null when it is not a JSON object, so that there is nothing to verify. */
export function openCallback(rawBody: Uint8Array): CallbackBody | null {
  const json = parseJsonBody(rawBody);
  if (json === null) return null;
  let canonical = "";
  let merchantId: string | undefined;
  let raw: Map<string, string> | null = null;
  for (const name of sortedNames(json)) {
    const value = json.object[name];
    if (value === null || value === undefined) continue;
    let text: string;
    if (typeof value === "string") text = value;
    else {
      raw ??= rawMembers(json.text);
      text = raw.get(name) ?? "";
    }
    if (name === "merchantId") merchantId = text;
    canonical += canonical === "" ? `${name}=${text}` : `&${name}=${text}`;
  }
  // UTF-8 has no surrogates, so only an escape can write an unpaired one. In UTF-8 they all become the same character, which no
  // signature tells apart.
  if (json.text.includes("\\u") && hasLoneSurrogate(canonical)) {
    canonical = Buffer.from(canonical, "utf8").toString("utf8");
  }
  return { canonical, signature: json.object.signature, merchantId };
}

/** A signed string, cut where a documented field may begin. */
export interface Cut {
  readonly texts: CallbackTexts;
  /**
   * True if every part is a documented field, in their order. No other body has this string then, since each free text is followed
   * by a field that every body has. Nearly all callbacks are like this.
   */
  readonly plain: boolean;
}

/** Cuts a signed string at the documented names that follow each other in their order. */
export function cutAtNames(signed: string): Cut {
  const texts = new Map<string, string>();
  let plain = true;
  let last = "";
  for (const part of signed.split("&")) {
    const equals = part.indexOf("=");
    const name = equals < 0 ? "" : part.slice(0, equals);
    if (documented.has(name) && name > last) {
      texts.set(name, part.slice(equals + 1));
      last = name;
    } else {
      plain = false;
      if (last !== "") texts.set(last, `${texts.get(last)}&${part}`);
    }
  }
  return { texts, plain };
}

/** The names except `signature`, sorted by code unit. The documented ones are sorted already, and there is seldom another. */
function sortedNames({ object }: JsonBody): readonly string[] {
  const names = Object.keys(object);
  let known = 0;
  for (const name of names) if (documented.has(name) || name === "signature") known++;
  return known === names.length ? CALLBACK_FIELDS : names.filter((name) => name !== "signature").sort();
}

/** What is wrong with a field that every body has, or null. */
export function findMalformedField(texts: CallbackTexts, rules: CallbackRules): string | null {
  for (const name of CALLBACK_FIELDS) {
    const { required, fits, fault } = FIELD_FORMS[name];
    if (!required) continue;
    const text = texts.get(name);
    if (text === undefined && name === "callbackUrl" && !rules.callbackUrlRequired) continue;
    if (text === undefined || !fits(text)) return fault;
  }
  if (rules.merchantIdRequired && !texts.get("merchantId")) return "merchantId is missing or empty";
  return null;
}

/** The last text that was a URL. Nearly all callbacks of a merchant have the same. */
let lastUrl = "";

/**
 * A scheme, and a host of limited length. A host has at most 253 characters. The time that the JavaScript engine takes to parse
 * one grows with the square of its length: half a second for 60 KB.
 */
const SHORT_HOST = /^[A-Za-z][A-Za-z0-9+.-]{0,31}:\/\/[^/?#\\]{1,512}(?![^/?#\\])/;

function isAbsoluteUrl(text: string): boolean {
  if (text === "" || (text !== lastUrl && !(SHORT_HOST.test(text) && URL.canParse(text)))) return false;
  lastUrl = text;
  return true;
}

/** Longer than any host with a user and a password in front of it. */
const MAX_HOST_LENGTH = 1_000;

/** True for the beginning of a URL whose host may continue, so that the characters after it may make the URL invalid. */
export function mayEndInHost(url: string): boolean {
  return url.length <= MAX_HOST_LENGTH && /^[^/?#]*(?::\/\/[^/?#]*)?$/.test(url);
}

/** Some builds of Node 20 lack `String.prototype.isWellFormed`. */
function hasLoneSurrogate(text: string): boolean {
  return (
    /[\ud800-\udfff]/.test(text) &&
    /(?:[\ud800-\udbff](?![\udc00-\udfff]))|(?:(?<![\ud800-\udbff])[\udc00-\udfff])/.test(text)
  );
}
