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

/** Opens the store at an address. If it need not exist, it is created. */
export async function openStore(target: StoreAddress, mustExist: boolean): Promise<RecordStore> {
  const store = await storeOf(target, mustExist);
  if (mustExist && kindOf(target) === "SQLite" && !existsSync(target.address))
    throw new UsageError(`The file ${target.address} does not exist.`);
  try {
    return await open(store);
  } catch (error) {
    throw openErrorOf(target, error);
  }
}

/** Opens the store at an address, and creates nothing. Null if no inbox exists there. */
export async function openExistingStore(target: StoreAddress): Promise<RecordStore | null> {
  const store = await storeOf(target, true);
  try {
    return await open(store);
  } catch (error) {
    if (isInboxMissing(error)) return null;
    throw openErrorOf(target, error);
  }
}

async function open(store: RecordStore): Promise<RecordStore> {
  try {
    await store.open();
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

function openErrorOf(target: StoreAddress, error: unknown): unknown {
  const { code } = error as { code?: unknown };
  const isKnown = error instanceof Error && error.name === "PayhooksError";
  if (isKnown && code !== "ERR_INBOX_UNAVAILABLE") return error;
  return unavailableErrorFromCause("ERR_INBOX_UNAVAILABLE", nameOf(target), error);
}

/** True if there is no inbox yet: a database may lack the tables, or some of them. */
function isInboxMissing(error: unknown): boolean {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  if (code === "ERR_INBOX_UNUSED") return true;
  const isUnsuitable = code === "ERR_POSTGRES_UNSUITABLE" || code === "ERR_MYSQL_UNSUITABLE";
  return isUnsuitable && /\bno tables\b/.test(String(message));
}

async function storeOf(target: StoreAddress, mustExist: boolean): Promise<RecordStore> {
  const { address, prefix, schema } = target;
  const kind = kindOf(target);
  if (prefix !== undefined && kind !== "Redis" && kind !== "MySQL") {
    throw new UsageError("Only Redis and MySQL have a prefix.");
  }
  if (schema !== undefined && kind !== "PostgreSQL") throw new UsageError("Only PostgreSQL has a schema.");
  if (kind === "PostgreSQL") {
    const { postgresStore } = await import("@payhooks/core/postgres");
    const statementTimeoutMs = STATEMENT_TIMEOUT_MS;
    return postgresStore(address, { schema, migrate: !mustExist, logger: silentLogger, statementTimeoutMs });
  }
  if (kind === "MySQL") {
    const { mysqlStore } = await import("@payhooks/core/mysql");
    const statementTimeoutMs = STATEMENT_TIMEOUT_MS;
    return mysqlStore(address, { prefix, migrate: !mustExist, logger: silentLogger, statementTimeoutMs });
  }
  if (kind === "Redis") {
    const { redisStore } = await import("@payhooks/core/redis");
    const commandTimeoutMs = STATEMENT_TIMEOUT_MS;
    return redisStore(address, { prefix, existing: mustExist, logger: silentLogger, commandTimeoutMs });
  }
  const { sqliteStore } = await import("@payhooks/core/sqlite");
  return sqliteStore(address, { existing: mustExist });
}

/** How long a move waits for one statement. It may be long, because no delivery waits for it. */
const STATEMENT_TIMEOUT_MS = 15_000;
