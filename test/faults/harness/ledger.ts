/** A ledger in PostgreSQL: what the processes under test book into it, and what is in it afterwards. */
import type { EffectContext, Effects, HandlerContext } from "@payhooks/core";
import { pgEffects } from "@payhooks/core/effects/postgres";
import pg from "pg";

/** What the processes under test are told about their ledger. */
export interface LedgerConfig {
  readonly url: string;
  /** With `ctx.transaction`, or without it, as the control. */
  readonly isExactlyOnce: boolean;
}

export const LEDGER_SCHEMA = "CREATE TABLE ledger (pay_txn_id text NOT NULL, amount numeric NOT NULL)";

/** Longer than a transaction idles here, and shorter than a process is frozen. */
const TIMEOUTS = { lockTimeoutMs: 500, idleTimeoutMs: 1_500 } as const;

type Context = EffectContext<pg.PoolClient>;

/** What a handler books. */
export interface Booking {
  readonly payTxnId: string;
  /** Negative for a withdrawal. */
  readonly amount: string;
}

/** A process's connection to the ledger. */
export class Ledger {
  readonly effects: Effects<Context>;
  readonly #pool: pg.Pool;
  readonly #isExactlyOnce: boolean;

  constructor({ url, isExactlyOnce }: LedgerConfig) {
    this.#pool = new pg.Pool({ connectionString: url, max: 8 });
    this.#pool.on("error", () => {});
    // Without a listener, a connection that breaks would end the process. Whoever uses it is told by its query.
    this.#pool.on("connect", (client) => client.on("error", () => {}));
    this.effects = pgEffects(this.#pool, TIMEOUTS);
    this.#isExactlyOnce = isExactlyOnce;
  }

  /** Books, with `during` between the entry and its commit. */
  async book(booking: Booking, ctx: HandlerContext, during: () => Promise<void>): Promise<void> {
    const work = async (client: pg.PoolClient): Promise<void> => {
      const sql = "INSERT INTO ledger (pay_txn_id, amount) VALUES ($1, $2)";
      await client.query(sql, [booking.payTxnId, booking.amount]);
      await during();
    };
    if (this.#isExactlyOnce) await (ctx as Context).transaction(work);
    else await this.#withoutEffects(work);
  }

  async #withoutEffects(work: (client: pg.PoolClient) => Promise<void>): Promise<void> {
    const client = await this.#pool.connect();
    try {
      await client.query("BEGIN");
      await work(client);
      await client.query("COMMIT");
      client.release();
    } catch (error) {
      client.release(true);
      throw error;
    }
  }
}

/** The ledger, beside what it should be. */
export interface Balance {
  /** Acknowledged, and not in the ledger. */
  readonly lost: readonly string[];
  /** More than once in the ledger. */
  readonly doubles: readonly string[];
  readonly sum: string;
  readonly expected: string;
}

/** Compares the ledger with the bookings that were acknowledged. */
export async function balanceOf(url: string, bookings: readonly Booking[]): Promise<Balance> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ id: string; times: string }>(
      "SELECT pay_txn_id AS id, count(*) AS times FROM ledger GROUP BY pay_txn_id",
    );
    const times = new Map(rows.map((row) => [row.id, Number(row.times)]));
    const sumOf = async (sql: string, values: readonly unknown[]): Promise<string> =>
      String((await client.query(sql, [...values])).rows[0]?.sum);
    const amounts = bookings.map(({ amount }) => amount);
    return {
      lost: bookings.map(({ payTxnId }) => payTxnId).filter((id) => !times.has(id)),
      doubles: [...times].filter(([, count]) => count > 1).map(([id]) => id),
      sum: await sumOf("SELECT coalesce(sum(amount), 0)::numeric(20, 6) AS sum FROM ledger", []),
      expected: await sumOf(
        "SELECT coalesce(sum(one), 0)::numeric(20, 6) AS sum FROM unnest($1::numeric[]) AS one",
        [amounts],
      ),
    };
  } finally {
    await client.end();
  }
}
