import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { verifyConnectWebhook, verifyPaymentCallback } from "@payhooks/core";
import { createTestKeys } from "@payhooks/core/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { file } from "./support/files.ts";
import { payhooks } from "./support/run.ts";

const keys = createTestKeys();
const privateKey = file(keys.privateKey, "private.pem");
const secret = "whsec_0123456789abcdef";

interface Received {
  readonly body: Buffer;
  readonly header: string | undefined;
}

/** A server that keeps what comes and answers with one status, the first ones not before so many have come. */
async function target(
  status = 200,
  together = 1,
): Promise<{ url: string; received: Received[]; most: () => number }> {
  const received: Received[] = [];
  let open = 0;
  let most = 0;
  const waiting: (() => void)[] = [];
  const server = createServer(async (request, response) => {
    open++;
    most = Math.max(most, open);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    received.push({
      body: Buffer.concat(chunks),
      header: request.headers["x-connect-signature"] as string | undefined,
    });
    await new Promise<void>((resolve) => {
      waiting.push(resolve);
      if (received.length >= together) for (const go of waiting.splice(0)) go();
    });
    open--;
    response.writeHead(status).end(`{"answer":${status}}`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
    most: () => most,
  };
}

const depositTo = (url: string): string[] => ["send", "deposit", "--to", url, "--private-key", privateKey];
const bodyOf = ({ body }: Received): Record<string, unknown> => JSON.parse(body.toString("utf8"));
const isAuthentic = ({ body }: Received): boolean => {
  try {
    return verifyPaymentCallback(body, { publicKey: keys.publicKey }).event !== null;
  } catch {
    return false;
  }
};

describe("payhooks send", () => {
  it("sends a signed deposit and prints the answer", async () => {
    const { url, received } = await target();
    const args = [...depositTo(url), "--reference", "order-7", "--amount", "250.5"];
    const ended = await payhooks(args);
    expect(ended.stdout).toMatch(/#1 DEPOSIT SUCCESS order-7 250\.500000 → 200 \{"answer":200\} \d+ ms/);
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    expect(received.map(isAuthentic)).toEqual([true]);
    expect(received.map(bodyOf)).toMatchObject([
      { event: "DEPOSIT", referenceId: "order-7", amount: "250.500000", callbackUrl: url, status: "SUCCESS" },
    ]);
  });

  it("sends statuses in order, copies byte by byte, and different events", async () => {
    const { url, received } = await target();
    const args = ["--status", "PENDING,FAILED", "--times", "2", "--events", "2", "--reference", "payout"];
    const ended = await payhooks([
      "send",
      "withdrawal",
      "--to",
      url,
      "--private-key",
      privateKey,
      ...args,
      "--json",
    ]);
    expect(ended.json().map(({ label }) => label)).toEqual([
      "WITHDRAWAL PENDING payout-1 10.500000",
      "WITHDRAWAL PENDING payout-1 10.500000",
      "WITHDRAWAL FAILED payout-1 10.500000",
      "WITHDRAWAL FAILED payout-1 10.500000",
      "WITHDRAWAL PENDING payout-2 10.500000",
      "WITHDRAWAL PENDING payout-2 10.500000",
      "WITHDRAWAL FAILED payout-2 10.500000",
      "WITHDRAWAL FAILED payout-2 10.500000",
    ]);
    expect(received[0]?.body).toEqual(received[1]?.body);
    expect(new Set(received.map((one) => bodyOf(one).payTxnId)).size).toBe(2);
  });

  it("shuffles as the seed says, and makes the same events of the same seed", async () => {
    const order = async (seed: string): Promise<unknown[]> => {
      const { url, received } = await target();
      await payhooks([...depositTo(url), "--events", "12", "--shuffle", "--seed", seed]);
      return received.map((one) => bodyOf(one).payTxnId);
    };
    const [first, again, other] = [await order("7"), await order("7"), await order("8")];
    expect(again).toEqual(first);
    expect(other.filter((id) => first.includes(id))).toEqual([]);
    const { url, received } = await target();
    await payhooks([...depositTo(url), "--events", "12", "--seed", "7"]);
    const plain = received.map((one) => bodyOf(one).payTxnId);
    expect(plain).not.toEqual(first);
    expect(plain.toSorted()).toEqual(first.toSorted());
  });

  it("sends in parallel on request, and one by one otherwise", async () => {
    const [alone, together] = [await target(), await target(200, 2)];
    const args = ["send", "deposit", "--private-key", privateKey, "--times", "12"];
    await payhooks([...args, "--to", alone.url]);
    await payhooks([...args, "--to", together.url, "--parallel", "6"]);
    expect(alone.most()).toBe(1);
    expect(together.most()).toBeGreaterThan(1);
    expect(together.most()).toBeLessThanOrEqual(6);
    expect(together.received).toHaveLength(12);
  });

  it.each(["amount", "signature"])("forges (%s) a delivery that is not authentic", async (kind) => {
    const { url, received } = await target(401);
    const ended = await payhooks([...depositTo(url), "--forge", kind]);
    expect(ended).toMatchObject({ code: 0, stdout: expect.stringContaining(`(forged: ${kind}) → 401`) });
    expect(received.map(isAuthentic)).toEqual([false]);
    expect(received.map(bodyOf)).toMatchObject([{ status: "SUCCESS" }]);
  });

  it("fails when a forgery is taken, or something genuine is refused", async () => {
    const [takes, refuses] = [await target(200), await target(500)];
    const args = ["send", "deposit", "--private-key", privateKey];
    const taken = await payhooks([...args, "--to", takes.url, "--forge", "amount"]);
    expect(taken).toMatchObject({ code: 1, stdout: expect.stringContaining("1 of 1 answers are not 4xx.") });
    const refused = await payhooks([...args, "--to", refuses.url, "--times", "3"]);
    expect(refused).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("3 of 3 answers are not 2xx."),
    });
    const nobody = await payhooks([...args, "--to", "http://127.0.0.1:1/"]);
    expect(nobody).toMatchObject({ code: 1, stdout: expect.stringContaining("no answer: ECONNREFUSED") });
  });

  it.each(["2147483648", "4294967296", "99999999999999"])("refuses a timeout of %s ms", async (ms) => {
    expect(await payhooks([...depositTo("http://127.0.0.1:1/"), "--timeout", ms])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        `--timeout must be a whole number from 1 to 2147483647; it is "${ms}".`,
      ),
    });
  });

  it("dates stale deliveries back, signed properly", async () => {
    const { url, received } = await target(400);
    const ended = await payhooks([...depositTo(url), "--stale"]);
    expect(ended.code).toBe(0);
    expect(received.map(isAuthentic)).toEqual([true]);
    const age = Date.now() - Date.parse(String(received.map(bodyOf)[0]?.timestamp));
    expect(age / 86_400_000).toBeCloseTo(30, 1);
  });

  it.each([
    [
      "settlement",
      ["--status", "declined", "--amount", "77"],
      { event: "settlement.declined", data: { amount: 77, status: "declined" } },
    ],
    ["connected-account", [], { event: "connected_account.approved", data: { kyc_status: "approved" } }],
  ])("signs a %s with the secret, from the environment as well", async (kind, more, expected) => {
    const { url, received } = await target();
    const env = { CONNECT_WEBHOOK_SECRET: secret };
    const ended = await payhooks(["send", kind, "--to", url, ...more], { env });
    expect(ended.code).toBe(0);
    const [one] = received;
    if (one === undefined) throw new Error("nothing came");
    expect(verifyConnectWebhook(one.body, one.header, { secret }).event).toMatchObject(expected);
    const forged = await payhooks(["send", kind, "--to", url, ...more, "--forge", "amount"], { env });
    expect(forged.code).toBe(1);
    const [, two] = received;
    expect(() => verifyConnectWebhook(two?.body ?? Buffer.alloc(0), two?.header, { secret })).toThrow(
      /ERR_|authentic/,
    );
  });

  it("prints bodies with --body, and never a secret", async () => {
    const { url } = await target();
    const ended = await payhooks(["send", "settlement", "--to", url, "--secret", secret, "--body"]);
    expect(ended.stdout).toContain('"idempotency_key":"evt_');
    expect(ended.stdout).not.toContain(secret);
  });

  it("signs with the keys in a sandbox's state file", async () => {
    const { url, received } = await target();
    const state = { privateKey: keys.privateKey, connect: { settings: { webhook_secret: secret } } };
    const path = file(JSON.stringify(state), "sandbox state.json");
    expect(await payhooks(["send", "deposit", "--to", url, "--state", path])).toMatchObject({ code: 0 });
    expect(await payhooks(["send", "settlement", "--to", url, "--state", path])).toMatchObject({ code: 0 });
    expect(received.slice(0, 1).map(isAuthentic)).toEqual([true]);
    expect(received[1]?.header).toMatch(/^sha256=/);
  });

  const to = ["--to", "http://127.0.0.1:1/"];
  it.each([
    [["deposit"], /--to is missing/],
    [["depositt", ...to], /Did you mean deposit\?/],
    [["deposit", "--to", "127.0.0.1:3000"], /full URL/],
    [["deposit", ...to], /no private key.*\n.*openssl genrsa/],
    [["settlement", ...to], /no secret/],
    [["deposit", ...to, "--private-key", file(keys.publicKey)], /only the private one signs/],
    [["deposit", ...to, "--private-key", privateKey, "--status", "success"], /Did you mean SUCCESS\?/],
    [["deposit", ...to, "--private-key", privateKey, "--amount", "1e3"], /--amount must be digits/],
    [["deposit", ...to, "--private-key", privateKey, "--times", "0"], /--times must be a whole number/],
    [["deposit", ...to, "--private-key", privateKey, "--forge", "reslit"], /Did you mean resplit\?/],
    [["settlement", ...to, "--secret", secret, "--forge", "resplit"], /webhooks have no canonical string/],
    [["settlement", ...to, "--secret", secret, "--reference", "x"], /--reference is for payment callbacks/],
    [
      ["settlement", ...to, "--secret", secret, "--merchant-id", "x"],
      /--merchant-id is for payment callbacks/,
    ],
    [["deposit", ...to, "--state", file("{}")], /not the state file of a sandbox/],
    [["deposit", ...to, "--private-key", privateKey, "--name", "push"], /--name is for other senders/],
    [["deposit", ...to, "--private-key", privateKey, "--data", "{"], /--data is for other senders/],
    [["settlement", ...to, "--secret", secret, "--callback-url", "x"], /--callback-url is for payment/],
    [["connected-account", ...to, "--secret", secret, "--amount", "5"], /--amount is for payment/],
  ])("%j exits with 2 and says why", async (args, why) => {
    const ended = await payhooks(["send", ...args]);
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(ended.stderr).toMatch(why);
    expect(ended.stderr).not.toMatch(/^\s+at /m);
  });
});
