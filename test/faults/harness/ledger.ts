/** A ledger in a merchant's database: what the processes under test book into it, and what is in it afterwards. */
import type { EffectContext, Effects, HandlerContext } from "@payhooks/core";
import { mysqlLedger } from "./ledger-mysql.ts";
import { postgresLedger } from "./ledger-postgres.ts";

/** The settings of the ledger for the processes under test. */
export interface LedgerConfig {
  /** Its protocol says which database it is. */
  readonly url: string;
  /** With `ctx.transaction`, or without it, as the control. */
  readonly isExactlyOnce: boolean;
}

/** An entry that a handler books. */
export interface Booking {
  readonly payTxnId: string;
  /** Negative for a withdrawal. */
  readonly amount: string;
}

/** A database with the ledger, through a pool of its client. `Tx` is a connection with an open transaction. */
export interface LedgerDatabase<Tx> {
  readonly effects: Effects<EffectContext<Tx>>;
  enter(tx: Tx, booking: Booking): Promise<void>;
  /** A transaction that knows nothing of effects. */
  transaction(work: (tx: Tx) => Promise<void>): Promise<void>;
  create(table: string): Promise<void>;
  entries(): Promise<readonly Booking[]>;
  end(): Promise<void>;
}

const TABLE = "CREATE TABLE ledger (pay_txn_id varchar(99) NOT NULL, amount numeric(20, 2) NOT NULL)";

/** A process's connection to the ledger. */
export interface Ledger {
  readonly effects: Effects<HandlerContext>;
  /** Books, with `during` between the entry and its commit. */
  book(booking: Booking, ctx: HandlerContext, during: () => Promise<void>): Promise<void>;
  end(): Promise<void>;
}

export function openLedger({ url, isExactlyOnce }: LedgerConfig): Ledger {
  return inDatabase(url, (database) => ledgerIn(database, isExactlyOnce));
}

function ledgerIn<Tx>(database: LedgerDatabase<Tx>, isExactlyOnce: boolean): Ledger {
  return {
    effects: database.effects,
    async book(booking, ctx, during) {
      const work = async (tx: Tx): Promise<void> => {
        await database.enter(tx, booking);
        await during();
      };
      if (isExactlyOnce) await (ctx as EffectContext<Tx>).transaction(work);
      else await database.transaction(work);
    },
    end: () => database.end(),
  };
}

function inDatabase<T>(url: string, use: <Tx>(database: LedgerDatabase<Tx>) => T): T {
  return url.startsWith("mysql:") ? use(mysqlLedger(url)) : use(postgresLedger(url));
}

/** Makes an empty ledger in an empty database. */
export function createLedger(url: string): Promise<void> {
  return inDatabase(url, async (database) => {
    await database.create(TABLE);
    await database.end();
  });
}

/** The ledger, beside what it should be. */
export interface Balance {
  /** Acknowledged, and not in the ledger. */
  readonly lost: readonly string[];
  /** More than once in the ledger. */
  readonly doubles: readonly string[];
  /** In cents. */
  readonly sum: bigint;
  readonly expected: bigint;
}

/** Compares the ledger with the bookings that were acknowledged. */
export async function balanceOf(url: string, bookings: readonly Booking[]): Promise<Balance> {
  const entries = await inDatabase(url, async (database) => {
    const found = await database.entries();
    await database.end();
    return found;
  });
  const times = new Map<string, number>();
  for (const { payTxnId } of entries) times.set(payTxnId, (times.get(payTxnId) ?? 0) + 1);
  return {
    lost: bookings.map(({ payTxnId }) => payTxnId).filter((id) => !times.has(id)),
    doubles: [...times].filter(([, count]) => count > 1).map(([id]) => id),
    sum: sumOf(entries),
    expected: sumOf(bookings),
  };
}

/** Amounts have two decimals each. */
function sumOf(bookings: readonly Booking[]): bigint {
  return bookings.reduce((sum, { amount }) => sum + BigInt(amount.replace(".", "")), 0n);
}
