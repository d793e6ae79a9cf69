/** What is left of a customer in the files of an inbox once the events are erased: each inbox is dumped, and searched for the texts. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { createReceiver, type Inbox, type Receiver } from "@payhooks/core";
import { eachEvent } from "@payhooks/core/inbox";
import { postgresInbox } from "@payhooks/core/postgres";
import { redisInbox } from "@payhooks/core/redis";
import { sqliteInbox } from "@payhooks/core/sqlite";
import { anyCallbackFields, createTestKeys, signPaymentCallback } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { postgresBin } from "../../scripts/postgres-server.mjs";
import { openHandle } from "../faults/harness/inbox.ts";
import { PostgresServer } from "../faults/harness/postgres-server.ts";
import { newFolder, sqliteIn } from "../faults/harness/receivers.ts";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { type Scope, until, withScope } from "../faults/harness/scope.ts";
import { silent } from "../support/silent.ts";

/** An inbox, and everything that its database keeps, as text. */
interface Dumped {
  readonly inbox: Inbox;
  dump(): Promise<string>;
}

const kinds: Readonly<Record<string, (scope: Scope) => Promise<Dumped>>> = {
  "the file of SQLite and its log, after a checkpoint": async (scope) => {
    const place = sqliteIn(newFolder(scope));
    return {
      inbox: sqliteInbox(place.file),
      async dump() {
        const handle = openHandle(place);
        handle.exec("PRAGMA wal_checkpoint(TRUNCATE)");
        handle.close();
        return [place.file, `${place.file}-wal`].map((file) => readFileSync(file, "latin1")).join("\n");
      },
    };
  },
  "a dump of PostgreSQL": async (scope) => {
    const { url } = await PostgresServer.start(scope);
    const dump = promisify(execFile);
    return {
      inbox: postgresInbox(url, { logger: silent }),
      dump: async () => (await dump(join(postgresBin() ?? "", "pg_dump"), [url])).stdout,
    };
  },
  "the append-only file of Redis, after it was written anew": async (scope) => {
    // Compressed, a text would not be found.
    const redis = await RedisServer.start(scope, { extra: ["--rdbcompression", "no"] });
    const [, folder] = (await redis.tell("CONFIG", "GET", "dir")) as readonly [string, string];
    return {
      inbox: redisInbox(redis.url, { logger: silent }),
      async dump() {
        const before = await redis.info("aof_rewrites");
        await redis.tell("BGREWRITEAOF");
        await until(
          "the file is written anew",
          async () =>
            (await redis.info("aof_rewrites")) !== before &&
            (await redis.info("aof_rewrite_in_progress")) === "0" &&
            (await redis.info("aof_last_bgrewrite_status")) === "ok",
        );
        const files = join(folder, "appendonlydir");
        const manifest = readFileSync(join(files, "appendonly.aof.manifest"), "utf8");
        const names = [...manifest.matchAll(/^file (\S+) seq \d+ type [bi]/gm)];
        return names.map(([, name = ""]) => readFileSync(join(files, name), "latin1")).join("\n");
      },
    };
  },
};

/** What the inbox gets to know of a customer. */
function textsOf(
  customer: string,
): Readonly<Record<"payTxnId" | "referenceId" | "message" | "error", string>> {
  return {
    payTxnId: `txn-of-${customer}`,
    referenceId: `order-of-${customer}`,
    message: `shoes for ${customer}`,
    error: `the bank refuses ${customer}`,
  };
}

const keys = createTestKeys();
const BY = { by: "the officer", perSecond: Number.POSITIVE_INFINITY };

function receiverOn(inbox: Inbox): Receiver {
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey, keep: { bodiesMs: 30 * 86_400_000 } },
    inbox,
    run: "elsewhere",
    logger: silent,
  });
  receiver.onDeposit(
    ({ referenceId }) => {
      if (referenceId.endsWith(".refused"))
        throw new Error(`the bank refuses ${referenceId.split(/[-.]/)[2]}`);
    },
    { maxAttempts: 1 },
  );
  return receiver;
}

/** One payment of a customer that runs, and one that is held. */
function paymentsOf(customer: string, now: number) {
  const { error: _, ...texts } = textsOf(customer);
  return ["", ".refused"].map((end) =>
    signPaymentCallback(
      anyCallbackFields(
        { ...texts, payTxnId: `${texts.payTxnId}${end}`, referenceId: `${texts.referenceId}${end}` },
        now,
      ),
      keys.privateKey,
    ),
  );
}

async function deliver(receiver: Receiver, deliveries: ReturnType<typeof paymentsOf>): Promise<void> {
  for (const { headers, rawBody } of deliveries) {
    const { status } = await receiver.payments.receive({
      method: "POST",
      url: "/callbacks",
      headers: { get: (name) => headers[name] ?? null },
      rawBody,
    });
    expect(status).toBe(200);
  }
}

async function eventIdsOf({ events }: Receiver, customer: string): Promise<readonly string[]> {
  const ids: string[] = [];
  for (const end of ["", ".refused"]) {
    const { payTxnId } = textsOf(customer);
    for await (const { eventId } of eachEvent(events, { id: `${payTxnId}${end}` })) ids.push(eventId);
  }
  return ids;
}

/** Which of a customer's texts are in a dump. */
function foundIn(dump: string, customer: string): readonly string[] {
  return Object.values(textsOf(customer)).filter((text) => dump.includes(text));
}

describe("nothing of an erased customer is in", { timeout: 120_000 }, () => {
  it.each(Object.entries(kinds))("%s", (_, make) =>
    withScope(async (scope) => {
      const { inbox, dump } = await make(scope);
      const receiver = scope.add(receiverOn(inbox), (one) => one.close({ graceMs: 0 }));
      const now = Date.now();
      await deliver(receiver, [...paymentsOf("amina", now), ...paymentsOf("baraka", now)]);
      expect(await receiver.work()).toMatchObject({ ran: 4 });
      for (const customer of ["amina", "baraka"]) {
        expect(foundIn(await dump(), customer)).toEqual(Object.values(textsOf(customer)));
      }

      const ids = await eventIdsOf(receiver, "amina");
      expect(ids).toHaveLength(2);
      expect(await receiver.events.erase(ids, { ...BY, unfinished: true })).toMatchObject({ decided: 2 });
      expect(foundIn(await dump(), "amina")).toEqual([]);

      // Copies are recognised, and bring nothing back.
      await deliver(receiver, paymentsOf("amina", now));
      expect(await receiver.work()).toMatchObject({ ran: 0, remaining: 0 });
      const after = await dump();
      expect(foundIn(after, "amina")).toEqual([]);
      expect(foundIn(after, "baraka")).toEqual(Object.values(textsOf("baraka")));
    }),
  );
});
