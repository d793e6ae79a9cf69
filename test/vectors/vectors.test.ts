import {
  type ErrorCode,
  isPayhooksError,
  type PaymentEvent,
  serviceNames,
  verifyConnectWebhook,
  verifyPaymentCallback,
} from "@payhooks/core";
import { canonicalString, verifyHmacSignature, verifyRsaSignature } from "@payhooks/core/signature";
import { describe, expect, it } from "vitest";
import {
  connect,
  fieldsOf,
  type PaymentVector,
  payments,
  publicKey,
  readKey,
  refusedKeys,
  signatureOf,
} from "./vectors.ts";

/** The code that a verification throws, or "none" when it returns; any other error ends the test. */
function codeOf(verify: () => unknown): ErrorCode | "none" {
  try {
    verify();
    return "none";
  } catch (error) {
    if (isPayhooksError(error)) return error.code;
    throw error;
  }
}

const BAD_SIGNATURE = /^ERR_SIGNATURE_(MISSING|MALFORMED|INVALID)$/;
const NOT_AN_EVENT = /^ERR_(BODY_NOT_JSON|EVENT_(MALFORMED|AMBIGUOUS|UNRECOGNIZED))$/;

const names = (vectors: readonly { readonly name: string }[]): string[] => vectors.map(({ name }) => name);
const paymentNamed = (name: string): PaymentVector => {
  const vector = payments.find((one) => one.name === name);
  if (vector === undefined) throw new Error(`no payment vector is named ${name}`);
  return vector;
};

describe("the vectors", () => {
  it("have a payment callback of every event and status that runs", () => {
    const run = payments
      .filter((one) => one.run && one.spells === undefined)
      .map(({ body }) => fieldsOf(body));
    const seen = new Set(run.map(({ event, status }) => `${event} ${status}`));
    expect([...seen].sort()).toEqual([
      "DEPOSIT FAILED",
      "DEPOSIT PENDING",
      "DEPOSIT SUCCESS",
      "WITHDRAWAL FAILED",
      "WITHDRAWAL PENDING",
      "WITHDRAWAL SUCCESS",
    ]);
  });

  it("have a connected-account webhook of every event that runs", () => {
    const run = connect.filter((vector) => vector.run);
    const seen = new Set(
      run.map(({ bodyBase64 }) => fieldsOf(Buffer.from(bodyBase64, "base64").toString()).event),
    );
    expect([...seen].sort()).toEqual([
      "connected_account.approved",
      "connected_account.declined",
      "settlement.approved",
      "settlement.declined",
    ]);
  });

  it("have names of their own", () => {
    for (const all of [names(payments), names(connect), refusedKeys.map(({ key }) => key)]) {
      expect(new Set(all).size).toBe(all.length);
      expect(all.length).toBeGreaterThan(5);
    }
  });

  const pairs = names(payments)
    .filter((name) => name.startsWith("resplit-") && name.endsWith("-forged"))
    .map((forged) => [forged, forged.replace(/(-name)?-forged$/, "-genuine")] as const);

  it.each(pairs)("%s is another body than %s under the same signature", (forged, genuine) => {
    expect(paymentNamed(forged).canonical).toBe(paymentNamed(genuine).canonical);
    expect(signatureOf(paymentNamed(forged).body)).toBe(signatureOf(paymentNamed(genuine).body));
    expect(fieldsOf(paymentNamed(forged).body)).not.toEqual(fieldsOf(paymentNamed(genuine).body));
  });
});

describe("payment callbacks", () => {
  const readable = payments.filter((vector) => vector.readable !== false);
  it.each(readable)("$name: the canonical string is the one written by hand", ({ body, canonical }) => {
    // As the bytes that are signed: only these tell what became of half of a surrogate pair.
    expect(Buffer.from(canonicalString(fieldsOf(body)))).toEqual(Buffer.from(canonical));
  });

  it.each(payments)("$name: the bare signature check says valid: $valid", (vector) => {
    const { body, canonical } = vector;
    const key = publicKey(vector.publicKey);
    const keyId = verifyRsaSignature(canonical, signatureOf(body), key);
    expect(keyId).toEqual(vector.valid ? expect.any(String) : null);
    expect(verifyRsaSignature(Buffer.from(canonical), signatureOf(body), [key])).toBe(keyId);
  });

  it.each(payments.filter(({ run }) => run))("$name: an event comes out", (vector) => {
    const { body, canonical, spells, leftOut = [] } = vector;
    const key = publicKey(vector.publicKey);
    const verified = verifyPaymentCallback(Buffer.from(body), { publicKey: key });
    expect(verified.keyId).toBe(verifyRsaSignature(canonical, signatureOf(body), key));
    const fields = fieldsOf(spells === undefined ? body : paymentNamed(spells).body);
    const { event, status, referenceId, payTxnId, amount, callbackUrl, timestamp } = fields;
    const required = { event, status, referenceId, payTxnId, amount, callbackUrl, timestamp };
    expect(verified.event).toMatchObject(required);
    const { merchantId, message, providerTxId, userId } = fields;
    const optional = Object.entries({ merchantId, message, providerTxId, userId });
    for (const [name, value] of optional) {
      const expected = leftOut.includes(name) ? undefined : (value ?? undefined);
      expect((verified.event as unknown as Record<string, unknown>)[name], name).toBe(expected);
    }
  });

  const spelt = payments.filter((vector) => vector.spells !== undefined);
  it.each(spelt)("$name: the event is that of $spells, whose string it spells", (vector) => {
    const { body, spells = "" } = vector;
    const other = paymentNamed(spells);
    expect(vector.canonical).toBe(other.canonical);
    expect(signatureOf(body)).toBe(signatureOf(other.body));
    expect(body).not.toBe(other.body);
    const eventIn = (text: string): PaymentEvent =>
      verifyPaymentCallback(Buffer.from(text), { publicKey: publicKey(vector.publicKey) }).event;
    expect(eventIn(body)).toEqual(eventIn(other.body));
  });

  it("bodies of one signed string run alike or not at all", () => {
    const outcomes = new Map<string, Set<string>>();
    const certain = payments.filter((vector) => vector.valid && vector.readable !== false);
    for (const { body, canonical, publicKey: name } of certain) {
      const verify = (): PaymentEvent =>
        verifyPaymentCallback(Buffer.from(body), { publicKey: publicKey(name) }).event;
      const code = codeOf(verify);
      const outcome = code === "none" ? verify() : code;
      outcomes.set(canonical, (outcomes.get(canonical) ?? new Set()).add(JSON.stringify(outcome)));
    }
    for (const [canonical, found] of outcomes) expect([...found], canonical).toHaveLength(1);
    expect(outcomes.size).toBeLessThan(certain.length - 10);
  });

  it.each(payments.filter(({ run }) => !run))("$name: no event comes out ($note)", (vector) => {
    const key = publicKey(vector.publicKey);
    const code = codeOf(() => verifyPaymentCallback(Buffer.from(vector.body), { publicKey: key }));
    if (vector.readable === false) {
      // No canonical string is prescribed here, so that either refusal is right.
      const either = new RegExp(`${BAD_SIGNATURE.source}|${NOT_AN_EVENT.source}`);
      expect(code).toMatch(either);
    } else {
      expect(code).toMatch(vector.valid ? NOT_AN_EVENT : BAD_SIGNATURE);
    }
  });

  it.each([
    ["callback-url-tail", "callbackUrl", "d", "2"],
    ["message-with-ampersand", "message", "n", "1"],
  ])(
    "%s: the end of the %s may be a field %s, which is handed on only where it is declared",
    (name, host, field, value) => {
      const whole = fieldsOf(paymentNamed(name).body)[host];
      const cut = `${whole}`.slice(0, -`&${field}=${value}`.length);
      for (const vector of payments.filter(({ canonical }) => canonical === paymentNamed(name).canonical)) {
        const eventWith = (extra: Record<string, "always">): Readonly<Record<string, unknown>> => ({
          ...verifyPaymentCallback(Buffer.from(vector.body), {
            publicKey: publicKey("primary"),
            names: serviceNames({ callback: { extra } }),
          }).event,
        });
        const plain = eventWith({});
        expect(plain).not.toHaveProperty(field);
        expect(plain).toMatchObject({ extra: {}, [host]: whole });
        expect(eventWith({ [field]: "always" })).toMatchObject({ extra: { [field]: value }, [host]: cut });
      }
    },
  );

  it("numbers come out with the text they were written with", () => {
    const { body } = paymentNamed("number-beyond-double");
    const names = serviceNames({ callback: { extra: { fee: "sometimes" } } });
    const options = { publicKey: publicKey("primary"), names };
    const { event } = verifyPaymentCallback(Buffer.from(body), options);
    expect(event.extra).toEqual({ fee: "12345678901234567890" });
  });

  it("during a rotation either key verifies, and the result says which", () => {
    const keys = [publicKey("primary"), publicKey("rotated")];
    const idOf = (name: string, key: string | string[]): string =>
      verifyPaymentCallback(Buffer.from(paymentNamed(name).body), { publicKey: key }).keyId;
    const [primary, rotated] = [idOf("short", keys), idOf("rotated-key", keys)];
    expect(primary).not.toBe(rotated);
    expect(primary).toBe(idOf("short", publicKey("primary")));
    expect(rotated).toBe(idOf("rotated-key", publicKey("rotated")));
  });

  it("the PEM form of PKCS#1 is the same key", () => {
    const { canonical, body } = paymentNamed("short");
    const keyId = verifyRsaSignature(canonical, signatureOf(body), publicKey("primary"));
    expect(keyId).toEqual(expect.any(String));
    expect(verifyRsaSignature(canonical, signatureOf(body), readKey("primary.public-pkcs1.pem"))).toBe(keyId);
  });
});

describe("keys that must be refused", () => {
  const codes: Readonly<Record<string, ErrorCode>> = {
    "rsa1024.public.pem": "ERR_KEY_TOO_SHORT",
    "rsa2047.public.pem": "ERR_KEY_TOO_SHORT",
    "rsa2048-e3.public.pem": "ERR_KEY_EXPONENT",
    "rsa2048-e1.public.pem": "ERR_KEY_EXPONENT",
    "rsa2048-e65536.public.pem": "ERR_KEY_EXPONENT",
    "rsa-pss.public.pem": "ERR_KEY_NOT_RSA",
    "ec-p256.public.pem": "ERR_KEY_NOT_RSA",
    "primary.test-private.pem": "ERR_KEY_PRIVATE",
    "primary.test-private-pkcs1.pem": "ERR_KEY_PRIVATE",
  };

  it.each(refusedKeys)("$key ($note)", ({ key: file, body, canonical }) => {
    const key = readKey(file);
    const expected = codes[file];
    expect(expected).toBeDefined();
    expect(codeOf(() => verifyRsaSignature(canonical, signatureOf(body), key))).toBe(expected);
    const beside = [publicKey("primary"), key];
    expect(codeOf(() => verifyRsaSignature(canonical, signatureOf(body), beside))).toBe(expected);
    const verify = () => verifyPaymentCallback(Buffer.from(body), { publicKey: key });
    expect(codeOf(verify)).toBe(expected);
  });
});

describe("connected-account webhooks", () => {
  it.each(connect)(
    "$name: the bare signature check says valid: $valid",
    ({ bodyBase64, header, secret, valid }) => {
      const body = Buffer.from(bodyBase64, "base64");
      const keyId = verifyHmacSignature(body, header, secret);
      expect(keyId).toEqual(valid ? expect.any(String) : null);
      expect(verifyHmacSignature(body, header, ["some-other-secret-0123456789", secret])).toBe(keyId);
    },
  );

  it.each(connect.filter(({ run }) => run))("$name: an event comes out", ({ bodyBase64, header, secret }) => {
    const body = Buffer.from(bodyBase64, "base64");
    const verified = verifyConnectWebhook(body, header, { secret });
    expect(verified.keyId).toBe(verifyHmacSignature(body, header, secret));
    const { event, idempotency_key, occurred_at } = JSON.parse(body.toString());
    expect(verified.event).toMatchObject({ event, idempotency_key, occurred_at, authenticated: true });
    expect(verified.event.data.id).toBe(JSON.parse(body.toString()).data.id);
  });

  it.each(connect.filter(({ run }) => !run))("$name: no event comes out ($note)", (vector) => {
    const { bodyBase64, header, secret, valid } = vector;
    const verify = () => verifyConnectWebhook(Buffer.from(bodyBase64, "base64"), header, { secret });
    expect(codeOf(verify)).toMatch(valid ? NOT_AN_EVENT : BAD_SIGNATURE);
  });
});
