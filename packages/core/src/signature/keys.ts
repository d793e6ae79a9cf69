import { createHash, createHmac, createPublicKey, createSecretKey, KeyObject } from "node:crypto";
import { PayhooksError } from "../errors.ts";

/** A public key: PEM text (also with `\n` written out, in quotes, or base64 of that) or a public `KeyObject`. */
export type PublicKeyInput = string | KeyObject;
/** A public key, or the file that holds its PEM text. */
export type PublicKeySource = PublicKeyInput | { readonly file: string };

/** A key that was checked and is ready to verify with. */
export interface VerifyingKey {
  /** A fingerprint: the first 16 hex digits of the SHA-256 of the key in SPKI form. */
  readonly keyId: string;
  readonly key: KeyObject;
  readonly modulusBytes: number;
}

/** A webhook secret that was checked and is ready to verify with. */
export interface VerifyingSecret {
  /** A fingerprint that does not give the secret away: 8 hex digits of an HMAC under it. */
  readonly keyId: string;
  readonly key: KeyObject;
  /** Shorter than 16 characters: worth a warning. */
  readonly weak: boolean;
}

/** Keys or secrets that are valid at one time, at most: the old one and the new ones of a rotation. */
const MAX_KEYS = 4;

const MIN_MODULUS_BITS = 2048;
const MIN_EXPONENT = 65537n;

/**
 * Checks RSA public keys (specification, Authentication, 4 and 5) and makes them ready for use.
 *
 * @param input one key or up to four, all of which are tried (rotation).
 * @param option the name of the option, for messages.
 * @throws PayhooksError `ERR_OPTION_MISSING`, `ERR_KEY_COUNT`, `ERR_KEY_UNREADABLE`, `ERR_KEY_PRIVATE`,
 * `ERR_KEY_NOT_RSA`, `ERR_KEY_TOO_SHORT` or `ERR_KEY_EXPONENT`.
 */
export function importPublicKeys(
  input: PublicKeyInput | readonly PublicKeyInput[] | undefined,
  option: string = "publicKey",
): readonly VerifyingKey[] {
  return several(input, option, "ERR_KEY_COUNT").map((key) => importPublicKey(key, option));
}

function importPublicKey(input: PublicKeyInput, option: string): VerifyingKey {
  if (typeof input === "string" && input.trim() === "") throw missing(option, "is empty");
  const key = typeof input === "string" ? readPem(input, option) : readKeyObject(input, option);
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
      `${option} is an RSA key of ${bits} bits; ${MIN_MODULUS_BITS} are the least.`,
      {
        fix: "Generate a new key in the merchant dashboard and use its public part.",
      },
    );
  }
  if (exponent < MIN_EXPONENT || exponent % 2n === 0n) {
    throw new PayhooksError(
      "ERR_KEY_EXPONENT",
      `${option} has the public exponent ${exponent}, with which signatures can be forged.`,
      {
        fix: "Use a key whose exponent is 65537; the one that the dashboard gives has it.",
      },
    );
  }
  const spki = key.export({ format: "der", type: "spki" });
  return {
    keyId: createHash("sha256").update(spki).digest("hex").slice(0, 16),
    key,
    modulusBytes: Math.ceil(bits / 8),
  };
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
  if (input.type === "private") throw privateKey(option);
  if (input.type === "secret") {
    throw new PayhooksError("ERR_KEY_NOT_RSA", `${option} is a secret key, not an RSA public key.`, {
      fix: "Pass the merchant's public key; the webhook secret belongs into connect.secret.",
    });
  }
  return input;
}

function readPem(input: string, option: string): KeyObject {
  if (/-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/.test(input)) throw privateKey(option);
  const pem = findPem(input) ?? findPem(Buffer.from(input.replace(/["']/g, ""), "base64").toString("latin1"));
  if (pem === null) {
    throw new PayhooksError(
      "ERR_KEY_UNREADABLE",
      `${option} has no "-----BEGIN PUBLIC KEY-----" part (it has ${input.length} characters).`,
      {
        fix: "Pass the whole PEM text with its BEGIN and END lines, or base64 of it.",
      },
    );
  }
  if (pem.label.includes("PRIVATE")) throw privateKey(option);
  try {
    return createPublicKey(pem.text);
  } catch (cause) {
    throw new PayhooksError(
      "ERR_KEY_UNREADABLE",
      `${option} looks like PEM ("${pem.label}") but cannot be read.`,
      {
        fix: "It may be cut off or damaged: copy the public key again, with every line.",
        cause,
      },
    );
  }
}

/** The PEM block in a text, laid out anew: environment variables lose line ends, or have them written out as `\n`. */
function findPem(text: string): { readonly label: string; readonly text: string } | null {
  const match = /-----BEGIN ([A-Z0-9 ]+)-----([\s\S]*?)-----END \1-----/.exec(text.replace(/\\[rn]/g, ""));
  if (match === null) return null;
  const [, label = "", body = ""] = match;
  const lines = body.replace(/\s/g, "").match(/.{1,64}/g) ?? [];
  return { label, text: `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n` };
}

function toBigInt(base64url: string | undefined): bigint {
  const hex = Buffer.from(base64url ?? "", "base64url").toString("hex");
  return hex === "" ? 0n : BigInt(`0x${hex}`);
}

function privateKey(option: string): PayhooksError {
  return new PayhooksError("ERR_KEY_PRIVATE", `${option} is a private key.`, {
    fix: "Verification needs the public key only: pass that one, and rotate the private key if it should not have been here.",
  });
}

/**
 * Checks webhook secrets (specification, Authentication, 3) and makes them ready for use.
 *
 * @param input one secret or up to four, all of which are tried (rotation).
 * @param option the name of the option, for messages.
 * @throws PayhooksError `ERR_OPTION_MISSING`, `ERR_KEY_COUNT`, `ERR_SECRET_BLANK` or `ERR_SECRET_WHITESPACE`.
 */
export function importSecrets(
  input: string | readonly string[] | undefined,
  option: string = "secret",
): readonly VerifyingSecret[] {
  return several(input, option, "ERR_KEY_COUNT").map((secret) => importSecret(secret, option));
}

function importSecret(secret: string, option: string): VerifyingSecret {
  if (typeof secret !== "string" || secret.trim() === "") {
    throw new PayhooksError(
      "ERR_SECRET_BLANK",
      `${option} is ${typeof secret === "string" ? "empty or blank" : `of type ${typeof secret}`}.`,
      {
        fix: "Set it to the webhook_secret of the connected-account webhook settings.",
      },
    );
  }
  if (secret.trim() !== secret) {
    throw new PayhooksError(
      "ERR_SECRET_WHITESPACE",
      `${option} begins or ends with white space, which would be part of the key.`,
      {
        fix: "Remove it; a line end often comes along when a secret is read from a file.",
      },
    );
  }
  const key = createSecretKey(Buffer.from(secret, "utf8"));
  return {
    keyId: createHmac("sha256", key).update("payhooks key id").digest("hex").slice(0, 8),
    key,
    weak: secret.length < 16,
  };
}

function several<T>(
  input: T | readonly T[] | undefined,
  option: string,
  code: "ERR_KEY_COUNT",
): readonly T[] {
  if (input === undefined || input === null) throw missing(option, "is not set");
  const list: readonly T[] = Array.isArray(input) ? (input as readonly T[]) : [input as T];
  if (list.length === 0) throw missing(option, "is an empty list");
  if (list.length > MAX_KEYS) {
    throw new PayhooksError(
      code,
      `${option} lists ${list.length} keys; ${MAX_KEYS} at one time are the most.`,
      {
        fix: "Keep the current key and those that are being rotated in or out.",
      },
    );
  }
  if (list.some((item) => item === undefined || item === null))
    throw missing(option, "has an entry that is not set");
  return list;
}

function missing(option: string, how: string): PayhooksError {
  return new PayhooksError("ERR_OPTION_MISSING", `${option} ${how}.`, {
    fix: "Set it (is the environment variable there?), or leave the whole flow out of the options to switch it off.",
  });
}
