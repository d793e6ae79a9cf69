/** Thousands of deliveries whose bodies end in one turn of the event loop: how much of the work is done in a turn. */
import { createReceiver, type Notice } from "@payhooks/core";
import { connectEvent, signConnectWebhook } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import type { RecordStore } from "../../src/inbox/contract/store.ts";
import { createInbox } from "../../src/inbox/engine.ts";
import { memoryStore } from "../../src/memory/store.ts";
import { type Environment, environmentOf } from "../../src/time/environment.ts";

const SECRET = "whsec_turns_0123456789abcdef";
/** Deliveries of one turn, and the first that have waited, go to the store together: two times ten milliseconds. */
const TWO_TURNS_MS = 20;

interface Limits {
  /** The time of a verification, by the clock. */
  readonly verifyMs: number;
  readonly maxInFlight?: number;
  readonly acceptTimeoutMs?: number;
}

/** A receiver whose clock goes on only while a delivery is verified. No timer fires. */
async function start({ verifyMs, ...limits }: Limits) {
  let ms = 0;
  let verified = 0;
  const { nextTurn, keepAlive, token } = environmentOf();
  const began = Date.now();
  const clock: Environment = {
    nextTurn,
    keepAlive,
    token,
    now: () => began + ms,
    monotonic: () => ms,
    after: () => () => {},
  };
  const store = memoryStore({ clock });
  const writes: number[] = [];
  const durable: RecordStore = {
    ...store,
    immediate: false,
    swap: async (items) => {
      writes.push(items.length);
      return store.swap(items);
    },
  };
  const receiver = createReceiver({
    connect: { secret: SECRET },
    inbox: createInbox(durable, { clock }),
    limits,
    clock,
    run: "elsewhere",
    logger: { info: () => {}, warn: () => {}, error: () => {} },
  });
  const notices: Notice[] = [];
  receiver.observe((notice) => notices.push(notice));
  receiver.onSettlementApproved(() => {}).ignore("settlement.declined");
  receiver.ignore("connected_account.approved").ignore("connected_account.declined");
  await receiver.start();
  const one = () => {
    const { rawBody, headers } = signConnectWebhook(connectEvent(), SECRET);
    const get = (name: string): string | null => {
      if (name === "x-connect-signature") {
        verified++;
        ms += verifyMs;
      }
      return Object.entries(headers).find(([given]) => given.toLowerCase() === name)?.[1] ?? null;
    };
    return { method: "POST", url: "/", headers: { get }, rawBody };
  };
  /** All of them in this turn, with the codes of their answers. */
  const receive = async (count: number): Promise<readonly string[]> => {
    const deliveries = Array.from({ length: count }, one);
    const replies = await Promise.all(
      deliveries.map((delivery) => receiver.connect.receive(delivery, { mounted: true })),
    );
    return replies.map(({ status, body }) => (status === 200 ? "200" : (/ERR_\w+/.exec(body)?.[0] ?? body)));
  };
  const close = (): Promise<unknown> => receiver.close({ graceMs: 0 });
  return { receiver, one, receive, writes, notices, verified: () => verified, close };
}

describe("deliveries that arrive in one turn of the event loop", () => {
  it("are verified and stored in many turns, and all are answered", async () => {
    const t = await start({ verifyMs: 1 });
    expect(await t.receive(200)).toEqual(Array(200).fill("200"));
    expect(Math.max(...t.writes)).toBeLessThanOrEqual(TWO_TURNS_MS);
    await t.close();
  });

  it("are all stored in one turn if they take no time", async () => {
    const t = await start({ verifyMs: 0 });
    expect(await t.receive(200)).toEqual(Array(200).fill("200"));
    expect(Math.max(...t.writes)).toBe(200);
    await t.close();
  });

  it("are begun at once if they are few", async () => {
    const t = await start({ verifyMs: 1 });
    const receiving = t.receive(5);
    await Promise.resolve();
    expect(t.verified()).toBe(5);
    await receiving;
    expect(t.writes).toEqual([5]);
    await t.close();
  });

  it("have ten milliseconds of their turn, however little time has passed since a delivery of an earlier turn", async () => {
    const t = await start({ verifyMs: 1 });
    await t.receive(1);
    await new Promise((resolve) => setImmediate(resolve));
    const receiving = t.receive(40);
    await Promise.resolve();
    expect(t.verified()).toBe(1 + 10);
    expect(await receiving).toEqual(Array(40).fill("200"));
    await t.close();
  });

  it("take their turns in order, also deliveries that arrive while others wait", async () => {
    const t = await start({ verifyMs: 4 });
    const receiving = t.receive(20);
    await new Promise((resolve) => setImmediate(resolve));
    const before = t.verified();
    const late = t.receive(1);
    await Promise.resolve();
    expect(t.verified()).toBe(before);
    expect(await Promise.all([receiving, late])).toEqual([Array(20).fill("200"), ["200"]]);
    await t.close();
  });

  it("are refused, before their bodies are read, if too many are in flight", async () => {
    const t = await start({ verifyMs: 1, maxInFlight: 50 });
    const receiving = t.receive(80);
    const refused = t.receiver.connect.check(t.one());
    expect(refused?.status).toBe(503);
    expect(refused?.body).toContain("ERR_OVERLOADED");
    expect(await receiving).toEqual([...Array(50).fill("200"), ...Array(30).fill("ERR_OVERLOADED")]);
    expect(t.verified()).toBe(50);
    await t.close();
  });

  it("are refused, before they are verified, if they could not be answered in time", async () => {
    const t = await start({ verifyMs: 20, acceptTimeoutMs: 200 });
    const codes = await t.receive(50);
    const accepted = codes.filter((code) => code === "200").length;
    expect(accepted).toBeGreaterThanOrEqual(5);
    expect(codes.filter((code) => code === "ERR_OVERLOADED")).toHaveLength(50 - accepted);
    expect(t.verified()).toBe(accepted);
    expect(await t.receive(1)).toEqual(["200"]);
    await t.close();
  });
});
