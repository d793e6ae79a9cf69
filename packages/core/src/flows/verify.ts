import type { ServiceNames } from "../names/options.ts";
import { serviceNames } from "../names/service-names.ts";
import { checkNames } from "../protocol/check-names.ts";
import type { Delivery } from "../protocol/delivery.ts";
import { type ErrorCode, PayhooksError } from "../protocol/errors.ts";
import type { AnyEvent, ConnectEvent, PaymentEvent } from "../protocol/events.ts";
import type { HeldReason } from "../protocol/held-reasons.ts";
import {
  importPublicKeys,
  importSecrets,
  type OneOrMore,
  type PublicKeyInput,
  type SecretInput,
} from "../signature/keys.ts";
import { systemClock } from "../time/clock.ts";
import { connectFlow, SIGNATURE_HEADER } from "./connect.ts";
import type { Flow, Verification } from "./flow.ts";
import { fixedKeyring } from "./keyring.ts";
import { paymentsFlow } from "./payments.ts";
import { checkExpectations, type PaymentExpectations } from "./payments-options.ts";

/** A delivery that was only verified: it was not deduplicated, and its time was not checked. */
export interface VerifiedDelivery<Event> {
  readonly event: Event;
  /** Fingerprint of the key that matched. */
  readonly keyId: string;
  /** When the service signed it, by its own words. A receiver refuses deliveries that were signed before its window. */
  readonly signedAt: Date;
}

/** Options of {@link verifyPaymentCallback}. */
export interface VerifyPaymentOptions {
  readonly publicKey: OneOrMore<PublicKeyInput> | undefined;
  readonly expect?: PaymentExpectations | undefined;
  /** The service's names for the fields, from `serviceNames`. */
  readonly names?: ServiceNames | undefined;
}

/**
 * Verifies one payment callback: its RSA signature (specification, Authentication, 4), and that the signature has only one
 * reading. It does not deduplicate, and does not check how long ago the callback was signed. A receiver does both.
 *
 * @param rawBody the bytes exactly as they arrived.
 * @throws PayhooksError `ERR_BODY_NOT_JSON`, `ERR_SIGNATURE_MISSING`, `ERR_SIGNATURE_MALFORMED`, `ERR_SIGNATURE_INVALID`; if it
 * is authentic but cannot be used: `ERR_EVENT_MALFORMED`, `ERR_EVENT_AMBIGUOUS`, `ERR_EVENT_UNEXPECTED`,
 * `ERR_EVENT_UNRECOGNIZED`; for the options, their set-up codes.
 * @example const { event } = verifyPaymentCallback(rawBody, { publicKey: process.env.PAY_PUBLIC_KEY });
 */
export function verifyPaymentCallback(
  rawBody: Uint8Array,
  options: VerifyPaymentOptions,
): VerifiedDelivery<PaymentEvent> {
  checkNames("verifyPaymentCallback", options, { publicKey: true, expect: true, names: true });
  const { publicKey, expect, names } = options;
  checkExpectations({ publicKey, expect });
  const keys = importPublicKeys(publicKey, "publicKey");
  const context = { ...UNLIMITED_CONTEXT, names: names === undefined ? undefined : serviceNames(names) };
  const flow = paymentsFlow({ publicKey: undefined, expect }, context, fixedKeyring(keys));
  return eventOrThrow(flow, deliveryOf(rawBody, null)) as VerifiedDelivery<PaymentEvent>;
}

/** Options of {@link verifyConnectWebhook}. */
export interface VerifyConnectOptions {
  readonly secret: OneOrMore<SecretInput> | undefined;
}

/**
 * Verifies one connected-account webhook: the HMAC over its raw bytes (specification, Authentication, 3). It does not
 * deduplicate, and does not check how long ago the webhook was signed. A receiver does both.
 *
 * @param rawBody the bytes exactly as they arrived.
 * @param signatureHeader the value of `X-Connect-Signature`. A list, as Node has it for a repeated header, is malformed.
 * @throws PayhooksError the same codes as {@link verifyPaymentCallback}, without those of ambiguity and expectation.
 * @example const { event } = verifyConnectWebhook(rawBody, request.headers["x-connect-signature"], { secret });
 */
export function verifyConnectWebhook(
  rawBody: Uint8Array,
  signatureHeader: string | readonly string[] | null | undefined,
  options: VerifyConnectOptions,
): VerifiedDelivery<ConnectEvent> {
  checkNames("verifyConnectWebhook", options, { secret: true });
  const { secret } = options;
  const secrets = importSecrets(secret, "secret");
  const flow = connectFlow({}, UNLIMITED_CONTEXT, fixedKeyring(secrets));
  return eventOrThrow(flow, deliveryOf(rawBody, signatureHeader ?? null)) as VerifiedDelivery<ConnectEvent>;
}

const NO_LIMIT = Number.POSITIVE_INFINITY;
const UNLIMITED_CONTEXT = {
  windowMs: NO_LIMIT,
  acceptTimeoutMs: NO_LIMIT,
  maxResolving: NO_LIMIT,
  clock: systemClock,
};

const CODE_OF_REASON: Partial<Record<HeldReason, ErrorCode>> = {
  ambiguous: "ERR_EVENT_AMBIGUOUS",
  unexpected: "ERR_EVENT_UNEXPECTED",
  unrecognized: "ERR_EVENT_UNRECOGNIZED",
};

function eventOrThrow(flow: Flow, delivery: Delivery): VerifiedDelivery<AnyEvent> {
  // With fixed keys, the result is synchronous. Only a resolver makes it a promise.
  const verification = flow.verify(delivery, 0) as Verification;
  if (!verification.ok) {
    throw new PayhooksError(verification.code, `Not authentic: ${verification.why}.`, {
      status: verification.code.startsWith("ERR_SIGNATURE_") ? flow.badSignatureStatus : undefined,
      fix: "Check that it is the right key, and that these are the bytes exactly as they arrived.",
    });
  }
  const { event, verified } = verification.reading;
  const { signedAt } = verified;
  if (event === null || verified.verdict !== "run" || signedAt === null) {
    const code = verified.verdict === "run" ? undefined : CODE_OF_REASON[verified.verdict];
    throw new PayhooksError(
      code ?? "ERR_EVENT_MALFORMED",
      `The signature is valid, but the event cannot be used: ${verified.detail}.`,
      {
        fix: "Keep it for a person and answer 200: the service will not send anything else.",
      },
    );
  }
  return { event: event as AnyEvent, keyId: verified.delivery.keyId ?? "", signedAt: new Date(signedAt) };
}

function deliveryOf(rawBody: Uint8Array, signature: string | readonly string[] | null): Delivery {
  if (!(rawBody instanceof Uint8Array)) {
    throw new PayhooksError("ERR_OPTION_INVALID", `rawBody is of type ${typeof rawBody}, not bytes.`, {
      fix: "Pass the raw request body as a Buffer or Uint8Array, not a parsed or re-serialised one.",
    });
  }
  // The flow refuses anything but text.
  const header = signature as string | null;
  const headers = { get: (name: string): string | null => (name === SIGNATURE_HEADER ? header : null) };
  return { method: "POST", url: "", headers, rawBody };
}
