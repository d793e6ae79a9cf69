/** Signatures that do not fit, and the ways in which a signature is given or missing. */
import type { SignedDelivery } from "@payhooks/core/testing";
import { request } from "../../e2e/wire.ts";
import { type Case, RECEIVED, refusedAs } from "../case.ts";
import { type Deliveries, SIGNATURE_HEADER } from "../deliveries.ts";
import { CONNECT_PATH, PAYMENT_PATHS } from "../merchant.ts";
import { AS_JSON, bytesOf, one, without } from "../sending.ts";

const PAY = PAYMENT_PATHS.plain;

export function signatureCases(deliveries: Deliveries): readonly Case[] {
  const repeated = deliveries.webhook();
  const spaced = deliveries.webhook();
  const strange = deliveries.payment();
  return [
    refusedAs(
      "one bit of the body flipped",
      400,
      "ERR_SIGNATURE_INVALID",
      [0, 20, 100, -1].map((at) => bytesOf(CONNECT_PATH, withBodyFlipped(deliveries.webhook(), at))),
    ),
    refusedAs(
      "one digit of the header changed",
      400,
      "ERR_SIGNATURE_INVALID",
      [7, 40, 70].map((at) => bytesOf(CONNECT_PATH, withHeaderChanged(deliveries.webhook(), at))),
    ),
    refusedAs(
      "one bit of a payment's signature flipped",
      401,
      "ERR_SIGNATURE_INVALID",
      [0, 100].map((at) => bytesOf(PAY, withSignatureFlipped(deliveries.payment(), at))),
    ),
    refusedAs("a payment's amount changed after signing", 401, "ERR_SIGNATURE_INVALID", [
      bytesOf(PAY, deliveries.forgedPayment({ amount: "9999.000000" })),
    ]),
    refusedAs("signature header missing, or empty", 400, "ERR_SIGNATURE_MISSING", [
      request("POST", CONNECT_PATH, AS_JSON, deliveries.webhook().rawBody),
      request("POST", CONNECT_PATH, [...AS_JSON, ["X-Connect-Signature", ""]], deliveries.webhook().rawBody),
      request(
        "POST",
        CONNECT_PATH,
        [...AS_JSON, ["X-Connect-Signature", "  "]],
        deliveries.webhook().rawBody,
      ),
    ]),
    refusedAs("signature header repeated", 400, "ERR_SIGNATURE_MALFORMED", [
      bytesOf(CONNECT_PATH, repeated, [["X-Connect-Signature", repeated.headers[SIGNATURE_HEADER] ?? ""]]),
      bytesOf(CONNECT_PATH, repeated, [["X-Connect-Signature", `sha256=${"0".repeat(64)}`]]),
    ]),
    {
      name: "signature header in another case, with space around",
      send: one(
        request(
          "POST",
          CONNECT_PATH,
          [
            ...without(SIGNATURE_HEADER, spaced),
            ["X-CONNECT-Signature", ` \t${spaced.headers[SIGNATURE_HEADER]} `],
          ],
          spaced.rawBody,
        ),
      ),
      answers: [RECEIVED],
      effects: deliveries.ranOnce(spaced),
    },
    refusedAs("payment without a signature", 401, "ERR_SIGNATURE_MISSING", [
      request("POST", PAY, AS_JSON, Buffer.from(JSON.stringify(deliveries.fields()))),
    ]),
    {
      name: "a header with bytes beyond ASCII, and one without a value",
      send: one(
        bytesOf(PAY, strange, [
          ["X-Name", "caf\u00e9"],
          ["X-Empty", ""],
        ]),
      ),
      answers: [RECEIVED],
      effects: deliveries.ranOnce(strange),
    },
  ];
}

/** A position below zero counts from the end. */
function flipped(bytes: Uint8Array, at: number): Buffer {
  const copy = Buffer.from(bytes);
  const position = at < 0 ? copy.byteLength + at : at;
  copy[position] = (copy[position] ?? 0) ^ 1;
  return copy;
}

function withBodyFlipped(delivery: SignedDelivery, at: number): SignedDelivery {
  return { ...delivery, rawBody: flipped(delivery.rawBody, at) };
}

function withHeaderChanged(delivery: SignedDelivery, at: number): SignedDelivery {
  const signature = delivery.headers[SIGNATURE_HEADER] ?? "";
  const digit = signature[at] === "0" ? "1" : "0";
  const changed = signature.slice(0, at) + digit + signature.slice(at + 1);
  return { ...delivery, headers: { ...delivery.headers, [SIGNATURE_HEADER]: changed } };
}

/** The signature of a payment is a field of its body. */
function withSignatureFlipped(delivery: SignedDelivery, at: number): SignedDelivery {
  const { signature, ...fields } = JSON.parse(delivery.rawBody.toString()) as Record<string, string>;
  const changed = flipped(Buffer.from(signature ?? "", "base64"), at).toString("base64");
  return { ...delivery, rawBody: Buffer.from(JSON.stringify({ ...fields, signature: changed })) };
}
