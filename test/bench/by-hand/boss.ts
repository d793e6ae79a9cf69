/** By hand on PostgreSQL: an insert against copies and the job in one transaction, workers of pg-boss. */
import pg from "pg";
import PgBoss from "pg-boss";
import { verifying } from "./route.ts";
import type { OpenShop } from "./shop.ts";
import { CONCURRENCY } from "./ways.ts";

const QUEUE = "callbacks";

export const openBoss: OpenShop = async ({ publicKey, url }, handle) => {
  const pool = new pg.Pool({ connectionString: url, max: 2 * CONCURRENCY });
  await pool.query("CREATE TABLE IF NOT EXISTS seen (id text PRIMARY KEY)");
  const boss = new PgBoss({ connectionString: url, max: CONCURRENCY });
  boss.on("error", () => {});
  await boss.start();
  await boss.createQueue(QUEUE);
  // It looks twice a second at most, so a look takes many.
  await boss.work(QUEUE, { batchSize: 500, pollingIntervalSeconds: 0.5 }, async (jobs) => {
    const left = [...jobs];
    const lane = async (): Promise<void> => {
      while (left.pop() !== undefined) await handle();
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, lane));
  });

  return {
    server: await verifying(publicKey, async ({ id, fields }) => {
      const client = await pool.connect();
      try {
        await client.query("BEGIN");
        const { rowCount } = await client.query("INSERT INTO seen VALUES ($1) ON CONFLICT DO NOTHING", [id]);
        const db = { executeSql: (text: string, values: unknown[]) => client.query(text, values) };
        if (rowCount === 1) await boss.send(QUEUE, fields, { db });
        await client.query("COMMIT");
      } finally {
        client.release();
      }
    }),
    async recorded() {
      while ((await unfinished(pool)) > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    },
  };
};

async function unfinished(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query(
    "SELECT count(*)::int AS n FROM pgboss.job WHERE name = $1 AND state < 'completed'",
    [QUEUE],
  );
  return (rows[0] as { n: number }).n;
}
