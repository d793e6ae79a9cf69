import { checkTime } from "../protocol/check-number.ts";
import { PayhooksError } from "../protocol/errors.ts";
import type { Environment } from "../time/environment.ts";
import { clientMaker, isPool, type PostgresTarget } from "./client.ts";
import { GivenSession, PgSession, type Session } from "./session.ts";
import { Sessions } from "./sessions.ts";
import { listenSql } from "./statements.ts";

/** How many connections are on the path of a delivery. One more is for lists, counts, pruning and hints. */
const FOREGROUND_CONNECTIONS = 2;

export interface ConnectionSettings {
  readonly target: PostgresTarget | undefined;
  readonly schema: string;
  readonly pooled: boolean;
  readonly timeoutMs: number;
  readonly environment: Environment;
  /** Called for each notification of the server. */
  readonly onNotification: () => void;
}

export interface Connections {
  /** For calls that a delivery or a run waits for. */
  readonly foreground: Sessions;
  /** One session, for statements that may take longer, so that no delivery waits for them. */
  readonly background: Sessions;
}

/** @throws PayhooksError `ERR_OPTION_MISSING`, `ERR_OPTION_INVALID`, `ERR_PEER_MISSING`. */
export async function connections(settings: ConnectionSettings): Promise<Connections> {
  const { target, timeoutMs, environment } = settings;
  const makeSession = await sessionMaker(settings);
  const foregroundSessions = Array.from({ length: isQueryClient(target) ? 1 : FOREGROUND_CONNECTIONS }, () =>
    makeSession(false),
  );
  return {
    foreground: new Sessions(foregroundSessions, environment, timeoutMs),
    background: new Sessions([makeSession(true)], environment, timeoutMs),
  };
}

async function sessionMaker({
  target,
  schema,
  pooled,
  timeoutMs,
  environment,
  onNotification,
}: ConnectionSettings): Promise<(shouldListen: boolean) => Session> {
  if (target === undefined || target === null || target === "") {
    throw new PayhooksError("ERR_OPTION_MISSING", "postgresInbox was given no URL and no pool.", {
      fix: "Set it (check the environment variable), such as postgres://user:password@localhost:5432/shop. There is no default address.",
    });
  }
  checkTime("statementTimeoutMs", timeoutMs);
  if (isQueryClient(target)) return () => new GivenSession(target, environment, timeoutMs);
  const makeClient = await clientMaker(target, timeoutMs, pooled);
  return (shouldListen) =>
    new PgSession({
      makeClient,
      environment,
      timeoutMs,
      setupSql: pooled ? null : sessionSetupSql(timeoutMs, shouldListen ? schema : null),
      onNotification: shouldListen ? onNotification : undefined,
    });
}

/** True for a client that is used as it is. */
function isQueryClient(target: PostgresTarget | undefined): target is Exclude<PostgresTarget, string> {
  return typeof target === "object" && target !== null && !isPool(target);
}

/**
 * Settings for the beginning of a session, whatever the role's own settings are. Each statement is a transaction at level "read
 * committed", is not compiled, and finds its rows by an index even before the server has statistics about them. On the path of a
 * delivery, a named statement is planned once: planning one for many writes takes three times as long as running it.
 */
function sessionSetupSql(timeoutMs: number, channelSchema: string | null): string {
  const settings = [
    `SET statement_timeout = ${timeoutMs}`,
    "SET default_transaction_isolation = 'read committed'",
    "SET jit = off",
    "SET enable_seqscan = off",
    "SET enable_hashjoin = off",
    "SET enable_mergejoin = off",
  ];
  settings.push(
    channelSchema === null ? "SET plan_cache_mode = force_generic_plan" : listenSql(channelSchema),
  );
  return settings.join("; ");
}
