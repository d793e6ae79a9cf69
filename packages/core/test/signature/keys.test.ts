import { execFileSync } from "node:child_process";
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  generateKeyPairSync,
} from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import {
  type ErrorCode,
  type PayhooksError,
  type PaymentsOptions,
  verifyConnectWebhook,
} from "@payhooks/core";
import { importPublicKeys, importSecrets, verifyHmacSignature } from "@payhooks/core/signature";
import {
  callbackFields,
  connectEvent,
  createTestKeys,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { afterAll, describe, expect, it } from "vitest";
import type { PublicKeyInput, SecretInput } from "../../src/signature/keys.ts";
import { rejectedBy, SECRET, setUp, thrownBy } from "../receiving.ts";

const { publicKey: pem, privateKey: privatePem } = createTestKeys();
const publicObject = createPublicKey(pem);
const privateObject = createPrivateKey(privatePem);
const jwk = publicObject.export({ format: "jwk" });
const keyId = createHash("sha256")
  .update(publicObject.export({ format: "der", type: "spki" }))
  .digest("hex")
  .slice(0, 16);

const base64 = (text: string): string => Buffer.from(text).toString("base64");
const written = (text: string): string => text.replaceAll("\n", "\\n");
const oneLine = (text: string): string => text.trim().replaceAll("\n", " ");
const pemOf = (n: string, e: number[]): string =>
  createPublicKey({ key: { kty: "RSA", n, e: Buffer.from(e).toString("base64url") }, format: "jwk" })
    .export({ type: "spki", format: "pem" })
    .toString();
/** A modulus of so many bits; nobody has its factors, but a public key needs none. */
const modulusOf = (bits: number): string => {
  const bytes = Buffer.alloc(Math.ceil(bits / 8), 0x5b);
  bytes[0] = 2 ** ((bits - 1) % 8);
  return bytes.toString("base64url");
};

const FORMS: readonly (readonly [string, PublicKeyInput])[] = [
  ["PEM", pem],
  ["PEM with CRLF", pem.replaceAll("\n", "\r\n")],
  ["PEM with \\n written out", written(pem)],
  ["PEM with \\r\\n written out", pem.replaceAll("\n", "\\r\\n")],
  ["PEM in double quotes", `"${pem}"`],
  ["PEM in single quotes", `'${pem}'`],
  ["PEM with \\n written out, in quotes", `"${written(pem)}"`],
  ["PEM with white space around", `\n  ${pem}\n `],
  ["PEM in one line with spaces", oneLine(pem)],
  ["PEM in one line without spaces", pem.replaceAll("\n", "")],
  ["PEM behind a comment", `merchant key\n${pem}`],
  ["PEM of PKCS#1", publicObject.export({ type: "pkcs1", format: "pem" }).toString()],
  ["base64 of PEM", base64(pem)],
  ["base64 of PEM with \\n written out", base64(written(pem))],
  ["base64 of PEM, in quotes", `"${base64(pem)}"`],
  ["base64 of PEM, in lines", `${base64(pem).replace(/.{76}/g, "$&\n")}\n`],
  ["base64 of PEM in quotes", base64(`"${pem}"`)],
  ["the bare base64 of a key", pem.trim().split("\n").slice(1, -1).join("")],
  ["a KeyObject", publicObject],
];

describe("a public key", () => {
  it.each(FORMS)("is accepted as %s", (_, key) => {
    const [imported, ...none] = importPublicKeys(key);
    expect(none).toEqual([]);
    expect(imported?.keyId).toBe(keyId);
    expect(imported?.key.equals(publicObject)).toBe(true);
    expect(imported?.modulusBytes).toBe(256);
  });

  it.each([2048, 2049, 3072, 4096])("is accepted with %i bits", (bits) => {
    const [imported] = importPublicKeys(pemOf(modulusOf(bits), [1, 0, 1]));
    expect(imported?.modulusBytes).toBe(Math.ceil(bits / 8));
  });

  it.each([[[1, 0, 3]], [[0xff, 0xff, 0xff, 0xff]]])("is accepted with a greater odd exponent, %j", (e) => {
    expect(importPublicKeys(pemOf(String(jwk.n), e))).toHaveLength(1);
  });

  it("of a resolver's tenant is held to the same bounds", async () => {
    const costly = { ERR_KEY_TOO_LONG: [16_384, [1, 0, 1]], ERR_KEY_EXPONENT: [3072, Array(383).fill(0x7f)] };
    for (const [code, [bits, e]] of Object.entries(costly)) {
      const keys = pemOf(modulusOf(Number(bits)), e as number[]);
      const t = await setUp({ payments: { publicKey: () => ({ tenant: "t", keys }) } });
      const { status } = await t.post("payments", signPaymentCallback(callbackFields(), privatePem));
      expect(status).toBe(503);
      expect(t.notices).toContainEqual(
        expect.objectContaining({ type: "refused", why: expect.stringContaining(code) }),
      );
    }
  });

  it("comes in lists of one to four, in their order", () => {
    const others = [2050, 2051, 2052].map((bits) => pemOf(modulusOf(bits), [1, 0, 1]));
    const ids = importPublicKeys([pem, ...others]).map((key) => key.keyId);
    expect(ids).toHaveLength(4);
    expect(ids[0]).toBe(keyId);
    expect(new Set(ids).size).toBe(4);
    expect(importPublicKeys([...others].reverse()).map((key) => key.keyId)).toEqual(ids.slice(1).reverse());
  });
});

const rsa1024 = generateKeyPairSync("rsa", { modulusLength: 1024 });
const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });
const pss = generateKeyPairSync("rsa-pss", { modulusLength: 2048 });
const ed = generateKeyPairSync("ed25519");
const spki = (key: typeof publicObject): string => key.export({ type: "spki", format: "pem" }).toString();
const pkcs1 = privateObject.export({ type: "pkcs1", format: "pem" }).toString();
const encrypted = privateObject
  .export({ type: "pkcs8", format: "pem", cipher: "aes-128-cbc", passphrase: "p" })
  .toString();
const lines = pem.trim().split("\n");

const REFUSED: readonly (readonly [string, unknown, ErrorCode, RegExp])[] = [
  ["a private key (PKCS#8)", privatePem, "ERR_KEY_PRIVATE", /public key only/],
  ["a private key (PKCS#1)", pkcs1, "ERR_KEY_PRIVATE", /public key only/],
  ["a private key with a passphrase", encrypted, "ERR_KEY_PRIVATE", /public key only/],
  ["a private key with \\n written out", written(privatePem), "ERR_KEY_PRIVATE", /rotate the private key/],
  ["a private key as base64", base64(privatePem), "ERR_KEY_PRIVATE", /public key only/],
  ["a private KeyObject", privateObject, "ERR_KEY_PRIVATE", /public key only/],
  [
    "a public key with the private one behind it",
    `${pem}\n${privatePem}`,
    "ERR_KEY_PRIVATE",
    /public key only/,
  ],
  ["a public key with the private one behind it (PKCS#1)", `${pem}\n${pkcs1}`, "ERR_KEY_PRIVATE", /rotate/],
  ["a private EC key", ec.privateKey, "ERR_KEY_PRIVATE", /public key only/],
  ["an EC key", spki(ec.publicKey), "ERR_KEY_NOT_RSA", /Security Keys/],
  ["an EC KeyObject", ec.publicKey, "ERR_KEY_NOT_RSA", /Security Keys/],
  ["an Ed25519 key", spki(ed.publicKey), "ERR_KEY_NOT_RSA", /Security Keys/],
  ["an RSA-PSS key", spki(pss.publicKey), "ERR_KEY_NOT_RSA", /Security Keys/],
  ["a secret KeyObject", createSecretKey(Buffer.from(SECRET)), "ERR_KEY_NOT_RSA", /connect\.secret/],
  ["1024 bits", spki(rsa1024.publicKey), "ERR_KEY_TOO_SHORT", /new key in the merchant dashboard/],
  ["1024 bits, a KeyObject", rsa1024.publicKey, "ERR_KEY_TOO_SHORT", /new key/],
  ["2047 bits", pemOf(modulusOf(2047), [1, 0, 1]), "ERR_KEY_TOO_SHORT", /new key/],
  ["4097 bits", pemOf(modulusOf(4097), [1, 0, 1]), "ERR_KEY_TOO_LONG", /RSA-2048/],
  [
    "8192 bits, a KeyObject",
    createPublicKey(pemOf(modulusOf(8192), [1, 0, 1])),
    "ERR_KEY_TOO_LONG",
    /RSA-2048/,
  ],
  ["16384 bits", pemOf(modulusOf(16_384), [1, 0, 1]), "ERR_KEY_TOO_LONG", /RSA-2048/],
  ["e = 2^32 + 1", pemOf(String(jwk.n), [1, 0, 0, 0, 1]), "ERR_KEY_EXPONENT", /exponent is 65537/],
  ["e as long as the modulus", pemOf(modulusOf(3072), Array(383).fill(0x7f)), "ERR_KEY_EXPONENT", /is 65537/],
  ["e = 1", pemOf(String(jwk.n), [1]), "ERR_KEY_EXPONENT", /exponent is 65537/],
  ["e = 3", pemOf(String(jwk.n), [3]), "ERR_KEY_EXPONENT", /exponent is 65537/],
  ["e = 65535", pemOf(String(jwk.n), [0xff, 0xff]), "ERR_KEY_EXPONENT", /exponent is 65537/],
  ["e = 65536", pemOf(String(jwk.n), [1, 0, 0]), "ERR_KEY_EXPONENT", /exponent is 65537/],
  ["e = 65538", pemOf(String(jwk.n), [1, 0, 2]), "ERR_KEY_EXPONENT", /exponent is 65537/],
  ["e = 2 in 20 bytes", pemOf(String(jwk.n), [2, ...Array<number>(19).fill(0)]), "ERR_KEY_EXPONENT", /65537/],
  ["garbage", "not a key at all", "ERR_KEY_UNREADABLE", /BEGIN and END/],
  ["a path", "./keys/merchant.pem", "ERR_KEY_UNREADABLE", /name of a file: pass the text in the file/],
  [
    "PEM without its last line",
    lines.slice(0, -1).join("\n"),
    "ERR_KEY_UNREADABLE",
    /cut off: .* needs quotes/,
  ],
  ["PEM without its first line", lines.slice(1).join("\n"), "ERR_KEY_UNREADABLE", /BEGIN and END/],
  [
    "PEM with a line missing",
    [...lines.slice(0, 3), ...lines.slice(4)].join("\n"),
    "ERR_KEY_UNREADABLE",
    /every line/,
  ],
  ["PEM with nothing in it", [lines[0], lines.at(-1)].join("\n"), "ERR_KEY_UNREADABLE", /every line/],
  ["base64 of a PEM that is cut off", base64(pem).slice(0, 300), "ERR_KEY_UNREADABLE", /BEGIN and END/],
  ["a number", 42, "ERR_KEY_UNREADABLE", /PEM text/],
  ["a JWK", jwk, "ERR_KEY_UNREADABLE", /PEM text/],
  ["bytes", Buffer.from(pem), "ERR_KEY_UNREADABLE", /PEM text/],
  ["nothing", "", "ERR_OPTION_MISSING", /environment variable/],
  ["white space", " \n\t", "ERR_OPTION_MISSING", /environment variable/],
  ["undefined", undefined, "ERR_OPTION_MISSING", /environment variable/],
  ["null", null, "ERR_OPTION_MISSING", /environment variable/],
  ["an empty list", [], "ERR_OPTION_MISSING", /environment variable/],
  ["a list with nothing set", [undefined, null, "", " \n"], "ERR_OPTION_MISSING", /environment variable/],
  ["five keys", Array(5).fill(pem), "ERR_KEY_COUNT", /rotated in or out/],
  ["a good and a private key", [pem, privatePem], "ERR_KEY_PRIVATE", /public key only/],
];

/** Everything that an error could show of a key: no 16 characters of it may be in there. */
function expectNothingLeaked(error: PayhooksError, material: string): void {
  const shown = inspect(error, { depth: 10, showHidden: true }) + JSON.stringify(error) + error.stack;
  const text = material.replace(/-----[A-Z0-9 ]+-----/g, "").replace(/\s|\\[rn]/g, "");
  for (let at = 0; at + 16 <= text.length; at += 8) expect(shown).not.toContain(text.slice(at, at + 16));
}

describe("a public key is refused", () => {
  it.each(REFUSED)("for %s", (_, key, code, fix) => {
    const error = thrownBy(() => importPublicKeys(key as PublicKeyInput, "payments.publicKey"));
    expect(error.code).toBe(code);
    expect(error.message).toContain("payments.publicKey");
    expect(error.fix).toMatch(fix);
    expect(error.message.endsWith(error.fix)).toBe(true);
    for (const text of [key].flat()) {
      if (typeof text === "string" && text.length > 30) expectNothingLeaked(error, text);
    }
    expectNothingLeaked(error, privatePem);
    expectNothingLeaked(error, pkcs1);
  });

  it.each(REFUSED)("by a receiver at its start, not at its construction, for %s", async (_, key, code) => {
    const publicKey = key as PaymentsOptions["publicKey"];
    const error = await rejectedBy(setUp({ payments: { publicKey } }));
    expect(error.code).toBe(code);
    expect(error.message).toContain("payments.publicKey");
  });
});

describe("the message", () => {
  it.each([
    ["is not set", undefined],
    ["is not set", null],
    ["is an empty list", []],
    ["has no entry that is set", [undefined, ""]],
    ["is empty", " "],
    ["is a private key", privatePem],
    ['is a key of type "ec", not RSA', spki(ec.publicKey)],
    ["is a secret key, not an RSA public key", createSecretKey(Buffer.from(SECRET))],
    ["is an RSA key of 1024 bits; at least 2048 are needed", spki(rsa1024.publicKey)],
    ["has the public exponent 3, with which signatures can be forged", pemOf(String(jwk.n), [3])],
    ["is neither PEM text nor a KeyObject but of type number", 42],
    ['has no "-----BEGIN PUBLIC KEY-----" part (it has 7 characters)', "garbage"],
    ['has no "-----BEGIN PUBLIC KEY-----" part (it has 7 characters)', "pub.pem"],
    ['has a "-----BEGIN" line, but no "-----END" line to it (it has 26 characters)', lines[0]],
    ['looks like PEM ("PUBLIC KEY") but cannot be read', [lines[0], lines.at(-1)].join("\n")],
    ["lists 5 keys; at most 4 are allowed at one time", Array(5).fill(pem)],
  ])("about a public key that %s says so, of the option by its name", (what, key) => {
    const error = thrownBy(() => importPublicKeys(key as PublicKeyInput));
    expect(error.message.startsWith(`publicKey ${what}. ${error.fix}`)).toBe(true);
  });

  it.each([
    ["is not set", undefined],
    ["is empty or blank", "\t"],
    ["is of type number, not a secret", 42],
    ["is a public key, not a secret", publicObject],
    ["is a private key, not a secret", privateObject],
    ["begins or ends with white space, which would be part of the key", ` ${SECRET}`],
  ])("about a secret that %s says so, of the option by its name", (what, secret) => {
    const error = thrownBy(() => importSecrets(secret as string));
    expect(error.message.startsWith(`secret ${what}. ${error.fix}`)).toBe(true);
  });
});

describe("a key in a file", () => {
  const folder = mkdtempSync(join(tmpdir(), "payhooks-keys-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  const file = (name: string, text: string): { file: string } => {
    writeFileSync(join(folder, name), text);
    return { file: join(folder, name) };
  };

  it.each([
    ["alone", (): PaymentsOptions["publicKey"] => file("one.pem", pem)],
    [
      "in a list",
      (): PaymentsOptions["publicKey"] => [pemOf(modulusOf(2048), [1, 0, 1]), file("two.pem", pem)],
    ],
    ["with CRLF", (): PaymentsOptions["publicKey"] => file("three.pem", pem.replaceAll("\n", "\r\n"))],
  ])("is read at the start, %s", async (_, publicKey) => {
    const t = await setUp({ payments: { publicKey: publicKey() } });
    expect(await t.post("payments", signPaymentCallback(callbackFields(), privatePem))).toMatchObject({
      status: 200,
    });
    expect(t.ran).toHaveLength(1);
  });

  it("that is missing is named, with the reason", async () => {
    const missing = join(folder, "missing.pem");
    const error = await rejectedBy(setUp({ payments: { publicKey: { file: missing } } }));
    expect(error.code).toBe("ERR_KEY_UNREADABLE");
    expect(error.message).toContain(missing);
    expect(error.fix).toMatch(/working directory/);
    expect(error.cause).toMatchObject({ code: "ENOENT" });
  });

  it("that holds a private key is refused without showing it", async () => {
    const error = await rejectedBy(setUp({ payments: { publicKey: file("private.pem", privatePem) } }));
    expect(error.code).toBe("ERR_KEY_PRIVATE");
    expectNothingLeaked(error, privatePem);
  });
});

describe("a list with entries that are not set, as between two rotations", () => {
  const unset = [undefined, "", "  "];

  it("is the list of the others", () => {
    expect(importPublicKeys([...unset, pem, null as unknown as undefined]).map((key) => key.keyId)).toEqual([
      keyId,
    ]);
    expect(importSecrets([...unset, SECRET])).toHaveLength(1);
    expect(importSecrets([SECRET, "", "", "", "", undefined])).toHaveLength(1);
  });

  it("starts a receiver, which warns of them and verifies with the others", async () => {
    const t = await setUp({
      payments: { publicKey: [pem, undefined] },
      connect: { secret: [SECRET, "", undefined] },
    });
    expect(await t.post("payments", signPaymentCallback(callbackFields(), privatePem))).toMatchObject({
      status: 200,
    });
    expect(await t.post("connect", signConnectWebhook(connectEvent(), SECRET))).toMatchObject({
      status: 200,
    });
    const said = t.notices.flatMap((notice) => (notice.type === "warning" ? [notice.what] : []));
    expect(said).toEqual([
      "payments.publicKey lists 1 entry that is not set.",
      "connect.secret lists 2 entries that are not set.",
    ]);
  });

  it("is a resolver's answer too", async () => {
    const t = await setUp({ payments: { publicKey: () => ({ tenant: "t", keys: [pem, ""] }) } });
    expect(await t.post("payments", signPaymentCallback(callbackFields(), privatePem))).toMatchObject({
      status: 200,
    });
  });
});

describe("a webhook secret", () => {
  it.each([
    ["undefined", undefined, "ERR_OPTION_MISSING"],
    ["null", null, "ERR_OPTION_MISSING"],
    ["an empty list", [], "ERR_OPTION_MISSING"],
    ["a list with nothing set", [undefined, null, "", " "], "ERR_OPTION_MISSING"],
    ["empty text", "", "ERR_SECRET_BLANK"],
    ["spaces", "   ", "ERR_SECRET_BLANK"],
    ["a line end", "\n", "ERR_SECRET_BLANK"],
    ["a number", 42, "ERR_SECRET_KIND"],
    ["an object", { secret: SECRET }, "ERR_SECRET_KIND"],
    ["a public KeyObject", publicObject, "ERR_SECRET_KIND"],
    ["a private KeyObject", privateObject, "ERR_SECRET_KIND"],
    ["no bytes", new Uint8Array(), "ERR_SECRET_BLANK"],
    ["bytes of blank text", Buffer.from(" \n"), "ERR_SECRET_BLANK"],
    ["bytes of text with a line end behind", Buffer.from(`${SECRET}\n`), "ERR_SECRET_WHITESPACE"],
    ["a KeyObject with a line end", createSecretKey(Buffer.from(`${SECRET}\n`)), "ERR_SECRET_WHITESPACE"],
    ["a space in front", ` ${SECRET}`, "ERR_SECRET_WHITESPACE"],
    ["a space behind", `${SECRET} `, "ERR_SECRET_WHITESPACE"],
    ["a line end behind", `${SECRET}\n`, "ERR_SECRET_WHITESPACE"],
    ["a CRLF behind", `${SECRET}\r\n`, "ERR_SECRET_WHITESPACE"],
    ["a tab in front", `\t${SECRET}`, "ERR_SECRET_WHITESPACE"],
    ["a no-break space behind", `${SECRET}\u00a0`, "ERR_SECRET_WHITESPACE"],
    ["a byte order mark in front", `\ufeff${SECRET}`, "ERR_SECRET_WHITESPACE"],
    ["five of them", Array(5).fill(SECRET), "ERR_KEY_COUNT"],
  ] as const)("is refused for %s", async (_, secret, code) => {
    const error = thrownBy(() => importSecrets(secret as SecretInput, "connect.secret"));
    expect(error.code).toBe(code);
    expect(error.message).toContain("connect.secret");
    expect(error.fix).not.toBe("");
    expectNothingLeaked(error, SECRET);
    expect((await rejectedBy(setUp({ connect: { secret: secret as SecretInput } }))).code).toBe(code);
  });

  const bytes = Buffer.from(SECRET);
  const padded = new Uint8Array([0, ...bytes, 0]);
  /** With white space at both ends, but no text. */
  const random = Buffer.from([0x20, 0xff, 0x80, 0x01, 0x0a]);
  it.each([
    ["bytes", new Uint8Array(bytes), bytes],
    ["a part of a longer buffer", padded.subarray(1, -1), bytes],
    ["a secret KeyObject", createSecretKey(bytes), bytes],
    ["bytes that are not text", random, random],
    ["a KeyObject of bytes that are not text", createSecretKey(random), random],
  ])("may be %s, of which a receiver and openssl make the same signature", async (_, secret, key) => {
    const t = await setUp({ connect: { secret: [undefined, secret] } });
    const { rawBody } = signConnectWebhook(connectEvent(), SECRET);
    const openssl = ["dgst", "-sha256", "-mac", "HMAC", "-macopt", `hexkey:${key.toString("hex")}`];
    const digest = execFileSync("openssl", openssl, { input: rawBody }).toString().trim().split(" ").at(-1);
    const header = `sha256=${digest}`;
    expect(verifyHmacSignature(rawBody, header, secret)).toMatch(/^[0-9a-f]{8}$/);
    expect(verifyHmacSignature(rawBody, header, "another-secret-0123")).toBeNull();
    const headers = { "content-type": "application/json", "x-connect-signature": header };
    expect(verifyConnectWebhook(rawBody, header, { secret }).keyId).toBe(importSecrets(secret)[0]?.keyId);
    expect(await t.post("connect", { rawBody, headers })).toMatchObject({ status: 200 });
    expect(t.ran).toHaveLength(1);
  });

  it("is the same one as text, as bytes and as a KeyObject", () => {
    const ids = importSecrets([SECRET, bytes, createSecretKey(bytes)]).map(({ keyId: id }) => id);
    expect(new Set(ids).size).toBe(1);
  });

  it("may hold white space inside, and anything that is not ASCII", () => {
    expect(importSecrets(["two words of a secret", "geheim-ключ-秘密-0123456789"])).toHaveLength(2);
  });

  it("under 16 characters is accepted, with a warning that does not show it", async () => {
    expect(importSecrets("0123456789abcde")[0]?.isWeak).toBe(true);
    expect(importSecrets("0123456789abcdef")[0]?.isWeak).toBe(false);
    const t = await setUp({ connect: { secret: [SECRET, "sixteen-is-more"] } });
    await t.post("connect", signConnectWebhook({}, SECRET));
    const warnings = t.notices.filter(({ type }) => type === "warning");
    expect(warnings).toMatchObject([{ what: expect.stringContaining("under 16 characters") }]);
    expect(JSON.stringify([t.notices, t.lines])).not.toContain("sixteen-is-more");
  });

  it("has a fingerprint that is stable and does not give it away", () => {
    const [first, second] = importSecrets([SECRET, `${SECRET}2`]);
    expect(first?.keyId).toMatch(/^[0-9a-f]{8}$/);
    // Kept in logs and in held entries: it must not change with a new version.
    expect(importSecrets("whsec_known_0123456789")[0]?.keyId).toBe("c856cb74");
    expect(importSecrets(SECRET)[0]?.keyId).toBe(first?.keyId);
    expect(second?.keyId).not.toBe(first?.keyId);
    const plain = createHash("sha256").update(SECRET).digest("hex");
    expect(plain.startsWith(first?.keyId ?? "")).toBe(false);
    expect(inspect(importSecrets(SECRET), { depth: 5 })).not.toContain(SECRET);
  });
});
