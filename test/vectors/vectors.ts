import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** A payment callback: what the bare signature check and the whole verification must say of it. */
export interface PaymentVector {
  readonly name: string;
  readonly body: string;
  readonly canonical: string;
  readonly publicKey: string;
  readonly valid: boolean;
  readonly run: boolean;
  /** False where no canonical string is prescribed for the body; `canonical` is then what a naive receiver makes of it. */
  readonly readable?: false;
  /** The vector whose signed string this body spells in an odd way, so that it is the same event. */
  readonly spells?: string;
  /** Optional fields on which the readings of the signed string do not agree, and which the event must not have. */
  readonly leftOut?: readonly string[];
  readonly note: string;
}

/** A connected-account webhook and its header. */
export interface ConnectVector {
  readonly name: string;
  readonly bodyBase64: string;
  readonly secret: string;
  readonly header: string | null;
  readonly valid: boolean;
  readonly run: boolean;
  readonly note: string;
}

/** A key that must not be used, with a body that it may well verify. */
export interface RefusedKey {
  readonly key: string;
  readonly body: string;
  readonly canonical: string;
  readonly opensslAccepts: boolean;
  readonly note: string;
}

export const folder: string = fileURLToPath(new URL(".", import.meta.url));
export const read = (file: string): string => readFileSync(join(folder, file), "utf8");
export const readKey = (file: string): string => read(join("keys", file));
export const publicKey = (name: string): string => readKey(`${name}.public.pem`);

export const payments: readonly PaymentVector[] = JSON.parse(read("payments.json"));
export const connect: readonly ConnectVector[] = JSON.parse(read("connect.json"));
export const refusedKeys: readonly RefusedKey[] = JSON.parse(read("refused-keys.json"));

/** A body's fields with numbers as the text they are written with, read without Payhooks. */
export function fieldsOf(body: string): Record<string, string | boolean | null> {
  const quoted = body.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (token) =>
    token.startsWith('"') ? token : `"${token}"`,
  );
  return JSON.parse(quoted);
}

/** The field `signature` as it stands in the body, whatever it is there. */
export function signatureOf(body: string): string {
  const { signature }: { signature: string } = JSON.parse(body.replace(/^\ufeff/, ""));
  return signature;
}
