import { createHash, createPrivateKey, createPublicKey, generateKeyPair, type KeyObject } from "node:crypto";
import { promisify } from "node:util";
import { SandboxError } from "../sandbox-error.ts";

/** One pair of RSA-2048 keys of the merchant. */
export interface SigningKey {
  /** The fingerprint of the public key, 16 hex digits. */
  readonly id: string;
  readonly privateKey: KeyObject;
  /** The public key as the merchant downloads it (specification, Authentication 5). */
  readonly publicPem: string;
  /** When the pair was made, in milliseconds since the epoch. */
  readonly createdAt: number;
}

export async function generateSigningKey(now: number): Promise<SigningKey> {
  const { privateKey } = await promisify(generateKeyPair)("rsa", { modulusLength: 2048 });
  return describeKey(privateKey, now);
}

/** Reads a private key in PEM. Throws `ERR_OPTION_INVALID` for a key whose public part a receiver refuses. */
export function readSigningKey(pem: string, now: number): SigningKey {
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(pem);
  } catch (cause) {
    throw new SandboxError("ERR_OPTION_INVALID", "The private key is not readable: give it as PEM.", {
      cause,
    });
  }
  const { modulusLength: bits = 0, publicExponent: exponent = 0n } = privateKey.asymmetricKeyDetails ?? {};
  if (privateKey.asymmetricKeyType !== "rsa" || bits < 2048 || bits > 4096) {
    throw new SandboxError(
      "ERR_OPTION_INVALID",
      "The private key must be RSA with 2048 to 4096 bits: the service signs with RSA-2048.",
    );
  }
  if (exponent < 65537n || exponent > 2n ** 32n) {
    throw new SandboxError("ERR_OPTION_INVALID", "The private key must have the public exponent 65537.");
  }
  return describeKey(privateKey, now);
}

export function privatePem(key: SigningKey): string {
  return key.privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

function describeKey(privateKey: KeyObject, createdAt: number): SigningKey {
  const publicKey = createPublicKey(privateKey);
  const der = publicKey.export({ type: "spki", format: "der" });
  return {
    id: createHash("sha256").update(der).digest("hex").slice(0, 16),
    privateKey,
    publicPem: publicKey.export({ type: "spki", format: "pem" }).toString(),
    createdAt,
  };
}
