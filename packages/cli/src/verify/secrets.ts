import type { Cause } from "./explanation.ts";

/** A secret that may have been meant. */
export interface SecretVariant {
  readonly key: string | Buffer;
  /** Null for the secret as it was given. */
  readonly cause: Cause | null;
}

/**
 * The secret, and the texts that it may have been before it was copied. None of the texts contain the secret.
 */
export function* secretVariants(secret: string): Generator<SecretVariant> {
  const variant = (key: string | Buffer, what: string, fix: string): SecretVariant => ({
    key,
    cause: { what, fix, certain: true },
  });
  const trimmed = secret.trim();
  if (trimmed !== secret) {
    yield variant(
      trimmed,
      "The secret has white space around it that does not belong to it.",
      "Remove it; a line end often comes along when a secret is read from a file.",
    );
    yield variant(
      secret,
      "The header was made with white space around the secret.",
      "The webhook settings have it: set a webhook_secret without; Payhooks refuses such a secret.",
    );
  } else yield { key: secret, cause: null };
  const inSettings = "The webhook settings have it: set a webhook_secret without.";
  yield variant(`${trimmed}\n`, "The header was made with a line end after the secret.", inSettings);
  yield variant(`${trimmed}\r\n`, "The header was made with a line end after the secret.", inSettings);
  yield variant(` ${trimmed}`, "The header was made with a space before the secret.", inSettings);
  yield variant(`${trimmed} `, "The header was made with a space after the secret.", inSettings);
  const unquoted = trimmed.replace(/^(["'])(.*)\1$/, "$2");
  if (unquoted !== trimmed) {
    yield variant(
      unquoted,
      "The secret has quotes around it that do not belong to it.",
      "Remove them: not every loader of .env files does.",
    );
  }
  if (/^(?:[0-9a-f]{2}){8,}$/i.test(trimmed)) {
    yield variant(
      Buffer.from(trimmed, "hex"),
      "The header was made with the bytes that the secret's hex stands for.",
      "The specification uses the secret's text: the sender decodes it.",
    );
  }
  if (trimmed.length >= 16 && /^[A-Za-z0-9+/_-]+=*$/.test(trimmed)) {
    yield variant(
      Buffer.from(trimmed, "base64"),
      "The header was made with the bytes that the secret's base64 stands for.",
      "The specification uses the secret's text: the sender decodes it.",
    );
  }
  const bare = trimmed.replace(/^whsec_/, "");
  if (bare !== trimmed) {
    yield variant(
      bare,
      "The header was made with the secret without its prefix whsec_.",
      "Set the same text on both sides, prefix included.",
    );
  } else yield variant(`whsec_${trimmed}`, "The secret has lost its prefix whsec_.", "Copy it whole.");
}
