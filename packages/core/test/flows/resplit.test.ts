import { verify as verifyRsa } from "node:crypto";
import { verifyPaymentCallback } from "@payhooks/core";
import {
  anyCallbackFields,
  asDelivery,
  type CallbackFields,
  callbackFields,
  createTestKeys,
  resplitPair,
  type SignedDelivery,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { setUp, signatureOf, thrownBy } from "../receiving.ts";

const { publicKey, privateKey } = createTestKeys();

/** Verification as anyone would write it after reading the specification. */
function naive({ rawBody }: SignedDelivery): Record<string, string> | null {
  const { signature, ...fields } = JSON.parse(Buffer.from(rawBody).toString("utf8")) as Record<
    string,
    string
  >;
  const canonical = Object.keys(fields)
    .filter((name) => fields[name] !== null)
    .sort()
    .map((name) => `${name}=${fields[name]}`)
    .join("&");
  const genuine = verifyRsa(
    "sha256",
    Buffer.from(canonical),
    publicKey,
    Buffer.from(signature ?? "", "base64"),
  );
  return genuine ? fields : null;
}

/** A genuine callback of the service, and another body made of it without a key. */
interface Attack {
  readonly genuine: SignedDelivery;
  readonly forged: SignedDelivery;
}

const T = `${new Date().toISOString().slice(0, -1)}123456Z`;
const victim = { referenceId: "VICTIM-7", payTxnId: "tx-victim", amount: "99999.000000" };

function attack(genuineFields: CallbackFields, forgedFields: CallbackFields): Attack {
  const genuine = signPaymentCallback(genuineFields, privateKey);
  return { genuine, forged: asDelivery({ ...forgedFields, signature: signatureOf(genuine) }) };
}

/** The callbackUrl, which a customer may have a say in, carries a whole DEPOSIT. */
function throughCallbackUrl(event: string): Attack {
  const callbackUrl = "https://m.example/cb?x=1";
  const fields = anyCallbackFields({
    event,
    timestamp: T,
    status: "FAILED",
    merchantId: "m",
    providerTxId: null,
  });
  const { message, payTxnId, referenceId, status, userId } = fields;
  const { amount } = fields;
  const tail =
    `&event=DEPOSIT&merchantId=m&message=ok&payTxnId=${victim.payTxnId}&referenceId=${victim.referenceId}` +
    `&status=SUCCESS&timestamp=${T}&userId=u`;
  const swallowed =
    `u&event=${event}&merchantId=m&message=${message}&payTxnId=${payTxnId}&referenceId=${referenceId}` +
    `&status=${status}&timestamp=${T}&userId=${userId}`;
  const { payTxnId: forgedId, referenceId: forgedReference } = victim;
  return attack(
    { ...fields, callbackUrl: callbackUrl + tail },
    {
      ...{ amount, callbackUrl, event: "DEPOSIT", merchantId: "m", message: "ok", payTxnId: forgedId },
      ...{ referenceId: forgedReference, status: "SUCCESS", timestamp: T, userId: swallowed },
    },
  );
}

/** An undocumented free text in front of all fields carries another amount. */
function throughUndocumented(): Attack {
  const fields = callbackFields({ timestamp: T });
  const { amount, callbackUrl } = fields;
  const start = "https://m.example/cb?x=";
  return attack(
    { ...fields, accountName: `Abebe&amount=${victim.amount}&callbackUrl=${start}` },
    {
      ...fields,
      accountName: "Abebe",
      amount: victim.amount,
      callbackUrl: `${start}&amount=${amount}&callbackUrl=${callbackUrl}`,
    },
  );
}

/** A deposit's message begins another event; a URL with the true one in it is made of what stands before. */
function throughMessage(): Attack {
  const fields = anyCallbackFields({ event: "REVERSAL", timestamp: T, merchantId: null });
  return attack(
    { ...fields, message: "ok&event=DEPOSIT" },
    {
      ...fields,
      event: "DEPOSIT",
      message: null,
      callbackUrl: `${fields.callbackUrl}&event=REVERSAL&message=ok`,
    },
  );
}

interface Case extends Attack {
  readonly what: string;
  /** A body whose event is in lower case is no reading: it is not offered. */
  readonly malformed: readonly ("genuine" | "forged")[];
}

const CASES: readonly Case[] = [
  {
    what: "(a) a FAILED deposit with a customer's referenceId",
    ...resplitPair("V-7", privateKey),
    malformed: [],
  },
  { what: "(b) a REVERSAL with a callbackUrl", ...throughCallbackUrl("REVERSAL"), malformed: [] },
  {
    what: "(c) a REVERSAL with a referenceId",
    ...resplitPair("V-7", privateKey, { event: "REVERSAL" }),
    malformed: [],
  },
  { what: "(d) a reversal with a callbackUrl", ...throughCallbackUrl("reversal"), malformed: ["genuine"] },
  {
    what: "(e) a reversal with a referenceId",
    ...resplitPair("V-7", privateKey, { event: "reversal" }),
    malformed: ["genuine", "forged"],
  },
  { what: "(f) an undocumented field with another amount", ...throughUndocumented(), malformed: [] },
  { what: "(g) a REVERSAL with a message that begins a deposit", ...throughMessage(), malformed: [] },
];

describe.each(CASES)("$what", ({ genuine, forged, malformed }) => {
  it("is accepted by a naive receiver, as another event under the same signature", () => {
    expect(signatureOf(forged)).toBe(signatureOf(genuine));
    expect(naive(genuine)).not.toBeNull();
    expect(naive(forged)).not.toBeNull();
    expect(naive(forged)).not.toEqual(naive(genuine));
  });

  it("is refused by verifyPaymentCallback, and so is the genuine body", () => {
    for (const { rawBody } of [genuine, forged]) {
      expect(thrownBy(() => verifyPaymentCallback(rawBody, { publicKey })).code).toMatch(
        /^ERR_EVENT_(AMBIGUOUS|MALFORMED)$/,
      );
    }
    expect(thrownBy(() => verifyPaymentCallback(forged.rawBody, { publicKey })).code).not.toBe(
      "ERR_SIGNATURE_INVALID",
    );
  });

  it.each([
    ["genuine first", [genuine, forged]],
    ["forged first", [forged, genuine]],
    ["forged only", [forged]],
    ["forged many times", [forged, forged, forged]],
  ])("runs no handler of a receiver and is held, %s", async (_, sent) => {
    const t = await setUp({ payments: { publicKey } });
    for (const delivery of sent) expect((await t.post("payments", delivery)).status).toBe(200);
    await t.clock.advance("2h");
    await t.receiver.work();
    expect(t.ran).toEqual([]);
    // One canonical string: one entry, whichever body came.
    const entries = await t.held();
    expect(entries.map(({ reason }) => reason)).toEqual([malformed.length === 2 ? "malformed" : "ambiguous"]);
    for (const entry of entries) expect(entry).toMatchObject({ event: "", status: "" });
  });
});
