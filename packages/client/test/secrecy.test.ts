import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { freePort } from "../../../test/support/free-port.ts";
import { type ClientError, createClient } from "../src/index.ts";
import { apiKey, keys, payment } from "./fixtures.ts";
import { errorOf, startService, testClock } from "./service.ts";

const secrets = [keys.secretKey, apiKey, 'whsec "quoted" value'];
const settings = {
  webhook_url: "https://merchant.example/w",
  webhook_secret: 'whsec "quoted" value',
  webhook_enabled: true,
};

function expectSilence(value: unknown): void {
  const texts = [inspect(value, { depth: 20, showHidden: true }), JSON.stringify(value) ?? "", String(value)];
  if (value instanceof Error) texts.push(value.stack ?? "", JSON.stringify({ ...value }));
  for (const text of texts) {
    for (const secret of secrets) {
      expect(text).not.toContain(secret);
      expect(text).not.toContain(JSON.stringify(secret).slice(1, -1));
    }
  }
}

describe("keys and secrets", () => {
  it("are not shown by a client", () => {
    expectSilence(createClient({ baseUrl: "https://api.example.com", ...keys, apiKey }));
  });

  it.each([400, 401, 403, 500])("are masked in error bodies that repeat them (HTTP %i)", async (status) => {
    const service = await startService((response, { headers, body }) => {
      response.writeHead(status);
      response.end(
        JSON.stringify({ key: headers["x-api-key"], body, again: body === "" ? {} : JSON.parse(body) }),
      );
    });
    const client = createClient({ baseUrl: service.url, ...keys, apiKey, clock: testClock() });
    for (const call of [
      () => client.pay(payment),
      () => client.transactionById("t"),
      () => client.webhookSettings(),
      () => client.setWebhookSettings(settings),
    ]) {
      const error = await errorOf<ClientError>(call());
      expect(inspect(error.body)).toContain("[secret]");
      expectSilence(error);
    }
  });

  it("are in no error of a fetch that keeps the request, or whose message has it", async () => {
    for (const thrown of [
      Object.assign(new Error("failed"), { request: { headers: { "X-API-Key": `pk:${keys.secretKey}` } } }),
      Object.assign(
        new TypeError("fetch failed", {
          cause: Object.assign(new Error(keys.secretKey), { code: "ECONNRESET" }),
        }),
      ),
      new AggregateError([new Error(`X-API-Key: ${keys.secretKey}`)], keys.secretKey),
      keys.secretKey,
      { headers: keys.secretKey },
    ]) {
      const fetch = (): Promise<Response> => Promise.reject(thrown);
      const client = createClient({
        baseUrl: "https://api.example.com",
        ...keys,
        apiKey,
        fetch,
        clock: testClock(),
      });
      for (const call of [client.pay(payment), client.transactionById("t")])
        expectSilence(await errorOf(call));
    }
  });

  it("take no long time to find in a large body that is made for it", async () => {
    for (const part of ["\\", "%25", "&#0", "s", "c2tf"]) {
      const service = await startService((response) => {
        response.writeHead(400);
        response.end(part.repeat(1_000_000 / part.length));
      });
      const client = createClient({ baseUrl: service.url, ...keys, apiKey, clock: testClock() });
      const before = process.cpuUsage();
      await errorOf(client.pay(payment));
      const { user, system } = process.cpuUsage(before);
      expect((user + system) / 1_000).toBeLessThan(3_000);
    }
  });

  it("are masked in an answer that is nested without end", async () => {
    const service = await startService((response) => {
      response.writeHead(400);
      response.end(`${"[".repeat(20_000)}"${keys.secretKey}"${"]".repeat(20_000)}`);
    });
    const client = createClient({ baseUrl: service.url, ...keys, apiKey, clock: testClock() });
    const error = await errorOf<ClientError>(client.pay(payment));
    expect(error.code).toBe("ERR_BAD_REQUEST");
    expectSilence(error);
  });

  it("are not in errors of the network, of an answer, or of a request", async () => {
    const port = await freePort();
    const client = createClient({ baseUrl: `http://127.0.0.1:${port}`, ...keys, apiKey, clock: testClock() });
    expectSilence(await errorOf(client.pay(payment)));
    expectSilence(await errorOf(client.webhookSettings()));
    expectSilence(await errorOf(client.setWebhookSettings({ ...settings, webhook_url: "x" })));
    const echo = await startService((response, { headers }) => response.end(`key ${headers["x-api-key"]}`));
    const talking = createClient({ baseUrl: echo.url, ...keys, apiKey });
    expectSilence(await errorOf(talking.transactionById("t")));
    expectSilence(await errorOf(talking.pay(payment)));
  });

  it("are not in errors about keys that are wrong", async () => {
    for (const secretKey of [`${keys.secretKey}:x`, `${keys.secretKey}\n`, `${keys.secretKey}é`]) {
      const make = async () =>
        createClient({ baseUrl: "https://api.example.com", publicKey: "pk", secretKey });
      expectSilence(await errorOf(make()));
    }
  });
});
