/**
 * `npm run bench -- --merchants`: two merchants on one receiver, in each inbox. One has a flood of events whose handlers take two
 * seconds. The other has an event five times a second, and is not to notice: its p90 stays within three times of what it is alone.
 */
import { setTimeout as wait } from "node:timers/promises";
import { postgresBin } from "../../scripts/postgres-server.mjs";
import { hasRedis } from "../../scripts/redis-server.mjs";
import { PostgresServer } from "../faults/harness/postgres-server.ts";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { until, withScope } from "../faults/harness/scope.ts";
import { idleRunner } from "./finished-records.ts";
import { type InboxName, openInbox } from "./inboxes.ts";
import { benchEvent } from "./redis-event.ts";
import { percentile } from "./statistics.ts";
import { table } from "./table.ts";

const CONCURRENCY = 16;
const QUIET_HANDLER_MS = 50;
const QUIET_EVENTS = 120;
const QUIET_EVERY_MS = 200;
const LOUD_HANDLER_MS = 2_000;
const FLOOD = 600;
const GOAL = 3;

await withScope(async (scope) => {
  const redisUrl = hasRedis() ? (await RedisServer.start(scope)).url : null;
  const postgresUrl = postgresBin() !== null ? (await PostgresServer.start(scope)).url : null;
  const names: InboxName[] = ["memory", "SQLite"];
  if (redisUrl !== null) names.push("Redis");
  if (postgresUrl !== null) names.push("PostgreSQL");
  const rows: string[][] = [];
  for (const name of names) {
    const alone = await waitsOf(name, { redisUrl, postgresUrl, prefix: "alone" }, 0);
    const beside = await waitsOf(name, { redisUrl, postgresUrl, prefix: "beside" }, FLOOD);
    const [before, after] = [percentile(alone, 0.9), percentile(beside, 0.9)];
    const ratio = after / before;
    rows.push([
      name,
      `${before.toFixed(0)} ms`,
      `${after.toFixed(0)} ms`,
      ratio.toFixed(2),
      ratio <= GOAL ? "met" : "missed",
      `${Math.max(...beside).toFixed(0)} ms`,
    ]);
  }
  console.log(
    `\n${FLOOD} events with handlers of ${LOUD_HANDLER_MS} ms, beside one event each ${QUIET_EVERY_MS} ms`,
  );
  console.log(table(["inbox", "p90 alone", "p90 beside", "ratio", `≤ ${GOAL}`, "longest beside"], rows));
});

/** From the acceptance of each event of the quiet merchant to the end of its handler, in milliseconds. */
async function waitsOf(
  name: InboxName,
  at: { readonly redisUrl: string | null; readonly postgresUrl: string | null; readonly prefix: string },
  flood: number,
): Promise<readonly number[]> {
  const { inbox, end } = await openInbox(name, at);
  const sentAt = new Map<string, number>();
  const waits: number[] = [];
  let over = false;
  const running = await inbox.run(
    {
      ...idleRunner,
      async run(run) {
        const sent = sentAt.get(run.input.key);
        if (sent !== undefined) {
          await wait(QUIET_HANDLER_MS);
          waits.push(performance.now() - sent);
        } else if (!over) await wait(LOUD_HANDLER_MS);
        return idleRunner.run(run);
      },
    },
    { concurrency: CONCURRENCY },
  );
  const eventOf = (tenant: string): ReturnType<typeof benchEvent> => {
    const event = benchEvent();
    return { ...event, delivery: { ...event.delivery, tenant } };
  };
  await Promise.all(
    Array.from({ length: flood }, () => inbox.accept(eventOf("loud"), { deadlineMs: 60_000 })),
  );
  for (let sent = 0; sent < QUIET_EVENTS; sent++) {
    const event = eventOf("quiet");
    sentAt.set(event.key, performance.now());
    await inbox.accept(event);
    await wait(QUIET_EVERY_MS);
  }
  await until("the quiet merchant's events have run", () => waits.length === QUIET_EVENTS, {
    withinMs: 60_000,
  });
  over = true;
  await running.stop();
  await end();
  return waits;
}
