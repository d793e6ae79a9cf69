/** Clients of other people against the sandbox, under names of a deployment: how they ask, read and verify, and nothing of ours in it. */
import { createVerify } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { serviceNames } from "@payhooks/core";
import { createSandbox, type Sandbox } from "@payhooks/sandbox";
import { describe, expect, it, onTestFinished } from "vitest";

const names = serviceNames({
  callback: {
    fields: { payTxnId: "acmeTxnId", referenceId: "reference", callbackUrl: "callback_url" },
    extra: { currency: "always", medium: "always" },
    statuses: { FAILED: ["CANCELLED"] },
  },
  api: { medium: "ACME", transactionIdFields: ["acme_transaction_id", "transaction_id"] },
});

type Fields = Readonly<Record<string, unknown>>;

/** Asks with amounts as numbers, takes `data` if `status` is SUCCESS, and throws otherwise. */
function byStatus({ url, keys }: Sandbox) {
  return async (method: string, path: string, body?: Fields): Promise<Fields> => {
    const response = await fetch(`${url}/api/v2/payment${path}`, {
      method,
      headers: { "Content-Type": "application/json", "X-API-Key": keys.apiKey },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const envelope = (await response.json()) as { status?: string; data?: Fields };
    if (!response.ok || envelope.status !== "SUCCESS") throw new Failed(response.status, envelope);
    return envelope.data ?? {};
  };
}

/** Asks with amounts as texts, and takes `data` if `success` is true. */
function bySuccess({ url, keys }: Sandbox) {
  return async (method: string, path: string, body?: Fields): Promise<Fields> => {
    const response = await fetch(`${url}/api/v2/payment${path}`, {
      method,
      headers: { "content-type": "application/json", "x-api-key": keys.apiKey },
      ...(body !== undefined && { body: JSON.stringify({ ...body, amount: "10.50" }) }),
    });
    const envelope = (await response.json()) as { success?: boolean; data?: Fields };
    if (envelope.success !== true) throw new Failed(response.status, envelope);
    return envelope.data ?? {};
  };
}

class Failed extends Error {
  constructor(
    readonly status: number,
    readonly envelope: object,
  ) {
    super(`answered with ${status}`);
  }
}

/** All members but the signature, sorted by their names, as they were parsed. */
function isSigned({ signature, ...payload }: Fields, publicKey: string): boolean {
  const text = Object.keys(payload)
    .sort()
    .map((name) => `${name}=${payload[name]}`)
    .join("&");
  return createVerify("RSA-SHA256").update(text).verify(publicKey, String(signature), "base64");
}

async function merchant() {
  const received: Fields[] = [];
  const server = createServer(async (request, response) => {
    received.push(JSON.parse(await textOf(request)) as Fields);
    response.writeHead(200).end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/callbacks` };
}

async function textOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}

describe.each([
  ["goes by the status of the answer", byStatus, "transaction_id"],
  ["goes by its success", bySuccess, "id"],
] as const)("a client that %s", (_what, made, idField) => {
  async function set() {
    const sandbox = await createSandbox({ delayMs: 0, names });
    onTestFinished(() => sandbox.close());
    const { received, url } = await merchant();
    const order = { amount: 10.5, currency: "ETB", phone_number: "251911234567", callback_url: url };
    return { sandbox, received, order, ask: made(sandbox) };
  }

  it("reads what it asked for, and finds it again", async () => {
    const { ask, order } = await set();
    const redirects = {
      success_url: "https://shop.example/paid",
      failure_url: "https://shop.example/failed",
    };
    const hosted = { success: "https://shop.example/paid", failed: "https://shop.example/failed" };
    const calls = [
      ["/direct", { ...order, medium: "ACME", reference: "order-1", redirects }, { medium: "ACME" }],
      ["/withdrawal", { ...order, medium: "TELEBIRR", reference: "order-2" }, { medium: "TELEBIRR" }],
      [
        "/checkout",
        { ...order, reference: "order-3", redirects: hosted, supported_mediums: ["MPESA", "ACME"] },
        { checkout_url: expect.stringMatching(/^http/) },
      ],
    ] as const;
    for (const [path, body, answered] of calls) {
      const data = await ask("POST", path, body);
      const facts = { reference: body.reference, amount: 10.5, currency: "ETB", status: "PENDING" };
      expect(data).toMatchObject({
        ...facts,
        ...answered,
        [idField]: expect.stringMatching(/^[0-9a-f-]{36}$/),
      });
      expect(Date.parse(String(data.created_at))).not.toBeNaN();
      const found = await ask("GET", `/transaction/${data[idField]}`);
      expect(found).toMatchObject({ [idField]: data[idField], reference: body.reference, amount: 10.5 });
    }
  });

  it("reads why it was refused, by parameter", async () => {
    const { ask, order } = await set();
    const body = { ...order, medium: "ACME", reference: "order-1" };
    await ask("POST", "/direct", body);
    const refused = await ask("POST", "/direct", body).catch((error: unknown) => error);
    expect(refused).toMatchObject({
      status: 400,
      envelope: {
        status: "ERROR",
        error_code: "INVALID_REQUEST",
        errors: { reference: [expect.any(String)] },
      },
    });
  });

  it("verifies the callbacks with a rule of its own, and none of which a value was changed", async () => {
    const { sandbox, received, ask, order } = await set();
    await ask("POST", "/direct", { ...order, medium: "ACME", reference: "order-1" });
    await ask("POST", "/withdrawal", { ...order, medium: "TELEBIRR", reference: "order-2" });
    await expect.poll(() => received.length).toBe(2);
    for (const payload of received) {
      expect(isSigned(payload, sandbox.keys.publicKey)).toBe(true);
      expect(isSigned({ ...payload, amount: "11.000000" }, sandbox.keys.publicKey)).toBe(false);
    }
    expect(received.map(({ event, medium }) => [event, medium]).toSorted()).toEqual([
      ["DEPOSIT", "ACME"],
      ["WITHDRAWAL", "TELEBIRR"],
    ]);
  });
});
