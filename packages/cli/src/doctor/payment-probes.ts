import { randomUUID } from "node:crypto";
import { canonicalString } from "@payhooks/core/signature";
import {
  anyCallbackFields,
  asDelivery,
  type CallbackFields,
  createTestKeys,
  forgedCallback,
  signCanonicalString,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { escaped } from "../verify/json-text.ts";
import {
  idIn,
  JSON_HEADERS,
  LARGE_BYTES,
  type Probe,
  type ProbeIds,
  type ProbeKind,
  STALE_MS,
} from "./probes.ts";

/** The values that the signed fields must have. */
export interface PaymentSubject {
  readonly callbackUrl: string;
  /** Null if the merchantId is made up. */
  readonly merchantId: string | null;
  readonly ids: ProbeIds;
}

/**
 * Deposits that are PENDING or FAILED, with references that begin with `doctor-`. Even if an endpoint takes them for
 * real, no merchant hands out goods for them.
 */
export function paymentProbes(subject: PaymentSubject, privateKey: string): Probe[] {
  const { callbackUrl, merchantId, ids } = subject;
  const fields = (changes: CallbackFields = {}, at = Date.now()): CallbackFields =>
    anyCallbackFields(
      {
        referenceId: `doctor-${randomUUID()}`,
        payTxnId: ids.next(),
        callbackUrl,
        amount: "1.000000",
        status: "PENDING",
        message: "Sent by payhooks doctor",
        ...(merchantId !== null && { merchantId }),
        ...changes,
      },
      at,
    );
  const probe = (name: string, kind: ProbeKind, rawBody: Uint8Array, headers = JSON_HEADERS): Probe => ({
    name,
    kind,
    id: idIn(rawBody),
    outgoing: { headers, body: rawBody },
  });
  const signed = (given: CallbackFields): Uint8Array => signPaymentCallback(given, privateKey).rawBody;
  /** The signed body, written in a different way. */
  const written = (given: CallbackFields, write: (body: Record<string, unknown>) => string): Uint8Array =>
    Buffer.from(write(JSON.parse(Buffer.from(signed(given)).toString("utf8"))), "utf8");
  const first = fields();
  const firstBody = signed(first);
  const unsigned = { ...fields() };
  const stranger = createTestKeys();
  return [
    probe("genuine callback", "baseline", firstBody),
    probe(
      "indented",
      "spelling",
      written(fields(), (body) => JSON.stringify(body, null, 2)),
    ),
    probe(
      "names in another order",
      "spelling",
      written(fields(), (body) => JSON.stringify(Object.fromEntries(Object.entries(body).reverse()))),
    ),
    probe(
      "line end after the body",
      "spelling",
      written(fields(), (body) => `${JSON.stringify(body)}\n`),
    ),
    probe("letters beyond ASCII", "spelling", signed(fields({ message: "ክፍያ ተጠናቋል ✓ – 10 €" }))),
    probe("\\u escapes", "spelling", written(fields({ message: "ክፍያ <ok> / done" }), withEscapes)),
    probe("a field that is null", "spelling", signed(fields({ providerTxId: null }))),
    probe("a number with a fraction of zeros", "number", withNumber(fields(), "10.0", privateKey)),
    probe("a number with an exponent", "number", withNumber(fields(), "1e2", privateKey)),
    probe("a number beyond 2^53", "number", withNumber(fields(), "12345678901234567890", privateKey)),
    probe("FAILED after PENDING", "progress", signed({ ...first, status: "FAILED", message: "Declined" })),
    probe("the same bytes again", "duplicate", firstBody),
    probe("the same bytes a third time", "duplicate", firstBody),
    probe(
      "amount changed after signing",
      "forged",
      forgedCallback(fields(), { amount: "9999.000000" }, privateKey).rawBody,
    ),
    probe(
      "status changed after signing",
      "forged",
      forgedCallback(fields(), { status: "FAILED" }, privateKey).rawBody,
    ),
    probe("signed with another key", "forged", signPaymentCallback(fields(), stranger.privateKey).rawBody),
    probe("no signature", "forged", asDelivery(unsigned).rawBody),
    probe(
      "a signature that is no base64",
      "forged",
      asDelivery({ ...unsigned, signature: "not base64!" }).rawBody,
    ),
    probe(
      "a signature that is an object",
      "forged",
      asDelivery({ ...unsigned, signature: { $ne: null } }).rawBody,
    ),
    probe("not JSON", "not-json", Buffer.from("{ not json")),
    probe("an empty body", "not-json", Buffer.alloc(0)),
    probe("signed 30 days ago", "stale", signed(fields({}, Date.now() - STALE_MS))),
    probe("a body of 1 MiB", "large", asDelivery({ ...unsigned, message: "x".repeat(LARGE_BYTES) }).rawBody),
    {
      name: "GET",
      kind: "wrong-method",
      id: null,
      outgoing: { method: "GET", headers: {}, body: Buffer.alloc(0) },
    },
  ];
}

/**
 * Adds an undocumented number. The signature covers its text, so a receiver must not read it as a float. Its name is signed between
 * two fields that every callback has, so no value beside it becomes uncertain.
 */
function withNumber(fields: CallbackFields, number: string, privateKey: string): Uint8Array {
  const signature = signCanonicalString(canonicalString({ ...fields, tax: number }), privateKey);
  const text = JSON.stringify({ ...fields, signature });
  return Buffer.from(`${text.slice(0, -1)},"tax":${number}}`, "utf8");
}

function withEscapes(body: Record<string, unknown>): string {
  return escaped(JSON.stringify(body), /[\u007f-\uffff<>]/g).replaceAll("/", "\\/");
}
