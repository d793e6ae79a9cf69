/** The command line on a real MariaDB: it prints what makes the tables, opens the inbox, and moves events into it. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createReceiver } from "@payhooks/core";
import { mysqlEffects } from "@payhooks/core/effects/mysql";
import { mysqlInbox } from "@payhooks/core/mysql";
import { sqliteInbox } from "@payhooks/core/sqlite";
import { callbackFields, createTestKeys, signPaymentCallback } from "@payhooks/core/testing";
import { createPool, type Pool } from "mysql2/promise";
import { afterAll, beforeAll, expect, it } from "vitest";
import { root } from "../package/workspace.ts";
import { silent } from "../support/silent.ts";
import { type MariadbServer, startMariadb } from "./mariadb-server.ts";

const keys = createTestKeys();
const folder = mkdtempSync(join(tmpdir(), "payhooks-mysql-move-"));
let server: MariadbServer;
let pool: Pool;

beforeAll(async () => {
  server = await startMariadb();
  pool = createPool({ uri: server.url, multipleStatements: true });
});
afterAll(async () => {
  await pool.end();
  await server.stop();
  rmSync(folder, { recursive: true });
});

function payhooks(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<{ readonly code: unknown; readonly said: string }> {
  const program = join(root, "packages/cli/src/payhooks.ts");
  const flags = ["--conditions=payhooks-source", "--import=tsx", program];
  const options = { cwd: join(root, "test"), env: { ...process.env, ...env } };
  return new Promise((resolve) => {
    execFile(process.execPath, [...flags, ...args], options, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, said: stdout + stderr }),
    );
  });
}

it("prints the tables of the inbox and of effects, as both need them", async () => {
  for (const printed of [
    ["--inbox", "mysql", "--prefix", "pay"],
    ["--for", "mysql", "--table", "by_hand"],
  ]) {
    await pool.query((await payhooks(["migrate", "--sql", ...printed])).said);
  }
  const inbox = mysqlInbox(pool, { prefix: "pay", migrate: false });
  await inbox.ready();
  await inbox.close({ graceMs: 0 });
  await mysqlEffects(pool, { createTable: false, table: "by_hand" }).open();
});

it("moves events into it, and looks into it by an option or by DATABASE_URL", async () => {
  const file = join(folder, "old.db");
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    inbox: sqliteInbox(file),
    run: "elsewhere",
    logger: silent,
  });
  receiver.onDeposit(() => {}).ignore("WITHDRAWAL");
  await receiver.start();
  const { rawBody } = signPaymentCallback(callbackFields({ referenceId: "order-17" }), keys.privateKey);
  const headers = { get: (name: string) => (name === "content-type" ? "application/json" : null) };
  await receiver.payments.receive({ method: "POST", url: "/callbacks", headers, rawBody });
  await receiver.close();
  const dry = await payhooks(["move", "--from", file, "--to", server.url, "--dry-run"]);
  expect(dry).toMatchObject({ code: 0, said: expect.stringContaining("It would be created.") });
  const [tables] = await pool.query("SHOW TABLES LIKE 'payhooks\\_records'");
  expect(tables).toEqual([]);
  expect(await payhooks(["move", "--from", file, "--to", server.url])).toMatchObject({
    code: 0,
    said: expect.stringContaining("1 unfinished, 0 held and 0 finished events in 1 records were moved"),
  });
  for (const { args, env } of [
    { args: ["--mysql", server.url], env: { DATABASE_URL: "", REDIS_URL: "" } },
    { args: [], env: { DATABASE_URL: server.url, REDIS_URL: "" } },
  ]) {
    expect(await payhooks(["events", "--reference", "order-17", ...args], env)).toMatchObject({
      code: 0,
      said: expect.stringContaining("DEPOSIT"),
    });
  }
});

it("the command line does not make the tables of an inbox that it looks into", async () => {
  await pool.query("CREATE DATABASE empty_shop");
  const { code, said } = await payhooks(["events", "--mysql", server.url.replace("/shop", "/empty_shop")]);
  expect(code).toBe(1);
  expect(said).toContain("There are no tables payhooks_*");
});
