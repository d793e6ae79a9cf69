/** PostgreSQL gives the same answers as the simulated store. The histories find every mistake in its statements. */
import { PGlite } from "@electric-sql/pglite";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MAX_WRITE_AGE_MS } from "../../../packages/core/src/sql/due-bound.ts";
import { PostgresServer } from "../../faults/harness/postgres-server.ts";
import { Scope } from "../../faults/harness/scope.ts";
import { expectAgreement, requestedHistories, timeout } from "./expect-agreement.ts";
import { findDifference } from "./find.ts";
import { simulated } from "./kinds.ts";
import {
  pgliteKind,
  postgresKind,
  postgresMutants,
  prepareClock,
  singlePostgresKind,
  timedUrl,
} from "./postgres-kinds.ts";

const simulatedPostgres = simulated(MAX_WRITE_AGE_MS);
const scope = new Scope();
let server: PostgresServer;
let client: pg.Client;

beforeAll(async () => {
  server = await PostgresServer.start(scope, { settings: ["synchronous_commit=off"] });
  await prepareClock((sql) => server.tell(sql));
  client = scope.add(new pg.Client({ connectionString: timedUrl(server.url) }), (one) => one.end());
  await client.connect();
});
afterAll(() => scope.close());

it(
  "the simulated store and PostgreSQL agree, with connections of its own and with one client",
  { timeout },
  () =>
    expectAgreement(
      [simulatedPostgres, postgresKind(client, server.url), singlePostgresKind(client)],
      requestedHistories || 40,
      8,
    ),
);

it("the simulated store and PGlite agree", { timeout }, async () => {
  const database = scope.add(new PGlite(), (one) => one.close());
  await expectAgreement([simulatedPostgres, await pgliteKind(database)], requestedHistories || 20, 2);
});

/** Not more than are played above. */
const HISTORIES = 40;

describe("a PostgreSQL store that", { timeout: 120_000 }, () => {
  for (const mutant of postgresMutants) {
    it(mutant.name, async () => {
      let changed = 0;
      const kind = singlePostgresKind(client, mutant, () => changed++);
      const found = await findDifference(1, HISTORIES, [simulatedPostgres, kind]);
      expect(changed, "changed statements").toBeGreaterThan(0);
      if (found === null) expect.fail(`${HISTORIES} histories do not show that it ${mutant.name}.`);
    });
  }
});
