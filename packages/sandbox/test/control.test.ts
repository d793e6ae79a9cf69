import { type RequestOptions, request } from "node:http";
import { describe, expect, it } from "vitest";
import { FOREIGN_HOSTS, OWN_HOSTS, rawRequest } from "../../../test/support/raw-request.ts";
import { call, receiver, start } from "./support/start.ts";

describe("the control API", () => {
  it("says who it is, and hands out the keys", async () => {
    const sandbox = await start({ seed: "s" });
    const { publicKey, keyId, apiKey, connectApiKey, merchantId, masterMerchantId, userId } = sandbox.keys;
    const keys = { publicKey, keyId, apiKey, connectApiKey, merchantId, masterMerchantId, userId };
    expect((await call(sandbox, "GET", "/sandbox")).body.data).toEqual({ url: sandbox.url, seed: "s", keys });
    expect((await call(sandbox, "GET", "/sandbox/keys")).body.data).toEqual(keys);
    const pem = await call(sandbox, "GET", "/sandbox/keys/public.pem");
    expect(pem.text).toBe(publicKey);
    const rotated = await call(sandbox, "POST", "/sandbox/keys/rotate", {});
    expect(rotated.body.data).toEqual({
      ...keys,
      keyId: sandbox.keys.keyId,
      publicKey: sandbox.keys.publicKey,
    });
    expect(sandbox.keys.keyId).not.toBe(keyId);
    expect((await call(sandbox, "GET", "/sandbox/keys/public.pem")).text).toBe(sandbox.keys.publicKey);
    expect(JSON.stringify(rotated.body)).not.toContain("PRIVATE");
  });

  it.each([
    ["/sandbox/deposits", "DEPOSIT"],
    ["/sandbox/withdrawals", "WITHDRAWAL"],
  ])("triggers by POST %s and shows the result", async (path, event) => {
    const merchant = await receiver();
    const sandbox = await start({ callbackUrl: merchant.url });
    const made = await call(sandbox, "POST", path, { reference: "r", amount: "3.00", outcome: "FAILED" });
    expect(made).toMatchObject({
      status: 200,
      body: { success: true, data: { transaction: { reference: "r" } } },
    });
    await sandbox.deliveries.waitFor({ event, reference: "r", status: "FAILED", state: "delivered" });
    const transactions = (await call(sandbox, "GET", "/sandbox/transactions")).body.data;
    expect(transactions).toMatchObject([{ history: [{ status: "PENDING" }, { status: "FAILED" }] }]);
    const [delivery] = sandbox.deliveries.list();
    expect((await call(sandbox, "GET", "/sandbox/deliveries")).body.data).toEqual([delivery]);
    expect((await call(sandbox, "GET", "/sandbox/deliveries?state=gave-up")).body.data).toEqual([]);
    expect((await call(sandbox, "GET", `/sandbox/deliveries/${delivery?.id}`)).body.data).toEqual(delivery);
  });

  it("triggers without a body, with every default", async () => {
    const sandbox = await start();
    const { body } = await call(sandbox, "POST", "/sandbox/deposits");
    expect(body.data).toMatchObject({
      order: { amount: "10.00", currency: "ETB", medium: "TELEBIRR", callbackUrl: null },
    });
    const checkout = await call(sandbox, "POST", "/sandbox/checkouts", {});
    expect(checkout.body.data).toMatchObject({
      awaitsCustomer: true,
      url: expect.stringContaining("/checkout/"),
    });
  });

  it("opens a checkout that ends at the sandbox's own pages, even if the merchant's addresses must use HTTPS", async () => {
    const sandbox = await start({ strictHttps: true });
    const own = {
      successUrl: `${sandbox.url}/checkout-success`,
      failedUrl: `${sandbox.url}/checkout-failed`,
    };
    expect(sandbox.checkout()).toMatchObject({ order: own });
    expect((await call(sandbox, "POST", "/sandbox/checkouts", {})).body.data).toMatchObject({ order: own });
    const redirects = { success: `${sandbox.url}/paid`, failed: "https://shop.example/failed" };
    const refused = await call(sandbox, "POST", "/sandbox/checkouts", { redirects });
    expect(refused.status).toBe(400);
    expect(refused.body.data.errors).toEqual([{ field: "redirects.success", message: "must use HTTPS" }]);
    expect(() => sandbox.checkout({ callback_url: "http://127.0.0.1:1/" })).toThrow(
      /callback_url must use HTTPS/,
    );
  });

  it("keeps the rules of the endpoints", async () => {
    const sandbox = await start();
    const answer = await call(sandbox, "POST", "/sandbox/deposits", {
      amount: "1",
      reference: {},
      outcome: "DONE",
    });
    expect(answer.status).toBe(400);
    expect(answer.body.data.errors.map(({ field }) => field)).toEqual(["amount", "reference"]);
    const outcome = await call(sandbox, "POST", "/sandbox/deposits", { outcome: "DONE" });
    expect(outcome.body.data.errors).toMatchObject([{ field: "outcome" }]);
    expect(sandbox.transactions.list()).toEqual([]);
  });

  it.each([{ reference: "sbx-error-1" }, { phone_number: "251900000010" }])(
    "refuses what only a call of the service can show: %j",
    async (input) => {
      const sandbox = await start();
      const answer = await call(sandbox, "POST", "/sandbox/deposits", input);
      expect(answer.status).toBe(409);
      expect(answer.body.data.message).toMatch(/sbx-error works only through the service's own endpoints/);
      expect(() => sandbox.withdraw(input)).toThrow(/own endpoints/);
      expect(() => sandbox.checkout(input)).toThrow(/own endpoints/);
      expect(sandbox.transactions.list()).toEqual([]);
    },
  );

  it("moves transactions, replays deliveries", async () => {
    const merchant = await receiver();
    const sandbox = await start({ callbackUrl: merchant.url });
    const { transaction } = sandbox.deposit({ outcome: "PENDING" });
    const path = `/sandbox/transactions/${transaction.id}`;
    await call(sandbox, "POST", `${path}/status`, { status: "SUCCESS", message: "moved" });
    const delivery = await sandbox.deliveries.waitFor({ state: "delivered" });
    expect((await call(sandbox, "GET", path)).body.data).toMatchObject({ transaction: { message: "moved" } });
    expect((await call(sandbox, "POST", `${path}/status`, { status: "DONE" })).status).toBe(400);
    expect((await call(sandbox, "POST", `${path}/status`, { status: "FAILED", message: 7 })).status).toBe(
      400,
    );
    const replay = await call(sandbox, "POST", `/sandbox/deliveries/${delivery.id}/replay`, { resign: true });
    expect(replay.body.data).toMatchObject({ replayOf: delivery.id });
    await sandbox.deliveries.idle();
    expect(merchant.received).toHaveLength(2);
  });

  it("adds, lists and removes faults", async () => {
    const sandbox = await start();
    const { data } = (await call(sandbox, "POST", "/sandbox/faults", { kind: "duplicate" })).body;
    expect(data).toMatchObject({ kind: "duplicate", remaining: 1 });
    expect((await call(sandbox, "GET", "/sandbox/faults")).body.data).toMatchObject([{ id: data.id }]);
    expect((await call(sandbox, "POST", "/sandbox/faults", { kind: "fire" })).status).toBe(400);
    expect((await call(sandbox, "DELETE", `/sandbox/faults/${data.id}`)).body.data).toEqual([]);
    expect((await call(sandbox, "DELETE", `/sandbox/faults/${data.id}`)).status).toBe(404);
    sandbox.faults.add("reset");
    await call(sandbox, "DELETE", "/sandbox/faults");
    expect(sandbox.faults.list()).toEqual([]);
  });

  it("takes scripts", async () => {
    const sandbox = await start();
    await call(sandbox, "POST", "/sandbox/scripts", { match: "r", outcome: "CANCELLED" });
    await call(sandbox, "POST", "/sandbox/scripts", {
      match: { medium: "CBE" },
      outcome: [{ status: "FAILED" }],
    });
    expect((await call(sandbox, "POST", "/sandbox/scripts", { match: 7, outcome: "FAILED" })).status).toBe(
      400,
    );
    expect(
      (await call(sandbox, "POST", "/sandbox/scripts", { match: { medium: {} }, outcome: "FAILED" })).status,
    ).toBe(400);
    expect((await call(sandbox, "POST", "/sandbox/scripts", {})).status).toBe(400);
    sandbox.deposit({ reference: "r" });
    sandbox.deposit({ reference: "cbe", medium: "CBE" });
    const statuses = () => sandbox.transactions.list().map(({ transaction }) => transaction.status);
    await expect.poll(statuses).toEqual(["CANCELLED", "FAILED"]);
  });

  it("decides on accounts and settlements", async () => {
    const sandbox = await start();
    const account = (await call(sandbox, "POST", "/sandbox/connected-accounts", {})).body.data;
    const decided = await call(sandbox, "POST", `/sandbox/connected-accounts/${account.id}/kyc`, {
      decision: "approved",
    });
    expect(decided.body.data).toEqual({ ...account, kyc_status: "approved" });
    expect((await call(sandbox, "GET", "/sandbox/connected-accounts")).body.data).toEqual([
      decided.body.data,
    ]);
    const given = { amount: 700, connected_account_id: account.id };
    const settlement = (await call(sandbox, "POST", "/sandbox/settlements", given)).body.data;
    expect(settlement).toMatchObject({ ...given, status: "pending" });
    const path = `/sandbox/settlements/${settlement.id}/decision`;
    expect((await call(sandbox, "POST", path, { decision: "declined" })).body.data).toMatchObject({
      status: "declined",
    });
    expect((await call(sandbox, "POST", path, { decision: "maybe" })).status).toBe(400);
    expect((await call(sandbox, "POST", "/sandbox/settlements", { amount: "7" })).status).toBe(400);
    expect((await call(sandbox, "GET", "/sandbox/settlements")).body.data).toMatchObject([
      { status: "declined" },
    ]);
  });

  it("takes and returns settings, and resets", async () => {
    const sandbox = await start();
    const wanted = { webhook_url: "https://m.example", webhook_secret: null, webhook_enabled: true };
    expect((await call(sandbox, "PUT", "/sandbox/settings", wanted)).body.data).toEqual(wanted);
    expect((await call(sandbox, "GET", "/sandbox/settings")).body.data).toEqual(wanted);
    const { apiKey } = sandbox.keys;
    await call(sandbox, "POST", "/sandbox/reset");
    expect(sandbox.settings.get().webhook_enabled).toBe(false);
    expect(sandbox.keys.apiKey).toBe(apiKey);
    await call(sandbox, "POST", "/sandbox/reset", { keys: true });
    expect(sandbox.keys.apiKey).not.toBe(apiKey);
  });

  it("sends changes as server-sent events, escaped rows included", async () => {
    const sandbox = await start();
    const events = await fetch(`${sandbox.url}/sandbox/events`);
    expect(events.headers.get("content-type")).toBe("text/event-stream");
    const reader = events.body?.pipeThrough(new TextDecoderStream()).getReader();
    sandbox.deposit({ reference: "<b>&" });
    let text = "";
    while (!text.includes("data: ")) text += (await reader?.read())?.value ?? "";
    const [fragment] = JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? "[]");
    expect(fragment).toMatchObject({ list: "transaction", id: expect.stringMatching(/^transaction-/) });
    expect(fragment.html).toContain("&lt;b&gt;&amp;");
    expect(fragment.html).not.toContain("<b>");
    await reader?.cancel();
  });
});

describe("who may use the pages and the control API", () => {
  it("not another web site, and no name but this machine's", async () => {
    const sandbox = await start();
    const { host, port } = new URL(sandbox.url);
    const reset = (headers: Record<string, string>) => call(sandbox, "POST", "/sandbox/reset", {}, headers);
    expect((await reset({ Origin: "https://evil.example" })).status).toBe(403);
    expect((await reset({ Origin: "null" })).status).toBe(403);
    expect((await reset({ "Sec-Fetch-Site": "cross-site" })).status).toBe(403);
    expect((await reset({ Origin: `http://${host}` })).status).toBe(200);
    for (const [name, status] of [
      [`localhost:${port}`, 200],
      [`127.0.0.1:${port}`, 200],
      [`rebound.example:${port}`, 403],
    ] as const) {
      expect(await statusFor(sandbox.url, name)).toBe(status);
    }
  });

  it.each(["tunnel.example", "Tunnel.Example", "tunnel.example:8443"])(
    "names that were allowed, with any port and in any case: %s",
    async (name) => {
      const sandbox = await start({ allowedHosts: [name] });
      expect(await statusFor(sandbox.url, "tunnel.example")).toBe(200);
      expect(await statusFor(sandbox.url, "TUNNEL.example:443")).toBe(200);
      expect(await statusFor(sandbox.url, "other.example")).toBe(403);
    },
  );

  it("nobody who passes for this machine, however the name is written", async () => {
    const { url } = await start();
    const asked = async (target: string, ...fields: readonly string[]) =>
      (await rawRequest(url, [`GET ${target} HTTP/1.1`, ...fields])).status;
    for (const host of OWN_HOSTS) expect([host, await asked("/", `Host: ${host}`)]).toEqual([host, 200]);
    for (const host of FOREIGN_HOSTS) {
      expect([host, await asked("/", `Host: ${host}`)]).toEqual([host, expect.toBeOneOf([400, 403])]);
      expect(await asked("/sandbox/keys", `Host: ${host}`, "X-Forwarded-Host: localhost")).not.toBe(200);
    }
    expect(await asked("http://evil.example/", "Host: localhost")).toBe(403);
    expect(await asked("http://localhost/", "Host: evil.example")).toBe(403);
    expect((await rawRequest(url, ["GET / HTTP/1.0"])).status).toBe(400);
  });

  it("other machines, if they may reach it, but no other web site", async () => {
    const { url } = await start({ host: "0.0.0.0", allowRemote: true, allowedHosts: ["pay.test.example"] });
    const at = url.replace("0.0.0.0", "127.0.0.1");
    for (const host of [
      "192.0.2.7:4000",
      "[2001:db8::1]:4000",
      "sandbox:4000",
      "localhost",
      "pay.test.example",
    ]) {
      expect([host, await statusFor(at, host)]).toEqual([host, 200]);
    }
    for (const host of ["evil.example", "evil.example.", "192.0.2.7.evil.example"]) {
      expect([host, await statusFor(at, host)]).toEqual([host, 403]);
    }
  });

  it("is told how to allow another name", async () => {
    const { text } = await getFor((await start()).url, "Tunnel.example:80");
    expect(JSON.parse(text).data.message).toBe(
      'This sandbox does not answer under the host name tunnel.example. Allow it: allowedHosts: ["tunnel.example"], or --allowed-host tunnel.example.',
    );
  });

  it("everybody, the checkout at the address that is handed out, and nothing else there", async () => {
    const sandbox = await start({ publicUrl: "https://Pay.example:8443" });
    const { url } = sandbox.checkout();
    const local = url.replace("https://Pay.example:8443", sandbox.url);
    expect(local).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/checkout\//);
    const { status, text } = await getFor(local, "pay.example:8443");
    expect(status).toBe(200);
    const assets = [...text.matchAll(/<link[^>]+href="([^"]+)"/g)].map(([, path = ""]) => path);
    expect(assets).toContain("/sandbox/assets/checkout.css");
    for (const path of [...assets, "/checkout-success", "/checkout-failed"]) {
      expect(await statusFor(sandbox.url + path, "pay.example:8443")).toBe(200);
    }
    for (const path of ["/", "/sandbox", "/sandbox/keys", "/sandbox/transactions", "/sandbox/events"]) {
      expect(await statusFor(sandbox.url + path, "pay.example:8443")).toBe(403);
    }
    expect(await statusFor(local, "other.example")).toBe(403);
    const paid = await postFor(local, "pay.example:8443", "https://pay.example:8443");
    expect(paid).toBe(303);
    expect(await postFor(local, "pay.example:8443", "https://evil.example")).toBe(403);
  });

  it("the checkout's own page, behind a tunnel that changes the Host header", async () => {
    const sandbox = await start({ publicUrl: "https://Pay.example:8443" });
    const { host } = new URL(sandbox.url);
    const local = sandbox.checkout().url.replace("https://Pay.example:8443", sandbox.url);
    expect(await postFor(local, host, "https://evil.example")).toBe(403);
    expect(await postFor(local, host, "https://pay.example:8443")).toBe(303);
    const headers = { Origin: "https://pay.example:8443" };
    const refused = await call(sandbox, "POST", "/sandbox/reset", {}, headers);
    expect(refused.status).toBe(403);
    expect(refused.body.data.message).toContain("set publicUrl, or --public-url");
  });

  it("nobody by a form of another site: the control API takes JSON only", async () => {
    const sandbox = await start();
    const headers = { "Content-Type": "application/x-www-form-urlencoded" };
    expect((await call(sandbox, "POST", "/sandbox/faults", "kind=reset", headers)).status).toBe(400);
  });
});

interface Shown {
  readonly status: number | undefined;
  readonly text: string;
}

/** The answer to a Host header of one's own, which fetch would not send. */
function ask(url: string, options: RequestOptions, body = ""): Promise<Shown> {
  return new Promise((resolve, reject) => {
    request(url, options, async (response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk);
      resolve({ status: response.statusCode, text: Buffer.concat(chunks).toString("utf8") });
    })
      .on("error", reject)
      .end(body);
  });
}

const getFor = (url: string, host: string) => ask(url, { headers: { Host: host } });
const statusFor = async (url: string, host: string) => (await getFor(url, host)).status;

/** Cancels a checkout by its form, as a page of the origin does. */
async function postFor(url: string, host: string, origin: string): Promise<number | undefined> {
  const headers = { Host: host, Origin: origin, "Content-Type": "application/x-www-form-urlencoded" };
  return (await ask(url, { method: "POST", headers }, "decision=cancel")).status;
}
