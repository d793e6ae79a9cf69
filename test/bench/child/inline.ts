/** Verification as it is written by hand into a route. */
import {
  createHmac,
  createPublicKey,
  createSecretKey,
  type KeyObject,
  timingSafeEqual,
  verify,
} from "node:crypto";
import type { Mode, Scheme, Surroundings } from "../protocol.ts";

/** True for an authentic delivery, which is then handled. */
export type Check = (body: Buffer, signature: string | undefined) => boolean;

/** The fields of a payment callback, out of the text of its body; null: the signature is not the service's. */
export type CallbackReader = (text: string) => Readonly<Record<string, unknown>> | null;

/** @param publicKey a PEM text is read again in every call. */
export function callbackReader(publicKey: string | KeyObject): CallbackReader {
  return (text) => {
    const event = JSON.parse(text) as Record<string, unknown>;
    const canonical = Object.keys(event)
      .filter((name) => name !== "signature" && event[name] !== null)
      .sort()
      .map((name) => `${name}=${event[name]}`)
      .join("&");
    const signature = Buffer.from(String(event.signature), "base64");
    return verify("sha256", Buffer.from(canonical), publicKey, signature) ? event : null;
  };
}

export function inlineCheck(
  mode: Mode & ("inline" | "pem"),
  scheme: Scheme,
  { publicKey, secret }: Pick<Surroundings, "publicKey" | "secret">,
  handle: (event: unknown) => Promise<void>,
  isFlawed: (text: string, event: object) => boolean = () => false,
): Check {
  if (scheme === "rsa") {
    const readCallback = callbackReader(mode === "pem" ? publicKey : createPublicKey(publicKey));
    return (body) => {
      const text = body.toString("utf8");
      const event = readCallback(text);
      if (event === null || isFlawed(text, event)) return false;
      void handle(event);
      return true;
    };
  }
  const key = mode === "pem" ? secret : createSecretKey(Buffer.from(secret));
  return (body, signature = "") => {
    const expected = Buffer.from(`sha256=${createHmac("sha256", key).update(body).digest("hex")}`);
    const claimed = Buffer.from(signature);
    if (claimed.length !== expected.length || !timingSafeEqual(claimed, expected)) return false;
    const text = body.toString("utf8");
    const event = JSON.parse(text) as object;
    if (isFlawed(text, event)) return false;
    void handle(event);
    return true;
  };
}
