/** By hand on PostgreSQL: an insert against copies and the job in one transaction, a worker of graphile-worker. */
import { createPublicKey } from "node:crypto";
import express from "express";
import { Logger, run } from "graphile-worker";
import pg from "pg";
import { HOST, listening, PATHS } from "../child/framework.ts";
import { callbackReader } from "../child/inline.ts";
import type { OpenShop } from "./shop.ts";
import { CONCURRENCY } from "./ways.ts";

export const openGraphile: OpenShop = async ({ publicKey, url }, handle) => {
  const pool = new pg.Pool({ connectionString: url, max: 2 * CONCURRENCY });
  await pool.query("CREATE TABLE IF NOT EXISTS seen (id text PRIMARY KEY)");
  let begun = 0;
  let completed = 0;
  const runner = await run({
    pgPool: pool,
    concurrency: CONCURRENCY,
    noHandleSignals: true,
    // By default it prints a line for each job, which would be measured as well.
    logger: new Logger(() => () => {}),
    taskList: {
      async callback() {
        begun++;
        await handle();
      },
    },
  });
  runner.events.on("job:complete", () => completed++);

  const readCallback = callbackReader(createPublicKey(publicKey));
  const app = express();
  app.post(PATHS.rsa, express.raw({ type: "application/json" }), async (request, response) => {
    const event = readCallback(request.body.toString("utf8"));
    if (event === null) {
      response.status(401).json({ error: "invalid signature" });
      return;
    }
    // One statement, and so one transaction.
    await pool.query(
      `WITH new AS (INSERT INTO seen VALUES ($1) ON CONFLICT DO NOTHING RETURNING id)
       SELECT graphile_worker.add_job('callback', $2::json) FROM new`,
      [`${event.payTxnId}:${event.status}`, JSON.stringify(event)],
    );
    response.status(200).json({ received: true });
  });
  return {
    server: await listening(app.listen(0, HOST)),
    async recorded() {
      while (completed < begun) await new Promise((resolve) => setTimeout(resolve, 1));
    },
  };
};
