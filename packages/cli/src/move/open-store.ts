import { existsSync } from "node:fs";
import type { RecordStore } from "@payhooks/core/inbox";
import { serverAt } from "../command-line/address.ts";
import { UsageError, unavailableErrorFromCause } from "../command-line/errors.ts";
import { silentLogger } from "../silent-logger.ts";

/** Where the inbox at one end of a move is. */
export interface StoreAddress {
  /** A URL or the name of a file, as the user wrote it. */
  readonly address: string;
  readonly prefix?: string | undefined;
  readonly schema?: string | undefined;
}

type Kind = "PostgreSQL" | "MySQL" | "Redis" | "SQLite";

/** The kind of store at an address. Anything that is not a URL is the name of a SQLite file. */
function kindOf({ address }: StoreAddress): Kind {
  const server = serverAt(address);
  if (server !== null) return server;
  if (!/^[a-z][a-z+.-]+:\/\//i.test(address)) return "SQLite";
  throw new UsageError(
    "The address of an inbox is not one that Payhooks knows.",
    "Give postgres://…, mysql://…, redis://…, rediss://…, unix://… or the name of a SQLite file.",
  );
}

/** The address in words, without the user and the password. */
export function nameOf(target: StoreAddress): string {
  const kind = kindOf(target);
  if (kind === "SQLite" || !URL.canParse(target.address)) return `${kind} ${target.address}`;
  const { host, pathname } = new URL(target.address);
  return `${kind} ${host}${pathname === "/" ? "" : pathname}`;
}

/**
 * Opens the store at an address. The store that is moved from must exist; the store that is moved to is
 * created.
 */
export async function openStore(target: StoreAddress, isSource: boolean): Promise<RecordStore> {
  const store = await storeOf(target, isSource);
  try {
    await store.open();
    return store;
  } catch (error) {
    await store.close();
    const { code } = error as { code?: unknown };
    const isKnown = error instanceof Error && error.name === "PayhooksError";
    if (isKnown && code !== "ERR_INBOX_UNAVAILABLE") throw error;
    throw unavailableErrorFromCause("ERR_INBOX_UNAVAILABLE", nameOf(target), error);
  }
}

async function storeOf(target: StoreAddress, isSource: boolean): Promise<RecordStore> {
  const { address, prefix, schema } = target;
  const kind = kindOf(target);
  if (prefix !== undefined && kind !== "Redis" && kind !== "MySQL") {
    throw new UsageError("Only Redis and MySQL have a prefix.");
  }
  if (schema !== undefined && kind !== "PostgreSQL") throw new UsageError("Only PostgreSQL has a schema.");
  if (kind === "PostgreSQL") {
    const { postgresStore } = await import("@payhooks/core/postgres");
    const statementTimeoutMs = STATEMENT_TIMEOUT_MS;
    return postgresStore(address, { schema, migrate: !isSource, logger: silentLogger, statementTimeoutMs });
  }
  if (kind === "MySQL") {
    const { mysqlStore } = await import("@payhooks/core/mysql");
    const statementTimeoutMs = STATEMENT_TIMEOUT_MS;
    return mysqlStore(address, { prefix, migrate: !isSource, logger: silentLogger, statementTimeoutMs });
  }
  if (kind === "Redis") {
    const { redisStore } = await import("@payhooks/core/redis");
    const commandTimeoutMs = STATEMENT_TIMEOUT_MS;
    return redisStore(address, { prefix, existing: isSource, logger: silentLogger, commandTimeoutMs });
  }
  if (isSource && !existsSync(address)) throw new UsageError(`The file ${address} does not exist.`);
  const { sqliteStore } = await import("@payhooks/core/sqlite");
  return sqliteStore(address, { existing: isSource });
}

/** How long a move waits for one statement. It may be long, because no delivery waits for it. */
const STATEMENT_TIMEOUT_MS = 15_000;
