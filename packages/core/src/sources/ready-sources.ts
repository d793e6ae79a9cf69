/**
 * Sources of well-known senders. Each is a plain call of `source()`: copy it if it does not fit. No source takes an id
 * or a tenant from a header that the signature does not cover.
 */

import type { KeepOptions } from "../flows/keep-options.ts";
import type { Keys } from "../flows/keys.ts";
import type { SecretInput } from "../signature/keys.ts";
import { hmac } from "./hmac.ts";
import { anyOf } from "./other-verifiers.ts";
import { publicKeySignature } from "./public-key-signature.ts";
import { type Schemas, type Source, source, type TypesOf, type TypesOnly } from "./source.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

type Events = Schemas | TypesOnly<unknown> | undefined;

/** Options of every ready source. */
export interface ReadySourceOptions<Given> {
  /** The sender's secret; a list during a rotation; a resolver for many merchants. */
  readonly secret: Keys<SecretInput>;
  /** A Standard Schema for each name, or `typesOnly`. */
  readonly events?: Given | undefined;
  /** See `source`. */
  readonly unhandled?: "acknowledge" | "hold" | undefined;
  /** See `source`. Default: longer than the sender sends again. */
  readonly rememberMs?: number | undefined;
  /** See `source`. */
  readonly keep?: KeepOptions | undefined;
}

/** Options of {@link standardWebhooks}. */
export interface StandardWebhooksOptions<Given> extends ReadySourceOptions<Given> {
  /**
   * `webhook` (default): the headers `webhook-id`, `-timestamp` and `-signature`. `svix`: the older headers, `svix-id` and so on.
   */
  readonly headers?: "webhook" | "svix" | undefined;
  /** The public key for signatures with Ed25519 (`v1a`), beside those with the secret. */
  readonly publicKey?: Keys<string> | undefined;
  /** How far from now the signed time may be. Default 5 minutes. */
  readonly toleranceMs?: number | undefined;
}

/**
 * Any sender that follows Standard Webhooks (standardwebhooks.com), such as those that use Svix. The name is the body's
 * `type`, and the id is the signed header.
 *
 * @example standardWebhooks({ secret: process.env.BILLING_SECRET, events: { "invoice.paid": InvoicePaid } })
 */
export function standardWebhooks<const Given extends Events = undefined>({
  secret,
  publicKey,
  toleranceMs,
  headers = "webhook",
  rememberMs = 8 * DAY_MS,
  ...options
}: StandardWebhooksOptions<Given>): Source<TypesOf<Given>> {
  const signed = (prefix: string) =>
    ({
      header: `${headers}-signature`,
      encoding: "base64",
      format: { kind: "list", separator: " ", prefix },
      over: `{${headers}-id}.{timestamp}.{body}`,
      timestamp: { header: `${headers}-timestamp`, toleranceMs },
    }) as const;
  const bySecret = hmac({ ...signed("v1,"), secret, secretEncoding: "base64" });
  return source<Given>({
    ...options,
    rememberMs,
    verify:
      publicKey === undefined
        ? bySecret
        : anyOf(bySecret, publicKeySignature({ ...signed("v1a,"), key: publicKey, algorithm: "ed25519" })),
    read: ({ body, signedHeaders }) => ({
      name: body.type,
      id: signedHeaders.get(`${headers}-id`) ?? undefined,
      data: body.data ?? body,
      occurredAt: body.timestamp,
    }),
  });
}

/** Options of {@link stripe}. */
export interface StripeOptions<Given> extends ReadySourceOptions<Given> {
  /** How far from now the signed time may be. Default 5 minutes. */
  readonly toleranceMs?: number | undefined;
}

/**
 * Stripe. The name is the event's `type`, and the data is its `data.object`. Events may arrive in another order than
 * they happened.
 *
 * @example stripe({ secret: process.env.STRIPE_WEBHOOK_SECRET })
 */
export function stripe<const Given extends Events = undefined>({
  secret,
  toleranceMs,
  rememberMs = 8 * DAY_MS,
  ...options
}: StripeOptions<Given>): Source<TypesOf<Given>> {
  return source<Given>({
    ...options,
    rememberMs,
    verify: hmac({
      header: "stripe-signature",
      format: { kind: "pairs", separator: ",", signature: "v1", timestamp: "t" },
      over: "{timestamp}.{body}",
      timestamp: { toleranceMs },
      secret,
    }),
    read: ({ body }) => ({
      name: body.type,
      id: body.id,
      data: body.data?.object ?? body,
      // Seconds in the events of version 1, a time with its zone in those of version 2.
      occurredAt: typeof body.created === "number" ? body.created * 1000 : body.created,
    }),
  });
}

/**
 * GitHub. The name comes from the header `x-github-event`, and the `unsignedId` from the delivery's id. Neither is
 * signed. Copies are recognised by their bytes, and a copy under another name is held. GitHub does not repeat a
 * delivery by itself.
 *
 * @example github({ secret: process.env.GITHUB_WEBHOOK_SECRET })
 */
export function github<const Given extends Events = undefined>({
  secret,
  rememberMs = 30 * DAY_MS,
  ...options
}: ReadySourceOptions<Given>): Source<TypesOf<Given>> {
  return source<Given>({
    ...options,
    rememberMs,
    sendsOnce: true,
    verify: hmac({ header: "x-hub-signature-256", format: { kind: "plain", prefix: "sha256=" }, secret }),
    read: ({ body, unsignedHeaders }) => ({
      name: unsignedHeaders.get("x-github-event") ?? "",
      data: body,
      unsignedId: unsignedHeaders.get("x-github-delivery") ?? undefined,
    }),
  });
}

/**
 * Shopify. The name is the header `x-shopify-topic`, which nothing signs. The bytes of two topics may be equal, so
 * anybody with one delivery can send it once under each topic that has a handler: check the data in the handler. The
 * shop's header is not signed either, so never take a tenant from it.
 *
 * @example shopify({ secret: process.env.SHOPIFY_CLIENT_SECRET })
 */
export function shopify<const Given extends Events = undefined>({
  secret,
  rememberMs = 8 * DAY_MS,
  ...options
}: ReadySourceOptions<Given>): Source<TypesOf<Given>> {
  return source<Given>({
    ...options,
    rememberMs,
    verify: hmac({ header: "x-shopify-hmac-sha256", encoding: "base64", secret }),
    read: ({ body, digest, unsignedHeaders }) => {
      const name = unsignedHeaders.get("x-shopify-topic") ?? "";
      return {
        name,
        id: `${name}:${digest}`,
        data: body,
        unsignedId: unsignedHeaders.get("x-shopify-webhook-id") ?? undefined,
      };
    },
  });
}

/**
 * Paystack. The name is the body's `event`. An id of `data` repeats over names, so the event's id has both.
 *
 * @example paystack({ secret: process.env.PAYSTACK_SECRET_KEY })
 */
export function paystack<const Given extends Events = undefined>({
  secret,
  rememberMs = 8 * DAY_MS,
  ...options
}: ReadySourceOptions<Given>): Source<TypesOf<Given>> {
  return source<Given>({
    ...options,
    rememberMs,
    verify: hmac({ header: "x-paystack-signature", algorithm: "sha512", secret }),
    read: ({ body: { event, data }, digest }) => ({
      name: event,
      id: data.id === undefined ? digest : `${event}:${data.id}`,
      data,
      reference: data.reference ?? undefined,
    }),
  });
}

/**
 * Slack's Events API. The name is the type of the inner event. The address is confirmed by itself. Slash commands and
 * dialogs want an answer that depends on the event: use a plain route for them.
 *
 * @example slack({ secret: process.env.SLACK_SIGNING_SECRET })
 */
export function slack<const Given extends Events = undefined>({
  secret,
  rememberMs = 8 * DAY_MS,
  ...options
}: ReadySourceOptions<Given>): Source<TypesOf<Given>> {
  return source<Given>({
    ...options,
    rememberMs,
    verify: hmac({
      header: "x-slack-signature",
      format: { kind: "plain", prefix: "v0=" },
      over: "v0:{timestamp}:{body}",
      timestamp: { header: "x-slack-request-timestamp" },
      secret,
    }),
    handshake: ({ body }) =>
      body.type === "url_verification" ? { status: 200, body: String(body.challenge) } : null,
    read: ({ body }) => ({
      name: body.event?.type ?? body.type,
      id: body.event_id,
      data: body.event ?? body,
      occurredAt: body.event_time === undefined ? undefined : body.event_time * 1000,
    }),
  });
}
