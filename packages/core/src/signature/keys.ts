import { createHash, createHmac, createSecretKey, KeyObject } from "node:crypto";
import { PayhooksError } from "../protocol/errors.ts";
import { damageIn, placeholderIn, readKeyText } from "./key-text.ts";

/**
 * A public key: PEM text, even with changed quotes and line ends; base64 of the PEM text or of the key's bytes; a JWK as JSON;
 * a certificate; or a public `KeyObject`.
 */
export type PublicKeyInput = string | KeyObject;
/** A public key, or the file that holds its PEM text. */
export type PublicKeySource = PublicKeyInput | { readonly file: string };
/** A webhook secret: text, whose UTF-8 bytes are the key, bytes, or a secret `KeyObject`. */
export type SecretInput = string | Uint8Array | KeyObject;
/** One key, or up to four during a rotation. Entries that are empty or undefined are ignored, as long as one is set. */
export type OneOrMore<Key> = Key | readonly (Key | undefined)[];

/** A key that was checked and is ready to verify with. */
export interface VerifyingKey {
  /** A fingerprint: the first 16 hex digits of the SHA-256 of the key in SPKI form. */
  readonly keyId: string;
  readonly key: KeyObject;
  readonly modulusBytes: number;
}

/** A webhook secret that was checked and is ready to verify with. */
export interface VerifyingSecret {
  /** A fingerprint that does not reveal the secret: 8 hex digits of an HMAC with it. */
  readonly keyId: string;
  readonly key: KeyObject;
  /** True if it is shorter than 16 bytes. That is worth a warning. */
  readonly isWeak: boolean;
}

/** How many keys or secrets may be valid at one time: the old one and the new ones of a rotation. */
const MAX_KEYS = 4;

const MIN_MODULUS_BITS = 2048;
/**
 * A merchant of a platform chooses its key, and each request that names this merchant costs as much as the key does, signed or
 * not. 4,096 bits cost 3 times as much as 2,048 bits; an exponent as long as the modulus costs 100 times as much.
 */
const MAX_MODULUS_BITS = 4096;
const MIN_EXPONENT = 65537n;
const MAX_EXPONENT = 2n ** 32n;

/**
 * Checks RSA public keys (specification, Authentication, 4 and 5) and makes them ready for use.
 *
 * @param input one key or up to four, all of which are tried (rotation).
 * @param option the name of the option, for messages.
 * @throws PayhooksError `ERR_OPTION_MISSING`, `ERR_KEY_COUNT`, `ERR_KEY_UNREADABLE`, `ERR_KEY_PRIVATE`,
 * `ERR_KEY_NOT_RSA`, `ERR_KEY_TOO_SHORT`, `ERR_KEY_TOO_LONG` or `ERR_KEY_EXPONENT`.
 */
export function importPublicKeys(
  input: OneOrMore<PublicKeyInput> | undefined,
  option: string = "publicKey",
): readonly VerifyingKey[] {
  return listKeys(input, option).map((key) => importPublicKey(key, option));
}

function importPublicKey(input: PublicKeyInput, option: string): VerifyingKey {
  const key = readPublicKey(input, option);
  if (key.asymmetricKeyType !== "rsa") {
    throw new PayhooksError(
      "ERR_KEY_NOT_RSA",
      `${option} is a key of type "${key.asymmetricKeyType}", not RSA.`,
      {
        fix: "Payment callbacks are signed with RSA-2048: download the public key from the merchant dashboard under Settings, Security, Security Keys.",
      },
    );
  }
  const jwk = key.export({ format: "jwk" });
  const modulus = toBigInt(jwk.n);
  const exponent = toBigInt(jwk.e);
  const bits = modulus.toString(2).length;
  if (bits < MIN_MODULUS_BITS) {
    throw new PayhooksError(
      "ERR_KEY_TOO_SHORT",
      `${option} is an RSA key of ${bits} bits; at least ${MIN_MODULUS_BITS} are needed.`,
      {
        fix: "Generate a new key in the merchant dashboard and use its public part.",
      },
    );
  }
  if (bits > MAX_MODULUS_BITS) {
    throw new PayhooksError(
      "ERR_KEY_TOO_LONG",
      `${option} is an RSA key of ${bits} bits; at most ${MAX_MODULUS_BITS} are allowed.`,
      {
        fix: "Each request would cost as much, signed or not. Callbacks are signed with RSA-2048: use the key from the dashboard.",
      },
    );
  }
  if (exponent > MAX_EXPONENT) {
    throw new PayhooksError(
      "ERR_KEY_EXPONENT",
      `${option} has a public exponent of ${exponent.toString(2).length} bits, with which each request is costly.`,
      {
        fix: "Use a key whose exponent is 65537, like the one from the dashboard.",
      },
    );
  }
  if (exponent < MIN_EXPONENT || exponent % 2n === 0n) {
    throw new PayhooksError(
      "ERR_KEY_EXPONENT",
      `${option} has the public exponent ${exponent}, with which signatures can be forged.`,
      {
        fix: "Use a key whose exponent is 65537, like the one from the dashboard.",
      },
    );
  }
  return { keyId: fingerprintOf(key), key, modulusBytes: Math.ceil(bits / 8) };
}

/** Names a public key in records and logs. */
export function fingerprintOf(key: KeyObject): string {
  const spki = key.export({ format: "der", type: "spki" });
  return createHash("sha256").update(spki).digest("hex").slice(0, 16);
}

/**
 * Reads a public key of any kind.
 * @throws PayhooksError `ERR_OPTION_MISSING`, `ERR_KEY_UNREADABLE`, `ERR_KEY_PRIVATE` or `ERR_KEY_NOT_RSA`.
 */
export function readPublicKey(input: PublicKeyInput, option: string): KeyObject {
  if (typeof input !== "string") return readKeyObject(input, option);
  if (input.trim() === "") throw missingKeyError(option, "is empty");
  return readText(input, option);
}

function readKeyObject(input: KeyObject, option: string): KeyObject {
  if (!(input instanceof KeyObject)) {
    throw new PayhooksError(
      "ERR_KEY_UNREADABLE",
      `${option} is neither PEM text nor a KeyObject but of type ${typeof input}.`,
      {
        fix: "Pass the public key's PEM text.",
      },
    );
  }
  if (input.type === "private") throw privateKeyError(option);
  if (input.type === "secret") {
    throw new PayhooksError("ERR_KEY_NOT_RSA", `${option} is a secret key, not an RSA public key.`, {
      fix: "Pass the merchant's public key. The webhook secret belongs in connect.secret.",
    });
  }
  return input;
}

function readText(input: string, option: string): KeyObject {
  const keyText = readKeyText(input);
  if (keyText.kind === "private") throw privateKeyError(option);
  if (keyText.kind === "public") return keyText.key;
  throw new PayhooksError("ERR_KEY_UNREADABLE", `${option} ${keyText.what}.`, {
    fix: keyText.fix,
    cause: keyText.cause,
  });
}

function toBigInt(base64url: string | undefined): bigint {
  const hex = Buffer.from(base64url ?? "", "base64url").toString("hex");
  return hex === "" ? 0n : BigInt(`0x${hex}`);
}

function privateKeyError(option: string): PayhooksError {
  return new PayhooksError("ERR_KEY_PRIVATE", `${option} is a private key.`, {
    fix: "Verification needs the public key only: pass that one, and rotate the private key if it should not have been here.",
  });
}

/**
 * Checks webhook secrets (specification, Authentication, 3) and makes them ready for use.
 *
 * @param input one secret or up to four, all of which are tried (rotation).
 * @param option the name of the option, for messages.
 * @throws PayhooksError `ERR_OPTION_MISSING`, `ERR_KEY_COUNT`, `ERR_SECRET_BLANK`, `ERR_SECRET_PLACEHOLDER`,
 * `ERR_SECRET_QUOTED`, `ERR_SECRET_WHITESPACE` or `ERR_SECRET_KIND`.
 */
export function importSecrets(
  input: OneOrMore<SecretInput> | undefined,
  option: string = "secret",
): readonly VerifyingSecret[] {
  return listKeys(input, option).map((secret) => importSecret(secret, option));
}

function importSecret(secret: SecretInput, option: string): VerifyingSecret {
  const bytes = bytesOf(secret, option);
  // Bytes that are not text are used as they are, even if they begin or end like white space.
  const text = typeof secret === "string" ? secret : asciiOf(bytes);
  if (bytes.length === 0 || text?.trim() === "") {
    throw new PayhooksError("ERR_SECRET_BLANK", `${option} is empty or blank.`, {
      fix: "Set it to the secret that the sender signs with. For connected-account webhooks it is the webhook_secret of their settings.",
    });
  }
  if (text !== null && text.trim() !== text) {
    throw new PayhooksError(
      "ERR_SECRET_WHITESPACE",
      `${option} begins or ends with white space, which would be part of the key.`,
      {
        fix: "Remove it. A secret that is read from a file often ends with a line end.",
      },
    );
  }
  if (text !== null) checkSecretText(text, option);
  const key = secret instanceof KeyObject ? secret : createSecretKey(bytes);
  return {
    keyId: createHmac("sha256", key).update("payhooks key id").digest("hex").slice(0, 8),
    key,
    isWeak: bytes.length < 16,
  };
}

/** Throws for a text that is not a secret, or not only one: a stranger could guess it, or no signature would fit. */
function checkSecretText(text: string, option: string): void {
  const placeholder = placeholderIn(text);
  if (placeholder !== null) {
    throw new PayhooksError("ERR_SECRET_PLACEHOLDER", `${option} ${placeholder.what}.`, {
      fix: placeholder.fix,
    });
  }
  if (/-----BEGIN |^\{[\s\S]*\}$|^(?:export )?[A-Z][A-Z0-9]*_[A-Z0-9_]*=[^=]/.test(text)) {
    throw new PayhooksError(
      "ERR_SECRET_KIND",
      `${option} is PEM, JSON or a line of an .env file, not a secret.`,
      {
        fix: "Pass the secret alone. The merchant's public key belongs in payments.publicKey.",
      },
    );
  }
  const damage = damageIn(text);
  if (damage === "quoted") {
    throw new PayhooksError(
      "ERR_SECRET_QUOTED",
      `${option} begins or ends with a quote, which would be part of the key.`,
      {
        fix: "Remove the quotes: not every loader of .env files does. If the secret has them, set one without.",
      },
    );
  }
  if (damage === "invisible") {
    throw new PayhooksError(
      "ERR_SECRET_WHITESPACE",
      `${option} has a line end or an invisible character in it.`,
      {
        fix: "Copy the secret again, alone and on one line. If the secret has such a character, set one without.",
      },
    );
  }
}

function bytesOf(secret: SecretInput, option: string): Buffer {
  if (typeof secret === "string") return Buffer.from(secret, "utf8");
  if (ArrayBuffer.isView(secret)) return Buffer.from(secret.buffer, secret.byteOffset, secret.byteLength);
  if (secret instanceof KeyObject && secret.type === "secret") return secret.export();
  const kind = secret instanceof KeyObject ? `a ${secret.type} key` : `of type ${typeof secret}`;
  throw new PayhooksError("ERR_SECRET_KIND", `${option} is ${kind}, not a secret.`, {
    fix: "Pass the secret as text, as bytes, or as the result of createSecretKey. The merchant's public key belongs in payments.publicKey.",
  });
}

/** Bytes as text, if they are text, such as a secret that was read from a file without an encoding. */
function asciiOf(bytes: Buffer): string | null {
  return /^[\t\n\r\x20-\x7e]*$/.test(bytes.toString("latin1")) ? bytes.toString("latin1") : null;
}

/** How many entries of a list of keys are empty or undefined, such as an unset variable for the next key of a rotation. */
export function countUnset(input: unknown): number {
  return Array.isArray(input) ? input.filter(isUnset).length : 0;
}

function isUnset(entry: unknown): boolean {
  return entry === undefined || entry === null || (typeof entry === "string" && entry.trim() === "");
}

/**
 * The entries of a list of keys that are set, or the only key.
 * @throws PayhooksError `ERR_OPTION_MISSING` or `ERR_KEY_COUNT`.
 */
export function listKeys<T>(input: OneOrMore<T> | undefined, option: string): readonly T[] {
  if (input === undefined || input === null) throw missingKeyError(option, "is not set");
  if (!Array.isArray(input)) return [input as T];
  if (input.length === 0) throw missingKeyError(option, "is an empty list");
  const list = (input as readonly (T | undefined)[]).filter((entry): entry is T => !isUnset(entry));
  if (list.length === 0) throw missingKeyError(option, "has no entry that is set");
  if (list.length > MAX_KEYS) {
    throw new PayhooksError(
      "ERR_KEY_COUNT",
      `${option} lists ${list.length} keys; at most ${MAX_KEYS} are allowed at one time.`,
      {
        fix: "Keep only the current key and those that are being rotated in or out.",
      },
    );
  }
  return list;
}

function missingKeyError(option: string, how: string): PayhooksError {
  return new PayhooksError("ERR_OPTION_MISSING", `${option} ${how}.`, {
    fix: "Set it (check the environment variable), or leave the whole flow out of the options to switch it off.",
  });
}
