import type { StoredDelivery } from "../inbox/record/event.ts";
import { checkFieldOrder } from "../names/field-order.ts";
import type { ServiceNames } from "../names/options.ts";
import { SPECIFIED_NAMES } from "../names/service-names.ts";
import { normalizeAmount } from "../protocol/amount.ts";
import { checkFlag, checkNames } from "../protocol/check-names.ts";
import type { Delivery } from "../protocol/delivery.ts";
import { PayhooksError } from "../protocol/errors.ts";
import { flowOfEvent, type PaymentEvent, type PaymentStatus, STATUS_RANK } from "../protocol/events.ts";
import { decodeUtf8, isUnwieldy, withoutPrototype } from "../protocol/json.ts";
import { parseTimestamp } from "../protocol/timestamp.ts";
import { CALLBACK_FIELDS } from "../signature/canonical.ts";
import { countUnset, type VerifyingKey } from "../signature/keys.ts";
import { decodeCanonicalBase64, findRsaKey } from "../signature/rsa.ts";
import {
  type CallbackBody,
  type CallbackRules,
  type CallbackTexts,
  findMalformedField,
  openCallback,
} from "./callback.ts";
import { checkOwner } from "./check-owner.ts";
import { contentsReader } from "./contents.ts";
import {
  cachedReading,
  cacheReading,
  eventOf,
  eventWithoutDelivery,
  type Flow,
  MAX_FUTURE_MS,
  ReadDelivery,
  readingOutsideTable,
  UNKNOWN_TENANT_REASON,
  unsetEntryWarnings,
  type Verification,
  withFreshness,
} from "./flow.ts";
import { callbackJudge } from "./judgement.ts";
import { keepMsOf } from "./keep-options.ts";
import { type KeyHint, type Keyring, type ResolverLimits, verifyWithKeys } from "./keyring.ts";
import { keyringOf } from "./keys.ts";
import { type LookupTransaction, textsOfLookup } from "./lookup.ts";
import { checkExpectations, importKeys, type PaymentsOptions, rulesOf } from "./payments-options.ts";

/** The payments flow: {@link Flow}, with the methods that only this flow has. */
export interface PaymentsFlow extends Flow {
  /**
   * Makes a delivery of a look-up's result. It needs no signature. Rejects with `ERR_TRANSACTION_INVALID`, or as
   * {@link checkOwner} does.
   */
  fromLookup(transaction: LookupTransaction, tenant: string, now: number): Promise<StoredDelivery>;
}

/** The settings and services that the flow takes from the receiver. */
export interface FlowContext extends ResolverLimits {
  readonly windowMs: number;
  /** The service's own names. Default: the names of the specification. */
  readonly names?: ServiceNames | undefined;
}

/** The flow of the per-transaction payment callbacks (specification, Authentication 4, Payment callback events). */
export function paymentsFlow(
  options: PaymentsOptions,
  { windowMs, names = SPECIFIED_NAMES, ...limits }: FlowContext,
  keyring: Keyring<VerifyingKey> = keyringOf(options.publicKey, "payments.publicKey", importKeys, limits),
): PaymentsFlow {
  checkNames("payments", options, {
    publicKey: true,
    expect: true,
    oneSuccessPerReference: true,
    keep: true,
  });
  checkFlag("payments.oneSuccessPerReference", options.oneSuccessPerReference);
  const lifetimes = { windowMs, keepMs: keepMsOf("payments.keep", options.keep) };
  const rules = rulesOf(options, names, keyring.usesResolver);
  const { warnings } = checkFieldOrder(rules.wire.fields, { urlKnown: rules.pinnedUrls.size > 0 });
  const judge = callbackJudge(rules);
  const lookupRules: CallbackRules = { ...rules, isCallbackUrlRequired: false };

  function verify(delivery: Delivery, now: number): Verification | Promise<Verification> {
    if (isUnwieldy(delivery.rawBody)) {
      return refuse("ERR_BODY_NOT_JSON", "the body has more than 8 KiB and 1,000 parts: no payment callback");
    }
    const body = openCallback(delivery.rawBody, rules.wire);
    if (body === null)
      return refuse("ERR_BODY_NOT_JSON", "the body is not a JSON object in UTF-8 without BOM");
    const signature = readSignature(body);
    if (!(signature instanceof Uint8Array)) return signature;
    const hint = keyring.usesResolver ? hintOf(delivery, body) : NO_HINT;
    return verifyWithKeys(keyring, hint, (resolvedKeys) => verifyWith(resolvedKeys, body, signature, now));
  }

  function verifyWith(
    resolved: Awaited<ReturnType<Keyring<VerifyingKey>["find"]>>,
    body: CallbackBody,
    signature: Uint8Array,
    now: number,
  ): Verification {
    if (resolved === null) return refuse("ERR_SIGNATURE_INVALID", UNKNOWN_TENANT_REASON);
    const content = Buffer.from(body.canonical, "utf8");
    const key = findRsaKey(content, signature, resolved.keys);
    if (key === null) return refuse("ERR_SIGNATURE_INVALID", "the signature fits none of the keys");
    const storedDelivery: StoredDelivery = {
      flow: "payments",
      tenant: resolved.tenant,
      arrivedBy: "callback",
      content,
      signature: Buffer.from(signature).toString("base64"),
      keyId: key.keyId,
      receivedAt: now,
      ...(keyring.usesResolver && { merchantId: body.merchantId ?? "" }),
    };
    const reading = read(body.canonical, storedDelivery);
    if (reading === null) {
      return refuse(
        "ERR_SIGNATURE_INVALID",
        "the merchantId that chose the key is not the one that was signed",
      );
    }
    cacheReading(storedDelivery, rules, reading);
    return withFreshness(reading, now, windowMs);
  }

  /**
   * Reads the signed string. Null if the resolver was asked for another merchant than the signed one, and has chosen the keys of
   * another tenant: the event would run a second time, under that tenant.
   */
  function read(signed: string, storedDelivery: StoredDelivery): ReadDelivery | null {
    const judgement = judge(signed);
    if (judgement.kind === "certain") {
      const { texts, leftOut } = judgement;
      const { merchantId } = storedDelivery;
      if (merchantId !== undefined && merchantId !== (texts.get("merchantId") ?? "")) return null;
      return readingOf(texts, storedDelivery, leftOut);
    }
    const { kind, detail, signedTimes, mayName } = judgement;
    const signedAt = latestTime(signedTimes, storedDelivery.receivedAt);
    return readingOutsideTable(kind, detail, signed, signedAt, storedDelivery, lifetimes, mayName);
  }

  /** Makes a reading of fields that are certain. The event may be unlisted or unexpected. */
  function readingOf(
    texts: CallbackTexts,
    storedDelivery: StoredDelivery,
    leftOut?: readonly string[],
  ): ReadDelivery {
    const text = (name: string): string => texts.get(name) ?? "";
    const { name, status, isListed } = resolveListing(text("event"), text("status"), rules);
    const fixedFacts: Record<string, string> = { event: name, referenceId: text("referenceId") };
    if (texts.has("merchantId")) fixedFacts.merchantId = text("merchantId");
    // The merchant has asked the service itself, so the address is not checked.
    const unexpected = storedDelivery.arrivedBy === "lookup" ? null : findUnexpected(texts);
    const verified = eventOf(
      {
        id: text("payTxnId"),
        name,
        status,
        rank: status === "PENDING" ? STATUS_RANK.PENDING : STATUS_RANK.SUCCESS,
        fixedFacts,
        amount: normalizeAmount(text("amount")),
        signedAt: parseTimestamp(text("timestamp")),
        hold: isListed
          ? unexpected === null
            ? null
            : { reason: "unexpected", detail: unexpected }
          : { reason: "unrecognized", detail: "the event or status is not one that the specification lists" },
        reference:
          options.oneSuccessPerReference === true && status === "SUCCESS" ? text("referenceId") : null,
        referenceId: texts.get("referenceId") ?? null,
      },
      storedDelivery,
      lifetimes,
    );
    const arrivedBy = storedDelivery.arrivedBy === "lookup" ? "lookup" : "callback";
    return new ReadDelivery(
      verified,
      isListed ? () => toEvent(texts, status, rules, arrivedBy) : null,
      leftOut,
    );
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

  function readStored(storedDelivery: StoredDelivery): ReadDelivery {
    if (storedDelivery.arrivedBy === "lookup") {
      return readingOf(
        new Map(Object.entries(JSON.parse(decodeUtf8(storedDelivery.content)) as object)),
        storedDelivery,
      );
    }
    const cached = cachedReading(storedDelivery, rules);
    if (cached !== undefined) return cached;
    const reading = read(decodeUtf8(storedDelivery.content), storedDelivery);
    if (reading !== null) return reading;
    const detail = "its keys were chosen by another merchantId than the one that was signed";
    return readingOutsideTable("malformed", detail, storedDelivery.content, null, storedDelivery, lifetimes);
  }

  return {
    name: "payments",
    hasTenants: keyring.usesResolver,
    badSignatureStatus: 401,
    windowMs,
    async prepare() {
      checkExpectations(options);
      await keyring.prepare();
      return [...unsetEntryWarnings("payments.publicKey", countUnset(options.publicKey)), ...warnings];
    },
    verify,
    read: readStored,
    eventFromName(event, tenant, now) {
      const { status, isListed } = resolveListing(event.event, event.status ?? "", rules);
      if (!isListed) return null;
      const rank = STATUS_RANK[status as PaymentStatus];
      const origin = { flow: "payments", tenant, arrivedBy: "callback", receivedAt: now } as const;
      return eventWithoutDelivery(event, { status, rank }, origin, lifetimes);
    },
    contents: contentsReader(rules),
    async fromLookup(transaction, tenant, now) {
      const texts = textsOfLookup(transaction);
      const fault = findMalformedField(texts, lookupRules);
      if (fault !== null) {
        throw new PayhooksError("ERR_TRANSACTION_INVALID", `The transaction cannot be an event: ${fault}.`, {
          fix: "Pass the data of a transaction look-up unchanged, with base_amount as its raw JSON text.",
        });
      }
      await checkOwner(transaction, tenant, keyring, rules);
      return {
        flow: "payments",
        tenant,
        arrivedBy: "lookup",
        content: Buffer.from(JSON.stringify(Object.fromEntries(texts)), "utf8"),
        signature: null,
        keyId: null,
        receivedAt: now,
      };
    },
  };
}

/**
 * The time by which an event outside of the table is judged: the latest time that is not in the future. Null if no time is known.
 */
function latestTime(times: readonly number[], now: number): number | null {
  if (times.length === 0) return null;
  const pastTimes = times.filter((time) => time <= now + MAX_FUTURE_MS);
  return Math.max(...(pastTimes.length > 0 ? pastTimes : times));
}

function readSignature({ signature: field }: CallbackBody): Uint8Array | Verification {
  if (field === undefined || field === null || field === "")
    return refuse("ERR_SIGNATURE_MISSING", "the body has no signature");
  const bytes = typeof field === "string" ? decodeCanonicalBase64(field) : null;
  return bytes ?? refuse("ERR_SIGNATURE_MALFORMED", "the signature is not canonical base64");
}

const NO_HINT: KeyHint = {};

function hintOf(delivery: Delivery, body: CallbackBody): KeyHint {
  const { merchantId } = body;
  return {
    ...(delivery.tenant === undefined ? {} : { tenant: delivery.tenant }),
    ...(merchantId === undefined ? {} : { merchantId }),
  };
}

function resolveListing(
  name: string,
  word: string,
  { wire }: CallbackRules,
): { readonly name: string; readonly status: string; readonly isListed: boolean } {
  const status = wire.statusOf.get(word) ?? word;
  return { name, status, isListed: flowOfEvent(name) === "payments" && Object.hasOwn(STATUS_RANK, status) };
}

/** A frozen event without a prototype. Event and status must be listed for the type to be true. */
function toEvent(
  texts: CallbackTexts,
  status: string,
  { wire }: CallbackRules,
  arrivedBy: "callback" | "lookup",
): PaymentEvent {
  const event = withoutPrototype();
  for (const name of CALLBACK_FIELDS) {
    const text = texts.get(name);
    if (text !== undefined) event[name] = text;
  }
  event.callbackUrl ??= "";
  if (event.status !== status) event.wireStatus = event.status;
  event.status = status;
  event.extra = extraOf(texts, wire.extra);
  event.arrivedBy = arrivedBy;
  return Object.freeze(event) as unknown as PaymentEvent;
}

/** `event.extra` if there is nothing in it. */
const NO_EXTRA_FIELDS: Readonly<Record<string, string>> = Object.freeze(
  Object.create(null) as Record<string, string>,
);

/** The extra fields, for `event.extra`. */
function extraOf(texts: CallbackTexts, names: readonly string[]): Readonly<Record<string, string>> {
  if (names.length === 0) return NO_EXTRA_FIELDS;
  const extra = Object.create(null) as Record<string, string>;
  for (const name of names) {
    const text = texts.get(name);
    if (text !== undefined) extra[name] = text;
  }
  return Object.freeze(extra);
}

function refuse(code: Extract<Verification, { ok: false }>["code"], why: string): Verification {
  return { ok: false, code, why };
}
