import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { type ClientError, createClient, reconcile } from "../src/index.ts";
import { apiKey, checkout, keys, notFound, payment, wireTransaction, withdrawal } from "./fixtures.ts";
import { errorOf, json, startService } from "./service.ts";

const CONNECTED = "X-Connected-Merchant-Id";

describe("the headers of a call", () => {
  it("are sent with each kind of call, and with no other", async () => {
    const service = await startService(json({ success: true, data: wireTransaction }));
    const client = createClient({ baseUrl: service.url, ...keys, apiKey });
    const options = { headers: { [CONNECTED]: "cm_1", "Idempotency-Key": "order-1" } };
    const settings = {
      webhook_url: "https://merchant.example/w",
      webhook_secret: "whsec_0123456789",
      webhook_enabled: true,
    };
    await client.pay(payment, options);
    await client.withdraw(withdrawal, options);
    await client.checkout(checkout, options);
    await client.transactionById(wireTransaction.id, options);
    await client.transactionByReference(wireTransaction.reference, options);
    await client.webhookSettings(options);
    await client.setWebhookSettings(settings, options);
    await client.pay(payment);
    expect(service.seen.map(({ headers }) => headers["x-connected-merchant-id"])).toEqual([
      ...Array.from({ length: 7 }, () => "cm_1"),
      undefined,
    ]);
    expect(service.seen[0]?.headers).toMatchObject({
      "idempotency-key": "order-1",
      "x-api-key": `${keys.publicKey}:${keys.secretKey}`,
      "content-type": "application/json",
      accept: "application/json",
    });
  });

  it("are sent with every attempt, and with the look-ups of reconcile", async () => {
    const service = await startService((response, seen, count) =>
      json(count === 1 ? {} : notFound, count === 1 ? 503 : 200)(response, seen, count),
    );
    const client = createClient({ baseUrl: service.url, ...keys, attempts: 2 });
    const sink = { payments: { ingest: () => Promise.reject(new Error("nothing was found")) } };
    await reconcile(sink, { client, references: ["order-1"], headers: { [CONNECTED]: "cm_1" } });
    expect(service.seen.map(({ headers }) => headers["x-connected-merchant-id"])).toEqual(["cm_1", "cm_1"]);
  });

  it.each<[what: string, headers: unknown, field: string]>([
    ["the key", { "x-api-KEY": "pk:sk" }, "headers.x-api-KEY"],
    ["the content type", { "Content-Type": "text/plain" }, "headers.Content-Type"],
    ["the length", { "content-length": "3" }, "headers.content-length"],
    ["an encoding", { "content-encoding": "gzip" }, "headers.content-encoding"],
    ["a transfer encoding", { "transfer-encoding": "chunked" }, "headers.transfer-encoding"],
    ["the host", { host: "elsewhere.example" }, "headers.host"],
    ["the connection", { connection: "upgrade" }, "headers.connection"],
    ["an expectation", { expect: "100-continue" }, "headers.expect"],
    ["a form of answer", { accept: "text/html" }, "headers.accept"],
    ["a name with a space", { "X A": "1" }, "headers.X A"],
    ["a name with a line break", { "X-A\r\nX-API-Key": "1" }, "headers.X-A\r\nX-API-Key"],
    ["an empty name", { "": "1" }, "headers."],
    ["one name twice", { "X-A": "1", "x-a": "2" }, "headers.x-a"],
    ["an id that is missing", { [CONNECTED]: undefined }, `headers.${CONNECTED}`],
    ["an id that is empty", { [CONNECTED]: "" }, `headers.${CONNECTED}`],
    ["a number", { [CONNECTED]: 7 }, `headers.${CONNECTED}`],
    ["a list", { [CONNECTED]: ["a", "b"] }, `headers.${CONNECTED}`],
    ["a line break", { [CONNECTED]: "cm_1\r\nX-API-Key: x" }, `headers.${CONNECTED}`],
    ["white space around", { [CONNECTED]: " cm_1" }, `headers.${CONNECTED}`],
    ["other characters", { [CONNECTED]: "ü" }, `headers.${CONNECTED}`],
    ["an instance of Headers", new Headers({ [CONNECTED]: "cm_1" }), "headers"],
    ["a map", new Map([[CONNECTED, "cm_1"]]), "headers"],
    ["pairs", [[CONNECTED, "cm_1"]], "headers"],
    ["a text", `${CONNECTED}: cm_1`, "headers"],
    ["null", null, "headers"],
  ])("may not have %s, and nothing is sent", async (_what, headers, field) => {
    const service = await startService(json({ success: true }));
    const client = createClient({ baseUrl: service.url, ...keys });
    const options = { headers } as { headers: Record<string, string> };
    for (const call of [() => client.pay(payment, options), () => client.transactionById("t", options)]) {
      await expect(call()).rejects.toMatchObject({ code: "ERR_HEADER_INVALID", field });
    }
    expect(service.seen).toEqual([]);
  });

  it("are refused under a misspelt name, and nothing is sent", async () => {
    const service = await startService(json({ success: true }));
    const client = createClient({ baseUrl: service.url, ...keys });
    const misspelt = { header: { [CONNECTED]: "cm_1" } } as object;
    await expect(client.pay(payment, misspelt)).rejects.toMatchObject({
      code: "ERR_OPTION_INVALID",
      field: "header",
    });
    expect(service.seen).toEqual([]);
  });

  it("that are secret are in no error", async () => {
    const secret = "Bearer only-for-tests-0123";
    const service = await startService((response, { headers }, count) =>
      json({ message: `sent ${headers.authorization}`, merchant: headers["x-connected-merchant-id"] }, 403)(
        response,
        { method: "", path: "", headers, body: "" },
        count,
      ),
    );
    const client = createClient({ baseUrl: service.url, ...keys });
    const headers = { Authorization: secret, [CONNECTED]: "cm_1" };
    const error = await errorOf<ClientError>(client.pay(payment, { headers }));
    expect(error.body).toEqual({ message: "sent [secret]", merchant: "cm_1" });
    expect(inspect(error)).not.toContain(secret);
    const wrong = await errorOf(client.pay(payment, { headers: { Authorization: `${secret}\n` } }));
    expect(inspect(wrong)).not.toContain(secret);
  });
});
