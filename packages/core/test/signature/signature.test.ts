import { sign } from "node:crypto";
import {
  type CanonicalValue,
  canonicalString,
  importPublicKeys,
  importSecrets,
  type VerifyingSecret,
  verifyHmacSignature,
  verifyRsaSignature,
} from "@payhooks/core/signature";
import { createTestKeys, signCanonicalString, signConnectWebhook } from "@payhooks/core/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findSecret } from "../../src/signature/hmac.ts";
import { SECRET, thrownBy } from "../receiving.ts";

const keys = createTestKeys();
const key = importPublicKeys(keys.publicKey)[0]?.key;
if (key === undefined) throw new Error("no key");
const DATA = "amount=10.500000&event=DEPOSIT";
const signature = signCanonicalString(DATA, keys.privateKey);
const keyId = importPublicKeys(keys.publicKey)[0]?.keyId;

describe("the canonical string", () => {
  it("has every field but signature, nulls omitted, sorted by code unit", () => {
    const fields = {
      b: "2",
      a: "1",
      B: "3",
      é: "4",
      signature: "s",
      none: null,
      gone: undefined,
      _: true,
      n: 10,
    };
    expect(canonicalString(fields)).toBe("B=3&_=true&a=1&b=2&n=10&é=4");
  });

  it("does not depend on the order of the fields, nor on the locale", () => {
    const names = ["a", "B", "ä", "Z", "z", "ı", "I", "i", "amount", "Amount", "a1", "a10", "a2"];
    fc.assert(
      fc.property(fc.shuffledSubarray(names, { minLength: names.length }), (order) => {
        const fields = Object.fromEntries(order.map((name): [string, CanonicalValue] => [name, "x"]));
        expect(canonicalString(fields)).toBe(
          "Amount=x&B=x&I=x&Z=x&a=x&a1=x&a10=x&a2=x&amount=x&i=x&z=x&ä=x&ı=x",
        );
      }),
    );
  });

  it("escapes nothing, and keeps empty values", () => {
    expect(canonicalString({ a: "1&b=2", c: "", d: "=&" })).toBe("a=1&b=2&c=&d==&");
    expect(canonicalString({ a: "1", b: "2", c: "", d: "=&" })).toBe("a=1&b=2&c=&d==&");
  });

  it("of nothing is empty", () => {
    expect(canonicalString({ signature: "s", a: null })).toBe("");
  });
});

describe("an RSA signature", () => {
  it("is accepted in its one spelling, over text and over its bytes", () => {
    expect(verifyRsaSignature(DATA, signature, key)).toBe(keyId);
    expect(verifyRsaSignature(Buffer.from(DATA), signature, keys.publicKey)).toBe(keyId);
    expect(signature).toMatch(/==$/);
  });

  const at = signature.length - 3;
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const spare = alphabet[(alphabet.indexOf(signature.charAt(at)) & 0x30) | 1] ?? "";
  const bytes = Buffer.from(signature, "base64");
  it.each([
    ["empty", ""],
    ["without padding", signature.replace(/=+$/, "")],
    ["with half of the padding", signature.slice(0, -1)],
    ["with more padding", `${signature}=`],
    ["with a padding group more", `${signature}====`],
    ["with spare bits set", `${signature.slice(0, at)}${spare}==`],
    ["with a space in front", ` ${signature}`],
    ["with a line end behind", `${signature}\n`],
    ["broken into lines", signature.replace(/.{64}/g, "$&\n")],
    ["in the url alphabet", bytes.toString("base64url")],
    ["in the url alphabet with padding", `${bytes.toString("base64url")}==`],
    ["in hexadecimal", bytes.toString("hex")],
    ["a byte shorter", bytes.subarray(1).toString("base64")],
    ["a byte longer", Buffer.concat([bytes, Buffer.alloc(1)]).toString("base64")],
    ["with a zero byte in front", Buffer.concat([Buffer.alloc(1), bytes]).toString("base64")],
    ["of zeros", Buffer.alloc(256).toString("base64")],
    ["of ones", Buffer.alloc(256, 0xff).toString("base64")],
    ["with NUL behind", `${signature}\0`],
    [
      "with a bit changed",
      Buffer.from(bytes.map((byte, i) => (i === 9 ? byte ^ 1 : byte))).toString("base64"),
    ],
    ["of SHA-1", sign("sha1", Buffer.from(DATA), keys.privateKey).toString("base64")],
    ["of SHA-512", sign("sha512", Buffer.from(DATA), keys.privateKey).toString("base64")],
    [
      "with PSS padding",
      sign("sha256", Buffer.from(DATA), { key: keys.privateKey, padding: 6 }).toString("base64"),
    ],
    ["over other data", signCanonicalString(`${DATA} `, keys.privateKey)],
  ])("is refused %s", (_, text) => {
    expect(text).not.toBe(signature);
    expect(verifyRsaSignature(DATA, text, key)).toBeNull();
  });

  it("with spare bits decodes to the very same bytes, and only the spelling gives it away", () => {
    expect(Buffer.from(`${signature.slice(0, at)}${spare}==`, "base64").equals(bytes)).toBe(true);
  });

  it("is refused over any other data", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (data) => {
        fc.pre(data !== DATA);
        expect(verifyRsaSignature(data, signature, key)).toBeNull();
      }),
    );
  });

  it("that is hostile is refused and never throws", () => {
    const hostile = fc.oneof(
      fc.anything({ withBigInt: true, withDate: true, withTypedArray: true, withNullPrototype: true }),
      fc.base64String({ maxLength: 400 }),
      fc.uint8Array({ minLength: 255, maxLength: 257 }).map((raw) => Buffer.from(raw).toString("base64")),
    );
    fc.assert(
      fc.property(hostile, hostile, (data, text) => {
        expect(verifyRsaSignature(data as string, text as string, key)).toBeNull();
      }),
      { numRuns: 500 },
    );
  });

  it("over something that is neither text nor bytes is refused, also when its base64 is in order", () => {
    for (const data of [undefined, null, 1, {}, { data: DATA }, [DATA], new Date(0), Symbol("s")]) {
      expect(verifyRsaSignature(data as unknown as string, signature, key)).toBeNull();
    }
  });

  it("does not make up for a key that cannot be used", () => {
    expect(thrownBy(() => verifyRsaSignature(DATA, "", keys.privateKey)).code).toBe("ERR_KEY_PRIVATE");
    expect(thrownBy(() => verifyRsaSignature(DATA, "", [])).code).toBe("ERR_OPTION_MISSING");
  });
});

describe("an HMAC signature", () => {
  const body = Buffer.from('{"event":"settlement.approved"}');
  const header = String(signConnectWebhook(body, SECRET).headers["x-connect-signature"]);
  const hex = header.slice("sha256=".length);
  const secretId = importSecrets(SECRET)[0]?.keyId;

  it("is accepted as sha256= and 64 lowercase hex digits", () => {
    expect(verifyHmacSignature(body, header, SECRET)).toBe(secretId);
    expect(verifyHmacSignature(new Uint8Array(body), header, [SECRET])).toBe(secretId);
  });

  it.each([
    ["missing", undefined],
    ["null", null],
    ["empty", ""],
    ["without its prefix", hex],
    ["with the prefix in upper case", `SHA256=${hex}`],
    ["with another prefix", `sha1=${hex}`],
    ["in upper case", `sha256=${hex.toUpperCase()}`],
    ["a digit short", header.slice(0, -1)],
    ["a digit long", `${header}0`],
    ["with a space in front", ` ${header}`],
    ["with a space behind the prefix", `sha256= ${hex}`],
    ["with a line end behind", `${header}\n`],
    ["given twice, joined by a comma", `${header}, ${header}`],
    ["given twice, joined without a space", `${header},${header}`],
    ["behind another one", `sha256=${"0".repeat(64)}, ${header}`],
    ["in base64", `sha256=${Buffer.from(hex, "hex").toString("base64")}`],
    ["with a version", `v1=${hex}`],
    ["of zeros", `sha256=${"0".repeat(64)}`],
    ["with a digit changed", `${header.slice(0, -1)}${header.endsWith("0") ? "1" : "0"}`],
    ["with a digit that is not ASCII", `${header.slice(0, -1)}０`],
  ])("is refused when it is %s", (_, text) => {
    expect(verifyHmacSignature(body, text, SECRET)).toBeNull();
  });

  it("is refused over any other bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        fc.pre(!body.equals(bytes));
        expect(verifyHmacSignature(bytes, header, SECRET)).toBeNull();
      }),
    );
  });

  it("that is hostile is refused and never throws", () => {
    const hostile = fc.oneof(
      fc.anything({ withBigInt: true, withDate: true, withTypedArray: true, withNullPrototype: true }),
      fc.stringMatching(/^sha256=[0-9a-f]{64}$/),
    );
    fc.assert(
      fc.property(hostile, hostile, (bytes, text) => {
        expect(verifyHmacSignature(bytes as Uint8Array, text as string, SECRET)).toBeNull();
      }),
      { numRuns: 500 },
    );
  });

  it("over something that is not bytes is refused, also when its header is in order", () => {
    for (const bytes of [
      undefined,
      null,
      1,
      {},
      JSON.parse(body.toString()),
      [1],
      new Date(0),
      Symbol("s"),
    ]) {
      expect(verifyHmacSignature(bytes as Uint8Array, header, SECRET)).toBeNull();
    }
  });

  it("is compared with every secret, also once one has matched", () => {
    const secrets = importSecrets([
      "first-secret-0123456789",
      SECRET,
      "third-secret-0123456789",
      `${SECRET}-4`,
    ]);
    const used: string[] = [];
    const counted = secrets.map(
      (secret): VerifyingSecret => ({
        ...secret,
        get key() {
          used.push(secret.keyId);
          return secret.key;
        },
      }),
    );
    expect(findSecret(body, header, counted)?.keyId).toBe(secretId);
    expect(used).toEqual(secrets.map((secret) => secret.keyId));
  });
});
