import type { IncomingHttpHeaders } from "node:http";
import { inspect } from "node:util";
import { isPayhooksError, PayhooksError, verifyConnectWebhook, verifyPaymentCallback } from "@payhooks/core";
import { importPublicKeys, importSecrets, verifyHmacSignature } from "@payhooks/core/signature";
import {
  anyCallbackFields,
  asDelivery,
  callbackFields,
  connectEvent,
  createTestKeys,
  forgedCallback,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SECRET, signatureOf, thrownBy } from "../receiving.ts";

const { publicKey, privateKey } = createTestKeys();
const key = importPublicKeys(publicKey)[0]?.key;
const sign = (fields: Record<string, string> = {}) =>
  signPaymentCallback(anyCallbackFields(fields), privateKey).rawBody;
const thousandFields = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`field${n}`, "1"]));
const body = (fields: object) => asDelivery(fields).rawBody;

describe("verifyPaymentCallback", () => {
  it("returns the event and the fingerprint of the key that matched", () => {
    const { event, keyId } = verifyPaymentCallback(sign({ referenceId: "o-1" }), {
      publicKey: [createTestKeys().publicKey, publicKey],
    });
    expect(event).toMatchObject({
      event: "DEPOSIT",
      status: "SUCCESS",
      referenceId: "o-1",
      arrivedBy: "callback",
    });
    expect(keyId).toBe(importPublicKeys(publicKey)[0]?.keyId);
  });

  it("does not look at the time", () => {
    for (const timestamp of ["2001-01-01T00:00:00Z", "2999-01-01T00:00:00.123456789Z"]) {
      expect(verifyPaymentCallback(sign({ timestamp }), { publicKey }).event.timestamp).toBe(timestamp);
    }
  });

  it("takes a Uint8Array as well as a Buffer", () => {
    expect(verifyPaymentCallback(new Uint8Array(sign()), { publicKey }).event.event).toBe("DEPOSIT");
  });

  it.each([
    ["nothing", new Uint8Array(0), "ERR_BODY_NOT_JSON"],
    ["text that is not JSON", Buffer.from("status=SUCCESS"), "ERR_BODY_NOT_JSON"],
    ["an array", Buffer.from("[]"), "ERR_BODY_NOT_JSON"],
    ["a byte order mark", Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), sign()]), "ERR_BODY_NOT_JSON"],
    ["a thousand members, although signed", sign(thousandFields), "ERR_BODY_NOT_JSON"],
    ["no signature", body(callbackFields()), "ERR_SIGNATURE_MISSING"],
    ["a signature of null", body({ ...callbackFields(), signature: null }), "ERR_SIGNATURE_MISSING"],
    ["an empty signature", body({ ...callbackFields(), signature: "" }), "ERR_SIGNATURE_MISSING"],
    ["a signature that is a number", body({ ...callbackFields(), signature: 5 }), "ERR_SIGNATURE_MALFORMED"],
    ["a signature in an array", body({ ...callbackFields(), signature: ["x"] }), "ERR_SIGNATURE_MALFORMED"],
    [
      "a signature that is not base64",
      body({ ...callbackFields(), signature: "x" }),
      "ERR_SIGNATURE_MALFORMED",
    ],
    ["a short signature", body({ ...callbackFields(), signature: "AAAA" }), "ERR_SIGNATURE_INVALID"],
    [
      "the signature of another body",
      body({ ...callbackFields(), signature: signatureOf({ rawBody: sign(), headers: {} }) }),
      "ERR_SIGNATURE_INVALID",
    ],
    [
      "another amount",
      forgedCallback(callbackFields(), { amount: "99.000000" }, privateKey).rawBody,
      "ERR_SIGNATURE_INVALID",
    ],
    [
      "a field more",
      forgedCallback(callbackFields(), { fee: "1" }, privateKey).rawBody,
      "ERR_SIGNATURE_INVALID",
    ],
    [
      "a field of null that was signed",
      forgedCallback(callbackFields(), { userId: null }, privateKey).rawBody,
      "ERR_SIGNATURE_INVALID",
    ],
    ["a missing field", sign({ status: "" }), "ERR_EVENT_MALFORMED"],
    ["two readings", sign({ referenceId: "a&s=1" }), "ERR_EVENT_AMBIGUOUS"],
    ["an unlisted event", sign({ event: "REVERSAL" }), "ERR_EVENT_UNRECOGNIZED"],
    ["an unlisted status", sign({ status: "CANCELLED" }), "ERR_EVENT_UNRECOGNIZED"],
    ["a status of every object", sign({ status: "__PROTO__" }), "ERR_EVENT_UNRECOGNIZED"],
  ])("throws for %s", (_, rawBody, code) => {
    const error = thrownBy(() => verifyPaymentCallback(rawBody, { publicKey: key }));
    expect(error.code).toBe(code);
    expect(error).toBeInstanceOf(PayhooksError);
    expect(error.fix).not.toBe("");
    expect(error.status).toBe(
      code.startsWith("ERR_SIGNATURE_") ? 401 : code === "ERR_BODY_NOT_JSON" ? 400 : undefined,
    );
    const signature = /"signature":"([^"]{20,})"/.exec(Buffer.from(rawBody).toString())?.[1];
    if (signature !== undefined) expect(inspect(error, { depth: 9 })).not.toContain(signature.slice(0, 60));
  });

  it.each([undefined, null, "{}", {}, callbackFields(), [1]])(
    "throws at once for a body that is %j",
    (rawBody) => {
      const error = thrownBy(() => verifyPaymentCallback(rawBody as unknown as Uint8Array, { publicKey }));
      expect(error.code).toBe("ERR_OPTION_INVALID");
      expect(error.fix).toContain("raw request body");
    },
  );

  it("throws for an unusable key, whatever the body is", () => {
    expect(thrownBy(() => verifyPaymentCallback(sign(), { publicKey: undefined })).code).toBe(
      "ERR_OPTION_MISSING",
    );
    expect(thrownBy(() => verifyPaymentCallback(sign(), { publicKey: privateKey })).code).toBe(
      "ERR_KEY_PRIVATE",
    );
  });

  it("throws only errors with a code, whatever the bytes are", () => {
    const fields = callbackFields();
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.json().map((json) => Buffer.from(json)),
      fc.dictionary(fc.string(), fc.jsonValue()).map((more) => body({ ...fields, ...more })),
      fc
        .tuple(fc.constantFrom(...Object.keys(fields), "signature"), fc.jsonValue())
        .map(([name, value]) => body({ ...JSON.parse(Buffer.from(sign()).toString()), [name]: value })),
    );
    fc.assert(
      fc.property(bytes, (rawBody) => {
        try {
          const { event } = verifyPaymentCallback(rawBody, { publicKey: key });
          expect(event.event).toBe("DEPOSIT");
        } catch (error) {
          expect(isPayhooksError(error) && error.code).toMatch(/^ERR_(BODY|SIGNATURE|EVENT)_/);
        }
      }),
      { numRuns: 300 },
    );
  });
});

describe("verifyConnectWebhook", () => {
  const signed = signConnectWebhook(connectEvent("connected_account.declined"), SECRET);
  const header = signed.headers["x-connect-signature"];

  it("returns the event and the fingerprint of the secret that matched", () => {
    const secret = ["another-secret-0123456789", SECRET];
    const { event, keyId } = verifyConnectWebhook(signed.rawBody, header, { secret });
    expect(event).toMatchObject({ event: "connected_account.declined", authenticated: true });
    expect(keyId).toBe(importSecrets(SECRET)[0]?.keyId);
  });

  it("takes a header as Node types it", () => {
    const headers: IncomingHttpHeaders = { ...signed.headers };
    const { event } = verifyConnectWebhook(signed.rawBody, headers["x-connect-signature"], {
      secret: SECRET,
    });
    expect(event.event).toBe("connected_account.declined");
    expect(verifyHmacSignature(signed.rawBody, headers["x-connect-signature"], SECRET)).not.toBeNull();
  });

  it("does not look at the time", () => {
    const old = signConnectWebhook(connectEvent(undefined, { occurred_at: "2001-01-01T00:00:00Z" }), SECRET);
    const { event } = verifyConnectWebhook(old.rawBody, old.headers["x-connect-signature"], {
      secret: SECRET,
    });
    expect(event.occurred_at).toBe("2001-01-01T00:00:00Z");
  });

  it.each([
    ["no header", undefined, "ERR_SIGNATURE_MISSING"],
    ["a header of null", null, "ERR_SIGNATURE_MISSING"],
    ["an empty header", "", "ERR_SIGNATURE_MISSING"],
    ["a header without its prefix", String(header).slice(7), "ERR_SIGNATURE_MALFORMED"],
    ["a header given twice", `${header}, ${header}`, "ERR_SIGNATURE_MALFORMED"],
    ["a list of one header", [String(header)], "ERR_SIGNATURE_MALFORMED"],
    ["a list of two headers", [String(header), String(header)], "ERR_SIGNATURE_MALFORMED"],
    ["an empty list", [], "ERR_SIGNATURE_MALFORMED"],
    ["another signature", `sha256=${"0".repeat(64)}`, "ERR_SIGNATURE_INVALID"],
  ])("throws for %s", (_, text, code) => {
    const error = thrownBy(() => verifyConnectWebhook(signed.rawBody, text, { secret: SECRET }));
    expect([error.code, error.status]).toEqual([code, 400]);
    expect(error.message).not.toContain(SECRET);
  });

  it("throws for a body that is not JSON, or was parsed", () => {
    const broken = signConnectWebhook(Buffer.from("{"), SECRET);
    const verify = () =>
      verifyConnectWebhook(broken.rawBody, broken.headers["x-connect-signature"], { secret: SECRET });
    expect(thrownBy(verify).code).toBe("ERR_BODY_NOT_JSON");
    const parsed = JSON.parse(Buffer.from(signed.rawBody).toString()) as Uint8Array;
    expect(thrownBy(() => verifyConnectWebhook(parsed, header, { secret: SECRET })).code).toBe(
      "ERR_OPTION_INVALID",
    );
    const secret = undefined;
    expect(thrownBy(() => verifyConnectWebhook(signed.rawBody, header, { secret })).code).toBe(
      "ERR_OPTION_MISSING",
    );
  });

  it("throws for an option that it does not know", () => {
    const options = { secret: SECRET, toleranceMs: 1_000 };
    const error = thrownBy(() => verifyConnectWebhook(signed.rawBody, header, options));
    expect(error).toMatchObject({ code: "ERR_OPTION_INVALID" });
    expect(error.message).toContain("toleranceMs");
  });
});
