import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { createSandbox } from "../src/index.ts";
import { manualClock } from "./support/manual-clock.ts";
import { type Callback, verifies } from "./support/signature.ts";
import { atEnd, call, pay, payment, privateKey, receiver, start } from "./support/start.ts";

describe("createSandbox", () => {
  it("makes keys of its own", async () => {
    const sandbox = await createSandbox();
    expect(sandbox.keys.publicKey).toMatch(/^-----BEGIN PUBLIC KEY-----/);
    expect(sandbox.keys.apiKey).toMatch(/^pk_sandbox_[0-9a-f]+:sk_sandbox_[0-9a-f]+$/);
    expect(sandbox.keys.connectApiKey).toMatch(/^ck_sandbox_[0-9a-f]+$/);
    await sandbox.close();
  });

  it.each([
    [{ host: "0.0.0.0" }, /can be reached from other machines/],
    [{ host: "::" }, /can be reached from other machines/],
    [{ port: 70_000 }, /option port/],
    [{ delayMs: -1 }, /option delayMs/],
    [{ delayMs: 1e13 }, /option delayMs/],
    [{ retry: { baseMs: 1e13 } }, /option retry.baseMs/],
    [{ retry: { maxMs: 1e13 } }, /option retry.maxMs/],
    [{ answerTimeoutMs: 1e13 }, /option answerTimeoutMs/],
    [{ outcome: [{ status: "SUCCESS" as const, afterMs: 1e13 }] }, /outcome must be/],
    [{ retry: { jitter: 2 } }, /option retry.jitter/],
    [{ limits: { deliveries: 0 } }, /option limits.deliveries/],
    [{ mediums: [] }, /option mediums/],
    [{ publicUrl: "nowhere" }, /option publicUrl/],
    [{ publicUrl: "localhost:4000" }, /option publicUrl/],
    [{ outcome: "DONE" as never }, /outcome must be/],
    [{ faults: ["fire" as never] }, /kind must be one of/],
    [{ merchant: { privateKey: "none" } }, /not readable/],
    [
      { settings: { webhook_url: "http://m.example", webhook_secret: null, webhook_enabled: true } },
      /must use HTTPS/,
    ],
  ])("refuses %j", async (options, message) => {
    await expect(createSandbox(options)).rejects.toThrow(message);
  });

  it("listens to other machines on request", async () => {
    const sandbox = await start({ host: "0.0.0.0", allowRemote: true });
    expect(new URL(sandbox.url).hostname).toBe("0.0.0.0");
    expect((await call(sandbox, "GET", "/sandbox", undefined, { Host: "sandbox" })).status).toBe(200);
  });

  it("says so when the port is taken", async () => {
    const sandbox = await start();
    const port = Number(new URL(sandbox.url).port);
    await expect(createSandbox({ port })).rejects.toMatchObject({ code: "ERR_PORT_IN_USE" });
  });

  it("says so when it cannot listen on the address", async () => {
    await expect(createSandbox({ host: "203.0.113.7", allowRemote: true, port: 4001 })).rejects.toMatchObject(
      {
        code: "ERR_CANNOT_LISTEN",
        message:
          "Cannot listen on 203.0.113.7:4001 (EADDRNOTAVAIL). Ports below 1024 may need rights; the address must be one of this machine.",
      },
    );
  });

  it("can be made twice; neither knows of the other", async () => {
    const merchant = await receiver();
    const [one, two] = [
      await start({ callbackUrl: merchant.url }),
      await start({ callbackUrl: merchant.url }),
    ];
    one.faults.add("extra-field");
    one.deposit({ reference: "same" });
    two.deposit({ reference: "same" });
    await Promise.all([one, two].map((sandbox) => sandbox.deliveries.waitFor({ state: "delivered" })));
    expect(two.deliveries.list()[0]?.attempts[0]?.faults).toEqual([]);
    expect(one.keys.apiKey).not.toBe(two.keys.apiKey);
    expect(
      (await call(two, "GET", "/api/v2/payment/transaction/x", undefined, { "X-API-Key": one.keys.apiKey }))
        .status,
    ).toBe(401);
  });
});

describe("many at once", () => {
  it("300 payments give 300 callbacks, each with its own id and a signature that fits", async () => {
    const merchant = await receiver();
    const sandbox = await start();
    const bodies = Array.from({ length: 300 }, () => payment({ callback_url: merchant.url }));
    const answers = await Promise.all(bodies.map((body) => pay(sandbox, "POST", "/direct", body)));
    expect(new Set(answers.map(({ body }) => body.data.id)).size).toBe(300);
    await expect.poll(() => sandbox.deliveries.list({ state: "delivered" })).toHaveLength(300);
    const callbacks = merchant.received.map(({ body }): Callback => JSON.parse(body));
    expect(new Set(callbacks.map(({ payTxnId }) => payTxnId)).size).toBe(300);
    expect(callbacks.every((one) => verifies(one, sandbox.keys.publicKey))).toBe(true);
    expect(new Set(callbacks.map(({ timestamp }) => timestamp)).size).toBe(300);
  });

  it("of the same reference only one payment is taken", async () => {
    const sandbox = await start();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => pay(sandbox, "POST", "/direct", payment({ reference: "one" }))),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 400)).toHaveLength(19);
  });
});

describe("the limits", () => {
  it("let the oldest finished transactions and deliveries go, with their references", async () => {
    const merchant = await receiver();
    const sandbox = await start({ callbackUrl: merchant.url, limits: { transactions: 3, deliveries: 2 } });
    sandbox.deposit({ reference: "waits", outcome: "PENDING" });
    for (const reference of ["a", "b", "c", "d"]) {
      sandbox.deposit({ reference });
      await sandbox.deliveries.waitFor({ reference, state: "delivered" });
    }
    expect(sandbox.transactions.list().map(({ transaction }) => transaction.reference)).toEqual([
      "waits",
      "c",
      "d",
    ]);
    expect(sandbox.deliveries.list().map(({ reference }) => reference)).toEqual(["c", "d"]);
    expect(sandbox.transactions.byReference("a")).toBe(undefined);
  });

  it("hold for accounts too", async () => {
    const sandbox = await start({ limits: { accounts: 2 } });
    for (let made = 0; made < 5; made++) sandbox.accounts.create();
    expect(sandbox.accounts.list()).toHaveLength(2);
  });
});

describe("waiting for a delivery", () => {
  it("ends with an error that names the deliveries that came instead", async () => {
    const merchant = await receiver();
    const sandbox = await start({ callbackUrl: merchant.url });
    sandbox.deposit({ reference: "another" });
    await sandbox.deliveries.waitFor({ state: "delivered" });
    const waiting = sandbox.deliveries.waitFor({ reference: "none" }, { timeoutMs: 20 });
    await expect(waiting).rejects.toThrow(/within 20 ms.*DEPOSIT SUCCESS another \(delivered\)/);
  });

  it.each([3_000_000_000, Number.POSITIVE_INFINITY])(
    "may take longer than a timer of the platform can wait: %s ms",
    async (timeoutMs) => {
      const merchant = await receiver();
      const sandbox = await start({ callbackUrl: merchant.url });
      const waiting = sandbox.deliveries.waitFor({ state: "delivered" }, { timeoutMs });
      await new Promise((resolve) => setTimeout(resolve, 20));
      sandbox.deposit({ reference: "late" });
      expect(await waiting).toMatchObject({ state: "delivered" });
    },
  );
});

describe("reset", () => {
  it("clears transactions, deliveries, timers, faults, scripts, accounts and settings, and keeps the keys", async () => {
    const merchant = await receiver();
    merchant.answerWith(500);
    const clock = manualClock();
    const sandbox = await start({ clock, callbackUrl: merchant.url });
    const before = { ...sandbox.keys };
    sandbox.deposit({ reference: "a" });
    await clock.advance(0, sandbox);
    sandbox.deposit({ reference: "b", outcome: [{ status: "SUCCESS", afterMs: 60_000 }] });
    sandbox.faults.add("duplicate");
    sandbox.script({}, "FAILED");
    sandbox.settlements.create({ amount: 5 });
    sandbox.settings.set({ webhook_url: merchant.url, webhook_secret: null, webhook_enabled: true });
    await sandbox.reset();
    expect(clock.waiting()).toEqual([]);
    expect(sandbox.transactions.list()).toEqual([]);
    expect(sandbox.deliveries.list()).toEqual([]);
    expect(sandbox.faults.list()).toEqual([]);
    expect(sandbox.accounts.list()).toEqual([]);
    expect(sandbox.settlements.list()).toEqual([]);
    expect(sandbox.settings.get().webhook_enabled).toBe(false);
    expect({ ...sandbox.keys }).toEqual(before);
    sandbox.deposit({ reference: "a" });
    await clock.advance(0, sandbox);
    expect(sandbox.transactions.byReference("a")?.transaction.status).toBe("SUCCESS");
  });

  it("makes new keys when it is asked to, and puts given settings back", async () => {
    const given = { webhook_url: "https://m.example", webhook_secret: "x".repeat(20), webhook_enabled: true };
    const sandbox = await start({ settings: given });
    const { publicKey, apiKey, merchantId } = sandbox.keys;
    sandbox.settings.set({ ...given, webhook_enabled: false });
    await sandbox.reset({ keys: true });
    expect(sandbox.settings.get()).toEqual(given);
    expect(sandbox.keys.publicKey).not.toBe(publicKey);
    expect(sandbox.keys.apiKey).not.toBe(apiKey);
    expect(sandbox.keys.merchantId).not.toBe(merchantId);
  });

  it("puts given faults back, which happen to the same calls again", async () => {
    const faults = ["duplicate", { kind: "api-error", rate: 0.5, path: "/transaction" }] as const;
    const sandbox = await start({ faults, seed: "seed" });
    const statuses = async () => {
      const found: number[] = [];
      for (let call = 0; call < 20; call++) found.push((await pay(sandbox, "GET", "/transaction/x")).status);
      return found;
    };
    const before = await statuses();
    expect(new Set(before)).toEqual(new Set([200, 500]));
    sandbox.faults.clear();
    sandbox.faults.add("delay");
    await sandbox.reset();
    expect(sandbox.faults.list()).toMatchObject([{ kind: "duplicate", remaining: 1 }, { kind: "api-error" }]);
    expect(await statuses()).toEqual(before);
  });

  it("ends attempts that are under way, which leave no trace", async () => {
    const merchant = await receiver();
    const asked = new Promise<void>((resolve) => merchant.answerWith(() => resolve()));
    const sandbox = await start({ callbackUrl: merchant.url });
    sandbox.deposit();
    await asked;
    await sandbox.reset();
    await sandbox.deliveries.idle();
    expect(sandbox.deliveries.list()).toEqual([]);
  });
});

describe("close", () => {
  it("ends open connections, live events and attempts, and may be called again", async () => {
    const merchant = await receiver();
    const asked = new Promise<void>((resolve) => merchant.answerWith(() => resolve()));
    const sandbox = await start({ callbackUrl: merchant.url });
    const { port, hostname } = new URL(sandbox.url);
    const idle = connect(Number(port), hostname);
    const ended = new Promise((resolve) => idle.on("close", resolve));
    await new Promise((resolve) => idle.on("connect", resolve));
    const events = await fetch(`${sandbox.url}/sandbox/events`);
    const read = events.text().catch(() => "ended");
    sandbox.deposit();
    await asked;
    await sandbox.close();
    await Promise.all([ended, read]);
    await sandbox.close();
    expect(() => sandbox.deposit()).toThrow(/closed/);
    await expect(fetch(sandbox.url)).rejects.toThrow();
  });
});

describe("the state file", () => {
  let folder = "";
  beforeEach(() => {
    const made = mkdtempSync(join(tmpdir(), "payhooks-state-"));
    folder = made;
    atEnd(() => rmSync(made, { recursive: true }));
  });
  const file = () => join(folder, "sandbox.json");

  it("keeps keys, ids and webhook settings over a restart, and nothing else", async () => {
    const first = await createSandbox({ state: file(), merchant: { privateKey } });
    const settings = { webhook_url: "https://m.example", webhook_secret: "secret", webhook_enabled: true };
    first.settings.set(settings);
    first.deposit();
    const keys = { ...first.keys };
    await first.close();
    const second = await start({ state: file() });
    expect({ ...second.keys, rotate: null }).toEqual({ ...keys, rotate: null });
    expect(second.settings.get()).toEqual(settings);
    expect(second.transactions.list()).toEqual([]);
    second.settings.set({ ...settings, webhook_enabled: false });
    await second.reset();
    expect(second.settings.get(), "after a reset").toEqual(settings);
  });

  it("gives way to ids, API keys and settings that the options give, and keeps the others", async () => {
    const first = await createSandbox({ state: file(), merchant: { privateKey } });
    const settings = { webhook_url: "https://m.example", webhook_secret: "secret", webhook_enabled: true };
    first.settings.set({ ...settings, webhook_url: "https://old.example" });
    const keys = { ...first.keys };
    await first.close();
    const merchant = { apiKey: "public:secret", userId: "somebody" };
    const second = await start({ state: file(), merchant, settings });
    expect({ ...second.keys, rotate: null }).toEqual({ ...keys, ...merchant, rotate: null });
    expect(second.settings.get()).toEqual(settings);
    expect(JSON.parse(readFileSync(file(), "utf8"))).toMatchObject({ merchant, connect: { settings } });
  });

  it("with another private key than the one in the options is refused, and left as it is", async () => {
    await (await createSandbox({ state: file() })).close();
    const text = readFileSync(file(), "utf8");
    await expect(createSandbox({ state: file(), merchant: { privateKey } })).rejects.toMatchObject({
      code: "ERR_OPTION_INVALID",
      message: `The state file ${file()} holds another private key than the one given. Leave the private key out to go on with the saved one, or delete the file to start with the given one.`,
    });
    expect(readFileSync(file(), "utf8")).toBe(text);
  });

  it("is not touched before the port is free", async () => {
    await (await createSandbox({ state: file(), merchant: { privateKey } })).close();
    const text = readFileSync(file(), "utf8");
    const port = Number(new URL((await start()).url).port);
    for (const state of [file(), join(folder, "new.json")]) {
      await expect(createSandbox({ state, port })).rejects.toMatchObject({ code: "ERR_PORT_IN_USE" });
    }
    expect(readFileSync(file(), "utf8")).toBe(text);
    expect(readdirSync(folder)).toEqual(["sandbox.json"]);
  });

  it("is for its owner's eyes, has the present key, and leaves nothing beside it", async () => {
    const sandbox = await start({ state: file() });
    // Windows has no such modes.
    if (process.platform !== "win32") expect(statSync(file()).mode & 0o777).toBe(0o600);
    const saved = (): string => JSON.parse(readFileSync(file(), "utf8")).privateKey;
    const before = saved();
    await sandbox.keys.rotate();
    expect(saved()).not.toBe(before);
    await sandbox.close();
    expect(readdirSync(folder)).toEqual(["sandbox.json"]);
  });

  it.each([
    "{",
    "",
    "null",
    '{"version":2}',
    { version: 1 },
    { privateKey: "none" },
    { merchant: {} },
    { connect: { settings: {} } },
  ])("that is not one is refused and left as it is: %j", async (wrong) => {
    await (await createSandbox({ state: file(), merchant: { privateKey } })).close();
    const right = JSON.parse(readFileSync(file(), "utf8"));
    const text = typeof wrong === "string" ? wrong : JSON.stringify({ ...right, ...wrong });
    writeFileSync(file(), text);
    await expect(createSandbox({ state: file() })).rejects.toMatchObject({
      code: "ERR_STATE_FILE",
      message: `${file()} is not a state file of the sandbox, or it is damaged. Give another file, or delete it to start with new keys.`,
    });
    expect(readFileSync(file(), "utf8")).toBe(text);
  });

  it("that cannot be written or read is reported at once", async () => {
    const state = join(folder, "missing", "sandbox.json");
    await expect(createSandbox({ state })).rejects.toMatchObject({
      code: "ERR_STATE_FILE",
      message: `The state file ${state} cannot be written (ENOENT). Check that its folder exists, and that you may write there.`,
    });
    await expect(createSandbox({ state: folder })).rejects.toMatchObject({
      code: "ERR_STATE_FILE",
      message: `The state file ${folder} cannot be read (EISDIR). Check that it is a file, and that you may read it.`,
    });
  });
});
