/** The start refuses a wrong set-up of effects, and describes the fault, with every client. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CLIENTS } from "./postgres-clients.ts";
import { PostgresShop } from "./postgres-shop.ts";

let shop: PostgresShop;

beforeAll(async () => {
  shop = await PostgresShop.start({ settings: ["password_encryption=md5"] });
  await shop.admin.query(`CREATE ROLE till LOGIN PASSWORD 'right';
    CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
    CREATE FUNCTION other() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.id := 'x'; RETURN NEW; END $$;
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$;`);
  await shop.server.requirePasswordOf("till");
});
afterAll(() => shop.stop());

const GRANT = "GRANT SELECT, INSERT, UPDATE, DELETE ON payhooks_effects TO till";
const REMAKE = "DROP TABLE payhooks_effects; CREATE TABLE payhooks_effects";
const TIME = "at timestamptz NOT NULL DEFAULT now()";
const DONE = "done boolean NOT NULL DEFAULT false";

/** Changes to a table that is fine, and the words about each. */
const TABLES: readonly (readonly [what: string, sql: string, said: RegExp])[] = [
  ["no SELECT", "REVOKE SELECT ON payhooks_effects FROM till", /GRANT SELECT, INSERT, UPDATE, DELETE/],
  ["no INSERT", "REVOKE INSERT ON payhooks_effects FROM till", /GRANT SELECT, INSERT, UPDATE, DELETE/],
  ["no UPDATE", "REVOKE UPDATE ON payhooks_effects FROM till", /GRANT SELECT, INSERT, UPDATE, DELETE/],
  ["no DELETE", "REVOKE DELETE ON payhooks_effects FROM till", /GRANT SELECT, INSERT, UPDATE, DELETE/],
  ["a policy", "ALTER TABLE payhooks_effects ENABLE ROW LEVEL SECURITY", /row-level policy/],
  ["no column done", `${REMAKE} (id text PRIMARY KEY, ${TIME})`, /not as effects need it/],
  ["no key", `${REMAKE} (id text, ${TIME}, ${DONE})`, /not as effects need it/],
  ["a short id", `${REMAKE} (id varchar(64) PRIMARY KEY, ${TIME}, ${DONE})`, /not as effects need it/],
  ["a number as id", `${REMAKE} (id bigint PRIMARY KEY, ${TIME}, ${DONE})`, /not as effects need it/],
  [
    "another column",
    `${REMAKE} (id text PRIMARY KEY, ${TIME}, ${DONE}, n int NOT NULL)`,
    /not as effects need it/,
  ],
  [
    "a constraint",
    `${REMAKE} (id text PRIMARY KEY CHECK (id < 'a'), ${TIME}, ${DONE})`,
    /not as effects need it/,
  ],
  [
    "a collation that ignores case",
    `CREATE COLLATION IF NOT EXISTS caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
     ${REMAKE} (id text COLLATE caseless PRIMARY KEY, ${TIME}, ${DONE})`,
    /differ in case/,
  ],
  [
    "a view",
    "ALTER TABLE payhooks_effects RENAME TO kept; CREATE VIEW payhooks_effects AS SELECT 1 AS id",
    /not as/,
  ],
  [
    "a rule",
    "CREATE RULE gone AS ON INSERT TO payhooks_effects DO INSTEAD NOTHING",
    /not as effects need it/,
  ],
  ...["INSERT", "UPDATE"].map(
    (call) =>
      [
        `a trigger that swallows the ${call}`,
        `CREATE TRIGGER t BEFORE ${call} ON payhooks_effects FOR EACH ROW EXECUTE FUNCTION nothing()`,
        /although the statement succeeded/,
      ] as const,
  ),
  [
    "a trigger that changes the id",
    "CREATE TRIGGER t BEFORE INSERT ON payhooks_effects FOR EACH ROW EXECUTE FUNCTION other()",
    /although the statement succeeded/,
  ],
  [
    "a trigger that refuses",
    "CREATE TRIGGER t BEFORE INSERT ON payhooks_effects FOR EACH ROW EXECUTE FUNCTION refuse()",
    /not as effects need it/,
  ],
  ["a role that is read-only", "ALTER ROLE till SET default_transaction_read_only = on", /set to read only/],
];

/** The changes to the address. */
const ADDRESSES: readonly (readonly [what: string, (url: string) => string, said: RegExp])[] = [
  ["a wrong password", (url) => url.replace("right", "wrong"), /refused the password/],
  [
    "a role that does not exist",
    (url) => url.replace("till:right", "nobody"),
    /refused the (?:role|password)/,
  ],
  ["a database that does not exist", (url) => url.replace(/\/postgres$/, "/nowhere"), /does not exist/],
];

describe.each(CLIENTS)("through $name", { timeout: 60_000 }, (kind) => {
  const url = (): string => shop.server.url.replace("postgres@", "till:right@");

  beforeEach(async () => {
    await shop.admin.query(`DROP VIEW IF EXISTS payhooks_effects`).catch(() => {});
    await shop.admin.query("DROP TABLE IF EXISTS payhooks_effects, kept CASCADE");
    await (await shop.client(kind)).effects().open();
    await shop.admin.query(GRANT);
  });
  afterEach(async () => {
    await shop.close();
    await shop.admin.query("ALTER ROLE till RESET default_transaction_read_only");
  });

  it("takes a role that has what it needs, and leaves nothing behind", async () => {
    const client = await shop.client(kind, url());
    await client.effects({ createTable: false }).open();
    expect(await shop.ids()).toEqual([]);
  });

  it.each(TABLES)("refuses %s", async (_, sql, said) => {
    await shop.admin.query(sql);
    if (sql.startsWith("DROP") || sql.startsWith("CREATE COLL")) await shop.admin.query(GRANT);
    const client = await shop.client(kind, url());
    await expect(client.effects().open()).rejects.toMatchObject({
      code: "ERR_EFFECTS_UNSUITABLE",
      message: expect.stringMatching(said),
    });
  });

  it.each(ADDRESSES)("refuses %s", async (_, changed, said) => {
    const client = await shop.client(kind, changed(url()));
    await expect(client.effects().open()).rejects.toMatchObject({
      code: "ERR_EFFECTS_UNSUITABLE",
      message: expect.stringMatching(said),
    });
  });

  it.each([
    ["a reserved word", { table: "order" }, /reserved word/],
    ["a schema that does not exist", { table: "nowhere.effects" }, /cannot be made/],
  ])("refuses %s as its table", async (_, options, said) => {
    const client = await shop.client(kind);
    await expect(client.effects(options).open()).rejects.toMatchObject({
      code: "ERR_EFFECTS_UNSUITABLE",
      message: expect.stringMatching(said),
    });
  });

  it("does not refuse a server that is away: it will be back", async () => {
    const client = await shop.client(kind, "postgres://till:right@127.0.0.1:1/postgres");
    await expect(client.effects().open()).rejects.toMatchObject({ code: "ERR_EFFECTS_UNAVAILABLE" });
  });
});
