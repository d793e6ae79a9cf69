import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createReceiver } from "@payhooks/core";
import { expect, it } from "vitest";
import { start } from "./support/start.ts";

/** The receiver that merchants use, behind a bare server. */
async function merchant(options: Parameters<typeof createReceiver>[0]) {
  const receiver = createReceiver(options);
  const ran: string[] = [];
  receiver.onDeposit({
    SUCCESS: (event) => void ran.push(`${event.referenceId} ${event.status} ${event.amount}`),
    FAILED: (event) => void ran.push(`${event.referenceId} ${event.status} ${event.amount}`),
    PENDING: (event) => void ran.push(`${event.referenceId} ${event.status} ${event.amount}`),
  });
  receiver.onWithdrawal((event) => void ran.push(`${event.referenceId} ${event.event}`));
  receiver.onConnectedAccountApproved((event) => void ran.push(event.event));
  receiver.onConnectedAccountDeclined((event) => void ran.push(event.event));
  receiver.onSettlementApproved((event) => void ran.push(`${event.event} ${event.data.amount}`));
  receiver.onSettlementDeclined((event) => void ran.push(event.event));
  await receiver.start();
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const flow = request.url?.startsWith("/callbacks") ? receiver.payments : receiver.connect;
    const headers = new Headers(
      Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
    );
    const { method = "", url = "" } = request;
    const reply = await flow.receive({ method, url, headers, rawBody: Buffer.concat(chunks) });
    response.writeHead(reply.status, { ...reply.headers }).end(reply.body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    receiver,
    ran,
    async close() {
      server.close();
      server.closeAllConnections();
      await receiver.close();
    },
  };
}

it("Payhooks' own receiver runs what the sandbox sends, once each, and refuses or holds its forgeries", async () => {
  const secret = "whsec_0123456789abcdef";
  const sandbox = await start({ retry: { maxAttempts: 2, baseMs: 1, jitter: 0 } });
  const shop = await merchant({ payments: { publicKey: sandbox.keys.publicKey }, connect: { secret } });
  try {
    const callback_url = `${shop.url}/callbacks/pay`;
    sandbox.settings.set({
      webhook_url: `${shop.url}/webhooks`,
      webhook_secret: secret,
      webhook_enabled: true,
    });
    sandbox.faults.add({ kind: "duplicate", reference: "paid" });
    sandbox.faults.add({ kind: "bad-signature", reference: "failed" });
    sandbox.faults.add({ kind: "resplit", reference: "forged" });
    sandbox.faults.add({ kind: "wrong-key", reference: "stranger", times: 2 });
    sandbox.deposit({ callback_url, reference: "paid", amount: "10.50" });
    sandbox.deposit({ callback_url, reference: "failed", outcome: "FAILED" });
    sandbox.deposit({ callback_url, reference: "forged", outcome: "FAILED" });
    sandbox.deposit({ callback_url, reference: "stranger" });
    sandbox.withdraw({ callback_url, reference: "payout" });
    const account = sandbox.accounts.create();
    const settlement = sandbox.settlements.create({ amount: 5, accountId: account.id });
    for (const decision of ["approved", "declined"] as const) {
      sandbox.accounts.decide(account.id, decision);
      sandbox.settlements.decide(settlement.id, decision);
      // A word that comes after a later one about the same thing does not run.
      await expect.poll(() => shop.ran.filter((line) => line.includes(`.${decision}`))).toHaveLength(2);
    }
    const finished = () =>
      sandbox.deliveries.list().filter(({ state }) => state === "delivered" || state === "gave-up");
    await expect.poll(finished).toHaveLength(9);
    await expect
      .poll(() => shop.ran.toSorted())
      .toEqual([
        "connected_account.approved",
        "connected_account.declined",
        "failed FAILED 10.000000",
        "paid SUCCESS 10.500000",
        "payout WITHDRAWAL",
        "settlement.approved 5",
        "settlement.declined",
      ]);
    const answers = Object.fromEntries(
      finished().map(({ reference, event, status, attempts }) => [
        reference ?? `${event} ${status}`,
        attempts.map(({ answer }) => answer?.status),
      ]),
    );
    expect(answers).toMatchObject({
      paid: [200, 200],
      failed: [401, 200],
      forged: [200],
      stranger: [401, 401],
      payout: [200],
      "connected_account.approved approved": [200],
      "settlement.declined declined": [200],
    });
  } finally {
    await shop.close();
  }
});
