import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import { isDocumented } from "../names/fields.ts";
import type { ServiceNames } from "../names/options.ts";
import { SPECIFIED_NAMES } from "../names/service-names.ts";
import { type CanonicalValue, canonicalString } from "../signature/canonical.ts";

/** A key pair as PEM text. The private half signs, and the public half is for `payments.publicKey`. */
export interface TestKeys {
  readonly publicKey: string;
  readonly privateKey: string;
}

/** Makes an RSA-2048 key pair. This takes some tenths of a second, so make one per test file. */
export function createTestKeys(): TestKeys {
  return generateKeyPairSync("rsa", {
    modulusLength: 2048,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
  });
}

/** A request that is ready to be sent. */
export interface SignedDelivery {
  /** The exact bytes of the body. For a client that turns its argument into JSON, use the text: `rawBody.toString()`. */
  readonly rawBody: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

/** Fields of a callback. Null ones are sent but not signed, as the service does it. */
export type CallbackFields = Readonly<Record<string, CanonicalValue>>;

/** Signs any string with a private key, for bodies that are made by hand. Returns the signature in base64. */
export function signCanonicalString(canonical: string, privateKey: string): string {
  return sign("sha256", Buffer.from(canonical, "utf8"), privateKey).toString("base64");
}

/** The service's own names, from `serviceNames`. Default: the names of the specification. */
export interface NamesOption {
  readonly names?: ServiceNames | undefined;
}

/**
 * Signs a payment callback the way the service does (specification, Authentication, 4). The fields have their neutral
 * names, and the body has the names of the service. A field that it does not send is left out.
 */
export function signPaymentCallback(
  fields: CallbackFields,
  privateKey: string,
  { names }: NamesOption = {},
): SignedDelivery {
  const wireFields = names === undefined ? fields : toWireFields(fields, names);
  const signature = signCanonicalString(canonicalString(wireFields), privateKey);
  return asDelivery({ ...wireFields, signature });
}

/** The fields as the service sends them. */
export function toWireFields(fields: CallbackFields, { callback }: ServiceNames): CallbackFields {
  const members = Object.entries(fields).flatMap(([name, value]) => {
    if (!isDocumented(name)) return [[name, value] as const];
    const field = callback.fields[name];
    return field.sent === "absent" ? [] : [[field.name, value] as const];
  });
  return Object.fromEntries(members);
}

/** Makes a delivery of a body as it is, with whatever `signature` it has. For forgeries. */
export function asDelivery(body: object): SignedDelivery {
  return {
    rawBody: Buffer.from(JSON.stringify(body), "utf8"),
    headers: { "content-type": "application/json" },
  };
}

/** Signs a connected-account webhook the way the service does (specification, Authentication, 3). */
export function signConnectWebhook(
  event: object | Uint8Array,
  secret: string,
  { names = SPECIFIED_NAMES }: NamesOption = {},
): SignedDelivery {
  const rawBody = Buffer.from(event instanceof Uint8Array ? event : JSON.stringify(event));
  const digest = createHmac("sha256", secret).update(rawBody).digest("hex");
  return {
    rawBody,
    headers: {
      "content-type": "application/json",
      [names.connect.signatureHeader.toLowerCase()]: `sha256=${digest}`,
    },
  };
}
