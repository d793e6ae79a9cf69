import { createHmac, randomUUID } from "node:crypto";
import type { SignedDelivery } from "./signers.ts";

/** Signs one event of a sender. `id` and `at` are made up if they are left out. */
export type SourceSigner = (
  name: string,
  data: unknown,
  options?: { readonly id?: string | undefined; readonly at?: Date | undefined },
) => SignedDelivery;

/** Builds the body and the signature headers of a delivery, as its sender does. */
type BuildDelivery = (event: {
  readonly name: string;
  readonly data: unknown;
  readonly id: string;
  readonly at: Date;
  readonly seconds: number;
}) => {
  readonly body: unknown;
  readonly headers: (text: string) => Readonly<Record<string, string>>;
};

function createSigner(build: BuildDelivery): SourceSigner {
  return (name, data, { id = randomUUID(), at = new Date() } = {}) => {
    const { body, headers } = build({ name, data, id, at, seconds: Math.floor(at.getTime() / 1000) });
    const text = JSON.stringify(body);
    return {
      rawBody: Buffer.from(text),
      headers: { "content-type": "application/json", ...headers(text) },
    };
  };
}

function computeMac(
  text: string,
  secret: string | Uint8Array,
  encoding: "hex" | "base64",
  algorithm = "sha256",
): string {
  return createHmac(algorithm, secret).update(text).digest(encoding);
}

interface SignerOptions {
  readonly secret: string;
}

/**
 * Genuine deliveries of the ready sources, for tests. Each takes the secret that the source has.
 *
 * @example await t.deliver("billing", signers.standardWebhooks({ secret })("invoice.paid", { invoice: "i-1" }, { at: new Date(t.clock.now()) }));
 */
export const signers: Readonly<{
  standardWebhooks(
    options: SignerOptions & { readonly headers?: "webhook" | "svix" | undefined },
  ): SourceSigner;
  stripe(options: SignerOptions): SourceSigner;
  github(options: SignerOptions): SourceSigner;
  shopify(options: SignerOptions): SourceSigner;
  paystack(options: SignerOptions): SourceSigner;
  slack(options: SignerOptions): SourceSigner;
}> = {
  standardWebhooks: ({ secret, headers: names = "webhook" }) =>
    createSigner(({ name, data, id, at, seconds }) => ({
      body: { type: name, timestamp: at.toISOString(), data },
      headers: (text) => ({
        [`${names}-id`]: id,
        [`${names}-timestamp`]: String(seconds),
        [`${names}-signature`]: `v1,${computeMac(`${id}.${seconds}.${text}`, Buffer.from(secret.replace(/^[a-z]+_/, ""), "base64"), "base64")}`,
      }),
    })),
  stripe: ({ secret }) =>
    createSigner(({ name, data, id, seconds }) => ({
      body: { id, object: "event", type: name, created: seconds, data: { object: data } },
      headers: (text) => ({
        "stripe-signature": `t=${seconds},v1=${computeMac(`${seconds}.${text}`, secret, "hex")}`,
      }),
    })),
  github: ({ secret }) =>
    createSigner(({ name, data, id }) => ({
      body: data,
      headers: (text) => ({
        "x-github-event": name,
        "x-github-delivery": id,
        "x-hub-signature-256": `sha256=${computeMac(text, secret, "hex")}`,
      }),
    })),
  shopify: ({ secret }) =>
    createSigner(({ name, data, id }) => ({
      body: data,
      headers: (text) => ({
        "x-shopify-topic": name,
        "x-shopify-webhook-id": id,
        "x-shopify-hmac-sha256": computeMac(text, secret, "base64"),
      }),
    })),
  paystack: ({ secret }) =>
    createSigner(({ name, data }) => ({
      body: { event: name, data },
      headers: (text) => ({ "x-paystack-signature": computeMac(text, secret, "hex", "sha512") }),
    })),
  slack: ({ secret }) =>
    createSigner(({ name, data, id, seconds }) => ({
      body: {
        type: "event_callback",
        event_id: id,
        event_time: seconds,
        event: { ...Object(data), type: name },
      },
      headers: (text) => ({
        "x-slack-request-timestamp": String(seconds),
        "x-slack-signature": `v0=${computeMac(`v0:${seconds}:${text}`, secret, "hex")}`,
      }),
    })),
};
