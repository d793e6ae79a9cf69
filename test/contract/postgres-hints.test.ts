/** Hints of one process to others that something is due: they arrive, and no stranger can make them. */
import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { acceptedRecord, keyOf } from "../../packages/core/src/testing/store/records.ts";
import { put } from "../../packages/core/src/testing/store/writes.ts";
import { PostgresServer } from "../faults/harness/postgres-server.ts";
import { Scope, until, withScope } from "../faults/harness/scope.ts";
import { postgresStoreFixture } from "./postgres-store-fixture.ts";

const scope = new Scope();
let server: PostgresServer;
beforeAll(async () => {
  server = await PostgresServer.start(scope);
  await server.tell("CREATE ROLE nobody LOGIN");
});
afterAll(() => scope.close());

/** Two processes: one sends hints, the other counts those that it gets. */
async function start(own: Scope) {
  const fixture = postgresStoreFixture(() => server.url);
  const [sender, listener] = [fixture.connect(), fixture.connect()].map((store) =>
    own.add(store, (one) => one.close()),
  );
  if (sender === undefined || listener === undefined) throw new Error("no stores");
  await sender.open();
  await listener.open();
  let heard = 0;
  const stop = await listener.onDue?.(() => {
    heard++;
    return true;
  });
  own.add(stop, (end) => end?.());
  let n = 0;
  const announce = async (): Promise<void> => {
    const key = keyOf(++n);
    await put(sender, key, null, acceptedRecord(key, sender.now(key)), { shouldAnnounce: true });
  };
  return { ...fixture, sender, listener, announce, heard: () => heard };
}

it("a hint arrives", () =>
  withScope(async (own) => {
    const { announce, heard } = await start(own);
    await announce();
    await until("it is heard", () => heard() === 1);
  }));

it("a role that may not read the tables can neither make a hint nor learn how", () =>
  withScope(async (own) => {
    const { schema, sender, announce, heard } = await start(own);
    const stranger = own.add(
      new pg.Client({ connectionString: server.url.replace("postgres@", "nobody@") }),
      (one) => one.end(),
    );
    await stranger.connect();
    await expect(stranger.query(`SELECT dataset_id FROM ${schema}.meta`)).rejects.toThrow(/permission/);
    const { rows } = await stranger.query("SELECT * FROM pg_stat_activity");
    expect(JSON.stringify(rows)).not.toContain(sender.datasetId);
    for (const channel of [`payhooks_${schema}`, "payhooks", "payhooks_", schema]) {
      for (let time = 0; time < 50; time++) await stranger.query(`NOTIFY "${channel}", 'x'`);
    }
    await announce();
    await until("the real one is heard", () => heard() > 0);
    expect(heard()).toBe(1);
  }));

it.each([
  ["the data set got another id", (schema: string) => `TRUNCATE ${schema}.meta`],
  ["the tables were made anew", (schema: string) => `DROP SCHEMA ${schema} CASCADE`],
])("hints go on after %s", (_, lose) =>
  withScope(async (own) => {
    const { schema, sender, listener, announce, heard } = await start(own);
    await server.tell(lose(schema));
    await Promise.all([sender, listener].map((store) => store.findLoss?.([])));
    await until("hints are heard again", async () => {
      await announce();
      return heard() > 0;
    });
  }),
);
