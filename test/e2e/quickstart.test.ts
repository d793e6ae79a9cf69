import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  anyCallbackFields,
  callbackFields,
  connectEvent,
  createTestKeys,
  forgedCallback,
  type SignedDelivery,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { BusySenders } from "./busy-senders.ts";
import { RunningProgram } from "./program.ts";

const { publicKey, privateKey } = createTestKeys();
const secret = "whsec_0123456789abcdef";
const environment = { PAY_PUBLIC_KEY: publicKey, CONNECT_WEBHOOK_SECRET: secret, PORT: "0" };
const quickstart = "examples/express/src/quickstart.ts";

const deposit = (fields: Parameters<typeof callbackFields>[0] = {}): SignedDelivery =>
  signPaymentCallback(anyCallbackFields(fields), privateKey);

describe("the quick start of the README, as a process of its own", () => {
  let program: RunningProgram;
  let base: string;
  let folder: string;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "payhooks-quickstart-"));
    program = new RunningProgram(quickstart, [], { ...environment, PAYHOOKS_FILE: join(folder, "inbox.db") });
    const [, port] = await program.until(/listening .*port: (\d+)/);
    base = `http://127.0.0.1:${port}`;
  });

  afterEach(async () => {
    program.kill();
    await program.exitCode;
    rmSync(folder, { recursive: true });
  });

  async function post(path: string, { headers, rawBody }: SignedDelivery): Promise<[number, unknown]> {
    const response = await fetch(base + path, { method: "POST", headers, body: rawBody });
    return [response.status, await response.json()];
  }

  const linesWith = (text: string): readonly string[] =>
    program.output.split("\n").filter((line) => line.includes(text));

  it("runs a deposit's handler once, however often its callback arrives", async () => {
    const delivery = deposit({ referenceId: "order-1", amount: "10.500000" });
    for (let copy = 0; copy < 3; copy++) {
      expect(await post("/callbacks/pay", delivery)).toEqual([200, { received: true }]);
    }
    await program.until(/credit 10\.500000 for order-1 once as [0-9a-f]{48}\.deposit\n/);
    // A run of a copy would come before this later event.
    await post("/callbacks/pay", deposit({ event: "WITHDRAWAL", status: "FAILED", referenceId: "order-2" }));
    await program.until(/refund order-2/);
    expect(linesWith("order-1")).toHaveLength(1);
  });

  it("runs a settlement's handler once, however often its webhook arrives", async () => {
    const delivery = signConnectWebhook(connectEvent("settlement.approved"), secret);
    await post("/webhooks/connect", delivery);
    await post("/webhooks/connect", delivery);
    await program.until(/book wd_\S+: 125000\n/);
    await post("/webhooks/connect", signConnectWebhook(connectEvent("connected_account.approved"), secret));
    await program.until(/activate cm_/);
    expect(linesWith("book wd_")).toHaveLength(1);
  });

  it("refuses what was not signed by the service, and runs nothing", async () => {
    const forged = forgedCallback(
      callbackFields({ referenceId: "forged" }),
      { amount: "9.000000" },
      privateKey,
    );
    expect(await post("/callbacks/pay", forged)).toEqual([401, { error: { code: "ERR_SIGNATURE_INVALID" } }]);
    const webhook = signConnectWebhook(connectEvent("settlement.approved"), "another secret");
    expect(await post("/webhooks/connect", webhook)).toEqual([
      400,
      { error: { code: "ERR_SIGNATURE_INVALID" } },
    ]);
    await post("/callbacks/pay", deposit({ referenceId: "order-3" }));
    await program.until(/for order-3/);
    expect([...linesWith("forged"), ...linesWith("book")]).toEqual([]);
  });

  it("knows after a kill -9 what it did before it", async () => {
    const delivery = deposit({ referenceId: "order-4" });
    await post("/callbacks/pay", delivery);
    await program.until(/for order-4/);
    // A later answer: the end of the first handler is stored with it, or before it.
    await post("/callbacks/pay", deposit({ referenceId: "order-5" }));
    await program.until(/for order-5/);
    program.kill();
    await program.exitCode;
    program = new RunningProgram(quickstart, [], { ...environment, PAYHOOKS_FILE: join(folder, "inbox.db") });
    const [, port] = await program.until(/listening .*port: (\d+)/);
    base = `http://127.0.0.1:${port}`;
    expect(await post("/callbacks/pay", delivery)).toEqual([200, { received: true }]);
    await post("/callbacks/pay", deposit({ referenceId: "order-6" }));
    await program.until(/for order-6/);
    expect(linesWith("order-4")).toEqual([]);
  });

  it("ends when it is told to, although senders keep their connections alive, and one says nothing", async () => {
    const port = Number(new URL(base).port);
    const senders = new BusySenders(port, "/callbacks/pay", () => deposit({ referenceId: "busy" }));
    await vi.waitFor(() => expect(senders.answers.get(200)).toBeGreaterThan(100), 20_000);
    const from = performance.now();
    program.signal("SIGTERM");
    expect(await program.exitCode).toBe(0);
    expect(performance.now() - from).toBeLessThan(8_000);
    await senders.stop();
    expect(senders.answers.get(503) ?? 0).toBeLessThanOrEqual(senders.connections);
    expect([...senders.answers.keys()].filter((status) => status !== 200 && status !== 503)).toEqual([]);
  });

  it("ends with 0 when it is told to stop; what it had acknowledged by then, it or the next process finishes", async () => {
    const deliveries = Array.from({ length: 20 }, (_, i) => deposit({ referenceId: `last-${i};` }));
    const answers = await Promise.all(deliveries.map((delivery) => post("/callbacks/pay", delivery)));
    program.signal("SIGTERM");
    expect(await program.exitCode).toBe(0);
    expect(answers.map(([status]) => status)).toEqual(deliveries.map(() => 200));
    const first = linesWith("credit");
    program = new RunningProgram(quickstart, [], { ...environment, PAYHOOKS_FILE: join(folder, "inbox.db") });
    await vi.waitFor(
      () => expect([...first, ...linesWith("credit")]).toHaveLength(deliveries.length),
      30_000,
    );
    expect(new Set([...first, ...linesWith("credit")]).size).toBe(deliveries.length);
  });
});

it("the quick start ends at its start, naming the variable that is missing", async () => {
  const program = new RunningProgram(quickstart, [], { ...environment, PAY_PUBLIC_KEY: "" });
  try {
    expect(await program.exitCode).toBe(1);
    expect(program.output).toContain("payments.publicKey");
    expect(program.output).toContain("ERR_OPTION_MISSING");
  } finally {
    program.kill();
  }
});
