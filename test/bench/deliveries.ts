/** Signed requests of the same size in every run, each another event. */
import { createPrivateKey, type KeyObject, sign } from "node:crypto";
import { promisify } from "node:util";
import { canonicalString } from "@payhooks/core/signature";
import {
  asDelivery,
  callbackFields,
  connectEvent,
  type SignedDelivery,
  signConnectWebhook,
} from "@payhooks/core/testing";
import type { Scheme } from "./protocol.ts";

export const BODY_BYTES: Readonly<Record<Scheme, number>> = { rsa: 778, hmac: 419 };

const signing = promisify(sign);

/** The signing of a pool takes both cores: it is done by the thread pool, before anything is measured. */
export async function signedDeliveries(
  scheme: Scheme,
  count: number,
  { privateKey, secret }: { readonly privateKey: string; readonly secret: string },
): Promise<readonly SignedDelivery[]> {
  const key = createPrivateKey(privateKey);
  const one = (): SignedDelivery | Promise<SignedDelivery> =>
    scheme === "rsa" ? paymentCallback(key) : connectWebhook(secret);
  const deliveries = await Promise.all(Array.from({ length: count }, one));
  const wrong = deliveries.find(({ rawBody }) => rawBody.byteLength !== BODY_BYTES[scheme]);
  if (wrong !== undefined) throw new Error(`a body of ${wrong.rawBody.byteLength} bytes`);
  return deliveries;
}

async function paymentCallback(key: KeyObject): Promise<SignedDelivery> {
  const fields = callbackFields({ message: "Payment completed with a mobile money app." });
  const signature = await signing("sha256", Buffer.from(canonicalString(fields)), key);
  return asDelivery({
    ...fields,
    providerTxId: fields.providerTxId,
    signature: signature.toString("base64"),
  });
}

function connectWebhook(secret: string): SignedDelivery {
  const event = connectEvent();
  const description =
    "Settlements of the month, paid out to the account that the merchant has registered for it.";
  return signConnectWebhook({ ...event, data: { ...(event.data as object), description } }, secret);
}
