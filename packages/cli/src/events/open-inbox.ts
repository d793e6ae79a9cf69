import { existsSync } from "node:fs";
import type { Inbox } from "@payhooks/core";
import { serverAt } from "../command-line/address.ts";
import { UsageError, unavailableError, unavailableErrorFromCause } from "../command-line/errors.ts";
import type { OptionSpec } from "../command-line/form.ts";
import type { ParsedArguments } from "../command-line/parsed-arguments.ts";
import { quoteForShell } from "../command-line/shell.ts";
import { silentLogger } from "../silent-logger.ts";
import { SEAL_OPTION, sealOf } from "./seal-keys.ts";

/** How a usage line names an inbox. */
export const INBOX_USAGE = "--redis URL | --sqlite FILE | --postgres URL | --mysql URL";

/** Options that name an inbox. */
export const INBOX_OPTIONS: Readonly<
  Record<"redis" | "prefix" | "sqlite" | "postgres" | "schema" | "mysql" | "seal-keys", OptionSpec>
> = {
  redis: {
    value: "URL",
    help: "the Redis of redisInbox; REDIS_URL is used if no inbox is named",
  },
  prefix: {
    value: "TEXT",
    help: "prefix of the Redis keys or the MySQL tables, if the inbox sets one",
    default: "payhooks",
  },
  sqlite: { value: "FILE", help: "the file of sqliteInbox" },
  postgres: {
    value: "URL",
    help: "the PostgreSQL of postgresInbox; DATABASE_URL is used if no inbox is named",
  },
  mysql: {
    value: "URL",
    help: "the MySQL or MariaDB of mysqlInbox; DATABASE_URL is used if no inbox is named",
  },
  schema: { value: "NAME", help: "the schema in PostgreSQL, if the inbox sets one", default: "payhooks" },
  ...SEAL_OPTION,
};

/**
 * The options that name the inbox as they were given, for a command that is printed. The URL of a server is left out, because it
 * may have a password in it.
 */
export function inboxOptionsGiven(args: ParsedArguments): string {
  return Object.entries(INBOX_OPTIONS)
    .flatMap(([name, { value }]) => {
      const text = args.text(name);
      if (text === undefined) return [];
      const isSecret = value === "URL";
      return [`--${name}${text.startsWith("-") ? "=" : " "}${isSecret ? "URL" : quoteForShell(text)}`];
    })
    .join(" ");
}

/** Opens the inbox that the options name. It must exist: looking into an inbox never creates one. */
export async function openInbox(args: ParsedArguments): Promise<Inbox> {
  const address = addressOf(args);
  const inbox = await inboxAt(address, args);
  try {
    await inbox.ready();
    return inbox;
  } catch (error) {
    await inbox.close({ graceMs: 0 });
    throw explainOpenError(error, address);
  }
}

export interface InboxAddress {
  readonly kind: "SQLite" | "Redis" | "PostgreSQL" | "MySQL";
  readonly text: string;
}

/** The one inbox that the options name. */
export function addressOf(args: ParsedArguments): InboxAddress {
  const givenOptions = (["sqlite", "redis", "postgres", "mysql"] as const).filter(
    (name) => args.text(name) !== undefined,
  );
  const [name] = givenOptions;
  if (givenOptions.length > 1) throw new UsageError("Give one of --redis, --sqlite, --postgres and --mysql.");
  if (name === undefined) return addressInEnvironment();
  const text = args.text(name) ?? "";
  if (name === "sqlite") return { kind: "SQLite", text };
  return addressOfServer(SERVER_KINDS[name], text, `--${name}`);
}

function addressInEnvironment(): InboxAddress {
  const redis = process.env.REDIS_URL ?? "";
  const database = process.env.DATABASE_URL ?? "";
  if (redis !== "" && database !== "") {
    throw new UsageError(
      "REDIS_URL and DATABASE_URL are both set, and either may hold the inbox.",
      "Give --redis URL, --sqlite FILE, --postgres URL or --mysql URL.",
    );
  }
  if (redis !== "") return addressOfServer("Redis", redis, "REDIS_URL");
  if (database !== "") {
    const kind = serverAt(database) === "MySQL" ? "MySQL" : "PostgreSQL";
    return addressOfServer(kind, database, "DATABASE_URL");
  }
  throw new UsageError(
    "There is no inbox to look into.",
    "Give --redis URL, --sqlite FILE, --postgres URL or --mysql URL, or set REDIS_URL or DATABASE_URL.",
  );
}

const SERVER_KINDS = { redis: "Redis", postgres: "PostgreSQL", mysql: "MySQL" } as const;
const EXAMPLE_ADDRESSES = {
  Redis: "redis://127.0.0.1:6379",
  PostgreSQL: "postgres://127.0.0.1/shop",
  MySQL: "mysql://127.0.0.1/shop",
} as const;

/** The address of a server, from an option or a variable. */
function addressOfServer(kind: keyof typeof EXAMPLE_ADDRESSES, text: string, source: string): InboxAddress {
  if (serverAt(text) === kind) return { kind, text };
  throw new UsageError(`${source} must be an address such as ${EXAMPLE_ADDRESSES[kind]}.`);
}

async function inboxAt({ kind, text }: InboxAddress, args: ParsedArguments): Promise<Inbox> {
  const seal = sealOf(args);
  if (kind === "PostgreSQL") {
    const { postgresInbox } = await import("@payhooks/core/postgres");
    return postgresInbox(text, { schema: args.text("schema"), migrate: false, logger: silentLogger, seal });
  }
  if (kind === "MySQL") {
    const { mysqlInbox } = await import("@payhooks/core/mysql");
    return mysqlInbox(text, { prefix: args.text("prefix"), migrate: false, logger: silentLogger, seal });
  }
  if (kind === "Redis") {
    const { redisInbox } = await import("@payhooks/core/redis");
    return redisInbox(text, { prefix: args.text("prefix"), logger: silentLogger, existing: true, seal });
  }
  if (!existsSync(text)) throw new UsageError(`The file ${text} does not exist.`);
  const { sqliteInbox } = await import("@payhooks/core/sqlite");
  return sqliteInbox(text, { existing: true, seal });
}

/** Says what to check if the server cannot be opened. The error of a SQLite file says it already. */
function explainOpenError(error: unknown, { kind }: InboxAddress): unknown {
  const { code, cause } = error as { readonly code?: string; readonly cause?: { readonly message?: string } };
  if (kind === "SQLite" || code !== "ERR_INBOX_UNAVAILABLE") return error;
  // The inbox says of any error of Redis that it failed. What happened is in the cause.
  return kind === "Redis"
    ? unavailableError(code, kind, cause?.message)
    : unavailableErrorFromCause(code, kind, error);
}
