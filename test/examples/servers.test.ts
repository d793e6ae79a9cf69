import {
  callbackFields,
  connectEvent,
  createTestKeys,
  forgedCallback,
  type SignedDelivery,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { afterEach, describe, expect, it, vi } from "vitest";
import { BusySenders } from "../e2e/busy-senders.ts";
import { RunningProgram } from "../e2e/program.ts";

const { publicKey, privateKey } = createTestKeys();
const secret = "whsec_0123456789abcdef";
const environment = { PAY_PUBLIC_KEY: publicKey, CONNECT_WEBHOOK_SECRET: secret, PORT: "0" };

let program: RunningProgram;
afterEach(() => program.kill());

describe.each(["hono", "fastify"])("the example for %s", (name) => {
  const path = `examples/${name}/src/index.ts`;

  it.each(["SIGTERM", "SIGINT"] as const)(
    "runs handlers once, refuses forgeries, and finishes what it acknowledged: %s",
    async (signal) => {
      program = new RunningProgram(path, [], environment);
      const [, port] = await program.until(/listening .*port: (\d+)/);
      const post = async (to: string, { headers, rawBody }: SignedDelivery): Promise<[number, unknown]> => {
        const answer = await fetch(`http://localhost:${port}${to}`, {
          method: "POST",
          headers,
          body: rawBody,
        });
        return [answer.status, await answer.json()];
      };
      const deposit = signPaymentCallback(
        callbackFields({ referenceId: "order-1", amount: "10.500000" }),
        privateKey,
      );
      const settled = signConnectWebhook(connectEvent("settlement.approved"), secret);
      for (let copy = 0; copy < 3; copy++) {
        expect(await post("/callbacks/pay", deposit)).toEqual([200, { received: true }]);
        expect(await post("/webhooks/connect", settled)).toEqual([200, { received: true }]);
      }
      const forged = forgedCallback(callbackFields(), { amount: "9.000000" }, privateKey);
      expect(await post("/callbacks/pay", forged)).toEqual([
        401,
        { error: { code: "ERR_SIGNATURE_INVALID" } },
      ]);
      program.signal(signal);
      // As npm does after Ctrl-C.
      program.signal(signal);
      expect(await program.exitCode).toBe(0);
      expect(
        program.output.match(/credit 10\.500000 for order-1 once as [0-9a-f]{48}\.deposit\n/g),
      ).toHaveLength(1);
      expect(program.output.match(/book wd_\S+: 125000\n/g)).toHaveLength(1);
      expect(program.output.match(/credit|book/g)).toHaveLength(2);
    },
  );

  it("ends when it is told to, although senders keep their connections alive, and one says nothing", async () => {
    program = new RunningProgram(path, [], environment);
    const [, port] = await program.until(/listening .*port: (\d+)/);
    const deliver = (): SignedDelivery => signPaymentCallback(callbackFields(), privateKey);
    const senders = new BusySenders(Number(port), "/callbacks/pay", deliver);
    await vi.waitFor(() => expect(senders.answers.get(200)).toBeGreaterThan(100), 20_000);
    const from = performance.now();
    program.signal("SIGTERM");
    expect(await program.exitCode).toBe(0);
    expect(performance.now() - from).toBeLessThan(8_000);
    await senders.stop();
    expect(senders.answers.get(503) ?? 0).toBeLessThanOrEqual(senders.connections);
    expect([...senders.answers.keys()].filter((status) => status !== 200 && status !== 503)).toEqual([]);
  });

  it("ends at its start, naming the variable that is missing", async () => {
    program = new RunningProgram(path, [], { ...environment, PAY_PUBLIC_KEY: "" });
    expect(await program.exitCode).toBe(1);
    expect(program.output).toContain("payments.publicKey");
    expect(program.output).toContain("ERR_OPTION_MISSING");
  });
});
