import { normalizeAmount } from "../amount.ts";
import { isPending } from "../awaitable.ts";
import type { Clock } from "../clock.ts";
import type { Delivery } from "../delivery.ts";
import { PayhooksError } from "../errors.ts";
import { EVENT_NAMES, type PaymentEvent, parseTimestamp, STATUS_RANK } from "../events.ts";
import type { StoredDelivery } from "../inbox/inbox.ts";
import { isUnwieldy, withoutPrototype } from "../json.ts";
import { CALLBACK_FIELDS } from "../signature/canonical.ts";
import type { VerifyingKey } from "../signature/keys.ts";
import { decodeCanonicalBase64, findRsaKey } from "../signature/rsa.ts";
import {
  type CallbackBody,
  type CallbackRules,
  type CallbackTexts,
  findMalformedField,
  findViolation,
  isDocumented,
  readCallback,
  uncertainFields,
  undeclaredNames,
} from "./callback.ts";
import {
  entryOf,
  eventOf,
  type Flow,
  keepReading,
  keptReading,
  Reading,
  type Verification,
  withFreshness,
} from "./flow.ts";
import type { KeyHint, Keyring } from "./keyring.ts";
import { type LookupTransaction, textsOfLookup } from "./lookup.ts";
import { type AmbiguousCallback, keyringOf, type PaymentsOptions, rulesOf } from "./payments-options.ts";
import { findReadings } from "./readings.ts";

/** The payments flow: what {@link Flow} has, and what only it can do. */
export interface PaymentsFlow extends Flow {
  readonly confirm: PaymentsOptions["confirm"];
  /** A look-up's result as a delivery that needs no signature. Throws `ERR_TRANSACTION_INVALID`. */
  fromLookup(transaction: LookupTransaction, tenant: string, now: number): StoredDelivery;
  /** Every event that the signature of an ambiguous delivery fits; null when it is not a body at all. */
  ambiguity(stored: StoredDelivery): Omit<AmbiguousCallback, "detail" | "tenant"> | null;
  /** What the inbox records when a person, or `confirm`, chose this reading of an entry. */
  released(event: PaymentEvent, stored: StoredDelivery): Reading;
}

/** What the flow takes from the receiver. */
export interface FlowContext {
  readonly windowMs: number;
  readonly clock: Clock;
}

/** The flow of the per-transaction payment callbacks (specification, Authentication 4, Payment callback events). */
export function paymentsFlow(
  options: PaymentsOptions,
  { windowMs, clock }: FlowContext,
  keyring: Keyring<VerifyingKey> = keyringOf(options.publicKey, clock),
): PaymentsFlow {
  const rules = rulesOf(options, keyring.resolves);
  const lookupRules: CallbackRules = { ...rules, merchantIdRequired: false, callbackUrlRequired: false };

  function verify(delivery: Delivery, now: number): Verification | Promise<Verification> {
    if (isUnwieldy(delivery.rawBody)) {
      return refused(
        "ERR_BODY_NOT_JSON",
        "the body has more than 8 KiB and 1,000 parts: no payment callback",
      );
    }
    const body = readCallback(delivery.rawBody);
    if (body === null)
      return refused("ERR_BODY_NOT_JSON", "the body is not a JSON object in UTF-8 without BOM");
    const signature = readSignature(body);
    if (!(signature instanceof Uint8Array)) return signature;
    const found = keyring.find(keyring.resolves ? hintOf(delivery, body) : NO_HINT);
    if (isPending(found)) return found.then((keys) => verifyWith(keys, body, signature, delivery, now));
    return verifyWith(found, body, signature, delivery, now);
  }

  function verifyWith(
    found: Awaited<ReturnType<Keyring<VerifyingKey>["find"]>>,
    body: CallbackBody,
    signature: Uint8Array,
    { rawBody }: Delivery,
    now: number,
  ): Verification {
    if (found === null)
      return refused("ERR_SIGNATURE_INVALID", "unknown tenant: the resolver has no keys for it");
    const key = findRsaKey(Buffer.from(body.canonical, "utf8"), signature, found.keys);
    if (key === null) return refused("ERR_SIGNATURE_INVALID", "the signature fits none of the keys");
    const stored: StoredDelivery = {
      flow: "payments",
      tenant: found.tenant,
      source: "callback",
      rawBody,
      headers: {},
      keyId: key.keyId,
      receivedAt: now,
    };
    const reading = judge(body, stored);
    keepReading(stored, rules, reading);
    return withFreshness(reading, now, windowMs);
  }

  function judge(body: CallbackBody, stored: StoredDelivery): Reading {
    const violation = findViolation(body, rules);
    if (violation !== null) {
      const detail = `${violation.rule}: ${violation.detail}`;
      return entryOf(violation.reason, detail, body.canonical, stored, windowMs);
    }
    const leftOut = uncertainFields(body, rules);
    return readingOf(without(body.texts, leftOut), stored, () => extraOf(body, rules), leftOut);
  }

  /** A certain reading: listed or not, expected or not. */
  function readingOf(
    texts: CallbackTexts,
    stored: StoredDelivery,
    extra: () => Readonly<Record<string, string | boolean>>,
    leftOut?: readonly string[],
  ): Reading {
    const text = (name: string): string => texts.get(name) ?? "";
    const { name, status, listed } = listing(text("event"), text("status"));
    const identity: Record<string, string> = { event: name, referenceId: text("referenceId") };
    if (texts.has("merchantId")) identity.merchantId = text("merchantId");
    // A look-up was the merchant's own question to the service: nobody sent it to a wrong address.
    const unexpected = stored.source === "lookup" ? null : findUnexpected(texts);
    const verified = eventOf(
      {
        id: text("payTxnId"),
        name,
        status,
        rank: status === "PENDING" ? STATUS_RANK.PENDING : STATUS_RANK.SUCCESS,
        identity,
        amount: normalizeAmount(text("amount")),
        signedAt: parseTimestamp(text("timestamp")) ?? 0,
        hold: listed
          ? unexpected === null
            ? null
            : { reason: "unexpected", detail: unexpected }
          : { reason: "unrecognized", detail: "the event or status is not one that the specification lists" },
        reference:
          options.oneSuccessPerReference === true && status === "SUCCESS" ? text("referenceId") : null,
      },
      stored,
      windowMs,
    );
    const source = stored.source === "lookup" ? "lookup" : "callback";
    return new Reading(verified, listed ? () => toEvent(texts, extra(), source) : null, leftOut);
  }

  function findUnexpected(texts: CallbackTexts): string | null {
    const { pinnedMerchantIds, pinnedUrls } = rules;
    if (pinnedMerchantIds.size > 0 && !pinnedMerchantIds.has(texts.get("merchantId") ?? "")) {
      return "merchantId is none of payments.expect.merchantId";
    }
    if (pinnedUrls.size > 0 && !pinnedUrls.has(texts.get("callbackUrl") ?? "")) {
      return "callbackUrl is none of payments.expect.callbackUrl";
    }
    return null;
  }

  return {
    name: "payments",
    badSignatureStatus: 401,
    confirm: options.confirm,
    async prepare() {
      await keyring.prepare();
      return [];
    },
    verify,
    read(stored) {
      if (stored.confirmed) return readingOf(textsOf(parseStored(stored) as PaymentEvent), stored, noExtra);
      if (stored.source === "lookup") {
        return readingOf(textsOfLookup(parseStored(stored) as LookupTransaction), stored, noExtra);
      }
      const known = keptReading(stored, rules);
      if (known !== undefined) return known;
      const body = readCallback(stored.rawBody);
      if (body !== null) return judge(body, stored);
      return entryOf("malformed", "the stored body is not JSON", stored.rawBody, stored, windowMs);
    },
    fromLookup(transaction, tenant, now) {
      const texts = textsOfLookup(transaction);
      const fault = findMalformedField(texts, lookupRules);
      if (fault !== null) {
        throw new PayhooksError("ERR_TRANSACTION_INVALID", `The transaction cannot be an event: ${fault}.`, {
          fix: "Pass the data of a transaction look-up unchanged, with base_amount as its raw JSON text.",
        });
      }
      return {
        flow: "payments",
        tenant,
        source: "lookup",
        rawBody: Buffer.from(JSON.stringify(transaction), "utf8"),
        headers: {},
        keyId: null,
        receivedAt: now,
      };
    },
    ambiguity(stored) {
      const body = readCallback(stored.rawBody);
      if (body === null || findMalformedField(body.texts, rules) !== null) return null;
      return {
        event: toEvent(body.texts, NO_EXTRA, "callback"),
        readings: findReadings(body.canonical, rules).map((texts) => toEvent(texts, NO_EXTRA, "callback")),
      };
    },
    released(event, stored) {
      const texts = textsOf(event);
      const fault = findMalformedField(texts, lookupRules);
      if (fault !== null) {
        const detail = `what payments.confirm returned is not an event: ${fault}`;
        return entryOf("malformed", detail, stored.rawBody, stored, windowMs);
      }
      // Stored as what it now is, so that a later read gives this event and not the ambiguous body again.
      const rawBody = Buffer.from(JSON.stringify(Object.fromEntries(texts)), "utf8");
      const source = event.source === "lookup" ? "lookup" : "callback";
      return readingOf(texts, { ...stored, source, rawBody, confirmed: true }, noExtra);
    },
  };
}

function without(texts: CallbackTexts, names: readonly string[]): CallbackTexts {
  return names.length === 0 ? texts : new Map([...texts].filter(([name]) => !names.includes(name)));
}

const noExtra = (): typeof NO_EXTRA => NO_EXTRA;
const NO_EXTRA: Readonly<Record<string, string | boolean>> = Object.freeze(
  Object.create(null) as Record<string, string>,
);

function readSignature({ json }: CallbackBody): Uint8Array | Verification {
  const field = json.object.signature;
  if (field === undefined || field === null || field === "")
    return refused("ERR_SIGNATURE_MISSING", "the body has no signature");
  const bytes = typeof field === "string" ? decodeCanonicalBase64(field) : null;
  return bytes ?? refused("ERR_SIGNATURE_MALFORMED", "the signature is not canonical base64");
}

const NO_HINT: KeyHint = {};

function hintOf(delivery: Delivery, body: CallbackBody): KeyHint {
  const merchantId = body.json.object.merchantId;
  return {
    ...(delivery.tenant === undefined ? {} : { tenant: delivery.tenant }),
    ...(typeof merchantId === "string" ? { merchantId } : {}),
  };
}

function listing(
  name: string,
  status: string,
): { readonly name: string; readonly status: string; readonly listed: boolean } {
  return { name, status, listed: isListedEvent(name) && Object.hasOwn(STATUS_RANK, status) };
}

function isListedEvent(name: string): name is PaymentEvent["event"] {
  return (EVENT_NAMES.payments as readonly string[]).includes(name);
}

/** Undocumented fields whose reading is certain: not what could have been cut off a callbackUrl or a message. */
function extraOf(body: CallbackBody, rules: CallbackRules): Readonly<Record<string, string | boolean>> {
  if (body.onlyDocumented) return NO_EXTRA;
  const uncertain = new Set<string>();
  for (const [name, field] of undeclaredNames(body.texts, rules)) {
    if (field === "callbackUrl" || field === "message") uncertain.add(name);
  }
  const extra: Record<string, string | boolean> = Object.create(null) as Record<string, string | boolean>;
  for (const [name, text] of body.texts) {
    const value = body.json.object[name];
    if (!isDocumented(name) && !uncertain.has(name)) extra[name] = typeof value === "boolean" ? value : text;
  }
  return Object.freeze(extra);
}

/** A frozen event without a prototype. Event and status must be listed for the type to be true. */
function toEvent(
  texts: CallbackTexts,
  extra: Readonly<Record<string, string | boolean>>,
  source: "callback" | "lookup",
): PaymentEvent {
  const event = withoutPrototype();
  for (const name of CALLBACK_FIELDS) {
    const text = texts.get(name);
    if (text !== undefined) event[name] = text;
  }
  event.callbackUrl ??= "";
  event.extra = extra;
  event.source = source;
  return Object.freeze(event) as unknown as PaymentEvent;
}

function textsOf(event: PaymentEvent): CallbackTexts {
  const texts = new Map<string, string>();
  for (const name of CALLBACK_FIELDS) {
    const value: unknown = event[name];
    if (typeof value === "string" && value !== "") texts.set(name, value);
  }
  return texts;
}

function parseStored({ rawBody }: StoredDelivery): unknown {
  return JSON.parse(Buffer.from(rawBody).toString("utf8"));
}

function refused(code: Extract<Verification, { ok: false }>["code"], why: string): Verification {
  return { ok: false, code, why };
}
