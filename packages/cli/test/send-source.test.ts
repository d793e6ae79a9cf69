import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createReceiver, memoryInbox } from "@payhooks/core";
import { webhooks } from "@payhooks/core/fetch";
import {
  github,
  paystack,
  type SourceEvent,
  shopify,
  slack,
  standardWebhooks,
  stripe,
} from "@payhooks/core/sources";
import { describe, expect, it, onTestFinished } from "vitest";
import { payhooks } from "./support/run.ts";

const secret = `whsec_${Buffer.from("a secret of twenty-four bytes").toString("base64")}`;
const quiet = { info: () => {}, warn: () => {}, error: () => {} };
const sources = {
  "standard-webhooks": standardWebhooks({ secret }),
  svix: standardWebhooks({ secret, headers: "svix" }),
  stripe: stripe({ secret }),
  github: github({ secret }),
  shopify: shopify({ secret }),
  paystack: paystack({ secret }),
  slack: slack({ secret }),
};
type Sender = keyof typeof sources;

/** A merchant's server for one sender. */
async function merchant(sender: Sender): Promise<{ readonly url: string; readonly ran: SourceEvent[] }> {
  const ran: SourceEvent[] = [];
  const receiver = createReceiver({ inbox: memoryInbox(), logger: quiet, run: "background", sources });
  receiver.on(sender, "*", (event) => void ran.push(event));
  await receiver.start();
  const answer = webhooks(receiver, sender);
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const headers = new Headers(request.headers as Record<string, string>);
    const body = Buffer.concat(chunks);
    const reply = await answer(new Request("http://shop.example/", { method: "POST", headers, body }));
    response.writeHead(reply.status).end(await reply.text());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.close();
    server.closeAllConnections();
    await receiver.close({ graceMs: 0 });
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, ran };
}

describe("payhooks send, for another sender", () => {
  it.each(Object.keys(sources) as Sender[])("signs as %s does", async (sender) => {
    const { url, ran } = await merchant(sender);
    const args = ["send", sender, "--to", url, "--secret", secret, "--name", "invoice.paid", "--seed", "7"];
    const { code, stdout } = await payhooks([
      ...args,
      "--data",
      '{"amount":5}',
      "--events",
      "2",
      "--times",
      "2",
    ]);
    expect([code, stdout]).toEqual([0, expect.stringContaining("200")]);
    await expect.poll(() => ran.length).toBe(2);
    expect(ran[0]).toMatchObject({ event: "invoice.paid", data: { id: "evt_7_1", amount: 5 } });
    const forged = await payhooks([...args, "--forge", "signature"]);
    expect([forged.code, forged.stdout]).toEqual([0, expect.stringContaining("401")]);
    expect(ran).toHaveLength(2);
  });

  it.each([
    ["--forge resplit is for payments", ["stripe", "--name", "x", "--forge", "resplit"]],
    ["covers no time", ["github", "--name", "x", "--stale"]],
    ["--status is for payment callbacks and webhooks", ["github", "--name", "push", "--status", "PENDING"]],
    ["--amount is for payment callbacks and webhooks", ["stripe", "--name", "x", "--amount", "5"]],
    ["--reference is for payment callbacks", ["stripe", "--name", "x", "--reference", "order-1"]],
    ["--names is for payment callbacks and webhooks", ["slack", "--name", "x", "--names", "names.json"]],
    ["--name of github is sent in a header", ["github", "--name", "пуш"]],
    ["--name of shopify is sent in a header", ["shopify", "--name", "orders paid"]],
    ["--data is not a JSON object", ["stripe", "--name", "x", "--data", "[]"]],
  ])("says that %s", async (text, args) => {
    const { code, stderr } = await payhooks([
      "send",
      ...args,
      "--to",
      "http://127.0.0.1:1/",
      "--secret",
      secret,
    ]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(text)]);
  });
});
