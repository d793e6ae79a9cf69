import { defaultPresenceOf, type WireField, wireFields } from "../names/fields.ts";
import type { ServiceNames } from "../names/options.ts";
import { isAmount } from "../protocol/amount.ts";
import type { PaymentStatus } from "../protocol/events.ts";
import { type JsonValue, parseJsonBody, rawMembers } from "../protocol/json.ts";
import { parseTimestamp } from "../protocol/timestamp.ts";
import { CALLBACK_FIELDS, type CallbackField } from "../signature/canonical.ts";

/** A callback's fields as the canonical string has them: every field that is not null, except `signature`, as text. */
export type CallbackTexts = ReadonlyMap<string, string>;

/**
 * The envelope of a payment callback: the parts of its body that verification needs. Everything else is read from the
 * signed text.
 */
export interface CallbackBody {
  /** The signed text, as it reads in UTF-8: an unpaired surrogate has become U+FFFD. */
  readonly canonical: string;
  /** The field `signature`, of any type. */
  readonly signature: JsonValue | undefined;
  /** `merchantId` as the body spells it, by which a resolver finds the keys. */
  readonly merchantId: string | undefined;
}

/** The options for callbacks. */
export interface CallbackRules {
  /** The fields that a callback may have, by their names on the wire. */
  readonly wire: Wire;
  /** `payments.expect.callbackUrl`: URLs that are known completely. */
  readonly pinnedUrls: ReadonlySet<string>;
  /** True if a resolver chooses the keys by `merchantId`. Then an event must have one. */
  readonly isMerchantIdRequired: boolean;
  /** `payments.expect.merchantId`; empty: any. */
  readonly pinnedMerchantIds: ReadonlySet<string>;
  /** False for look-ups, because a transaction may have been created without one. */
  readonly isCallbackUrlRequired: boolean;
}

const CODE_PATTERN = /^[A-Z_]{1,64}$/;
const isCode = (text: string): boolean => CODE_PATTERN.test(text);
const isPresent = (text: string): boolean => text !== "";
const isAnything = (): boolean => true;

/** The known form of a field's values in the bodies that the service sends. */
interface FieldForm {
  /** True for a well-formed value. The part after an `&` in the value is not checked. */
  readonly fits: (text: string) => boolean;
  /** How a held entry's detail describes a value that is not well formed, after the field's name. */
  readonly fault: string;
}

const ANY_FORM: FieldForm = { fits: isAnything, fault: "" };

/** The specification's fields (Payment callback events). */
const FIELD_FORMS: Readonly<Record<CallbackField, FieldForm>> = {
  amount: { fits: isAmount, fault: "is not digits with up to six decimals" },
  callbackUrl: { fits: isAbsoluteUrl, fault: "is not an absolute URL" },
  event: { fits: isCode, fault: "is not an upper-case name" },
  merchantId: ANY_FORM,
  message: ANY_FORM,
  payTxnId: { fits: isPresent, fault: "is missing or empty" },
  providerTxId: ANY_FORM,
  referenceId: { fits: isPresent, fault: "is missing or empty" },
  status: { fits: isCode, fault: "is not an upper-case name" },
  timestamp: {
    fits: (text) => parseTimestamp(text) !== null,
    fault: "is not an ISO 8601 date and time with its zone",
  },
  userId: ANY_FORM,
};

/** A field that may be part of a reading. */
export interface KnownField extends WireField {
  /** The key in events: its neutral name, or the name of an extra field. */
  readonly key: string;
  /** True if every body has the field. Then every reading has it, too. */
  readonly isRequired: boolean;
  /** True if the event needs a certain value of the field. */
  readonly isEssential: boolean;
  /** True for a value that the service can have sent under this name. */
  readonly fits: (text: string) => boolean;
}

/** The fields of callbacks, as the names of the service have them. */
export interface Wire {
  /** Sorted by their names on the wire. */
  readonly fields: readonly KnownField[];
  readonly byName: ReadonlyMap<string, KnownField>;
  readonly byRole: ReadonlyMap<CallbackField, KnownField>;
  /** How many of these fields every callback has. */
  readonly requiredCount: number;
  /** The names of the extra fields. */
  readonly extra: readonly string[];
  /** The status that each further word stands for. */
  readonly statusOf: ReadonlyMap<string, PaymentStatus>;
}

/** The fields of callbacks under some names. */
export function wireOf({ fields, extra, statuses }: ServiceNames["callback"]): Wire {
  const words = Object.entries(statuses) as [PaymentStatus, readonly string[]][];
  const statusOf = new Map(words.flatMap(([status, list]) => list.map((word) => [word, status] as const)));
  return buildWire(wireFields({ fields, extra }).map(toKnownField), statusOf);
}

/**
 * The fields without the merchant's declarations: there are no extra fields, and a field that only the merchant
 * declares as always sent is optional. So a declaration that is no longer true does no harm here.
 */
export function withoutDeclarations({ fields, statusOf }: Wire): Wire {
  const specifiedFields = fields.flatMap((field) =>
    field.role === null ? [] : [field.isEssential ? field : toKnownField({ ...field, sent: "sometimes" })],
  );
  return buildWire(specifiedFields, statusOf);
}

function toKnownField({ name, role, sent: presence, isFreeText }: WireField): KnownField {
  const isRequired = presence === "always";
  const isEssential = isRequired && (role === null || defaultPresenceOf(role) === "always");
  // Only required fields must be well formed: the body that was signed has to be among the readings.
  const fits = isRequired && role !== null ? FIELD_FORMS[role].fits : isAnything;
  return { name, role, sent: presence, isFreeText, key: role ?? name, isRequired, isEssential, fits };
}

function buildWire(fields: readonly KnownField[], statusOf: Wire["statusOf"]): Wire {
  const roles = fields.flatMap((field) => (field.role === null ? [] : [[field.role, field] as const]));
  return {
    fields,
    byName: new Map(fields.map((field) => [field.name, field])),
    byRole: new Map(roles),
    requiredCount: fields.filter(({ isRequired }) => isRequired).length,
    extra: fields.flatMap(({ role, name }) => (role === null ? [name] : [])),
    statusOf,
  };
}

/** In a pattern with the flag `u`, the two surrogates of a pair are one character, so this is an unpaired one. */
const UNPAIRED_SURROGATE_PATTERN = /\p{Surrogate}/u;

/** Opens a callback's body; null when it is not a JSON object. Then there is nothing to verify. */
export function openCallback(rawBody: Uint8Array, wire: Wire): CallbackBody | null {
  const json = parseJsonBody(rawBody);
  if (json === null) return null;
  let canonical = "";
  let merchantId: string | undefined;
  let raw: Map<string, string> | null = null;
  const merchantIdName = wire.byRole.get("merchantId")?.name;
  for (const name of Object.keys(json.object).sort()) {
    if (name === "signature") continue;
    const value = json.object[name];
    if (value === null || value === undefined) continue;
    let text: string;
    if (typeof value === "string") text = value;
    else {
      raw ??= rawMembers(json.text);
      text = raw.get(name) ?? "";
    }
    if (name === merchantIdName) merchantId = text;
    canonical += canonical === "" ? `${name}=${text}` : `&${name}=${text}`;
  }
  // An escape can write an unpaired surrogate. In UTF-8 they all become the same character, which no signature tells apart.
  if (UNPAIRED_SURROGATE_PATTERN.test(canonical)) canonical = Buffer.from(canonical, "utf8").toString("utf8");
  return { canonical, signature: json.object.signature, merchantId };
}

/** A signed string, cut where a known field may begin. */
export interface Cut {
  /** The fields, by their names in events. */
  readonly texts: CallbackTexts;
  /**
   * True if the string is plain: its parts are known fields in order, every field that is always sent is among them, and no field
   * that is sent sometimes directly follows a free text. Nearly all callbacks are plain.
   *
   * A plain string belongs to one body only. In another body, a free text would have swallowed the field after it, so
   * this body would lack a field that is always sent.
   */
  readonly isPlain: boolean;
}

/** Cuts a signed string at the known names that follow each other in their order. */
export function cutAtNames(signed: string, wire: Wire): Cut {
  const texts = new Map<string, string>();
  let isPlain = true;
  let requiredCount = 0;
  let lastField: KnownField | undefined;
  for (const part of signed.split("&")) {
    const equals = part.indexOf("=");
    const field = equals < 0 ? undefined : wire.byName.get(part.slice(0, equals));
    if (field !== undefined && (lastField === undefined || field.name > lastField.name)) {
      texts.set(field.key, part.slice(equals + 1));
      if (field.isRequired) requiredCount++;
      else if (lastField?.isFreeText === true) isPlain = false;
      lastField = field;
    } else {
      isPlain = false;
      if (lastField !== undefined) texts.set(lastField.key, `${texts.get(lastField.key)}&${part}`);
    }
  }
  return { texts, isPlain: isPlain && requiredCount === wire.requiredCount };
}

/** Describes the fault of a field of the specification without which there is no event; null if there is none. */
export function findMalformedField(texts: CallbackTexts, rules: CallbackRules): string | null {
  for (const role of CALLBACK_FIELDS) {
    const field = rules.wire.byRole.get(role);
    if (field === undefined) continue;
    const text = texts.get(role);
    const isMissing = text === undefined && field.isEssential;
    if (isMissing && role === "callbackUrl" && !rules.isCallbackUrlRequired) continue;
    if (isMissing || (text !== undefined && !FIELD_FORMS[role].fits(text)))
      return `${fieldLabel(field)} ${FIELD_FORMS[role].fault}`;
  }
  if (rules.isMerchantIdRequired && !texts.get("merchantId")) return "merchantId is missing or empty";
  return null;
}

/** A field's name, for people, with its name on the wire. */
export function fieldLabel({ key, name }: KnownField): string {
  return key === name ? key : `${key} (${name})`;
}

/** The last text that was a URL. The readings of one string check the same URL many times, and it may be long. */
let lastUrl: string | null = null;

/**
 * A scheme, and a host of limited length. A host has at most 253 characters. The time that the JavaScript engine takes to parse
 * one grows with the square of its length: half a second for 60 KB.
 */
const SHORT_HOST_PATTERN = /^[A-Za-z][A-Za-z0-9+.-]{0,31}:\/\/[^/?#\\]{1,512}(?![^/?#\\])/;

function isAbsoluteUrl(text: string): boolean {
  if (text === lastUrl) return true;
  if (!SHORT_HOST_PATTERN.test(text) || !URL.canParse(text)) return false;
  lastUrl = text;
  return true;
}

/** Longer than any host with a user and a password in front of it. */
const MAX_HOST_LENGTH = 1_000;

/** True for the beginning of a URL whose host may continue. Then the characters after it may make the URL invalid. */
export function mayEndInHost(url: string): boolean {
  return url.length <= MAX_HOST_LENGTH && /^[^/?#]*(?::\/\/[^/?#]*)?$/.test(url);
}
