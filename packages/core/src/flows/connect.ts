import type { StoredDelivery } from "../inbox/record/event.ts";
import { SPECIFIED_NAMES } from "../names/service-names.ts";
import type { SetupWarning } from "../notices/setup-warnings.ts";
import { checkFlag, checkNames } from "../protocol/check-names.ts";
import type { Delivery } from "../protocol/delivery.ts";
import { PayhooksError } from "../protocol/errors.ts";
import { type ConnectEvent, flowOfEvent, OBJECT_MEMBERS, objectOfEvent } from "../protocol/events.ts";
import { describeValue } from "../protocol/foreign-value.ts";
import {
  deepFreeze,
  isUnwieldy,
  type JsonBody,
  type JsonObject,
  type JsonValue,
  parseJsonBody,
  withoutPrototype,
} from "../protocol/json.ts";
import { parseTimestamp } from "../protocol/timestamp.ts";
import { findSecret, isSignatureHeader } from "../signature/hmac.ts";
import { countUnset, importSecrets, type SecretInput, type VerifyingSecret } from "../signature/keys.ts";
import { isThenable } from "../time/awaitable.ts";
import { contentsOf } from "./contents.ts";
import {
  cachedReading,
  cacheReading,
  eventOf,
  eventWithoutDelivery,
  type Flow,
  ReadDelivery,
  readingOutsideTable,
  UNKNOWN_TENANT_REASON,
  unsetEntryWarnings,
  type Verification,
  withFreshness,
} from "./flow.ts";
import { type KeepOptions, keepMsOf } from "./keep-options.ts";
import { type Keyring, verifyWithKeys } from "./keyring.ts";
import { type Keys, keyringOf } from "./keys.ts";
import type { FlowContext } from "./payments.ts";

/** How many parts a webhook may have. It is parsed only once it is authentic; genuine ones have about ten. */
const MAX_WEBHOOK_PARTS = 5_000;

/** The header that carries the signature (specification, Authentication, 3). */
export const SIGNATURE_HEADER = "x-connect-signature";

/** Options of the connect flow. */
export interface ConnectOptions {
  /**
   * The `webhook_secret` of the webhook settings, as text, bytes or a secret `KeyObject`. A list of up to four during a
   * rotation. `{ read }`, which is called again. A resolver for many merchants.
   */
  readonly secret?: Keys<SecretInput>;
  /** The HTTP status for a delivery that is not authentic. Default 400, as in the specification's example. */
  readonly badSignatureStatus?: 400 | 401 | undefined;
  /** Accepts webhooks without any check, for a master merchant who has no secret configured. Never use it in production. */
  readonly unsafeAllowUnsigned?: boolean | undefined;
  /** Keeps the signed text after the event's end, so that the event can be run again. Default: it is dropped. */
  readonly keep?: KeepOptions | undefined;
}

/** The flow of the connected-account webhooks (specification, Authentication 3, Connected-account events). */
export function connectFlow(
  options: ConnectOptions,
  { windowMs, names = SPECIFIED_NAMES, ...limits }: FlowContext,
  keyring: Keyring<VerifyingSecret> = keyringOf(options.secret, "connect.secret", importSecrets, limits),
): Flow {
  checkNames("connect", options, {
    secret: true,
    badSignatureStatus: true,
    unsafeAllowUnsigned: true,
    keep: true,
  });
  checkFlag("connect.unsafeAllowUnsigned", options.unsafeAllowUnsigned);
  const { badSignatureStatus = 400 } = options;
  if (![400, 401].includes(badSignatureStatus)) {
    throw new PayhooksError(
      "ERR_OPTION_INVALID",
      `connect.badSignatureStatus is ${describeValue(badSignatureStatus)}.`,
      { fix: "It can be 400 or 401." },
    );
  }
  const lifetimes = { windowMs, keepMs: keepMsOf("connect.keep", options.keep) };
  const isUnsigned = options.unsafeAllowUnsigned === true;
  if (isUnsigned && options.secret !== undefined) {
    throw new PayhooksError("ERR_OPTION_INVALID", "connect has both a secret and unsafeAllowUnsigned.", {
      fix: "Remove unsafeAllowUnsigned: with a secret every webhook is signed.",
    });
  }

  const { signatureHeader } = names.connect;
  const headerName = signatureHeader.toLowerCase();

  function verify(delivery: Delivery, now: number): Verification | Promise<Verification> {
    if (isUnsigned) return accept(delivery, "", null, now);
    const header = delivery.headers.get(headerName) ?? "";
    if (header === "") return refuseWithoutHeader(delivery);
    if (!isSignatureHeader(header)) {
      return refuse(
        "ERR_SIGNATURE_MALFORMED",
        `${signatureHeader} is not sha256= and 64 lowercase hex digits`,
      );
    }
    const hint = delivery.tenant === undefined ? {} : { tenant: delivery.tenant };
    return verifyWithKeys(keyring, hint, (resolvedKeys) => verifyWith(resolvedKeys, delivery, header, now));
  }

  /**
   * The delivery has no signature in the expected header. If another header has a genuine signature, the refusal names that
   * header.
   */
  function refuseWithoutHeader(delivery: Delivery): Verification | Promise<Verification> {
    const refusal = refuse("ERR_SIGNATURE_MISSING", `there is no ${signatureHeader} header`);
    const otherHeaders = otherSignatures(delivery);
    if (otherHeaders.length === 0) return refusal;
    const verificationOf = (resolved: Awaited<ReturnType<typeof keyring.find>>): Verification => {
      const fitting = otherHeaders.find(
        ({ value }) => findSecret(delivery.rawBody, value, resolved?.keys ?? []) !== null,
      );
      if (fitting === undefined) return refusal;
      const { name } = fitting;
      const fix = `If the service calls it so, set names: serviceNames({ connect: { signatureHeader: "${name}" } }). Until then it sends the webhook again.`;
      return { ...refusal, why: `${refusal.why}, and the signature in ${name} is genuine`, fix };
    };
    const resolved = keyring.find(delivery.tenant === undefined ? {} : { tenant: delivery.tenant });
    return isThenable(resolved) ? resolved.then(verificationOf) : verificationOf(resolved);
  }

  function verifyWith(
    resolved: Awaited<ReturnType<Keyring<VerifyingSecret>["find"]>>,
    delivery: Delivery,
    header: string,
    now: number,
  ): Verification {
    if (resolved === null) return refuse("ERR_SIGNATURE_INVALID", UNKNOWN_TENANT_REASON);
    const secret = findSecret(delivery.rawBody, header, resolved.keys);
    if (secret === null) return refuse("ERR_SIGNATURE_INVALID", "the signature fits none of the secrets");
    return accept(delivery, resolved.tenant, secret.keyId, now, header);
  }

  function accept(
    { rawBody }: Delivery,
    tenant: string,
    keyId: string | null,
    now: number,
    header?: string,
  ): Verification {
    const storedDelivery: StoredDelivery = {
      flow: "connect",
      tenant,
      arrivedBy: "webhook",
      content: rawBody,
      signature: header ?? null,
      keyId,
      receivedAt: now,
    };
    const reading = readingOf(storedDelivery);
    if (reading === null)
      return refuse("ERR_BODY_NOT_JSON", "the body is not a JSON object in UTF-8 without BOM");
    cacheReading(storedDelivery, keyring, reading);
    return withFreshness(reading, now, windowMs);
  }

  /** Null when the body is not a JSON object. */
  function readingOf(storedDelivery: StoredDelivery): ReadDelivery | null {
    if (isUnwieldy(storedDelivery.content, MAX_WEBHOOK_PARTS)) {
      const detail = "the body has more than 8 KiB and 5,000 parts";
      return readingOutsideTable(
        "malformed",
        detail,
        storedDelivery.content,
        null,
        storedDelivery,
        lifetimes,
      );
    }
    const body = parseJsonBody(storedDelivery.content);
    return body === null ? null : read(body, storedDelivery);
  }

  function read(body: JsonBody, storedDelivery: StoredDelivery): ReadDelivery {
    const envelope = body.flaw === null ? readEnvelope(body.object) : `the body has ${body.flaw}`;
    if (typeof envelope === "string") {
      return readingOutsideTable(
        "malformed",
        envelope,
        storedDelivery.content,
        parseTimestamp(body.object.occurred_at),
        storedDelivery,
        lifetimes,
      );
    }
    const { name, data, isListed } = envelope;
    const fixedFacts: Record<string, string> = { event: name };
    const status = data.kyc_status ?? data.status;
    if (typeof data.object === "string") fixedFacts.object = data.object;
    if (typeof data.id === "string") fixedFacts.id = data.id;
    if (typeof status === "string") fixedFacts.status = status;
    const verified = eventOf(
      {
        id: envelope.key,
        name,
        status: "",
        rank: 1,
        fixedFacts,
        amount: typeof data.amount === "number" ? String(data.amount) : null,
        signedAt: envelope.occurredAt,
        hold: isListed
          ? null
          : { reason: "unrecognized", detail: "the event is not one that the specification lists" },
        reference: null,
        referenceId: typeof data.id === "string" ? data.id : null,
        subject: { name: `${data.object}:${data.id}`, at: envelope.occurredAt },
      },
      storedDelivery,
      lifetimes,
    );
    return new ReadDelivery(
      verified,
      isListed ? () => toEvent(body.object, data, storedDelivery.keyId !== null) : null,
    );
  }

  function readStored(storedDelivery: StoredDelivery): ReadDelivery {
    const reading = cachedReading(storedDelivery, keyring) ?? readingOf(storedDelivery);
    return (
      reading ??
      readingOutsideTable(
        "malformed",
        "the stored body is not JSON",
        storedDelivery.content,
        null,
        storedDelivery,
        lifetimes,
      )
    );
  }

  return {
    name: "connect",
    hasTenants: keyring.usesResolver,
    badSignatureStatus,
    windowMs,
    async prepare() {
      if (isUnsigned) return [UNSIGNED_WARNING];
      const secrets = await keyring.prepare();
      const weakWarnings = secrets.some((secret) => secret.isWeak) ? [WEAK_SECRET_WARNING] : [];
      return [...unsetEntryWarnings("connect.secret", countUnset(options.secret)), ...weakWarnings];
    },
    verify,
    read: readStored,
    eventFromName(event, tenant, now) {
      if (flowOfEvent(event.event) !== "connect" || (event.status ?? "") !== "") return null;
      const origin = { flow: "connect", tenant, arrivedBy: "webhook", receivedAt: now } as const;
      return eventWithoutDelivery(event, { status: "", rank: 1 }, origin, lifetimes);
    },
    contents: contentsOf,
  };
}

const UNSIGNED_WARNING: SetupWarning = {
  what: "connect.unsafeAllowUnsigned is set: anybody can send events.",
  fix: "Set a webhook_secret with the webhook settings, and give it as connect.secret.",
};
const WEAK_SECRET_WARNING: SetupWarning = {
  what: "connect.secret has under 16 characters and may be guessed.",
  fix: "Use a long random secret.",
};

interface Envelope {
  readonly name: string;
  readonly key: string;
  readonly occurredAt: number;
  readonly data: JsonObject;
  readonly isListed: boolean;
}

/** The envelope, or its fault. */
function readEnvelope(object: JsonObject): Envelope | string {
  const { event, idempotency_key, data } = object;
  if (typeof event !== "string" || event === "") return "event is missing or not text";
  if (typeof idempotency_key !== "string" || idempotency_key === "")
    return "idempotency_key is missing or not text";
  const occurredAt = parseTimestamp(object.occurred_at);
  if (occurredAt === null) return "occurred_at is not an ISO 8601 date and time with its zone";
  if (typeof data !== "object" || data === null || Array.isArray(data)) return "data is not an object";
  const members = data as JsonObject;
  const expected = objectOfEvent(event);
  const fault = expected === null ? null : findDataFault(expected, members);
  return (
    fault ?? { name: event, key: idempotency_key, occurredAt, data: members, isListed: expected !== null }
  );
}

function findDataFault(object: keyof typeof OBJECT_MEMBERS, data: JsonObject): string | null {
  if (data.object !== object) return `data.object is not "${object}"`;
  for (const [name, example] of Object.entries(OBJECT_MEMBERS[object])) {
    const value = data[name];
    if (typeof example === "number") {
      if (!Number.isSafeInteger(value)) return `data.${name} is not a safe integer`;
    } else if (typeof value !== "string" || value === "") return `data.${name} is missing or not text`;
  }
  return null;
}

/** The members of `data` that the specification lists, by its `object`. */
const DOCUMENTED_MEMBERS: ReadonlyMap<unknown, ReadonlySet<string>> = new Map(
  Object.entries(OBJECT_MEMBERS).map(([object, members]) => [
    object,
    new Set(["object", ...Object.keys(members)]),
  ]),
);
const NO_FIELDS: ReadonlySet<string> = new Set();
const ENVELOPE_FIELDS: ReadonlySet<string> = new Set(["event", "idempotency_key", "occurred_at", "data"]);

/** A frozen event without prototypes. Members that the specification does not list go to `extra`. */
function toEvent(object: JsonObject, data: JsonObject, authenticated: boolean): ConnectEvent {
  const event = withoutPrototype();
  const extra = copyDocumented(object, ENVELOPE_FIELDS, event);
  const eventData = withoutPrototype();
  eventData.extra = copyDocumented(data, DOCUMENTED_MEMBERS.get(data.object) ?? NO_FIELDS, eventData);
  event.data = Object.freeze(eventData);
  event.extra = extra;
  event.authenticated = authenticated;
  return Object.freeze(event) as unknown as ConnectEvent;
}

/**
 * Copies documented members into `target`, and returns the others. Except for `data`, documented members are text and numbers.
 */
function copyDocumented(
  source: JsonObject,
  documented: ReadonlySet<string>,
  target: Record<string, unknown>,
): JsonObject {
  let otherMembers: Record<string, JsonValue> | null = null;
  for (const name of Object.keys(source)) {
    const value = source[name] as JsonValue;
    if (documented.has(name)) target[name] = value;
    else {
      otherMembers ??= Object.create(null) as Record<string, JsonValue>;
      otherMembers[name] = deepFreeze(value);
    }
  }
  return otherMembers === null ? NO_OTHER_MEMBERS : Object.freeze(otherMembers);
}

const NO_OTHER_MEMBERS: JsonObject = Object.freeze(Object.create(null) as Record<string, JsonValue>);

/** How many headers of other names are tried: each costs a hash over the body. */
const MAX_OTHER_HEADERS = 2;

/** Headers that may have a signature of this flow. */
function otherSignatures({
  headers,
}: Delivery): readonly { readonly name: string; readonly value: string }[] {
  const signatures: { readonly name: string; readonly value: string }[] = [];
  for (const sentName of headers.keys?.() ?? []) {
    // Some gateways keep the case in which a name was sent.
    const name = sentName.toLowerCase();
    if (!name.includes("signature")) continue;
    const value = headers.get(name) ?? "";
    if (isSignatureHeader(value)) signatures.push({ name, value });
    if (signatures.length === MAX_OTHER_HEADERS) break;
  }
  return signatures;
}

type RefusedVerification = Extract<Verification, { ok: false }>;

function refuse(code: RefusedVerification["code"], why: string): RefusedVerification {
  return { ok: false, code, why };
}
