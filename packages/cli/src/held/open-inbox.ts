import { existsSync } from "node:fs";
import type { Inbox } from "@payhooks/core";
import type { OptionSpec } from "../command-line/command.ts";
import { CliError, UsageError } from "../command-line/errors.ts";
import type { Given } from "../command-line/given.ts";
import { silentLogger } from "../silent-logger.ts";

/** Options that name an inbox. */
export const INBOX_OPTIONS: Readonly<
  Record<"redis" | "prefix" | "sqlite" | "postgres" | "schema", OptionSpec>
> = {
  redis: {
    value: "URL",
    help: "the Redis of redisInbox; where no inbox is named, REDIS_URL is taken",
  },
  prefix: { value: "TEXT", help: "prefix of the Redis keys, where the inbox has one", default: "payhooks" },
  sqlite: { value: "FILE", help: "the file of sqliteInbox" },
  postgres: { value: "URL", help: "the PostgreSQL of postgresInbox" },
  schema: { value: "NAME", help: "its schema, where the inbox has one", default: "payhooks" },
};

/** Opens the inbox that the options name, as the application does. One that no receiver has used is not made. */
export async function openInbox(given: Given): Promise<Inbox> {
  const inbox = await inboxOf(given);
  try {
    await inbox.ready();
    return inbox;
  } catch (error) {
    await inbox.close({ graceMs: 0 });
    throw unavailable(error, given);
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
    // Whoever looks into an inbox makes none.
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

/** Says of a server that is not there what to look at. A file that cannot be opened says so by itself. */
function unavailable(error: unknown, given: Given): unknown {
  const { code, cause } = error as { code?: string; cause?: { readonly message?: string } };
  if (given.flag("sqlite") || code !== "ERR_INBOX_UNAVAILABLE") return error;
  const server = given.flag("postgres") ? "PostgreSQL" : "Redis";
  const what = `${server} cannot be opened: ${cause?.message ?? "it does not answer"}.`;
  return new CliError(code, what, "Is it running, and are address and password right?");
}
