import { execFileSync } from "node:child_process";
import { createPrivateKey, createPublicKey } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ErrorCode, verifyPaymentCallback } from "@payhooks/core";
import { importPublicKeys, importSecrets } from "@payhooks/core/signature";
import { callbackFields, createTestKeys, signPaymentCallback } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { busyMs, SECRET, thrownBy } from "../receiving.ts";

const { publicKey: pem, privateKey: privatePem } = createTestKeys();
const key = createPublicKey(pem);
const jwk = key.export({ format: "jwk" });
const base64 = (text: string | Buffer): string => Buffer.from(text).toString("base64");
const spki = key.export({ type: "spki", format: "der" });
const pkcs1 = key.export({ type: "pkcs1", format: "der" });
const lines = pem.trim().split("\n");
const body = lines.slice(1, -1);
/** A certificate of the key, as openssl makes it. */
const certificate = (() => {
  const folder = mkdtempSync(join(tmpdir(), "payhooks-certificate-"));
  const [keyFile, file] = [join(folder, "key.pem"), join(folder, "certificate.pem")];
  writeFileSync(keyFile, privatePem);
  execFileSync("openssl", ["req", "-x509", "-key", keyFile, "-subj", "/CN=test", "-out", file]);
  const text = readFileSync(file, "utf8");
  rmSync(folder, { recursive: true });
  return text;
})();
const certificateBody = certificate.trim().split("\n").slice(1, -1).join("");

/** Changes that the text of a public key suffers on its way, and after which all of it is still there. */
const READ: readonly (readonly [what: string, text: string])[] = [
  ["as it is", pem],
  ["with CRLF", pem.replaceAll("\n", "\r\n")],
  ["with CR", pem.replaceAll("\n", "\r")],
  ["with line ends written out", pem.replaceAll("\n", "\\n")],
  ["with line ends escaped twice", pem.replaceAll("\n", "\\\\n")],
  ["with line ends escaped three times", pem.replaceAll("\n", "\\\\\\\\n")],
  ["with CRLF escaped twice", pem.replaceAll("\n", "\\\\r\\\\n")],
  ["with line ends as \\u000a", pem.replaceAll("\n", "\\u000a")],
  ["with line ends written out, and real ones", pem.replaceAll("\n", "\\n\n")],
  ["with a backslash at each line's end", pem.replaceAll("\n", "\\\n")],
  ["as part of a URL", encodeURIComponent(pem)],
  ["in quotes", `"${pem}"`],
  ["in escaped quotes", `\\"${pem.replaceAll("\n", "\\n")}\\"`],
  ["in single quotes, in double ones", `"'${pem}'"`],
  ["in backticks", `\`${pem}\``],
  ["in typographic quotes", `\u201c${pem}\u201d`],
  ["in German quotes", `\u201e${pem}\u201c`],
  ["in guillemets", `\u00ab${pem}\u00bb`],
  ["with an opening quote only", `"${pem}`],
  ["with quotes around each line", lines.map((line) => `"${line}"`).join("\n")],
  ["indented", pem.replaceAll("\n", "\n    ")],
  ["indented with tabs", pem.replaceAll("\n", "\n\t")],
  ["with blanks at the ends of lines", pem.replaceAll("\n", "  \n")],
  ["with empty lines", pem.replaceAll("\n", "\n\n")],
  ["with no-break spaces", pem.replaceAll("\n", "\u00a0\n\u00a0")],
  ["in one line, joined by blanks", lines.join(" ")],
  ["in one line, joined by nothing", lines.join("")],
  ["with a byte order mark", `\ufeff${pem}`],
  ["with zero-width characters", pem.replaceAll("\n", "\u200b\n\u2060")],
  ["with soft hyphens", pem.replaceAll("\n", "\u00ad\n")],
  ["with typographic dashes", pem.replaceAll("-----", "\u2014\u2014-")],
  ["with a variable's name in front", `PAY_PUBLIC_KEY="${pem.replaceAll("\n", "\\n")}"`],
  ["with a comment in front", `# the merchant's key\n${pem}`],
  ["with text behind", `${pem}\nEOF`],
  ["as PKCS#1", key.export({ type: "pkcs1", format: "pem" }).toString()],
  ["as a certificate", certificate],
  ["as a certificate with line ends escaped twice", certificate.replaceAll("\n", "\\\\n")],
  ["as base64 of the PEM", base64(pem)],
  ["as base64 of the PEM, twice", base64(base64(pem))],
  ["as base64 of the PEM with line ends escaped twice", base64(pem.replaceAll("\n", "\\\\n"))],
  ["as URL-safe base64 of the PEM", Buffer.from(pem).toString("base64url")],
  ["as base64 of the PEM, in quotes and lines", `"${base64(pem).replace(/.{76}/g, "$&\n")}"`],
  ["as bare base64", body.join("")],
  ["as bare base64, in lines", body.join("\n")],
  ["as bare base64, in lines that are written out", body.join("\\n")],
  ["as bare base64 without its padding", body.join("").replace(/=+$/, "")],
  ["as bare base64url", spki.toString("base64url")],
  ["as bare base64 of PKCS#1", base64(pkcs1)],
  ["as bare base64 of a certificate", certificateBody],
  ["as a JWK", JSON.stringify(jwk)],
  ["as an indented JWK with more members", JSON.stringify({ ...jwk, kid: "k", use: "sig" }, null, 2)],
];

/** Texts that are no public key, or not certainly one. */
const REFUSED: readonly (readonly [what: string, text: string, code: ErrorCode, message: RegExp])[] = [
  ["an empty variable", "", "ERR_OPTION_MISSING", /is empty.*environment variable/],
  ["blanks", " \t\n", "ERR_OPTION_MISSING", /is empty/],
  ["two quotes", '""', "ERR_KEY_UNREADABLE", /nothing but quotes/],
  ["a byte order mark and quotes", "\ufeff''", "ERR_KEY_UNREADABLE", /nothing but quotes/],
  ["undefined as text", "undefined", "ERR_KEY_UNREADABLE", /the text "undefined".*environment variable/],
  ["undefined in quotes", '"undefined"', "ERR_KEY_UNREADABLE", /the text "undefined"/],
  ["null as text", "null", "ERR_KEY_UNREADABLE", /the text "null"/],
  ["an object as text", String({}), "ERR_KEY_UNREADABLE", /the text "\[object Object\]"/],
  [
    "a reference that nobody resolved",
    `\${PAY_PUBLIC_KEY}`,
    "ERR_KEY_UNREADABLE",
    /stands for a missing value/,
  ],
  ["a reference without braces", "$PAY_PUBLIC_KEY", "ERR_KEY_UNREADABLE", /stands for a missing value/],
  ["a template", "{{ .Values.key }}", "ERR_KEY_UNREADABLE", /stands for a missing value/],
  ["a placeholder", "<your public key>", "ERR_KEY_UNREADABLE", /stands for a missing value/],
  ["a path", "./keys/merchant.pem", "ERR_KEY_UNREADABLE", /name of a file/],
  ["a path without an ending", "/run/secrets/pay_public_key", "ERR_KEY_UNREADABLE", /name of a file/],
  ["a path of Windows", "C:\\keys\\merchant.pem", "ERR_KEY_UNREADABLE", /name of a file/],
  ["a file URL", "file:///keys/merchant", "ERR_KEY_UNREADABLE", /name of a file/],
  ["a key for SSH", `ssh-rsa ${base64(spki)} me@host`, "ERR_KEY_UNREADABLE", /ssh-keygen/],
  [
    "a key for SSH as RFC 4716",
    `---- BEGIN SSH2 PUBLIC KEY ----\n${base64(spki)}\n---- END SSH2 PUBLIC KEY ----`,
    "ERR_KEY_UNREADABLE",
    /SSH2 PUBLIC KEY/,
  ],
  [
    "a PGP key",
    `-----BEGIN PGP PUBLIC KEY BLOCK-----\n${base64(spki)}\n-----END PGP PUBLIC KEY BLOCK-----`,
    "ERR_KEY_UNREADABLE",
    /PGP PUBLIC KEY BLOCK/,
  ],
  [
    "a request for a certificate",
    certificate.replaceAll("CERTIFICATE", "CERTIFICATE REQUEST"),
    "ERR_KEY_UNREADABLE",
    /CERTIFICATE REQUEST/,
  ],
  [
    "two keys in one text",
    `${pem}${createTestKeys().publicKey}`,
    "ERR_KEY_UNREADABLE",
    /more than one PEM block.*list/,
  ],
  [
    "a chain of certificates",
    `${certificate}${certificate}`,
    "ERR_KEY_UNREADABLE",
    /more than one PEM block/,
  ],
  [
    "a key that another one interrupts",
    `${lines[0]}\n${body[0]}\n${pem}`,
    "ERR_KEY_UNREADABLE",
    /more than one PEM block/,
  ],
  ["the first line only", lines[0] ?? "", "ERR_KEY_UNREADABLE", /cut off.*quotes around/],
  ["PEM without its last line", lines.slice(0, -1).join("\n"), "ERR_KEY_UNREADABLE", /cut off/],
  ["PEM that lost its backslashes", pem.replaceAll("\n", "n"), "ERR_KEY_UNREADABLE", /cut off or damaged/],
  [
    "PEM that lost a line",
    [...lines.slice(0, 3), ...lines.slice(4)].join("\n"),
    "ERR_KEY_UNREADABLE",
    /every line/,
  ],
  [
    "bare base64 that is cut off",
    body.join("").slice(0, 200),
    "ERR_KEY_UNREADABLE",
    /base64 of a key but cannot be read/,
  ],
  ["a JWK set", JSON.stringify({ keys: [jwk] }), "ERR_KEY_UNREADABLE", /JSON, but not of one public key/],
  ["other JSON", '{"PAY_PUBLIC_KEY":"x"}', "ERR_KEY_UNREADABLE", /JSON, but not of one public key/],
  [
    "a private JWK",
    JSON.stringify(createPrivateKey(privatePem).export({ format: "jwk" })),
    "ERR_KEY_PRIVATE",
    /private key/,
  ],
  [
    "JSON with a private key in it",
    JSON.stringify({ private_key: privatePem }),
    "ERR_KEY_PRIVATE",
    /private key/,
  ],
  ["a private key escaped twice", privatePem.replaceAll("\n", "\\\\n"), "ERR_KEY_PRIVATE", /private key/],
  ["a private key in one line", privatePem.replaceAll("\n", " "), "ERR_KEY_PRIVATE", /private key/],
  [
    "bare base64 of a private key",
    privatePem.trim().split("\n").slice(1, -1).join(""),
    "ERR_KEY_PRIVATE",
    /private key/,
  ],
  [
    "bare base64 of a private key (PKCS#1)",
    base64(createPrivateKey(privatePem).export({ type: "pkcs1", format: "der" })),
    "ERR_KEY_PRIVATE",
    /private key/,
  ],
  ["base64 of base64 of a private key", base64(base64(privatePem)), "ERR_KEY_PRIVATE", /private key/],
  [
    "a private key for SSH",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----",
    "ERR_KEY_PRIVATE",
    /private key/,
  ],
  [
    "a file in UTF-16",
    Buffer.from(pem, "utf16le").toString("utf8"),
    "ERR_KEY_UNREADABLE",
    /is not text.*UTF-16/,
  ],
  ["a file in DER", spki.toString("utf8"), "ERR_KEY_UNREADABLE", /is not text.*DER/],
  ["the webhook secret", SECRET, "ERR_KEY_UNREADABLE", /no "-----BEGIN PUBLIC KEY-----" part/],
  ["an API key", "pk_live_0123456789:sk_live_0123456789", "ERR_KEY_UNREADABLE", /no "-----BEGIN/],
  ["a very long text", "A".repeat(40_000), "ERR_KEY_UNREADABLE", /more than any key/],
];

describe("a public key as people paste it", () => {
  it.each(READ)("is read %s, and verifies", (_, text) => {
    const { rawBody } = signPaymentCallback(callbackFields(), privatePem);
    const { keyId } = verifyPaymentCallback(rawBody, { publicKey: text });
    expect(keyId).toBe(importPublicKeys(pem)[0]?.keyId);
  });

  it.each(REFUSED)("is refused by name: %s", (_, text, code, message) => {
    for (const given of [text, [pem, text === "" || text.trim() === "" ? undefined : text]]) {
      if (Array.isArray(given) && given[1] === undefined) continue;
      const error = thrownBy(() => importPublicKeys(given, "payments.publicKey"));
      expect(error.code).toBe(code);
      expect(error.message).toContain("payments.publicKey");
      expect(error.message).toMatch(message);
      expect(error.fix).not.toBe("");
      // Neither a key nor a part of one.
      for (const part of [body[2] ?? "", SECRET, "sk_live"]) expect(error.message).not.toContain(part);
    }
  });

  it("takes no time that a text can make long", () => {
    const long = 32_000;
    for (const part of [
      "-",
      "-BEGIN ",
      "BEGIN ",
      "-----BEGIN A-----",
      "\\",
      "%0",
      "A ",
      '"',
      "-----BEGIN A-----B-----END ",
    ]) {
      const text = part.repeat(Math.floor(long / part.length));
      expect(
        busyMs(() => thrownBy(() => importPublicKeys(text))),
        part,
      ).toBeLessThan(200);
    }
  });
});

describe("a webhook secret as people paste it", () => {
  const REFUSED_SECRETS: readonly (readonly [what: string, text: string, code: ErrorCode])[] = [
    ["undefined as text", "undefined", "ERR_SECRET_PLACEHOLDER"],
    ["null as text", "null", "ERR_SECRET_PLACEHOLDER"],
    ["null in quotes", '"null"', "ERR_SECRET_PLACEHOLDER"],
    ["an object as text", String({}), "ERR_SECRET_PLACEHOLDER"],
    ["NaN", "NaN", "ERR_SECRET_PLACEHOLDER"],
    ["two quotes", '""', "ERR_SECRET_PLACEHOLDER"],
    ["a reference that nobody resolved", `\${CONNECT_WEBHOOK_SECRET}`, "ERR_SECRET_PLACEHOLDER"],
    ["a reference without braces", "$CONNECT_WEBHOOK_SECRET", "ERR_SECRET_PLACEHOLDER"],
    ["a reference of Windows", "%CONNECT_WEBHOOK_SECRET%", "ERR_SECRET_PLACEHOLDER"],
    ["a template", "{{ webhook_secret }}", "ERR_SECRET_PLACEHOLDER"],
    ["a placeholder", "<webhook_secret>", "ERR_SECRET_PLACEHOLDER"],
    ["a word to be changed", "changeme", "ERR_SECRET_PLACEHOLDER"],
    ["quotes", `"${SECRET}"`, "ERR_SECRET_QUOTED"],
    ["single quotes", `'${SECRET}'`, "ERR_SECRET_QUOTED"],
    ["typographic quotes", `\u201c${SECRET}\u201d`, "ERR_SECRET_QUOTED"],
    ["backticks", `\`${SECRET}\``, "ERR_SECRET_QUOTED"],
    ["one quote", `"${SECRET}`, "ERR_SECRET_QUOTED"],
    ["a line end", `${SECRET}\n`, "ERR_SECRET_WHITESPACE"],
    ["a line end that is written out", `${SECRET}\\n`, "ERR_SECRET_WHITESPACE"],
    ["a line end that is escaped twice", `${SECRET}\\\\n`, "ERR_SECRET_WHITESPACE"],
    ["a second line", `${SECRET}\nwhsec_other_0123456789`, "ERR_SECRET_WHITESPACE"],
    ["a zero-width space behind", `${SECRET}\u200b`, "ERR_SECRET_WHITESPACE"],
    ["a zero-width joiner inside", `whsec\u200d_0123456789abcdef`, "ERR_SECRET_WHITESPACE"],
    ["a byte order mark", `\ufeff${SECRET}`, "ERR_SECRET_WHITESPACE"],
    ["a NUL behind", `${SECRET}\u0000`, "ERR_SECRET_WHITESPACE"],
    ["a public key", pem.trim(), "ERR_SECRET_KIND"],
    ["JSON", JSON.stringify({ webhook_secret: SECRET }), "ERR_SECRET_KIND"],
    ["a line of an .env file", `CONNECT_WEBHOOK_SECRET=${SECRET}`, "ERR_SECRET_KIND"],
    ["a line of a shell script", `export CONNECT_WEBHOOK_SECRET=${SECRET}`, "ERR_SECRET_KIND"],
  ];

  it.each(REFUSED_SECRETS)("is refused by name: %s", (_, text, code) => {
    const given = [text, ...(/^[\x20-\x7e\n]*$/.test(text) ? [Buffer.from(text)] : []), [SECRET, text]];
    for (const secret of given) {
      const error = thrownBy(() => importSecrets(secret, "connect.secret"));
      expect(error.code).toBe(code);
      expect(error.message).toContain("connect.secret");
      expect(error.fix).not.toBe("");
      expect(error.message).not.toContain(SECRET.slice(6, 20));
    }
  });

  it.each([
    ["base64", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
    ["base64 with padding", "QUJDREVGR0hJSktMTU5PUA=="],
    ["a prefix", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
    ["hex", "0123456789abcdef0123456789abcdef"],
    ["a sentence", "correct horse battery staple"],
    ["signs of every kind", "a$b{c}<d>%e%\\f'g\"h=i"],
    ["a word that a placeholder begins with", "undefined-0123456789"],
    ["braces in front", "{0123456789}abcdef"],
    ["braces behind", "0123456789{abcdef}"],
    ["the line of an .env file behind something else", "0123456789 PAY_SECRET=abcdef"],
  ])("is used as it is: %s", (_, text) => {
    expect(importSecrets(text)[0]?.key.export()).toEqual(Buffer.from(text));
  });
});
