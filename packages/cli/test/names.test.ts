import { createHmac, verify } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { createTestKeys } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { file } from "./support/files.ts";
import { listen } from "./support/receivers.ts";
import { payhooks, RunningCommand } from "./support/run.ts";

const keys = createTestKeys();
const privateKey = file(keys.privateKey, "private.pem");
const names = file(
  JSON.stringify({
    callback: {
      fields: {
        payTxnId: "acmeTxnId",
        amount: "Amount",
        message: { sent: "absent" },
        merchantId: { sent: "absent" },
        providerTxId: { sent: "always" },
      },
      extra: { currency: "always", shift: "always" },
      statuses: { FAILED: ["CANCELLED"] },
    },
    connect: { signatureHeader: "X-AcmeConnect-Signature", pathSegment: "acmeconnect" },
    api: { medium: "ACME" },
  }),
  "names.json",
);

type Fields = Readonly<Record<string, string>>;

interface Target {
  readonly url: string;
  readonly bodies: string[];
  readonly headers: IncomingHttpHeaders[];
}

async function target(): Promise<Target> {
  const [bodies, headers]: [string[], IncomingHttpHeaders[]] = [[], []];
  const url = await listen(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    bodies.push(Buffer.concat(chunks).toString("utf8"));
    headers.push(request.headers);
    response.end();
  });
  return { url, bodies, headers };
}

/** True if the signature fits the fields, sorted by code unit. */
function isGenuine({ signature = "", ...fields }: Fields): boolean {
  const text = Object.keys(fields)
    .sort((a, b) => (a < b ? -1 : 1))
    .map((name) => `${name}=${fields[name]}`)
    .join("&");
  return verify("sha256", Buffer.from(text), keys.publicKey, Buffer.from(signature, "base64"));
}

describe("payhooks send --names", () => {
  it.each([
    ["the option", ["--names", names], {}],
    ["the environment", [], { PAYHOOKS_NAMES: names }],
  ])("signs a callback under the names in the file of %s", async (_what, args, env) => {
    const { url, bodies } = await target();
    const ended = await payhooks(
      ["send", "deposit", "--to", url, "--private-key", privateKey, "--transaction-id", "t-1", ...args],
      { env },
    );
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    expect(ended.stdout).not.toContain("merchantId was made up");
    const fields = JSON.parse(bodies[0] ?? "") as Fields;
    expect(Object.keys(fields).sort()).toEqual(
      ["Amount", "acmeTxnId", "callbackUrl", "currency", "event", "providerTxId", "referenceId", "shift"]
        .concat(["signature", "status", "timestamp", "userId"])
        .sort(),
    );
    expect(fields).toMatchObject({ acmeTxnId: "t-1", Amount: "10.500000", currency: "ETB" });
    expect(isGenuine(fields)).toBe(true);
  });

  it("sends the service's other words, and the fields that are always sent", async () => {
    const { url, bodies } = await target();
    const args = ["send", "withdrawal", "--to", url, "--private-key", privateKey, "--names", names];
    expect((await payhooks([...args, "--status", "PENDING,CANCELLED"])).code).toBe(0);
    const [pending = {}, cancelled] = bodies.map((body) => JSON.parse(body) as Fields);
    expect(pending).toMatchObject({ status: "PENDING", providerTxId: "none" });
    expect(isGenuine(pending)).toBe(true);
    expect(cancelled).toMatchObject({ status: "CANCELLED" });
    const wrong = await payhooks([...args.slice(0, -2), "--status", "CANCELLED"]);
    expect(wrong).toMatchObject({ code: 2 });
  });

  it("changes the amount under its name", async () => {
    const { url, bodies } = await target();
    await payhooks([
      "send",
      "deposit",
      "--to",
      url,
      "--private-key",
      privateKey,
      "--names",
      names,
      "--forge",
      "amount",
    ]);
    const forged = JSON.parse(bodies[0] ?? "") as Fields;
    expect(forged.Amount).toBe("9999.000000");
    expect(isGenuine(forged)).toBe(false);
  });

  it("splits a signature again, so that it fits another event", async () => {
    const { url, bodies } = await target();
    const args = ["send", "deposit", "--to", url, "--private-key", privateKey, "--names", names];
    await payhooks([...args, "--forge", "resplit", "--reference", "order-7"]);
    const forged = JSON.parse(bodies[0] ?? "") as Fields;
    expect(forged).toMatchObject({ referenceId: "order-7", status: "SUCCESS" });
    expect(isGenuine(forged)).toBe(true);
  });

  it("says so where the names leave no room for a split", async () => {
    const { url, bodies } = await target();
    const early = file(JSON.stringify({ callback: { fields: { status: "a_status" } } }), "early.json");
    const args = ["send", "deposit", "--to", url, "--private-key", privateKey, "--names", early];
    const refused = await payhooks([...args, "--forge", "resplit"]);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain("Under these names a signature cannot be split again.");
    expect(bodies).toEqual([]);
  });

  it("signs a webhook in the service's header", async () => {
    const { url, bodies, headers } = await target();
    const args = ["send", "settlement", "--to", url, "--secret", "whsec_1", "--names", names];
    expect((await payhooks(args)).code).toBe(0);
    const digest = createHmac("sha256", "whsec_1")
      .update(bodies[0] ?? "")
      .digest("hex");
    expect(headers[0]?.["x-acmeconnect-signature"]).toBe(`sha256=${digest}`);
    expect(headers[0]).not.toHaveProperty("x-connect-signature");
  });

  it.each([
    ["is not JSON", "{", /are not JSON/],
    ["has two faults", '{"callback":{"fields":{"payTxnId":"a=b","amount":"status"}}}', /a=b[\s\S]*status/],
  ])("is refused if the file %s, with all that is wrong", async (_what, text, message) => {
    for (const command of [
      ["send", "deposit", "--to", "http://127.0.0.1:1/", "--private-key", privateKey],
      ["sandbox"],
    ]) {
      const ended = await payhooks([...command, "--names", file(text)]);
      expect(ended.code).toBe(2);
      expect(ended.stderr).toMatch(message);
      expect(ended.stderr).toContain("[ERR_NAMES_INVALID]");
    }
  });
});

describe("payhooks sandbox --names", () => {
  it("uses the names in the file", async () => {
    const { url: to, bodies } = await target();
    const running = new RunningCommand(["sandbox", "--port", "0", "--callback-url", to, "--names", names]);
    const [, url = ""] = await running.until(/dashboard {2}(http:\S+)\/\n/);
    await fetch(`${url}/sandbox/deposits`, { method: "POST" });
    await running.until(/DEPOSIT/);
    expect(JSON.parse(bodies[0] ?? "")).toHaveProperty("acmeTxnId");
    const settings = await fetch(`${url}/api/v2/acmeconnect/connected-accounts/webhook-settings`);
    expect(settings.status).toBe(401);
  });
});
