import { createTestKeys } from "@payhooks/core/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Scope } from "../../faults/harness/scope.ts";
import { signedDeliveries } from "../deliveries.ts";
import { startMerchants } from "./compare.ts";
import { BY_HAND, CONCURRENCY, SERVER_OF, WAYS } from "./ways.ts";

const EVENTS = 64;
/** A server's time is counted in steps of 10 ms, so what is asked for its cost takes many of them. */
const EVENTS_FOR_COST = 512;
const HANDLER_MS = 20;
const keys = { ...createTestKeys(), secret: "" };

describe("a merchant's process", () => {
  const scope = new Scope();
  let merchants: Awaited<ReturnType<typeof startMerchants>>;

  beforeAll(async () => {
    merchants = await startMerchants(scope, keys.publicKey);
  });
  afterAll(() => scope.close());

  it.each(WAYS)("handles every event once and tells what that cost: %s", async (way) => {
    const merchant = merchants[way];
    const first = await merchant.take(await signedDeliveries("rsa", EVENTS_FOR_COST, keys), 0);
    expect(first.cpuUs).toBeGreaterThan(0);
    if (SERVER_OF[way] === undefined) expect(first.serverCpuUs).toBe(0);
    else expect(first.serverCpuUs).toBeGreaterThan(0);

    const slower = await merchant.take(await signedDeliveries("rsa", EVENTS, keys), HANDLER_MS);
    const mostPerSecond = (1_000 / HANDLER_MS) * (way === "check" ? EVENTS : CONCURRENCY);
    expect(slower.perSecond).toBeLessThan(mostPerSecond * 1.1);
  });

  it.each(BY_HAND)("refuses what is not signed by the service: %s", async (way) => {
    const stranger = await signedDeliveries("rsa", 1, { ...createTestKeys(), secret: "" });
    await expect(merchants[way].take(stranger, 0)).rejects.toThrow("answered 401");
  });
});
