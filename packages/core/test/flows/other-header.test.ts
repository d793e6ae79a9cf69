import { createHmac } from "node:crypto";
import { type ConnectOptions, createReceiver, type Notice } from "@payhooks/core";
import { anyConnectEvent } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { silent } from "../../../../test/support/silent.ts";
import { SECRET } from "../receiving.ts";

const rawBody = Buffer.from(JSON.stringify(anyConnectEvent("settlement.approved")));
const genuine = `sha256=${createHmac("sha256", SECRET).update(rawBody).digest("hex")}`;
const other = `sha256=${"0".repeat(64)}`;

/** Delivers a webhook with these headers. Answers with how its refusal is told. */
async function refusalOf(
  headers: Readonly<Record<string, string>>,
  connect: ConnectOptions = { secret: SECRET },
): Promise<Extract<Notice, { type: "refused" }> | undefined> {
  const receiver = createReceiver({ connect, logger: silent });
  receiver.onSettlementApproved(async () => {});
  const notices: Notice[] = [];
  receiver.observe((notice) => void notices.push(notice));
  const all = new Map(Object.entries({ "content-type": "application/json", ...headers }));
  const reply = await receiver.connect.receive({ method: "POST", url: "/", headers: all, rawBody });
  expect(reply.status).toBe(400);
  await receiver.close();
  return notices.find((notice) => notice.type === "refused");
}

describe("a webhook whose signature is in another header", () => {
  it("is refused, and the first refusal names the header and the option", async () => {
    const refusal = await refusalOf({ "x-zebu-signature": genuine });
    expect(refusal?.code).toBe("ERR_SIGNATURE_MISSING");
    expect(refusal?.why).toContain("the signature in x-zebu-signature is genuine");
    expect(refusal?.fix).toContain('connect: { signatureHeader: "x-zebu-signature" }');
  });

  it("is found with the keys of its merchant", async () => {
    const secret = async () => ({ tenant: "shop-7", keys: SECRET });
    const refusal = await refusalOf({ "x-zebu-signature": genuine }, { secret });
    expect(refusal?.why).toContain("is genuine");
  });

  it.each([
    ["the signature fits no secret", { "x-zebu-signature": other }],
    ["nothing is called a signature", { "x-zebu-hash": genuine }],
    ["two others come before it", { "a-signature": other, "b-signature": other, "c-signature": genuine }],
  ])("is not looked for any further if %s", async (_, headers: Readonly<Record<string, string>>) => {
    const refusal = await refusalOf(headers);
    expect(refusal?.code).toBe("ERR_SIGNATURE_MISSING");
    expect(refusal?.why).toBe("there is no X-Connect-Signature header");
    expect(refusal?.fix).toContain("webhook_secret");
  });
});
