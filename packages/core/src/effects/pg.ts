import { isConnectionUnusable } from "../postgres/connection-errors.ts";
import { isThenable } from "../time/awaitable.ts";
import { systemClock } from "../time/clock.ts";
import type { EffectContext } from "./context.ts";
import type { Effects } from "./effects.ts";
import { usedAfterEndError } from "./errors.ts";
import { effectsThrough } from "./postgres-binding.ts";
import type { PostgresEffectsOptions } from "./postgres-table.ts";

/** A `PoolClient` of `pg`, or a client with the same interface. */
export interface PgClient {
  /** Runs a statement. */
  query(sql: string, parameters?: unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
  /** Gives the connection back, or closes it. */
  release(destroy?: boolean | Error): void;
  /** Adds a listener for the loss of the connection. */
  on(event: "error", listener: (error: Error) => void): unknown;
  /** Removes the listener. */
  removeListener(event: "error", listener: (error: Error) => void): unknown;
}

/** A `Pool` of `pg`. Both overloads of `connect` are listed, so that the client's type is inferred from the first one. */
export interface PgPool<Client> {
  /** Takes a connection from the pool. */
  connect(): Promise<Client>;
  /** Takes a connection from the pool, and hands it to a callback. */
  connect(callback: (error: Error | undefined, client: Client | undefined) => void): void;
}

/** How long to wait for a rollback while another statement does not end. Then the connection is closed instead. */
const ROLLBACK_TIMEOUT_MS = 2_000;

/**
 * Effects in PostgreSQL, through the application's own pool. A transaction takes one connection of it; `tx` is a `PoolClient`.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID`; at the start `ERR_EFFECTS_UNSUITABLE` if the table cannot be used.
 * @example createReceiver({ payments, inbox, effects: pgEffects(pool) })
 */
export function pgEffects<Client extends PgClient>(
  pool: PgPool<Client>,
  options: PostgresEffectsOptions = {},
): Effects<EffectContext<Client>> {
  return effectsThrough<Client, PgClient>(
    {
      owner: "pgEffects",
      transaction: (work) =>
        withConnection(pool, async (client) => {
          await client.query("BEGIN");
          const value = await work(client);
          await client.query("COMMIT");
          return value;
        }),
      withoutTransaction: (use) => withConnection(pool, use),
      query: async (on, sql, parameters) => (await on.query(sql, [...parameters])).rows,
      refused: { release: usedAfterEndError, end: usedAfterEndError },
    },
    options,
  );
}

/** Uses a connection, and gives it back. A connection that is broken or can no longer be used is closed. */
async function withConnection<Client extends PgClient, T>(
  pool: PgPool<Client>,
  use: (client: Client) => Promise<T>,
): Promise<T> {
  let connectionError: Error | null = null;
  const onError = (error: Error): void => {
    connectionError ??= error;
  };
  const client = await connect(pool, onError);
  try {
    const value = await use(client);
    client.removeListener("error", onError);
    client.release();
    return value;
  } catch (error) {
    const isRolledBack = connectionError === null && (await rollBack(client));
    if (isRolledBack) client.removeListener("error", onError);
    client.release(!isRolledBack || isConnectionUnusable(error));
    throw connectionError ?? error;
  }
}

/**
 * Takes a connection, and listens to its errors: one without a listener would end the process. `pg` stops listening
 * directly before it calls back. A program that waits for its promise listens a moment later, and misses an error that
 * came in the same packet.
 */
function connect<Client extends PgClient>(
  pool: PgPool<Client>,
  onError: (error: Error) => void,
): Promise<Client> {
  return new Promise((resolve, reject) => {
    const acceptClient = (client: Client): void => {
      client.on("error", onError);
      resolve(client);
    };
    const promised = pool.connect((error, client) =>
      client === undefined ? reject(error) : acceptClient(client),
    ) as undefined | Promise<Client>;
    // A pool around another one may know promises alone.
    if (isThenable(promised)) promised.then(acceptClient, reject);
  });
}

function rollBack(client: PgClient): Promise<boolean> {
  return new Promise((resolve) => {
    const cancelTimer = systemClock.after(ROLLBACK_TIMEOUT_MS, () => resolve(false));
    const settle = (isRolledBack: boolean): void => {
      cancelTimer();
      resolve(isRolledBack);
    };
    client.query("ROLLBACK").then(
      () => settle(true),
      () => settle(false),
    );
  });
}
