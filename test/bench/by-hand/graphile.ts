/** By hand on PostgreSQL: an insert against copies and the job in one transaction, a worker of graphile-worker. */
import { Logger, run } from "graphile-worker";
import pg from "pg";
import { verifying } from "./route.ts";
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

  return {
    server: await verifying(publicKey, ({ id, fields }) =>
      // One statement, and so one transaction.
      pool.query(
        `WITH new AS (INSERT INTO seen VALUES ($1) ON CONFLICT DO NOTHING RETURNING id)
         SELECT graphile_worker.add_job('callback', $2::json) FROM new`,
        [id, JSON.stringify(fields)],
      ),
    ),
    async recorded() {
      while (completed < begun) await new Promise((resolve) => setTimeout(resolve, 1));
    },
  };
};
