import { createHmac, createSign, type KeyObject } from "node:crypto";

/** RSA PKCS#1 v1.5 over SHA-256, in base64 (specification, Authentication 4). */
export function signCanonicalString(text: string, privateKey: KeyObject): string {
  return createSign("sha256").update(text, "utf8").sign(privateKey, "base64");
}

/** The value of `X-Connect-Signature` for a body (specification, Authentication 3). */
export function signWebhook(body: string, secret: string): string {
  return `sha256=${createHmac("sha256", secret).update(body, "utf8").digest("hex")}`;
}
