/** Ours, as the documentation shows it, on each of the inboxes. */
import { setTimeout as pause } from "node:timers/promises";
import { createReceiver, memoryInbox, type ReceiverOptions } from "@payhooks/core";
import { mysqlInbox } from "@payhooks/core/mysql";
import { postgresInbox } from "@payhooks/core/postgres";
import { redisInbox } from "@payhooks/core/redis";
import { sqliteInbox } from "@payhooks/core/sqlite";
import { onExpress } from "../child/express.ts";
import { PATHS } from "../child/framework.ts";
import type { OpenShop } from "./shop.ts";
import { CONCURRENCY, type OurWay, type Setup } from "./ways.ts";

const INBOXES: Readonly<Record<OurWay, (setup: Setup) => ReceiverOptions["inbox"]>> = {
  memory: () => memoryInbox(),
  sqlite: ({ file }: Setup) => sqliteInbox(file),
  redis: ({ url }: Setup) => redisInbox(url),
  postgres: ({ url }: Setup) => postgresInbox(url),
  mysql: ({ url }: Setup) => mysqlInbox(url),
};

export const openOurs =
  (way: OurWay): OpenShop =>
  async (setup, handle) => {
    const receiver = createReceiver({
      payments: { publicKey: setup.publicKey },
      inbox: INBOXES[way](setup),
      concurrency: CONCURRENCY,
    });
    /** The ends of these are recorded last, or nearly so: writes of ends travel in the order of the ends. */
    const newest: string[] = [];
    receiver
      .onDeposit(async (_deposit, { eventId }) => {
        if (newest.push(eventId) > CONCURRENCY) newest.shift();
        await handle();
      })
      .ignore("WITHDRAWAL");
    await receiver.start();
    return {
      server: await onExpress.ours(PATHS.rsa, "rsa", receiver),
      async recorded() {
        for (const eventId of newest) {
          while ((await receiver.events.get(eventId))?.state !== "done") await pause(1);
        }
      },
    };
  };
