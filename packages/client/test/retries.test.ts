import { describe, expect, it } from "vitest";
import { freePort } from "../../../test/support/free-port.ts";
import { type ClientError, createClient } from "../src/index.ts";
import { apiKey, checkout, keys, notFound, payment, wireTransaction, withdrawal } from "./fixtures.ts";
import { errorOf, json, startService, testClock } from "./service.ts";

const found = json({ success: true, data: wireTransaction });
const settings = {
  webhook_url: "https://merchant.example/w",
  webhook_secret: "whsec_0123456789",
  webhook_enabled: true,
};

function clientOf(baseUrl: string, more: { attempts?: number; maxAnswerBytes?: number } = {}) {
  const clock = testClock();
  return { clock, client: createClient({ baseUrl, ...keys, apiKey, clock, ...more }) };
}

type Client = ReturnType<typeof clientOf>["client"];

/** The calls that move money. */
const posts: readonly [
  name: string,
  reference: string,
  call: (client: Client, signal?: AbortSignal) => Promise<unknown>,
][] = [
  ["pay", payment.reference, (client, signal) => client.pay(payment, { signal })],
  ["withdraw", withdrawal.reference, (client, signal) => client.withdraw(withdrawal, { signal })],
  ["checkout", checkout.reference, (client, signal) => client.checkout(checkout, { signal })],
];

/** The calls that may be repeated. */
const repeatable: readonly [name: string, call: (client: Client) => Promise<unknown>][] = [
  ["transactionById", (client) => client.transactionById(wireTransaction.id)],
  ["transactionByReference", (client) => client.transactionByReference(wireTransaction.reference)],
  ["webhookSettings", (client) => client.webhookSettings()],
  ["setWebhookSettings", (client) => client.setWebhookSettings(settings)],
];

describe.each(repeatable)("%s", (_name, call) => {
  it.each([429, 500, 502, 503, 504, 408])("is repeated after HTTP %i", async (status) => {
    const service = await startService((response, seen, count) =>
      (count < 3 ? json({ error: "later" }, status) : found)(response, seen, count),
    );
    const { clock, client } = clientOf(service.url);
    await call(client);
    expect(service.seen).toHaveLength(3);
    const [first = 0, second = 0] = clock.waits;
    expect(clock.waits).toHaveLength(2);
    expect(first).toBeGreaterThanOrEqual(125);
    expect(first).toBeLessThanOrEqual(375);
    expect(second).toBeGreaterThanOrEqual(250);
    expect(second).toBeLessThanOrEqual(750);
  });

  it("is repeated after a connection that broke: before the answer, and in the middle of it", async () => {
    const service = await startService((response, seen, count) => {
      if (count === 1) response.destroy();
      else if (count === 2) {
        response.writeHead(200, { "content-length": "1000" });
        response.write('{"success":', () => response.destroy());
      } else found(response, seen, count);
    });
    await call(clientOf(service.url).client);
    expect(service.seen).toHaveLength(3);
  });

  it("is repeated after a timeout", async () => {
    const service = await startService((response, seen, count) => {
      if (count > 1) found(response, seen, count);
    });
    const { clock, client } = clientOf(service.url);
    const arrived = service.arrival();
    const called = call(client);
    await arrived;
    clock.timeUp();
    await called;
    expect(service.seen).toHaveLength(2);
  });

  it.each([
    [400, "ERR_BAD_REQUEST"],
    [401, "ERR_UNAUTHORIZED"],
    [403, "ERR_REFUSED"],
    [404, "ERR_REFUSED"],
    [302, "ERR_REDIRECTED"],
  ])("is not repeated after HTTP %i", async (status, code) => {
    const service = await startService(json({ error: "no" }, status, { location: "/elsewhere" }));
    await expect(call(clientOf(service.url).client)).rejects.toMatchObject({
      code,
      httpStatus: status,
      body: { error: "no" },
    });
    expect(service.seen).toHaveLength(1);
  });

  it.each([
    ["ERR_SERVER", 500, { httpStatus: 500 }],
    ["ERR_RATE_LIMITED", 429, { httpStatus: 429 }],
  ])("ends with %s when no attempt succeeds", async (code, status, more) => {
    const service = await startService(json("<html>oops</html>", status));
    const error = await errorOf<ClientError>(call(clientOf(service.url).client));
    expect(error).toMatchObject({ code, body: "<html>oops</html>", ...more });
    expect(service.seen).toHaveLength(3);
  });

  it("ends with ERR_CONNECTION_LOST or ERR_TIMEOUT when that is how the last attempt ended", async () => {
    const broken = await startService((response) => response.destroy());
    const lost = await errorOf<ClientError>(call(clientOf(broken.url, { attempts: 2 }).client));
    expect(lost.code).toBe("ERR_CONNECTION_LOST");
    expect(lost.cause).toBeInstanceOf(Error);
    expect(broken.seen).toHaveLength(2);

    const silent = await startService(() => {});
    const { clock, client } = clientOf(silent.url, { attempts: 1 });
    const arrived = silent.arrival();
    const called = errorOf<ClientError>(call(client));
    await arrived;
    clock.timeUp();
    expect((await called).code).toBe("ERR_TIMEOUT");
  });
});

describe("Retry-After", () => {
  const answering = (header: string) =>
    startService((response, seen, count) =>
      (count === 1 ? json({}, 503, { "retry-after": header }) : found)(response, seen, count),
    );

  it.each([
    ["7", 7_000],
    ["Fri, 01 May 2026 12:00:09 GMT", 9_000],
  ])("%s is waited for", async (header, ms) => {
    const service = await answering(header);
    const { clock, client } = clientOf(service.url);
    await client.transactionById(wireTransaction.id);
    expect(clock.waits).toEqual([ms]);
  });

  it.each(["0", "Fri, 01 May 2026 11:59:00 GMT", "soon", "-5", "1e3"])(
    "%s leaves the usual wait",
    async (header) => {
      const service = await answering(header);
      const { clock, client } = clientOf(service.url);
      await client.transactionById(wireTransaction.id);
      expect(clock.waits[0]).toBeLessThanOrEqual(375);
    },
  );

  it("of over a minute is left to the caller", async () => {
    const service = await answering("3600");
    const error = await errorOf<ClientError>(
      clientOf(service.url).client.transactionById(wireTransaction.id),
    );
    expect(error).toMatchObject({ code: "ERR_SERVER", retryAfterMs: 3_600_000 });
    expect(service.seen).toHaveLength(1);
  });
});

describe.each(posts)("%s, which moves money,", (_name, reference, call) => {
  const expectUnknown = (error: ClientError) => {
    expect(error).toMatchObject({ code: "ERR_OUTCOME_UNKNOWN", reference });
    expect(error.fix).toContain(`transactionByReference("${reference}")`);
  };

  it("is never sent twice when its answer is lost", async () => {
    const service = await startService((response) => response.destroy());
    const { clock, client } = clientOf(service.url);
    expectUnknown(await errorOf<ClientError>(call(client)));
    expect(service.seen).toHaveLength(1);
    expect(clock.waits).toEqual([]);
  });

  it("is never sent twice when its answer is lost on a connection that was used before", async () => {
    const service = await startService((response, seen, count) =>
      seen.method === "GET" ? found(response, seen, count) : response.destroy(),
    );
    const { client } = clientOf(service.url);
    await client.transactionById(wireTransaction.id);
    expectUnknown(await errorOf<ClientError>(call(client)));
    expect(service.seen.map(({ method }) => method)).toEqual(["GET", "POST"]);
  });

  it.each([500, 502, 503, 504, 408, 302, 303])("has an unknown outcome after HTTP %i", async (status) => {
    const service = await startService(
      json({ error: "oops" }, status, { location: "/x", "retry-after": "1" }),
    );
    const error = await errorOf<ClientError>(call(clientOf(service.url).client));
    expectUnknown(error);
    expect(error).toMatchObject({ httpStatus: status, body: { error: "oops" } });
    expect(service.seen).toHaveLength(1);
  });

  it.each([
    [400, "ERR_BAD_REQUEST"],
    [401, "ERR_UNAUTHORIZED"],
    [404, "ERR_REFUSED"],
    [429, "ERR_RATE_LIMITED"],
    [307, "ERR_REDIRECTED"],
  ])("was refused after HTTP %i, and is not sent again", async (status, code) => {
    const service = await startService(json("nope", status, { location: "/x" }));
    await expect(call(clientOf(service.url).client)).rejects.toMatchObject({
      code,
      httpStatus: status,
      body: "nope",
    });
    expect(service.seen).toHaveLength(1);
  });

  it.each([
    ["is not JSON", json("<html>")],
    ["says that it failed", json({ success: false, message: "?" })],
    ["is too large", json({ data: "x".repeat(5_000) })],
  ])("has an unknown outcome when the answer %s", async (_what, answer) => {
    const service = await startService(answer);
    const error = await errorOf<ClientError>(call(clientOf(service.url, { maxAnswerBytes: 1_000 }).client));
    expectUnknown(error);
    expect(error.httpStatus).toBe(200);
    expect(service.seen).toHaveLength(1);
  });

  it("has an unknown outcome when time is up, or it is aborted, before the answer", async () => {
    const service = await startService(() => {});
    const { clock, client } = clientOf(service.url);
    let arrived = service.arrival();
    let called = errorOf<ClientError>(call(client));
    await arrived;
    clock.timeUp();
    expectUnknown(await called);

    const abort = new AbortController();
    arrived = service.arrival();
    called = errorOf<ClientError>(call(client, abort.signal));
    await arrived;
    abort.abort(new Error("the user left"));
    const error = await called;
    expectUnknown(error);
    expect((error.cause as Error).message).toBe("the user left");
    expect(service.seen).toHaveLength(2);
  });

  it("is tried again while no connection can be made, since nothing was sent", async () => {
    const port = await freePort();
    const { clock, client } = clientOf(`http://127.0.0.1:${port}`);
    const starting: Promise<{ seen: readonly unknown[] }>[] = [];
    clock.onWait = async () => {
      if (starting.length === 0) starting.push(startService(json({ success: true }), port));
      await starting[0];
    };
    await call(client);
    expect((await starting[0])?.seen).toHaveLength(1);
    expect(clock.waits).toHaveLength(1);
  });

  it("ends with ERR_UNREACHABLE, not with an unknown outcome, when no connection can be made at all", async () => {
    const { clock, client } = clientOf(`http://127.0.0.1:${await freePort()}`);
    const error = await errorOf<ClientError>(call(client));
    expect(error.code).toBe("ERR_UNREACHABLE");
    expect(error.fix).toContain("safe to call again");
    expect(clock.waits).toHaveLength(2);
    const nowhere = clientOf("https://no-such-host.invalid", { attempts: 1 }).client;
    expect((await errorOf<ClientError>(call(nowhere))).code).toBe("ERR_UNREACHABLE");
  });

  it("is aborted without harm before it is sent, or between two attempts", async () => {
    const service = await startService(json({}));
    await expect(call(clientOf(service.url).client, AbortSignal.abort())).rejects.toMatchObject({
      code: "ERR_ABORTED",
    });
    expect(service.seen).toEqual([]);

    const { clock, client } = clientOf(`http://127.0.0.1:${await freePort()}`);
    const abort = new AbortController();
    clock.onWait = () => abort.abort();
    await expect(call(client, abort.signal)).rejects.toMatchObject({ code: "ERR_ABORTED" });
    expect(clock.waits).toHaveLength(1);
  });
});

describe("an error that is not known to come before the request", () => {
  it.each([
    ["a reset", Object.assign(new Error("x"), { code: "ECONNRESET", syscall: "read" })],
    ["a broken pipe", Object.assign(new Error("x"), { code: "EPIPE", syscall: "write" })],
    ["another runtime's words", undefined],
    [
      "one address of two that had been connected",
      new AggregateError([Object.assign(new Error("x"), { syscall: "connect" }), new Error("y")]),
    ],
    ["nothing at all", new AggregateError([])],
  ])("counts as perhaps arrived: %s", async (_what, cause) => {
    let calls = 0;
    const fetch = async (): Promise<never> => {
      calls++;
      throw new TypeError("fetch failed", { cause });
    };
    const client = createClient({ baseUrl: "https://api.example.com", ...keys, fetch, clock: testClock() });
    await expect(client.pay(payment)).rejects.toMatchObject({ code: "ERR_OUTCOME_UNKNOWN" });
    expect(calls).toBe(1);
  });

  it("does not include a refused connection, undici's connect timeout or a bad certificate: these come before it", async () => {
    const refused = () => Object.assign(new Error("x"), { code: "ECONNREFUSED", syscall: "connect" });
    const causes = [
      new AggregateError([refused(), refused()]),
      Object.assign(new Error("x"), { code: "UND_ERR_CONNECT_TIMEOUT" }),
      Object.assign(new Error("x"), { code: "CERT_HAS_EXPIRED" }),
    ];
    let calls = 0;
    const fetch = async (): Promise<never> => {
      throw new TypeError("fetch failed", { cause: causes[calls++] });
    };
    const client = createClient({ baseUrl: "https://api.example.com", ...keys, fetch, clock: testClock() });
    await expect(client.pay(payment)).rejects.toMatchObject({ code: "ERR_UNREACHABLE" });
    expect(calls).toBe(3);
  });
});

describe("a look-up", () => {
  it("is aborted under way", async () => {
    const service = await startService(() => {});
    const abort = new AbortController();
    const arrived = service.arrival();
    const called = errorOf<ClientError>(
      clientOf(service.url).client.transactionById("t", { signal: abort.signal }),
    );
    await arrived;
    abort.abort();
    expect((await called).code).toBe("ERR_ABORTED");
    expect(service.seen).toHaveLength(1);
  });

  it("takes its own timeoutMs, which also ends a fetch that ignores its signal", async () => {
    const clock = testClock(77);
    let calls = 0;
    const fetch = (): Promise<never> => {
      calls++;
      queueMicrotask(() => clock.timeUp());
      return new Promise(() => {});
    };
    const client = createClient({ baseUrl: "https://api.example.com", ...keys, fetch, clock, attempts: 2 });
    await expect(client.transactionById("t", { timeoutMs: 77 })).rejects.toMatchObject({
      code: "ERR_TIMEOUT",
    });
    expect(calls).toBe(2);
  });

  it("that finds nothing is not repeated", async () => {
    const service = await startService(json(notFound));
    expect(await clientOf(service.url).client.transactionByReference("order-9")).toBeNull();
    expect(service.seen).toHaveLength(1);
  });
});

describe("redirections", () => {
  it("never take the key to another address", async () => {
    const thief = await startService(json({ success: true }));
    for (const status of [301, 302, 303, 307, 308]) {
      const service = await startService(json({}, status, { location: `${thief.url}/api` }));
      const { client } = clientOf(service.url);
      await expect(client.pay(payment)).rejects.toThrow();
      await expect(client.webhookSettings()).rejects.toMatchObject({ code: "ERR_REDIRECTED" });
    }
    expect(thief.seen).toEqual([]);
  });
});
