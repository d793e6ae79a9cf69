/** Signatures that do not fit, and the ways in which a signature is given or missing. */
import type { SignedDelivery } from "@payhooks/core/testing";
import { request } from "../../e2e/wire.ts";
import { CONNECT_PATH, PAYMENT_PATHS } from "../application.ts";
import { type Case, RECEIVED, refused, refusedAs } from "../case.ts";
import type { Deliveries } from "../deliveries.ts";
import { AS_JSON, bytesOf, inTurn, one, without } from "../sending.ts";

const NO_SIGNATURE = `sha256=${"0".repeat(64)}`;
const PAY = PAYMENT_PATHS.plain;

export function signatureCases(deliveries: Deliveries): readonly Case[] {
  const header = deliveries.signatureHeader;
  const repeated = deliveries.webhook();
  const elsewhere = deliveries.webhook();
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
      [7, 40, 70].map((at) => bytesOf(CONNECT_PATH, withHeaderChanged(deliveries.webhook(), header, at))),
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
      request("POST", CONNECT_PATH, [...AS_JSON, [header, ""]], deliveries.webhook().rawBody),
      request("POST", CONNECT_PATH, [...AS_JSON, [header, "  "]], deliveries.webhook().rawBody),
    ]),
    {
      name: "the signature in a header of another name",
      send: inTurn([
        request(
          "POST",
          CONNECT_PATH,
          [...AS_JSON, ["X-Other-Signature", elsewhere.headers[header] ?? ""]],
          elsewhere.rawBody,
        ),
        request("POST", CONNECT_PATH, [...AS_JSON, ["X-Other-Signature", NO_SIGNATURE]], elsewhere.rawBody),
      ]),
      answers: [refused(400, "ERR_SIGNATURE_MISSING"), refused(400, "ERR_SIGNATURE_MISSING")],
      effects: [
        "refused 400 ERR_SIGNATURE_MISSING: it is in x-other-signature",
        "refused 400 ERR_SIGNATURE_MISSING",
      ],
    },
    refusedAs("signature header repeated", 400, "ERR_SIGNATURE_MALFORMED", [
      bytesOf(CONNECT_PATH, repeated, [[header, repeated.headers[header] ?? ""]]),
      bytesOf(CONNECT_PATH, repeated, [[header, NO_SIGNATURE]]),
    ]),
    {
      name: "signature header in another case, with space around",
      send: one(
        request(
          "POST",
          CONNECT_PATH,
          [...without(header, spaced), [header.toUpperCase(), ` \t${spaced.headers[header]} `]],
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

function withHeaderChanged(delivery: SignedDelivery, header: string, at: number): SignedDelivery {
  const signature = delivery.headers[header] ?? "";
  const digit = signature[at] === "0" ? "1" : "0";
  const changed = signature.slice(0, at) + digit + signature.slice(at + 1);
  return { ...delivery, headers: { ...delivery.headers, [header]: changed } };
}

/** The signature of a payment is a field of its body. */
function withSignatureFlipped(delivery: SignedDelivery, at: number): SignedDelivery {
  const { signature, ...fields } = JSON.parse(delivery.rawBody.toString()) as Record<string, string>;
  const changed = flipped(Buffer.from(signature ?? "", "base64"), at).toString("base64");
  return { ...delivery, rawBody: Buffer.from(JSON.stringify({ ...fields, signature: changed })) };
}
