import { existsSync } from "node:fs";
import type { Inbox } from "@payhooks/core";
import { UsageError, unavailable } from "../command-line/errors.ts";
import type { OptionSpec } from "../command-line/form.ts";
import type { Given } from "../command-line/given.ts";
import { silentLogger } from "../silent-logger.ts";

/** Options that name an inbox. */
export const INBOX_OPTIONS: Readonly<
  Record<"redis" | "prefix" | "sqlite" | "postgres" | "schema", OptionSpec>
> = {
  redis: {
    value: "URL",
    help: "the Redis of redisInbox; REDIS_URL is used if no inbox is named",
  },
  prefix: { value: "TEXT", help: "prefix of the Redis keys, if the inbox sets one", default: "payhooks" },
  sqlite: { value: "FILE", help: "the file of sqliteInbox" },
  postgres: { value: "URL", help: "the PostgreSQL of postgresInbox" },
  schema: { value: "NAME", help: "the schema in PostgreSQL, if the inbox sets one", default: "payhooks" },
};

/** Opens the inbox that the options name. It must exist: looking into an inbox never creates one. */
export async function openInbox(given: Given): Promise<Inbox> {
  const inbox = await inboxOf(given);
  try {
    await inbox.ready();
    return inbox;
  } catch (error) {
    await inbox.close({ graceMs: 0 });
    throw explained(error, given);
  }
}

async function inboxOf(given: Given): Promise<Inbox> {
  const sqlite = given.text("sqlite");
  const redis = given.text("redis");
  const postgres = given.text("postgres");
  if ([sqlite, redis, postgres].filter((one) => one !== undefined).length > 1) {
    throw new UsageError("Give one of --redis, --sqlite and --postgres.");
  }
  if (postgres !== undefined) {
    const { postgresInbox } = await import("@payhooks/core/postgres");
    return postgresInbox(postgres, { schema: given.text("schema"), migrate: false, logger: silentLogger });
  }
  if (sqlite !== undefined) {
    if (!existsSync(sqlite)) throw new UsageError(`The file ${sqlite} does not exist.`);
    const { sqliteInbox } = await import("@payhooks/core/sqlite");
    return sqliteInbox(sqlite, { existing: true });
  }
  const url = redis ?? process.env.REDIS_URL;
  if (url === undefined || url === "") {
    throw new UsageError(
      "There is no inbox to look into.",
      "Give --redis URL, --sqlite FILE or --postgres URL, or set REDIS_URL.",
    );
  }
  if (!/^(?:rediss?|unix):\/\//.test(url)) {
    throw new UsageError("--redis must be an address such as redis://127.0.0.1:6379.");
  }
  const { redisInbox } = await import("@payhooks/core/redis");
  return redisInbox(url, { prefix: given.text("prefix"), logger: silentLogger, existing: true });
}

/** Says what to check if the server cannot be opened. The error of a SQLite file says it already. */
function explained(error: unknown, given: Given): unknown {
  const { code, cause } = error as { code?: string; cause?: { readonly message?: string } };
  if (given.flag("sqlite") || code !== "ERR_INBOX_UNAVAILABLE") return error;
  return unavailable(code, given.flag("postgres") ? "PostgreSQL" : "Redis", cause?.message);
}
