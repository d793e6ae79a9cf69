/**
 * Keys and secrets as people paste them into variables, files and forms.
 *
 * A public key is read if its text is complete, even if quotes, line ends and blanks have changed on the way, because
 * these are not part of a key. A secret is used byte for byte, so nothing is removed from it. A text that is not
 * certain is refused, and the error names the fault. A text is never used in part.
 */
import {
  createPrivateKey,
  createPublicKey,
  type JsonWebKey,
  type KeyObject,
  X509Certificate,
} from "node:crypto";

/** A public key, or why the text is not one. */
export type KeyText =
  | { readonly kind: "public"; readonly key: KeyObject }
  | { readonly kind: "private" }
  | { readonly kind: "unreadable"; readonly what: string; readonly fix: string; readonly cause?: unknown };

/** Longer than any key of 4,096 bits in any form. */
const MAX_KEY_TEXT_CHARS = 32_768;
/** How often the PEM text may have been encoded as base64. */
const MAX_WRAPPINGS = 3;

/** Characters that cannot be seen and come along when a text is copied: byte order marks, zero width, soft hyphens. */
const INVISIBLE_PATTERN = /\p{Cf}/gu;
const QUOTES_PATTERN = /["'`\u00ab\u00b4\u00bb\u2018-\u201f\u2039\u203a\u300c-\u300f\uff02\uff07]/g;
const DASHES_PATTERN = /[\u2010-\u2015\u2212\ufe58\ufe63\uff0d]/g;

/** Reads a public key's text. */
export function readKeyText(input: string): KeyText {
  if (input.length > MAX_KEY_TEXT_CHARS) {
    return unreadableKeyText(
      `has ${input.length} characters, more than any key`,
      "Pass the text of one public key.",
    );
  }
  const placeholder = placeholderIn(input);
  if (placeholder !== null) return unreadableKeyText(placeholder.what, placeholder.fix);
  return (
    readJson(input.replace(INVISIBLE_PATTERN, "").trim()) ??
    readText(input, MAX_WRAPPINGS) ??
    describeUnreadable(input)
  );
}

function readText(input: string, wrappings: number): KeyText | null {
  const text = withoutDamage(input);
  if (/BEGIN [A-Z0-9 ]{0,64}PRIVATE KEY/.test(text)) return { kind: "private" };
  if ((text.match(/- ?BEGIN /g) ?? []).length > 1) {
    const fix = "Pass one key. During a rotation, pass a list with a text for each.";
    return unreadableKeyText("has more than one PEM block", fix);
  }
  const block = /-{1,8} ?BEGIN ([A-Z0-9 ]{1,64}?) ?-{1,8}([^-]*)-{1,8} ?END \1 ?-/.exec(text);
  if (block !== null) return readPem(block[1] ?? "", (block[2] ?? "").replace(/\s/g, ""));
  if (wrappings === 0 || text.includes("-----")) return null;
  const base64 = text.replace(/\s/g, "").replaceAll("-", "+").replaceAll("_", "/");
  if (!/^[A-Za-z0-9+/]{64,}={0,2}$/.test(base64)) return null;
  const bytes = Buffer.from(base64, "base64");
  if (bytes[0] === 0x30) return readDer(bytes);
  return readText(bytes.toString("utf8"), wrappings - 1);
}

/** Undoes the usual damage to a pasted text. It changes no character of PEM or base64. */
function withoutDamage(text: string): string {
  return text
    .replace(/\\{1,16}(?:u000[ad]|[rn])|%0[ad]/gi, "\n")
    .replace(/%(2[0bf]|3d)/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replace(/\\+/g, "")
    .replace(INVISIBLE_PATTERN, "")
    .replace(QUOTES_PATTERN, "")
    .replace(DASHES_PATTERN, "-");
}

const KEY_PEM_LABELS: ReadonlySet<string> = new Set(["PUBLIC KEY", "RSA PUBLIC KEY", "CERTIFICATE"]);

function readPem(label: string, base64: string): KeyText {
  if (!KEY_PEM_LABELS.has(label)) {
    const fix = 'Pass the merchant\'s public key: its first line is "-----BEGIN PUBLIC KEY-----".';
    return unreadableKeyText(`is PEM of the kind "${label}", not a public key`, fix);
  }
  const lines = base64.match(/.{1,64}/g) ?? [];
  const pem = `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
  try {
    return { kind: "public", key: createPublicKey(pem) };
  } catch (cause) {
    const fix = "It may be cut off or damaged: copy the public key again, with every line.";
    return unreadableKeyText(`looks like PEM ("${label}") but cannot be read`, fix, cause);
  }
}

/**
 * Reads the bytes of a key without PEM around them: SPKI, PKCS#1, or a certificate. Private keys are tried first,
 * because Node.js makes a public key of one.
 */
function readDer(der: Buffer): KeyText {
  const readPrivate = (type: "pkcs8" | "pkcs1") => (): KeyText => {
    createPrivateKey({ key: der, format: "der", type });
    return { kind: "private" };
  };
  const readPublic = (type: "spki" | "pkcs1") => (): KeyText => ({
    kind: "public",
    key: createPublicKey({ key: der, format: "der", type }),
  });
  const attempts: readonly (() => KeyText)[] = [
    readPrivate("pkcs8"),
    readPrivate("pkcs1"),
    readPublic("spki"),
    readPublic("pkcs1"),
    () => ({ kind: "public", key: new X509Certificate(der).publicKey }),
  ];
  for (const attempt of isWhole(der) ? attempts : []) {
    try {
      return attempt();
    } catch {
      // The next form.
    }
  }
  const fix = "It may be cut off or damaged: copy the public key again, as PEM with its BEGIN and END lines.";
  return unreadableKeyText("looks like base64 of a key but cannot be read", fix);
}

/** True if the bytes are one DER value, with nothing cut off and nothing behind it. */
function isWhole(der: Buffer): boolean {
  const lengthByte = der[1] ?? 0;
  if (lengthByte < 0x80) return der.length === 2 + lengthByte;
  if (lengthByte === 0x81) return der.length === 3 + (der[2] ?? 0);
  return lengthByte === 0x82 && der.length > 4 && der.length === 4 + der.readUInt16BE(2);
}

/** Reads a JWK as JSON; null if the text is not JSON of an object. */
function readJson(text: string): KeyText | null {
  if (!text.startsWith("{")) return null;
  let jwk: Readonly<Record<string, unknown>>;
  try {
    jwk = JSON.parse(text) as Readonly<Record<string, unknown>>;
  } catch {
    return null;
  }
  if ("d" in jwk || JSON.stringify(jwk).includes("PRIVATE KEY")) return { kind: "private" };
  try {
    return { kind: "public", key: createPublicKey({ key: jwk as JsonWebKey, format: "jwk" }) };
  } catch (cause) {
    const fix = "Pass the public key alone: its PEM text, or the JSON of one JWK.";
    return unreadableKeyText("is JSON, but not of one public key (JWK)", fix, cause);
  }
}

function describeUnreadable(input: string): KeyText {
  const length = `it has ${input.length} characters`;
  const text = withoutDamage(input).trim();
  if (/^(?:ssh-|ecdsa-)|SSH2 PUBLIC KEY/.test(text)) {
    const fix =
      "Convert it with: ssh-keygen -e -m PKCS8 -f key.pub. Check that it is the merchant's key from the dashboard.";
    return unreadableKeyText("is a key for SSH", fix);
  }
  if (text.includes("-BEGIN ")) {
    const fix = "It is cut off: a value of several lines in an .env file needs quotes around it.";
    return unreadableKeyText(`has a "-----BEGIN" line, but no "-----END" line to it (${length})`, fix);
  }
  if (input.includes("\ufffd") || input.includes("\u0000")) {
    const fix = "It is binary (DER) or UTF-16: convert it to PEM in UTF-8.";
    return unreadableKeyText(`is not text (${length})`, fix);
  }
  const fix = /^\S+\.(?:pem|pub|key|crt|cer|der|txt)$|^(?:file:|~?\/|\.{1,2}\/|[A-Za-z]:[\\/])\S*$/.test(text)
    ? "It looks like the name of a file: pass the text in the file, or { file: … } to createReceiver."
    : "Pass the whole PEM text with its BEGIN and END lines, or base64 of it.";
  return unreadableKeyText(`has no "-----BEGIN PUBLIC KEY-----" part (${length})`, fix);
}

/** Texts that programs write for a missing value, and placeholders that were not filled in. */
const PLACEHOLDER_PATTERN =
  /^(?:undefined|null|nil|none|nan|true|false|\[object \w+\]|\{\}|\[\]|change[-_ ]?me|todo|x{3,}|\$\{[^}]*\}|\$[A-Z_][A-Z0-9_]*|%[A-Z_][A-Z0-9_]*%|\{\{.*\}\}|<[^<>]*>)$/i;

/** Describes a text that stands for a missing value; null for any other text. It is repeated only if it is one of those texts. */
export function placeholderIn(input: string): { readonly what: string; readonly fix: string } | null {
  const text = input.replace(INVISIBLE_PATTERN, "").replace(QUOTES_PATTERN, "").trim();
  if (text === "" && input.trim() !== "") {
    return { what: "has nothing but quotes or invisible characters", fix: NOT_SET_FIX };
  }
  if (!PLACEHOLDER_PATTERN.test(text)) return null;
  return {
    what: `is the text ${JSON.stringify(text.slice(0, 64))}, which stands for a missing value`,
    fix: NOT_SET_FIX,
  };
}

const NOT_SET_FIX =
  "Check that the environment variable was set when the process started, or when its configuration was built.";

/** Describes a quote, a control or an invisible character in a secret; null if there is none. */
export function damageIn(secret: string): "quoted" | "invisible" | null {
  const [first = "", last = ""] = [secret.at(0), secret.at(-1)];
  if (first.replace(QUOTES_PATTERN, "") === "" || last.replace(QUOTES_PATTERN, "") === "") return "quoted";
  if (secret.replace(INVISIBLE_PATTERN, "") !== secret) return "invisible";
  return /\p{Cc}|\p{Zl}|\p{Zp}|\\[rn]$/u.test(secret) ? "invisible" : null;
}

function unreadableKeyText(what: string, fix: string, cause?: unknown): KeyText {
  return { kind: "unreadable", what, fix, ...(cause === undefined ? {} : { cause }) };
}
