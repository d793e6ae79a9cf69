import { mysqlEffectsSql, postgresEffectsSql, sqliteEffectsSql } from "@payhooks/core/effects";
import type { Pool } from "pg";
import { serverAt } from "../command-line/address.ts";
import type { Command } from "../command-line/command.ts";
import { CliError, EXIT, UsageError, unavailableErrorFromCause } from "../command-line/errors.ts";
import type { ParsedArguments } from "../command-line/parsed-arguments.ts";
import type { Terminal } from "../command-line/terminal.ts";

const DATABASES = ["postgres", "mysql", "sqlite"] as const;

const EFFECTS_SQL = {
  postgres: postgresEffectsSql,
  mysql: mysqlEffectsSql,
  sqlite: sqliteEffectsSql,
} as const;

export const migrateCommand: Command = {
  name: "migrate",
  summary: "Create the table of effects, or print the statements that create it or the tables of an inbox",
  usage: [
    "--postgres URL [--table NAME]",
    "--sql [--for DATABASE] [--table NAME]",
    "--sql --inbox postgres [--schema NAME]",
    "--sql --inbox mysql [--prefix TEXT]",
  ],
  options: {
    postgres: {
      value: "URL",
      help: "the database of your application; if it is left out, DATABASE_URL is used",
    },
    table: { value: "NAME", help: "the table, with its schema if it needs one", default: "payhooks_effects" },
    sql: { help: "print the statements for a migration of your own, and run nothing" },
    for: {
      value: "DATABASE",
      help: "the database that the printed statements are for: postgres, mysql or sqlite",
      default: "postgres",
    },
    inbox: {
      value: "DATABASE",
      help: "print the statements for the tables of an inbox instead of those for effects: postgres or mysql",
    },
    schema: {
      value: "NAME",
      help: "the schema of the tables in PostgreSQL, if the inbox sets one",
      default: "payhooks",
    },
    prefix: {
      value: "TEXT",
      help: "the prefix of the tables' names in MySQL, if the inbox sets one",
      default: "payhooks",
    },
  },
  notes: [
    "postgresInbox and mysqlInbox make their tables themselves when they start. Print the statements if your role may not make tables, or if somebody wants to read them first. Then let a role that may make tables run them, and set migrate: false.",
    "If you run it twice, the second run changes nothing. It needs the package pg. If your application uses another client, put the output of --sql into a migration of your own.",
  ],
  examples: [
    "payhooks migrate --postgres postgres://shop@127.0.0.1/shop",
    "payhooks migrate --sql > migrations/0007-payhooks.sql",
    "payhooks migrate --sql --inbox postgres > migrations/0008-payhooks-inbox.sql",
    "payhooks migrate --sql --inbox mysql > migrations/0008-payhooks-inbox.sql",
  ],
  arguments: { least: 0, most: 0 },
  changes: (args) => !args.flag("sql"),
  async run(args, terminal) {
    const table = args.text("table");
    if (args.flag("sql")) {
      return args.flag("inbox") ? printInbox(args, terminal) : print(args, table, terminal);
    }
    const printOption = (["for", "inbox", "schema", "prefix"] as const).find((name) => args.flag(name));
    if (printOption !== undefined) throw new UsageError(`--${printOption} goes with --sql.`);
    const url = args.text("postgres") ?? process.env.DATABASE_URL;
    if (url === undefined || serverAt(url) !== "PostgreSQL") {
      throw new UsageError(
        "There is no database to migrate.",
        "Give --postgres postgres://…, set DATABASE_URL, or print the statements with --sql.",
      );
    }
    await migrate(url, table);
    const name = table ?? "payhooks_effects";
    terminal.json({ table: name, ready: true });
    terminal.line(`The table ${name} is ready.`);
    return EXIT.ok;
  },
};

function print(args: ParsedArguments, table: string | undefined, terminal: Terminal): number {
  if (args.flag("postgres")) throw new UsageError("Give --sql or --postgres, not both.");
  if (args.flag("schema"))
    throw new UsageError("--schema goes with --inbox. The schema of the effects is part of --table.");
  if (args.flag("prefix")) throw new UsageError("--prefix goes with --inbox mysql.");
  const database = args.choice("for", DATABASES) ?? "postgres";
  const statements = EFFECTS_SQL[database](table);
  terminal.json({ database, statements });
  for (const statement of statements) terminal.line(`${statement};`);
  return EXIT.ok;
}

async function printInbox(args: ParsedArguments, terminal: Terminal): Promise<number> {
  const excludedOption = (["postgres", "for", "table"] as const).find((name) => args.flag(name));
  if (excludedOption !== undefined) throw new UsageError(`--inbox does not go with --${excludedOption}.`);
  const database = args.choice("inbox", ["postgres", "mysql"]) ?? "postgres";
  const foreign = database === "postgres" ? "prefix" : "schema";
  if (args.flag(foreign)) throw new UsageError(`--${foreign} does not go with --inbox ${database}.`);
  const sql =
    database === "postgres"
      ? (await import("@payhooks/core/postgres")).postgresMigration(args.text("schema"))
      : (await import("@payhooks/core/mysql")).mysqlMigration(args.text("prefix"));
  terminal.json({ database, sql });
  terminal.line(sql);
  return EXIT.ok;
}

async function migrate(url: string, table: string | undefined): Promise<void> {
  const { Pool } = await importPg();
  const pool = new Pool({ connectionString: url, max: 1, connectionTimeoutMillis: 10_000 });
  pool.on("error", () => {});
  const { pgEffects } = await import("@payhooks/core/effects/postgres");
  try {
    await pgEffects(pool, { table }).open();
  } catch (error) {
    if (error instanceof Error && error.name === "PayhooksError") throw error;
    throw unavailableErrorFromCause("ERR_DATABASE_UNAVAILABLE", "PostgreSQL", error);
  } finally {
    await pool.end();
  }
}

async function importPg(): Promise<{ readonly Pool: typeof Pool }> {
  try {
    return (await import("pg")).default;
  } catch {
    throw new CliError(
      "ERR_PEER_MISSING",
      "payhooks migrate found no pg.",
      "Run npm install pg, or print the statements with --sql.",
    );
  }
}
