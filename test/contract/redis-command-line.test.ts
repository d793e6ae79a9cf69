import { createReceiver } from "@payhooks/core";
import { redisInbox } from "@payhooks/core/redis";
import { callbackFields, createTestKeys, signPaymentCallback } from "@payhooks/core/testing";
import { expect, it } from "vitest";
import { RunningProgram } from "../e2e/program.ts";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { withScope } from "../faults/harness/scope.ts";
import { silent } from "../support/silent.ts";

const command = "packages/cli/src/payhooks.ts";
const keys = createTestKeys();

it(
  "payhooks events lists what a Redis inbox holds, and queues its replay for the application's worker",
  { timeout: 120_000 },
  () =>
    withScope(async (scope) => {
      const server = await RedisServer.start(scope);
      const url = `redis://127.0.0.1:${server.port}`;
      const startHeld = (...args: string[]): RunningProgram =>
        scope.add(new RunningProgram(command, ["events", ...args, "--redis", url, "--json"]), (one) =>
          one.kill(),
        );
      const held = async (...args: string[]): Promise<string> => {
        const program = startHeld(...args);
        expect(await program.exitCode, program.output).toBe(0);
        return program.output;
      };
      const inbox = redisInbox(url, { logger: silent });
      const receiver = scope.add(
        createReceiver({ payments: { publicKey: keys.publicKey }, inbox, logger: silent }),
        async (one) => void (await one.close({ graceMs: 0 })),
      );
      let isBroken = true;
      const ran: string[] = [];
      receiver.onDeposit(
        (deposit) => {
          if (isBroken) throw new Error("the bank is down");
          ran.push(deposit.referenceId);
        },
        { maxAttempts: 1 },
      );
      await receiver.start();
      const { rawBody } = signPaymentCallback(callbackFields({ referenceId: "order-1" }), keys.privateKey);
      const headers = { get: (name: string) => (name === "content-type" ? "application/json" : null) };
      const reply = await receiver.payments.receive({ method: "POST", url: "/", headers, rawBody });
      expect(reply.status).toBe(200);
      await expect.poll(async () => (await receiver.health()).held).toBe(1);
      isBroken = false;

      const entry: { eventId: string; reason: string; body?: string } = JSON.parse(
        await held("--state", "held"),
      );
      expect(entry).toMatchObject({
        reason: "exhausted",
        handlers: { deposit: { error: expect.stringContaining("bank is down") } },
      });
      expect(entry.body).toBeUndefined();
      const queued = await held("replay", entry.eventId, "--by", "amina", "--note", "the bank is back");
      expect(JSON.parse(queued)).toEqual({ eventId: entry.eventId, outcome: "queued" });
      await expect.poll(() => ran).toEqual(["order-1"]);
      expect(await held("--state", "held")).toBe("");

      const table = scope.add(
        new RunningProgram(command, ["events", "--reference", "order-1", "--csv", "--redis", url]),
        (one) => one.kill(),
      );
      expect(await table.exitCode, table.output).toBe(1);
      expect(table.output).toContain("they were not searched");
      expect(table.output.match(/^eventId,state,/gm)).toHaveLength(1);

      const other = startHeld("--state", "held", "--prefix", "other");
      expect(await other.exitCode, other.output).toBe(1);
      expect(other.output).toMatch(/ERR_INBOX_UNUSED/);
      expect(await server.tell("KEYS", "other*")).toEqual([]);
    }),
);
