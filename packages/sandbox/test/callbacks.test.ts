import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { MAGIC_OUTCOMES } from "../src/payments/magic.ts";
import { type Callback, canonical, verifies } from "./support/signature.ts";
import { atEnd, checkout, pay, payment, receiver, start } from "./support/start.ts";

const OPENSSL = "openssl";

describe("a payment callback", () => {
  it("carries every field of the specification, in its form", async () => {
    const merchant = await receiver();
    const sandbox = await start();
    const body = payment({ callback_url: `${merchant.url}?shop=1&x=2`, amount: "1234.50" });
    const answer = await pay(sandbox, "POST", "/direct", body);
    const delivery = await sandbox.deliveries.waitFor({ state: "delivered" });
    const [request] = merchant.received;
    expect(request).toMatchObject({ method: "POST", url: "/callbacks?shop=1&x=2" });
    expect(request?.headers["content-type"]).toBe("application/json");
    const callback: Callback = JSON.parse(request?.body ?? "");
    expect(callback).toEqual({
      event: "DEPOSIT",
      referenceId: body.reference,
      payTxnId: answer.body.data.id,
      status: "SUCCESS",
      amount: "1234.500000",
      callbackUrl: body.callback_url,
      message: "The transaction was completed successfully.",
      providerTxId: expect.stringMatching(/^TB[0-9A-Z]{10}$/),
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/),
      merchantId: sandbox.keys.merchantId,
      userId: sandbox.keys.userId,
      signature: expect.stringMatching(/^[A-Za-z0-9+/]{342}==$/),
    });
    expect(Math.abs(Date.parse(callback.timestamp ?? "") - Date.now())).toBeLessThan(60_000);
    expect(verifies(callback, sandbox.keys.publicKey)).toBe(true);
    expect(delivery.attempts).toEqual([
      {
        number: 1,
        at: expect.any(String),
        url: body.callback_url,
        headers: expect.objectContaining({ "Content-Type": "application/json" }),
        body: request?.body,
        canonicalString: canonical(callback),
        signature: callback.signature,
        keyId: sandbox.keys.keyId,
        answer: { status: 200, bodyExcerpt: "answer 200" },
        error: null,
        acknowledged: true,
        durationMs: expect.any(Number),
        faults: [],
      },
    ]);
  });

  it("is accepted by the openssl command, with the key that is downloaded", async () => {
    const merchant = await receiver();
    const sandbox = await start();
    const pem = await fetch(`${sandbox.url}/sandbox/keys/public.pem`);
    expect(pem.headers.get("content-disposition")).toContain("public.pem");
    sandbox.deposit({ callback_url: merchant.url, description: "naïve – ünïcode", reference: "Ω-7&x=1" });
    await sandbox.deliveries.waitFor({ state: "delivered" });
    const callback: Callback = JSON.parse(merchant.received[0]?.body ?? "");
    const folder = mkdtempSync(join(tmpdir(), "payhooks-openssl-"));
    try {
      writeFileSync(join(folder, "public.pem"), await pem.text());
      writeFileSync(join(folder, "text"), canonical(callback));
      writeFileSync(join(folder, "signature"), Buffer.from(callback.signature ?? "", "base64"));
      const args = ["dgst", "-sha256", "-verify", "public.pem", "-signature", "signature", "text"];
      expect(execFileSync(OPENSSL, args, { cwd: folder, encoding: "utf8" }).trim()).toBe("Verified OK");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("announces a withdrawal as WITHDRAWAL, with its medium's failure", async () => {
    const merchant = await receiver();
    const sandbox = await start();
    const body = payment({ callback_url: merchant.url, medium: "MPESA" });
    sandbox.script(String(body.reference), "FAILED");
    const { data } = (await pay(sandbox, "POST", "/withdrawal", body)).body;
    await sandbox.deliveries.waitFor({ state: "delivered" });
    expect(JSON.parse(merchant.received[0]?.body ?? "")).toMatchObject({
      event: "WITHDRAWAL",
      status: "FAILED",
      message: "The balance is insufficient for the transaction.",
    });
    const shown = await pay(sandbox, "GET", `/transaction/${data.id}`);
    expect(shown.body.data).toMatchObject({
      status: "FAILED",
      webhook_received: true,
      details: { RawMessage: expect.stringContaining("insufficient"), Valid: false },
    });
  });

  it("of a PENDING step has no provider id yet: null in the body, left out of the signed string", async () => {
    const merchant = await receiver();
    const sandbox = await start();
    sandbox.deposit({ callback_url: merchant.url, outcome: [{ status: "PENDING" }, { status: "SUCCESS" }] });
    await sandbox.deliveries.waitFor({ status: "SUCCESS", state: "delivered" });
    await sandbox.deliveries.waitFor({ status: "PENDING", state: "delivered" });
    const callbacks = merchant.received.map(({ body }): Callback => JSON.parse(body));
    const pending = callbacks.find(({ status }) => status === "PENDING") ?? {};
    expect(pending.providerTxId).toBe(null);
    expect(canonical(pending)).not.toContain("providerTxId");
    expect(callbacks.map((one) => verifies(one, sandbox.keys.publicKey))).toEqual([true, true]);
  });

  it("is not sent for CANCELLED, which callbacks do not carry, nor without an address", async () => {
    const merchant = await receiver();
    const sandbox = await start();
    const cancelled = sandbox.deposit({ callback_url: merchant.url, outcome: "CANCELLED" });
    const silent = sandbox.deposit();
    const spoken = sandbox.deposit({ callback_url: merchant.url });
    await sandbox.deliveries.waitFor({ reference: spoken.transaction.reference, state: "delivered" });
    expect(sandbox.transactions.get(cancelled.transaction.id)?.transaction.status).toBe("CANCELLED");
    expect(sandbox.transactions.get(silent.transaction.id)?.transaction.status).toBe("SUCCESS");
    expect(merchant.received).toHaveLength(1);
  });

  it("goes out for a checkout only after the customer decided", async () => {
    const merchant = await receiver();
    const sandbox = await start();
    const { data } = (await pay(sandbox, "POST", "/checkout", checkout({ callback_url: merchant.url }))).body;
    sandbox.transactions.decide(data.id, "pay", "CBE");
    await sandbox.deliveries.waitFor({ state: "delivered" });
    expect(JSON.parse(merchant.received[0]?.body ?? "")).toMatchObject({
      event: "DEPOSIT",
      payTxnId: data.id,
    });
    expect(sandbox.transactions.get(data.id)?.transaction).toMatchObject({
      medium: "CBE",
      status: "SUCCESS",
    });
  });
});

describe("the address of a delivery", () => {
  it("may have its scheme in capitals", async () => {
    const plain = await receiver();
    const secure = await tlsReceiver();
    const sandbox = await start({ ca: secure.certificate });
    for (const url of [secure.url, plain.url]) {
      const written = url.replace(/^https?/, (scheme) => scheme.toUpperCase());
      const body = payment({ callback_url: written });
      expect(await pay(sandbox, "POST", "/direct", body)).toMatchObject({ status: 200 });
      const { reference } = body as { readonly reference: string };
      const delivery = await sandbox.deliveries.waitFor({ reference, state: "delivered" });
      expect(delivery.attempts).toMatchObject([{ url: written, answer: { status: 200 }, error: null }]);
    }
    expect(secure.requests()).toBe(1);
  });

  it("fails the delivery if nothing can be sent there, and the sandbox goes on", async () => {
    const merchant = await receiver();
    const sandbox = await start({ retry: { maxAttempts: 1 } });
    const webhook_url = "http://%ff@127.0.0.1:9/hooks";
    sandbox.settings.set({ webhook_url, webhook_secret: null, webhook_enabled: true });
    sandbox.accounts.decide(sandbox.accounts.create().id, "approved");
    const broken = payment({ callback_url: "http://%ff@127.0.0.1:9/cb" });
    expect(await pay(sandbox, "POST", "/direct", broken)).toMatchObject({ status: 200 });
    for (const flow of ["payments", "connect"] as const) {
      const { attempts } = await sandbox.deliveries.waitFor({ flow, state: "gave-up" });
      expect(attempts).toMatchObject([{ answer: null, error: "URI malformed", acknowledged: false }]);
    }
    const right = payment({ callback_url: merchant.url });
    await pay(sandbox, "POST", "/direct", right);
    await sandbox.deliveries.waitFor({ state: "delivered" });
    expect(merchant.received).toHaveLength(1);
  });
});

/** A merchant's server on HTTPS, with a certificate of its own. */
async function tlsReceiver(): Promise<{ url: string; certificate: string; requests: () => number }> {
  const folder = mkdtempSync(join(tmpdir(), "payhooks-tls-"));
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const named = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"];
  execFileSync(
    OPENSSL,
    ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-keyout", key, "-out", cert, ...named],
    { stdio: "ignore" },
  );
  const certificate = readFileSync(cert, "utf8");
  let count = 0;
  const server = createServer({ key: readFileSync(key), cert: certificate }, (request, response) => {
    count += 1;
    request.resume().on("end", () => response.end());
  });
  rmSync(folder, { recursive: true });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(() => server.close());
  const { port } = server.address() as AddressInfo;
  return { url: `https://127.0.0.1:${port}/callbacks`, certificate, requests: () => count };
}

describe("the outcome of a transaction", () => {
  const statusesOf = (sandbox: Awaited<ReturnType<typeof start>>, id: string) =>
    sandbox.transactions.get(id)?.history.map(({ status }) => status);

  it("is said by reference before number, medium and default", async () => {
    const sandbox = await start({ outcome: "CANCELLED" });
    sandbox.script({ medium: "MPESA" }, "FAILED");
    sandbox.script({ phoneNumber: "251911111111" }, [{ status: "FAILED", message: "by number" }]);
    sandbox.script("mine", [{ status: "SUCCESS", message: "by reference" }]);
    const cases = [
      sandbox.deposit({ reference: "mine", medium: "MPESA", phone_number: "251911111111" }),
      sandbox.deposit({ reference: "a", medium: "MPESA", phone_number: "251911111111" }),
      sandbox.deposit({ reference: "b", medium: "MPESA" }),
      sandbox.withdraw({ reference: "c", medium: "CBE" }),
    ].map(({ transaction }) => transaction.id);
    await expect
      .poll(() => cases.map((id) => sandbox.transactions.get(id)?.transaction.status))
      .toEqual(["SUCCESS", "FAILED", "FAILED", "CANCELLED"]);
    const messages = cases.map((id) => sandbox.transactions.get(id)?.transaction.message);
    expect(messages.slice(0, 2)).toEqual(["by reference", "by number"]);
  });

  it.each(MAGIC_OUTCOMES.filter(({ path }) => path?.every(({ afterMs }) => !afterMs)))(
    "is said by the magic reference and number of $name",
    async ({ name, number, path = [] }) => {
      const merchant = await receiver();
      const sandbox = await start({ callbackUrl: merchant.url });
      const records = [
        sandbox.deposit({ reference: `sbx-${name}-1` }),
        sandbox.deposit({ phone_number: `251900000${number}` }),
      ];
      const isFinal = path.map(({ status }) => status).filter((status) => status !== "PENDING");
      for (const { transaction } of records) {
        const wanted = name === "progress" ? ["PENDING", "PENDING", ...isFinal] : ["PENDING", ...isFinal];
        await expect.poll(() => statusesOf(sandbox, transaction.id)).toEqual(wanted);
        for (const { status, callback } of path) {
          if (status === "CANCELLED" || callback === false) continue;
          await sandbox.deliveries.waitFor({ reference: transaction.reference, status, state: "delivered" });
        }
      }
    },
  );

  it("keeps a result when a late PENDING callback goes out", async () => {
    const merchant = await receiver();
    const sandbox = await start({ callbackUrl: merchant.url });
    const { transaction } = sandbox.deposit({ reference: "sbx-late-pending" });
    await sandbox.deliveries.waitFor({ status: "PENDING", state: "delivered" });
    expect(sandbox.transactions.get(transaction.id)?.transaction.status).toBe("SUCCESS");
  });

  it("answers 500 to the magic reference and number of errors, and keeps nothing", async () => {
    const sandbox = await start();
    for (const body of [payment({ reference: "sbx-error-1" }), payment({ phone_number: "251900000010" })]) {
      expect((await pay(sandbox, "POST", "/direct", body)).status).toBe(500);
    }
    expect(sandbox.transactions.list()).toEqual([]);
  });

  it("refuses a script that is none", async () => {
    const sandbox = await start();
    for (const outcome of [
      "DONE",
      7,
      null,
      [{ status: "DONE" }],
      [{ status: "FAILED", afterMs: -1 }],
      [null],
    ]) {
      expect(() => sandbox.script("x", outcome as never)).toThrow(/outcome must be/);
    }
    expect(() => sandbox.script({ phoneNumber: 7 } as never, "FAILED")).toThrow(/match must hold/);
  });

  it("can be moved by hand, and that drops the planned steps", async () => {
    const merchant = await receiver();
    const sandbox = await start({ callbackUrl: merchant.url, delayMs: 3_600_000 });
    const { transaction } = sandbox.deposit();
    sandbox.transactions.setStatus(transaction.id, "FAILED", { message: "by hand" });
    await sandbox.deliveries.waitFor({ status: "FAILED", state: "delivered" });
    expect(sandbox.transactions.get(transaction.id)).toMatchObject({
      coming: [],
      transaction: { message: "by hand" },
    });
    expect(() => sandbox.transactions.setStatus("nobody", "FAILED")).toThrow(/no transaction nobody/);
  });
});
