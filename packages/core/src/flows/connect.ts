import type { StoredDelivery } from "../inbox/record/event.ts";
import { SPECIFIED_NAMES } from "../names/service-names.ts";
import type { SetupWarning } from "../notices/setup-warnings.ts";
import { checkFlag, checkNames } from "../protocol/check-names.ts";
import type { Delivery } from "../protocol/delivery.ts";
import { PayhooksError } from "../protocol/errors.ts";
import { type ConnectEvent, DATA, flowOfEvent, objectOfEvent } from "../protocol/events.ts";
import { shown } from "../protocol/foreign-value.ts";
import {
  frozen,
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
import { isPending } from "../time/awaitable.ts";
import { contentsOf } from "./contents.ts";
import {
  cachedReading,
  cacheReading,
  eventNamed,
  eventOf,
  type Flow,
  ReadDelivery,
  readingOutsideTable,
  UNKNOWN_TENANT,
  unsetEntries,
  type Verification,
  withFreshness,
} from "./flow.ts";
import { type KeepOptions, keepMsOf } from "./keep.ts";
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
      `connect.badSignatureStatus is ${shown(badSignatureStatus)}.`,
      { fix: "It can be 400 or 401." },
    );
  }
  const lifetimes = { windowMs, keepMs: keepMsOf("connect.keep", options.keep) };
  const unsigned = options.unsafeAllowUnsigned === true;
  if (unsigned && options.secret !== undefined) {
    throw new PayhooksError("ERR_OPTION_INVALID", "connect has both a secret and unsafeAllowUnsigned.", {
      fix: "Remove unsafeAllowUnsigned: with a secret every webhook is signed.",
    });
  }

  const { signatureHeader } = names.connect;
  const headerName = signatureHeader.toLowerCase();

  function verify(delivery: Delivery, now: number): Verification | Promise<Verification> {
    if (unsigned) return accept(delivery, "", null, now);
    const header = delivery.headers.get(headerName) ?? "";
    if (header === "") return withoutHeader(delivery);
    if (!isSignatureHeader(header)) {
      return refused(
        "ERR_SIGNATURE_MALFORMED",
        `${signatureHeader} is not sha256= and 64 lowercase hex digits`,
      );
    }
    const hint = delivery.tenant === undefined ? {} : { tenant: delivery.tenant };
    return verifyWithKeys(keyring, hint, (found) => verifyWith(found, delivery, header, now));
  }

  /**
   * The delivery has no signature in the expected header. If another header has a genuine signature, the refusal names that
   * header.
   */
  function withoutHeader(delivery: Delivery): Verification | Promise<Verification> {
    const missing = refused("ERR_SIGNATURE_MISSING", `there is no ${signatureHeader} header`);
    const others = otherSignatures(delivery);
    if (others.length === 0) return missing;
    const verificationOf = (found: Awaited<ReturnType<typeof keyring.find>>): Verification => {
      const fitting = others.find(
        ({ value }) => findSecret(delivery.rawBody, value, found?.keys ?? []) !== null,
      );
      if (fitting === undefined) return missing;
      const { name } = fitting;
      const fix = `If the service calls it so, set names: serviceNames({ connect: { signatureHeader: "${name}" } }). Until then it sends the webhook again.`;
      return { ...missing, why: `${missing.why}, and the signature in ${name} is genuine`, fix };
    };
    const found = keyring.find(delivery.tenant === undefined ? {} : { tenant: delivery.tenant });
    return isPending(found) ? found.then(verificationOf) : verificationOf(found);
  }

  function verifyWith(
    found: Awaited<ReturnType<Keyring<VerifyingSecret>["find"]>>,
    delivery: Delivery,
    header: string,
    now: number,
  ): Verification {
    if (found === null) return refused("ERR_SIGNATURE_INVALID", UNKNOWN_TENANT);
    const secret = findSecret(delivery.rawBody, header, found.keys);
    if (secret === null) return refused("ERR_SIGNATURE_INVALID", "the signature fits none of the secrets");
    return accept(delivery, found.tenant, secret.keyId, now, header);
  }

  function accept(
    { rawBody }: Delivery,
    tenant: string,
    keyId: string | null,
    now: number,
    header?: string,
  ): Verification {
    const stored: StoredDelivery = {
      flow: "connect",
      tenant,
      arrivedBy: "webhook",
      content: rawBody,
      signature: header ?? null,
      keyId,
      receivedAt: now,
    };
    const reading = readingOf(stored);
    if (reading === null)
      return refused("ERR_BODY_NOT_JSON", "the body is not a JSON object in UTF-8 without BOM");
    cacheReading(stored, keyring, reading);
    return withFreshness(reading, now, windowMs);
  }

  /** Null when the body is not a JSON object. */
  function readingOf(stored: StoredDelivery): ReadDelivery | null {
    if (isUnwieldy(stored.content, MAX_WEBHOOK_PARTS)) {
      const detail = "the body has more than 8 KiB and 5,000 parts";
      return readingOutsideTable("malformed", detail, stored.content, null, stored, lifetimes);
    }
    const body = parseJsonBody(stored.content);
    return body === null ? null : read(body, stored);
  }

  function read(body: JsonBody, stored: StoredDelivery): ReadDelivery {
    const envelope = body.flaw === null ? readEnvelope(body.object) : `the body has ${body.flaw}`;
    if (typeof envelope === "string") {
      return readingOutsideTable(
        "malformed",
        envelope,
        stored.content,
        parseTimestamp(body.object.occurred_at),
        stored,
        lifetimes,
      );
    }
    const { name, data, listed } = envelope;
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
        hold: listed
          ? null
          : { reason: "unrecognized", detail: "the event is not one that the specification lists" },
        reference: null,
        referenceId: typeof data.id === "string" ? data.id : null,
        subject: { name: `${data.object}:${data.id}`, at: envelope.occurredAt },
      },
      stored,
      lifetimes,
    );
    return new ReadDelivery(
      verified,
      listed ? () => toEvent(body.object, data, stored.keyId !== null) : null,
    );
  }

  function readStored(stored: StoredDelivery): ReadDelivery {
    const read = cachedReading(stored, keyring) ?? readingOf(stored);
    return (
      read ??
      readingOutsideTable("malformed", "the stored body is not JSON", stored.content, null, stored, lifetimes)
    );
  }

  return {
    name: "connect",
    hasTenants: keyring.usesResolver,
    badSignatureStatus,
    windowMs,
    async prepare() {
      if (unsigned) return [UNSIGNED];
      const secrets = await keyring.prepare();
      const weak = secrets.some((secret) => secret.weak) ? [WEAK] : [];
      return [...unsetEntries("connect.secret", countUnset(options.secret)), ...weak];
    },
    verify,
    read: readStored,
    named(event, tenant, now) {
      if (flowOfEvent(event.event) !== "connect" || (event.status ?? "") !== "") return null;
      const origin = { flow: "connect", tenant, arrivedBy: "webhook", receivedAt: now } as const;
      return eventNamed(event, { status: "", rank: 1 }, origin, lifetimes);
    },
    contents: contentsOf,
  };
}

const UNSIGNED: SetupWarning = {
  what: "connect.unsafeAllowUnsigned is set: anybody can send events.",
  fix: "Set a webhook_secret with the webhook settings, and give it as connect.secret.",
};
const WEAK: SetupWarning = {
  what: "connect.secret has under 16 characters and may be guessed.",
  fix: "Use a long random secret.",
};

interface Envelope {
  readonly name: string;
  readonly key: string;
  readonly occurredAt: number;
  readonly data: JsonObject;
  readonly listed: boolean;
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
  return fault ?? { name: event, key: idempotency_key, occurredAt, data: members, listed: expected !== null };
}

function findDataFault(object: keyof typeof DATA, data: JsonObject): string | null {
  if (data.object !== object) return `data.object is not "${object}"`;
  for (const [name, example] of Object.entries(DATA[object])) {
    const value = data[name];
    if (typeof example === "number") {
      if (!Number.isSafeInteger(value)) return `data.${name} is not a safe integer`;
    } else if (typeof value !== "string" || value === "") return `data.${name} is missing or not text`;
  }
  return null;
}

/** The members of `data` that the specification lists, by its `object`. */
const DOCUMENTED: ReadonlyMap<unknown, ReadonlySet<string>> = new Map(
  Object.entries(DATA).map(([object, members]) => [object, new Set(["object", ...Object.keys(members)])]),
);
const NO_FIELDS: ReadonlySet<string> = new Set();
const ENVELOPE_FIELDS: ReadonlySet<string> = new Set(["event", "idempotency_key", "occurred_at", "data"]);

/** A frozen event without prototypes. Members that the specification does not list go to `extra`. */
function toEvent(object: JsonObject, data: JsonObject, authenticated: boolean): ConnectEvent {
  const event = withoutPrototype();
  const extra = split(object, ENVELOPE_FIELDS, event);
  const eventData = withoutPrototype();
  eventData.extra = split(data, DOCUMENTED.get(data.object) ?? NO_FIELDS, eventData);
  event.data = Object.freeze(eventData);
  event.extra = extra;
  event.authenticated = authenticated;
  return Object.freeze(event) as unknown as ConnectEvent;
}

/**
 * Copies documented members into `target`, and returns the others. Except for `data`, documented members are text and numbers.
 */
function split(
  source: JsonObject,
  documented: ReadonlySet<string>,
  target: Record<string, unknown>,
): JsonObject {
  let rest: Record<string, JsonValue> | null = null;
  for (const name of Object.keys(source)) {
    const value = source[name] as JsonValue;
    if (documented.has(name)) target[name] = value;
    else {
      rest ??= Object.create(null) as Record<string, JsonValue>;
      rest[name] = frozen(value);
    }
  }
  return rest === null ? NOTHING_ELSE : Object.freeze(rest);
}

const NOTHING_ELSE: JsonObject = Object.freeze(Object.create(null) as Record<string, JsonValue>);

/** How many headers of other names are tried: each costs a hash over the body. */
const MAX_OTHER_HEADERS = 2;

/** Headers that may have a signature of this flow. */
function otherSignatures({
  headers,
}: Delivery): readonly { readonly name: string; readonly value: string }[] {
  const found: { readonly name: string; readonly value: string }[] = [];
  for (const name of headers.keys?.() ?? []) {
    if (!/signature/i.test(name)) continue;
    const value = headers.get(name) ?? "";
    if (isSignatureHeader(value)) found.push({ name, value });
    if (found.length === MAX_OTHER_HEADERS) break;
  }
  return found;
}

type Refused = Extract<Verification, { ok: false }>;

function refused(code: Refused["code"], why: string): Refused {
  return { ok: false, code, why };
}
