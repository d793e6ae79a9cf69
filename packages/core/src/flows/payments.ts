import { normalizeAmount } from "../amount.ts";
import type { Clock } from "../clock.ts";
import type { Delivery } from "../delivery.ts";
import { PayhooksError } from "../errors.ts";
import { EVENT_NAMES, type PaymentEvent, parseTimestamp, STATUS_RANK } from "../events.ts";
import type { StoredDelivery } from "../inbox/inbox.ts";
import { CALLBACK_FIELDS } from "../signature/canonical.ts";
import {
  importPublicKeys,
  type PublicKeyInput,
  type PublicKeySource,
  type VerifyingKey,
} from "../signature/keys.ts";
import { decodeCanonicalBase64, findRsaKey } from "../signature/rsa.ts";
import {
  type CallbackBody,
  type CallbackRules,
  type CallbackTexts,
  findMalformedField,
  findViolation,
  isDocumented,
  isFieldName,
  readCallback,
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
import { type KeyHint, type KeyResolver, type Keyring, lazyKeys, resolvedKeys } from "./keyring.ts";
import { findReadings } from "./readings.ts";

/** What signed fields must be, compared as whole values. */
export interface PaymentExpectations {
  readonly merchantId?: string | readonly string[] | undefined;
  readonly callbackUrl?: string | readonly string[] | undefined;
}

/** What to do with a body whose signature fits more than one event. */
export type Confirmation = "run" | "discard" | "keep" | PaymentEvent;

/** A body whose signature fits more than one event (docs/security.md). */
export interface AmbiguousCallback {
  /** As the body has it. It may be the forged one. */
  readonly event: PaymentEvent;
  /** Up to eight events that the signature fits. */
  readonly readings: readonly PaymentEvent[];
  /** The rule that was broken, in words. */
  readonly detail: string;
  readonly tenant: string;
}

/** Options of the payments flow. */
export interface PaymentsOptions {
  /**
   * The merchant's public key: PEM (also with `\n` written out, in quotes, or base64 of that), a `KeyObject` or
   * `{ file }`; up to four during a rotation; or a resolver for many merchants.
   */
  readonly publicKey: PublicKeySource | readonly PublicKeySource[] | KeyResolver<PublicKeySource> | undefined;
  /** Signed fields with a known value. An authentic callback with another one is held as `unexpected`. */
  readonly expect?: PaymentExpectations | undefined;
  /** Undocumented fields that the service sends with every callback. */
  readonly extraFields?: readonly string[] | undefined;
  /** A second SUCCESS for a reference, under another payTxnId, is held as `reference-reused`. Default false. */
  readonly oneSuccessPerReference?: boolean | undefined;
  /** Decides about a body whose signature fits more than one event; the service's look-up is the authority. */
  readonly confirm?: ((callback: AmbiguousCallback) => Confirmation | Promise<Confirmation>) | undefined;
}

/** A transaction as the service's look-up returns it, as far as an event needs it (specification, Transaction). */
export interface LookupTransaction {
  readonly id: string;
  readonly reference: string;
  readonly type: string;
  readonly status: string;
  /** The raw JSON text of the number, or the number. */
  readonly base_amount: string | number;
  readonly callback_url: string;
  readonly updated_at: string;
  readonly merchant_id?: string | undefined;
  readonly message?: string | undefined;
}

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
  const merchantIds = setOf(options.expect?.merchantId, "payments.expect.merchantId");

  function verify(delivery: Delivery, now: number): Verification | Promise<Verification> {
    const body = readCallback(delivery.rawBody);
    if (body === null)
      return refused("ERR_BODY_NOT_JSON", "the body is not a JSON object in UTF-8 without BOM");
    const signature = readSignature(body);
    if (!(signature instanceof Uint8Array)) return signature;
    const found = keyring.find(hintOf(delivery, body));
    if (found instanceof Promise)
      return found.then((keys) => verifyWith(keys, body, signature, delivery, now));
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
    return readingOf(body.texts, stored, () => extraOf(body, rules));
  }

  /** A certain reading: listed or not, expected or not. */
  function readingOf(
    texts: CallbackTexts,
    stored: StoredDelivery,
    extra: () => Readonly<Record<string, string | boolean>>,
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
    return new Reading(verified, listed ? () => toEvent(texts, extra(), source) : null);
  }

  function findUnexpected(texts: CallbackTexts): string | null {
    if (merchantIds.size > 0 && !merchantIds.has(texts.get("merchantId") ?? "")) {
      return "merchantId is none of payments.expect.merchantId";
    }
    if (rules.pinnedUrls.size > 0 && !rules.pinnedUrls.has(texts.get("callbackUrl") ?? "")) {
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

const noExtra = (): typeof NO_EXTRA => NO_EXTRA;
const NO_EXTRA: Readonly<Record<string, string | boolean>> = Object.freeze(
  Object.create(null) as Record<string, string>,
);

function keyringOf(source: PaymentsOptions["publicKey"], clock: Clock): Keyring<VerifyingKey> {
  const option = "payments.publicKey";
  if (typeof source !== "function")
    return lazyKeys(async () => importPublicKeys(await readFiles(source, option), option));
  return resolvedKeys(
    source,
    async (keys) => importPublicKeys(await readFiles(keys, `the keys that ${option} returned`), option),
    option,
    clock,
  );
}

type Sources = PublicKeySource | readonly PublicKeySource[] | undefined;

async function readFiles(source: Sources, option: string): Promise<readonly PublicKeyInput[] | undefined> {
  if (source === undefined || source === null) return undefined;
  const list = Array.isArray(source) ? (source as readonly PublicKeySource[]) : [source as PublicKeySource];
  return Promise.all(list.map((key) => readFileOf(key, option)));
}

async function readFileOf(source: PublicKeySource, option: string): Promise<PublicKeyInput> {
  if (typeof source !== "object" || source === null || !("file" in source)) return source as PublicKeyInput;
  // Imported here, since not every runtime has a file system.
  const { readFile } = await import("node:fs/promises");
  try {
    return await readFile(source.file, "utf8");
  } catch (cause) {
    throw new PayhooksError(
      "ERR_KEY_UNREADABLE",
      `${option} names the file ${JSON.stringify(source.file)}, which cannot be read.`,
      {
        fix: "Check the path and its permissions; it is relative to the process's working directory.",
        cause,
      },
    );
  }
}

function rulesOf({ expect, extraFields = [] }: PaymentsOptions, merchantIdRequired: boolean): CallbackRules {
  for (const name of extraFields) {
    if (typeof name !== "string" || !isFieldName(name) || isDocumented(name) || name === "signature") {
      throw new PayhooksError(
        "ERR_OPTION_INVALID",
        `payments.extraFields lists ${JSON.stringify(name)}, which cannot be an undocumented field.`,
        {
          fix: 'List names such as "currency": letters, digits and underscores, none that the specification has.',
        },
      );
    }
  }
  const pinnedUrls = setOf(expect?.callbackUrl, "payments.expect.callbackUrl");
  for (const url of pinnedUrls) {
    if (!URL.canParse(url)) {
      throw new PayhooksError(
        "ERR_OPTION_INVALID",
        `payments.expect.callbackUrl has ${JSON.stringify(url)}, which is not an absolute URL.`,
        {
          fix: "Give the whole callback_url as you send it to the service.",
        },
      );
    }
    for (const other of pinnedUrls) {
      if (other.startsWith(`${url}&`)) {
        throw new PayhooksError(
          "ERR_OPTION_INVALID",
          'payments.expect.callbackUrl has a URL that is another one followed by "&", so that one could be cut into the other.',
          {
            fix: "Use callback URLs that differ in their path.",
          },
        );
      }
    }
  }
  return { extraFields: new Set(extraFields), pinnedUrls, merchantIdRequired, callbackUrlRequired: true };
}

function setOf(value: string | readonly string[] | undefined, option: string): ReadonlySet<string> {
  const list: readonly unknown[] = value === undefined ? [] : typeof value === "string" ? [value] : value;
  if (!Array.isArray(list) || list.some((item) => typeof item !== "string" || item === "")) {
    throw new PayhooksError("ERR_OPTION_INVALID", `${option} has an entry that is empty or not text.`, {
      fix: "Is the environment variable set? Leave the option out to expect nothing.",
    });
  }
  return new Set(list as readonly string[]);
}

function readSignature({ json }: CallbackBody): Uint8Array | Verification {
  const field = json.object.signature;
  if (field === undefined || field === null || field === "")
    return refused("ERR_SIGNATURE_MISSING", "the body has no signature");
  const bytes = typeof field === "string" ? decodeCanonicalBase64(field) : null;
  return bytes ?? refused("ERR_SIGNATURE_MALFORMED", "the signature is not canonical base64");
}

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
  if (body.texts.size <= CALLBACK_FIELDS.length && [...body.texts.keys()].every(isDocumented))
    return NO_EXTRA;
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
  const event: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
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

function textsOfLookup(transaction: LookupTransaction): CallbackTexts {
  const { id, reference, type, status, base_amount, callback_url, updated_at, merchant_id, message } =
    transaction;
  const texts = new Map<string, string>();
  const put = (name: string, value: unknown): void => {
    const text = typeof value === "number" ? String(value) : value;
    if (typeof text === "string" && text !== "") texts.set(name, text);
  };
  put("amount", base_amount);
  put("callbackUrl", callback_url);
  put("event", type);
  put("merchantId", merchant_id);
  put("message", message);
  put("payTxnId", id);
  put("referenceId", reference);
  put("status", status);
  put("timestamp", updated_at);
  return texts;
}

function refused(code: Extract<Verification, { ok: false }>["code"], why: string): Verification {
  return { ok: false, code, why };
}
