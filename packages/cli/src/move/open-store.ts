import { existsSync } from "node:fs";
import type { RecordStore } from "@payhooks/core/inbox";
import { CliError, UsageError } from "../command-line/errors.ts";
import { silentLogger } from "../silent-logger.ts";

/** One end of a move. */
export interface Place {
  /** An address or a file, as it was given. */
  readonly address: string;
  readonly prefix?: string | undefined;
  readonly schema?: string | undefined;
}

type Kind = "PostgreSQL" | "Redis" | "SQLite";

/** What an address leads to: whatever is no URL is the name of a file. */
function kindOf({ address }: Place): Kind {
  if (/^postgres(?:ql)?:\/\//.test(address)) return "PostgreSQL";
  if (/^(?:rediss?|unix):\/\//.test(address)) return "Redis";
  if (!/^[a-z][a-z+.-]+:\/\//i.test(address)) return "SQLite";
  throw new UsageError(
    "An inbox has an address that leads to none.",
    "Give postgres://…, redis://…, rediss://…, unix://… or the name of a SQLite file.",
  );
}

/** The place in words, without user and password. */
export function nameOf(place: Place): string {
  const kind = kindOf(place);
  if (kind === "SQLite" || !URL.canParse(place.address)) return `${kind} ${place.address}`;
  const { host, pathname } = new URL(place.address);
  return `${kind} ${host}${pathname === "/" ? "" : pathname}`;
}

/** Opens the store that a place leads to; one that is moved from must be there. */
export async function openStore(place: Place, isSource: boolean): Promise<RecordStore> {
  const store = await storeOf(place, isSource);
  try {
    await store.open();
    return store;
  } catch (error) {
    await store.close();
    const { code, cause } = error as { code?: unknown; cause?: { readonly message?: string } };
    const isKnown = error instanceof Error && error.name === "PayhooksError";
    if (isKnown && code !== "ERR_INBOX_UNAVAILABLE") throw error;
    const why = cause?.message ?? (typeof code === "string" ? code : "it does not answer");
    throw new CliError(
      "ERR_INBOX_UNAVAILABLE",
      `${nameOf(place)} cannot be opened: ${why}.`,
      "Is it running, and are address and password right?",
    );
  }
}

async function storeOf(place: Place, isSource: boolean): Promise<RecordStore> {
  const { address, prefix, schema } = place;
  const kind = kindOf(place);
  if (prefix !== undefined && kind !== "Redis") throw new UsageError("A prefix goes with a Redis.");
  if (schema !== undefined && kind !== "PostgreSQL") throw new UsageError("A schema goes with a PostgreSQL.");
  if (kind === "PostgreSQL") {
    const { postgresStore } = await import("@payhooks/core/postgres");
    const statementTimeoutMs = PATIENCE_MS;
    return postgresStore(address, { schema, migrate: !isSource, logger: silentLogger, statementTimeoutMs });
  }
  if (kind === "Redis") {
    const { redisStore } = await import("@payhooks/core/redis");
    const commandTimeoutMs = PATIENCE_MS;
    return redisStore(address, { prefix, existing: isSource, logger: silentLogger, commandTimeoutMs });
  }
  if (isSource && !existsSync(address)) throw new UsageError(`The file ${address} does not exist.`);
  const { sqliteStore } = await import("@payhooks/core/sqlite");
  return sqliteStore(address, { existing: isSource });
}

/** No delivery waits for a statement of a move. */
const PATIENCE_MS = 15_000;
