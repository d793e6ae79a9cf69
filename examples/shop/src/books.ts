import { Pool, type PoolClient } from "pg";

/** The shop's database. A pool that outlives its connections: an `error` that nobody hears would end the process. */
export async function openBooks(connectionString: string | undefined): Promise<Pool> {
  const pool = new Pool({ connectionString });
  pool.on("error", (error) => console.error(`a connection to PostgreSQL broke: ${error.message}`));
  await pool.query(`
    CREATE TABLE IF NOT EXISTS orders (
      reference text PRIMARY KEY, amount numeric NOT NULL, state text NOT NULL DEFAULT 'open',
      delivered integer NOT NULL DEFAULT 0);
    CREATE TABLE IF NOT EXISTS sellers (account text PRIMARY KEY, state text NOT NULL, decisions integer NOT NULL);
    CREATE TABLE IF NOT EXISTS ledger (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, account text NOT NULL, amount numeric NOT NULL)`);
  return pool;
}

/** Money that moves: what one account gains, another loses. */
export async function book(tx: PoolClient, from: string, to: string, amount: string): Promise<void> {
  const sql = "INSERT INTO ledger (account, amount) VALUES ($1, -$3::numeric), ($2, $3::numeric)";
  await tx.query(sql, [from, to, amount]);
}

/** Stores the service's decision about a seller, and counts how often it was written. */
export async function decide(tx: PoolClient, account: string, state: string): Promise<void> {
  const sql = `INSERT INTO sellers VALUES ($1, $2, 1)
    ON CONFLICT (account) DO UPDATE SET state = excluded.state, decisions = sellers.decisions + 1`;
  await tx.query(sql, [account, state]);
}

/** An order, its payment or its refund: exactly one row changes, or nothing is committed. */
export async function move(
  tx: PoolClient,
  reference: string,
  amount: string,
  [from, to]: readonly [string, string],
): Promise<void> {
  const sql = "UPDATE orders SET state = $4 WHERE reference = $1 AND amount = $2::numeric AND state = $3";
  const { rowCount } = await tx.query(sql, [reference, amount, from, to]);
  if (rowCount !== 1) throw new Error(`no order ${reference} over ${amount} is ${from}`);
}
