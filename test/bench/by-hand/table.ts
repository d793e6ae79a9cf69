/** By hand on MySQL or MariaDB: one table recognises copies and is the queue, and a worker takes rows that nobody has locked. */
import { setTimeout as pause } from "node:timers/promises";
import { createPool, type RowDataPacket } from "mysql2/promise";
import { verifying } from "./route.ts";
import type { OpenShop } from "./shop.ts";
import { CONCURRENCY } from "./ways.ts";

/** It looks so often while nothing waits. */
const POLL_MS = 20;

export const openTable: OpenShop = async ({ publicKey, url }, handle) => {
  const pool = createPool({ uri: url, connectionLimit: 2 * CONCURRENCY });
  // Otherwise the worker would lock the gaps between rows too, into which deliveries insert.
  pool.on("connection", (connection) => {
    connection.query("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
  });
  await pool.query(
    `CREATE TABLE IF NOT EXISTS callbacks (
       place bigint AUTO_INCREMENT PRIMARY KEY,
       id varchar(200) NOT NULL UNIQUE,
       body text NOT NULL,
       done boolean NOT NULL DEFAULT false,
       KEY (done, place)
     )`,
  );

  /** Handles what waits, one row for each handler that may run, and answers with their number. */
  async function handleSome(): Promise<number> {
    const client = await pool.getConnection();
    try {
      await client.beginTransaction();
      const [rows] = await client.query<RowDataPacket[]>(
        "SELECT place, body FROM callbacks WHERE done = 0 ORDER BY place LIMIT ? FOR UPDATE SKIP LOCKED",
        [CONCURRENCY],
      );
      await Promise.all(rows.map(() => handle()));
      const places = rows.map(({ place }) => place as number);
      if (places.length > 0) await client.query("UPDATE callbacks SET done = 1 WHERE place IN (?)", [places]);
      await client.commit();
      return places.length;
    } finally {
      client.release();
    }
  }
  void (async () => {
    for (;;) if ((await handleSome()) === 0) await pause(POLL_MS);
  })();

  return {
    server: await verifying(publicKey, ({ id, fields }) =>
      pool.execute("INSERT IGNORE INTO callbacks (id, body) VALUES (?, ?)", [id, JSON.stringify(fields)]),
    ),
    async recorded() {
      const waiting = "SELECT 1 FROM callbacks WHERE done = 0 LIMIT 1";
      while ((await pool.query<RowDataPacket[]>(waiting))[0].length > 0) await pause(1);
    },
  };
};
