import { verify } from "node:crypto";

/** A callback's body. */
export type Callback = Readonly<Record<string, string | null>>;

/** The canonical string, written from the specification once more, apart from the sandbox and the receiver. */
export function canonical(callback: Callback): string {
  const pairs = Object.entries(callback).filter(([name, value]) => name !== "signature" && value !== null);
  return pairs
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`)
    .join("&");
}

/** True if the signature in the body fits its other fields. */
export function verifies(callback: Callback, publicKey: string): boolean {
  const signature = Buffer.from(callback.signature ?? "", "base64");
  return verify("sha256", Buffer.from(canonical(callback)), publicKey, signature);
}
