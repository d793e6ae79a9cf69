/** Nothing that grows without bound stays in a store: what is finished goes with its time, and leaves no trace. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createReceiver, type Inbox, type Receiver } from "@payhooks/core";
import { eachEvent } from "@payhooks/core/events";
import { redisInbox } from "@payhooks/core/redis";
import { sqliteInbox } from "@payhooks/core/sqlite";
import { callbackFields, signPaymentCallback } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { openDatabase } from "../../packages/core/src/sqlite/driver.ts";
import { environmentOf } from "../../packages/core/src/time/environment.ts";
import { silent } from "../support/silent.ts";
import { RedisServer } from "./harness/redis-server.ts";
import { until, withScope } from "./harness/scope.ts";
import { keys } from "./harness/system.ts";

const BY = { by: "the test", note: "every way an event can go" } as const;
/** One more than the history of an event has lines. */
const REPLAYS = 60;

/** Sends events that go every way there is, until none is unfinished. */
async function playEveryWay(inbox: Inbox, now: () => number): Promise<void> {
  const receiver: Receiver = createReceiver({
    payments: { publicKey: keys.publicKey, oneSuccessPerReference: true },
    inbox,
    logger: silent,
  });
  receiver.ignore("WITHDRAWAL").onDeposit(
    {
      PENDING: () => {},
      FAILED: () => {},
      SUCCESS: ({ referenceId }, { attempt }) => {
        if (referenceId.startsWith("retries") && attempt === 1) throw new Error("the first attempt fails");
        if (referenceId.startsWith("held")) throw new Error("it always fails");
      },
    },
    { maxAttempts: 2, backoffMs: () => 10 },
  );
  receiver.onHeld(() => {});
  await receiver.start();
  const send = async (fields: Parameters<typeof callbackFields>[0]): Promise<void> => {
    const { rawBody, headers: all } = signPaymentCallback(callbackFields(fields, now()), keys.privateKey);
    const headers = { get: (name: string) => all[name] ?? null };
    const reply = await receiver.payments.receive({ method: "POST", url: "/", headers, rawBody });
    expect(reply.status).toBe(200);
  };
  for (let n = 0; n < 30; n++) {
    await send({ payTxnId: `calm-${n}`, referenceId: `calm-${n}` });
    await send({ payTxnId: `calm-${n}`, referenceId: `calm-${n}` });
    await send({ payTxnId: `two-${n}`, referenceId: `two-${n}`, status: "PENDING" });
    await send({ payTxnId: `two-${n}`, referenceId: `two-${n}` });
    await send({ payTxnId: `retries-${n}`, referenceId: `retries-${n}` });
    await send({ payTxnId: `held-${n}`, referenceId: `held-${n}` });
    // Held at its acceptance: another payment for the same reference.
    await send({ payTxnId: `second-${n}`, referenceId: `calm-${n}` });
  }
  const entries = async (): Promise<readonly { readonly eventId: string; readonly id: string }[]> => {
    const found: { readonly eventId: string; readonly id: string }[] = [];
    for await (const { eventId, id } of eachEvent(receiver.events, { state: "held" }))
      found.push({ eventId, id });
    return found;
  };
  await until("60 are held", async () => (await entries()).length === 60, { withinMs: 30_000 });
  // One of them is replayed again and again.
  const { eventId = "" } = (await entries()).find(({ id }) => id === "held-0") ?? {};
  for (let replay = 0; replay < REPLAYS; replay++) {
    await receiver.events.replay(eventId, BY);
    await until("it is held again", async () => (await receiver.events.get(eventId))?.state === "held");
  }
  const life = await receiver.events.get(eventId);
  expect(life).toMatchObject({ replays: REPLAYS, history: { length: 50 } });
  expect(life?.history[0]?.what).toBe("accepted");
  for (const entry of await entries()) await receiver.events.discard(entry.eventId, BY);
  await until("all have ended", async () => {
    const { waiting, retrying, running, held } = await receiver.health();
    return waiting === 0 && retrying === 0 && running === 0 && held === 0;
  });
  expect(await receiver.close()).toEqual({ unfinished: 0 });
}

describe("a finished event leaves nothing behind when its time is over", () => {
  it("in Redis: every key expires by itself, except for a bounded few", { timeout: 120_000 }, () =>
    withScope(async (scope) => {
      const redis = await RedisServer.start(scope);
      await RedisServer.startReplica(scope, redis);
      await playEveryWay(redisInbox(redis.url, { replicas: 1, logger: silent }), () => Date.now());
      const names = (await redis.tell("KEYS", "*")) as readonly string[];
      const staying: string[] = [];
      for (const name of names) if (Number(await redis.tell("PTTL", name)) === -1) staying.push(name);
      expect(names.length).toBeGreaterThan(100);
      // The texts that name the data, the mark that replicas are waited for with, and the names of the handlers.
      const last = staying.map((name) => name.replace(/^.*[:}]/, ""));
      expect(last.sort()).toEqual(["dataset-id", "handlers", "mark"]);
    }),
  );

  it("in SQLite: no row stays", { timeout: 120_000 }, () =>
    withScope(async (scope) => {
      const folder = mkdtempSync(join(tmpdir(), "payhooks-growth-"));
      scope.add(folder, (path) => rmSync(path, { recursive: true, force: true }));
      const file = join(folder, "inbox.db");
      await playEveryWay(sqliteInbox(file), () => Date.now());
      const rows = async (): Promise<Record<string, number>> => {
        const database = await openDatabase(file);
        try {
          const counts: Record<string, number> = {};
          for (const table of ["records", "events", "meta"]) {
            const row = database.prepare(`SELECT count(*) AS n FROM ${table}`).get() as { n: number };
            counts[table] = row.n;
          }
          return counts;
        } finally {
          database.close();
        }
      };
      expect((await rows()).records).toBeGreaterThan(100);
      // A year later, and each look two hours after the one before.
      const real = environmentOf();
      let hours = 365 * 24;
      const clock = { ...real, now: () => real.now() + hours * 3_600_000 };
      const inbox = sqliteInbox(file, { clock });
      const runner = { run: () => Promise.reject(new Error("nothing is due")), notify: () => {} };
      await until("it has forgotten all", async () => {
        await inbox.work(
          { ...runner, firstHandler: () => null, handlersOf: () => [] },
          { deadlineMs: 1_000, limit: 10, concurrency: 1 },
        );
        hours += 2;
        const { records } = await rows();
        return records === 0;
      });
      await inbox.close({ graceMs: 0 });
      // The id of the data set, the names of the handlers, and the times of the last looks.
      expect(await rows()).toEqual({ records: 0, events: 0, meta: 3 });
    }),
  );
});
