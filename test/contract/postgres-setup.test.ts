/** The start explains a wrong set-up in words. The inbox works with these settings of programs and roles. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createReceiver, type Notice } from "@payhooks/core";
import { type PostgresTarget, postgresInbox, postgresStore } from "@payhooks/core/postgres";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sendCanary } from "../../packages/core/src/testing/store/canaries.ts";
import { acceptedRecord, endedRecord, keyOf } from "../../packages/core/src/testing/store/records.ts";
import { put, takeOfBothLanes } from "../../packages/core/src/testing/store/writes.ts";
import { PostgresServer } from "../faults/harness/postgres-server.ts";
import { Scope, withScope } from "../faults/harness/scope.ts";
import { keys } from "../faults/harness/system.ts";
import { freePort } from "../support/free-port.ts";
import { silent } from "../support/silent.ts";

/** The roles that may connect. The role `ciphered` needs TLS, which this server has not. */
const HBA = `host all locked 127.0.0.1/32 scram-sha-256
hostssl all ciphered 127.0.0.1/32 trust
hostnossl all ciphered 127.0.0.1/32 reject
host all all 127.0.0.1/32 trust
`;

const scope = new Scope();
let server: PostgresServer;
beforeAll(async () => {
  const folder = scope.add(mkdtempSync(join(tmpdir(), "payhooks-hba-")), (path) =>
    rmSync(path, { recursive: true }),
  );
  chmodSync(folder, 0o755);
  writeFileSync(join(folder, "hba.conf"), HBA);
  server = await PostgresServer.start(scope, { settings: [`hba_file=${join(folder, "hba.conf")}`] });
  for (const sql of [
    "CREATE ROLE locked LOGIN PASSWORD 'right-pass'",
    "CREATE ROLE ciphered LOGIN",
    "CREATE ROLE plain LOGIN",
    "CREATE ROLE asleep NOLOGIN",
    "CREATE DATABASE closed",
    "REVOKE CONNECT ON DATABASE closed FROM PUBLIC",
  ]) {
    await server.tell(sql);
  }
});
afterAll(() => scope.close());

async function startOf(target: PostgresTarget): Promise<{ readonly code: string; readonly message: string }> {
  const store = postgresStore(target, { schema: "unreached", logger: silent });
  try {
    await store.open();
  } catch (error) {
    return error as { readonly code: string; readonly message: string };
  } finally {
    await store.close();
  }
  throw new Error("It opened.");
}

describe("the start says in words why there is no connection", () => {
  const as = (user: string, rest = "/postgres"): string =>
    `postgres://${user}@127.0.0.1:${server.port}${rest}`;
  const refusals: readonly (readonly [what: string, target: () => string | Promise<string>, said: string])[] =
    [
      ["a wrong database", () => as("postgres", "/shop"), "the database does not exist"],
      ["a wrong role", () => as("shoppe"), "does not let this role in"],
      ["a role that may not log in", () => as("asleep"), "does not let this role in"],
      ["a wrong password", () => as("locked:wrong-pass"), "refuses the password"],
      ["no password", () => as("locked"), "refuses the password"],
      ["a role that needs TLS", () => as("ciphered"), "without TLS"],
      [
        "TLS that the server has not",
        () => as("postgres", "/postgres?sslmode=require"),
        "the server has none",
      ],
      [
        "a database that is closed to the role",
        () => as("plain", "/closed"),
        "may not connect to this database",
      ],
      [
        "a host that nobody knows",
        () => "postgres://postgres@nowhere.invalid/postgres",
        "host of the address is not known",
      ],
      [
        "a port at which nobody listens",
        async () => `postgres://127.0.0.1:${await freePort()}/x`,
        "nothing answers",
      ],
    ];
  it.each(refusals)("%s", async (_, target, said) => {
    const { code, message } = await startOf(await target());
    expect([code, message]).toEqual(["ERR_INBOX_UNAVAILABLE", expect.stringContaining(said)]);
    expect(message).not.toMatch(/NotSent|DatabaseError|-pass/);
    expect(message.length).toBeGreaterThan(80);
  });

  it("also with a client of the program's own", () =>
    withScope(async (own) => {
      const pool = own.add(new pg.Pool({ connectionString: as("postgres", "/shop") }), (one) => one.end());
      const { message } = await startOf({ query: (text, values) => pool.query(text, values) });
      expect(message).toContain("the database does not exist");
    }));

  it("a role that may not make the schema, and one for which there is none", async () => {
    const { code, message } = await startOf(as("plain"));
    expect([code, message]).toEqual(["ERR_POSTGRES_UNSUITABLE", expect.stringContaining("it lacks CREATE")]);
  });

  it("a receiver tries again until it is let in", () =>
    withScope(async (own) => {
      const notices: Notice[] = [];
      const receiver = createReceiver({
        payments: { publicKey: keys.publicKey },
        inbox: postgresInbox(as("postgres", "/later"), { schema: "later" }),
        logger: silent,
      });
      own.add(receiver, (one) => one.close({ graceMs: 0 }));
      receiver.ignore("WITHDRAWAL").onDeposit(() => {});
      receiver.observe((notice) => void notices.push(notice));
      await receiver.start().catch(() => {});
      expect(JSON.stringify([notices, await receiver.health()])).toContain("the database does not exist");
      await server.tell("CREATE DATABASE later");
      await receiver.start();
      expect(await receiver.health()).toMatchObject({ ok: true });
      // The inbox's warnings about its set-up go to the receiver.
      const warnings = notices.filter(({ type }) => type === "warning");
      expect(warnings).toContainEqual(
        expect.objectContaining({ what: expect.stringContaining("fsync = off") }),
      );
    }));
});

describe("works with", () => {
  it.each(["user", "order", "select", "table", "a".repeat(40), "_1"])("a schema of the name %s", (schema) =>
    lives(() => server.url, schema),
  );

  it.each([
    ["binary answers", { binary: true }],
    ["a search path", { options: "-c search_path=pg_temp" }],
    ["no limit of statements", { options: "-c statement_timeout=0", statement_timeout: 0 }],
    ["serializable transactions", { options: "-c default_transaction_isolation=serializable" }],
    [
      "other spellings of dates and numbers",
      { options: "-c datestyle=german -c intervalstyle=iso_8601 -c extra_float_digits=0" },
    ],
    ["another time zone", { options: "-c timezone=Pacific/Apia" }],
    ["parsers of its own", { types: { getTypeParser: () => () => ({ parsed: "by the program" }) } }],
  ])("a pool that has %s", (_, settings) =>
    withScope((own) =>
      lives(() => own.add(new pg.Pool({ connectionString: server.url, ...settings }), (one) => one.end())),
    ),
  );

  it("a program that parses integers as BigInt, and everything else in its own way", () => {
    const types = [16, 20, 23, 25, 701, 1184] as const;
    const before = types.map((type) => pg.types.getTypeParser(type));
    for (const type of types) pg.types.setTypeParser(type, () => ({ parsed: "by the program" }));
    return lives(() => server.url).finally(() => {
      for (const [at, type] of types.entries())
        pg.types.setTypeParser(type, before[at] as (text: string) => unknown);
    });
  });

  let schemas = 0;
  async function lives(target: () => PostgresTarget, schema = `lives_${++schemas}`): Promise<void> {
    const store = postgresStore(target(), { schema, logger: silent });
    try {
      await store.open();
      const key = keyOf(1);
      const record = acceptedRecord(key, store.now(key));
      const first = await put(store, key, null, record);
      expect((await takeOfBothLanes(store, 5, 1)).records).toHaveLength(1);
      expect((await store.list({ id: record.id }, null, 5)).events).toHaveLength(1);
      expect((await store.list({ referenceId: "o-1", state: "any" }, null, 5)).events).toHaveLength(1);
      expect((await store.scan?.(null, 5))?.records).toHaveLength(1);
      expect(await store.counts()).toMatchObject({ waiting: 1 });
      await put(store, key, first, endedRecord(key, store.now(key), record));
      expect(
        await store.findLoss?.(
          [first].map((one) => ({
            ...one,
            index: {
              dueAt: null,
              originalDelayMs: 0,
              isLeased: false,
              lane: "usual" as const,
              expiresAt: null,
              events: [],
            },
          })),
        ),
      ).toBeNull();
      await store.prune?.(store.now(""));
      await sendCanary(store);
    } finally {
      await store.close();
    }
  }
});

it.each(["Orders", 'a"b', "zürich", "a b", "a".repeat(41), "1a", "pg_own", "", "a.b", "a;b"])(
  "a schema of the name %j is refused by name",
  (schema) => {
    expect(() => postgresStore(server.url, { schema })).toThrow(
      expect.objectContaining({ code: "ERR_OPTION_INVALID", message: expect.stringContaining("schema") }),
    );
  },
);
