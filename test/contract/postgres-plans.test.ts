/**
 * Counts the pages that PostgreSQL touches for each statement, while its statistics are of empty tables and somebody holds a
 * snapshot, as a backup does. The entries of everything that has ended since then stay in the indexes. A plan that walks over an
 * index meets all of them.
 */
import { postgresStore } from "@payhooks/core/postgres";
import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { RecordStore } from "../../packages/core/src/inbox/contract/store.ts";
import { sendCanary } from "../../packages/core/src/testing/store/canaries.ts";
import {
  acceptedRecord,
  begunRecord,
  decidedRecord,
  endedRecord,
  HOUR_MS,
  keyOf,
} from "../../packages/core/src/testing/store/records.ts";
import {
  type PutRecord,
  put,
  swapAll,
  swapOf,
  takeOfBothLanes,
} from "../../packages/core/src/testing/store/writes.ts";
import { PostgresServer } from "../faults/harness/postgres-server.ts";
import { Scope } from "../faults/harness/scope.ts";
import { silent } from "../support/silent.ts";

/** The records that have come and gone since the snapshot. Its entries take hundreds of pages in each index. */
const ENDED = 60_000;
/** A single walk over one of those indexes touches many times more. */
const MOST_PAGES = 400;

/** A node of a plan, as EXPLAIN tells it. */
interface Plan {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Shared Hit Blocks": number;
  readonly "Shared Read Blocks": number;
  readonly Plans?: readonly Plan[];
}

interface Explained {
  readonly name: string;
  readonly pages: number;
  readonly scans: readonly string[];
  /** It joins rows that a function makes of arrays. */
  readonly isForMany: boolean;
}

const explained: Explained[] = [];

function scansOf(plan: Plan): readonly string[] {
  const own = plan["Node Type"] === "Seq Scan" ? [String(plan["Relation Name"])] : [];
  return [...own, ...(plan.Plans ?? []).flatMap(scansOf)];
}

const nodesOf = (plan: Plan): readonly string[] => [
  plan["Node Type"],
  ...(plan.Plans ?? []).flatMap(nodesOf),
];

/** The most that any part touched. The plan as a whole does not count what its writing parts touch. */
function pagesOf(plan: Plan): number {
  return Math.max(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"], ...(plan.Plans ?? []).map(pagesOf));
}

/** A client of `pg` that is told the plan of everything that it runs. */
class Client extends pg.Client {
  constructor(settings: pg.ClientConfig) {
    super(settings);
    this.on("notice", ({ message = "" }) => {
      const at = message.indexOf("{");
      if (!message.includes("plan:") || at < 0) return;
      const told = JSON.parse(message.slice(at)) as { readonly "Query Text": string; readonly Plan: Plan };
      explained.push({
        name: told["Query Text"],
        pages: pagesOf(told.Plan),
        scans: scansOf(told.Plan),
        isForMany: nodesOf(told.Plan).includes("Function Scan"),
      });
    });
  }
}

const scope = new Scope();
let store: RecordStore;
let server: PostgresServer;
let schema: string;

beforeAll(async () => {
  const auto = [
    "log_min_duration=0",
    "log_analyze=on",
    "log_timing=off",
    "log_buffers=on",
    "log_format=json",
  ];
  server = await PostgresServer.start(scope, {
    settings: [
      "autovacuum=off",
      ...auto.map((one) => `auto_explain.${one}`),
      "auto_explain.log_level=notice",
    ],
  });
  const pool = scope.add(
    new pg.Pool({ connectionString: server.url, options: "-c session_preload_libraries=auto_explain" }),
    (one) => one.end(),
  );
  Object.assign(pool, { Client });
  schema = "plans";
  store = scope.add(postgresStore(pool, { schema, logger: silent, statementTimeoutMs: 5_000 }), (one) =>
    one.close(),
  );
  await store.open();
  await server.tell(
    `ANALYZE ${["records", "labels", "unfinished", "readings", "meta"].map((t) => `${schema}.${t}`).join(", ")}`,
  );
  const holder = scope.add(new pg.Client({ connectionString: server.url }), (one) => one.end());
  await holder.connect();
  await holder.query("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM pg_class");
  const now = "(extract(epoch FROM now()) * 1000)::bigint";
  // The two writes of an event that was accepted in the last minutes, and what a store keeps of it.
  await server.tell(`
    INSERT INTO ${schema}.records (key, version, lane, taken, due_at, text)
      SELECT md5(n::text), 'v', 'usual', n % 2 = 0, ${now} - 600000 + n * 570000::bigint / ${ENDED}, repeat('m', 600) FROM generate_series(1, ${ENDED}) n;
    INSERT INTO ${schema}.labels SELECT row_id, now(), 'payments', '', key, 'DEPOSIT', 'SUCCESS', key, key || key
      FROM ${schema}.records;
    INSERT INTO ${schema}.unfinished SELECT row_id, now(), 'running', NULL, key || key FROM ${schema}.records`);
  await server.tell(`
    UPDATE ${schema}.records SET version = 'w', text = 'short', taken = FALSE, due_at = NULL, expires_at = ${now} + 600000000;
    DELETE FROM ${schema}.unfinished`);
  // It has pages now, and no row: the server takes each index of it for the shortest way.
  await server.tell(`ANALYZE ${schema}.unfinished`);
}, 120_000);
afterAll(() => scope.close());

/** Everything that a delivery and its runs do with the store. */
async function live(n: number): Promise<void> {
  const [one, two] = [keyOf(n), keyOf(n + 1)];
  const now = store.now(one);
  const fresh = acceptedRecord(one, now);
  const first = await put(store, one, null, fresh);
  const run = await put(store, one, first, begunRecord(one, store.now(one), fresh, HOUR_MS));
  await put(store, one, run, endedRecord(one, store.now(one), fresh));
  const held: PutRecord = await put(
    store,
    two,
    null,
    acceptedRecord(two, now, { held: "ambiguous", foundBy: ["a", "b"] }),
  );
  await put(store, two, held, decidedRecord(two, store.now(two), held.record, "replay"));
  await store.read([one, two, keyOf(n + 2)]);
  // Beside each other, as many are written together; one of them conflicts.
  const others = [3, 4, 5].map((at) =>
    swapOf(store, keyOf(n + at), null, acceptedRecord(keyOf(n + at), store.now(one))),
  );
  await swapAll(store, [...others, swapOf(store, one, first, endedRecord(one, store.now(one), fresh))]);
  const { records } = await takeOfBothLanes(store, 10, HOUR_MS);
  expect(records.length).toBeGreaterThan(0);
  await takeOfBothLanes(store, 10, HOUR_MS);
  await takeOfBothLanes(store, 0, 0);
  await store.findLoss?.(others);
  await store.list({ referenceId: "o-1-none", state: "any" }, null, 10);
  await sendCanary(store);
  await store.prune?.(store.now(""));
}

it("a write is one plain statement for one record, and one statement for many", async () => {
  const forMany: boolean[][] = [];
  const made = async <T>(work: () => T): Promise<Awaited<T>> => {
    explained.length = 0;
    const result = await work();
    forMany.push(explained.map(({ isForMany }) => isForMany));
    return result;
  };
  const one = keyOf(1);
  const fresh = acceptedRecord(one, store.now(one));
  const first = await made(() => put(store, one, null, fresh));
  const run = await made(() => put(store, one, first, begunRecord(one, store.now(one), fresh, HOUR_MS)));
  await made(() => store.swap([swapOf(store, one, first, fresh)]));
  await made(() => store.read([one]));
  const end = await made(() => put(store, one, run, endedRecord(one, store.now(one), fresh)));
  await made(() =>
    put(store, one, end, acceptedRecord(one, store.now(one), { status: "FAILED" }, end.record)),
  );
  expect(forMany).toEqual(forMany.map(() => [false]));
  forMany.length = 0;
  const both = [2, 3].map((n) => swapOf(store, keyOf(n), null, acceptedRecord(keyOf(n), store.now(one))));
  await made(() => swapAll(store, both));
  expect(forMany).toEqual([[true]]);
});

it("the work of a poll is bounded, however much has ended since the snapshot", {
  timeout: 120_000,
}, async () => {
  // The first look is complete.
  await takeOfBothLanes(store, 1, 1);
  expect(explained.some(({ name }) => name.includes("records"))).toBe(true);
  explained.length = 0;
  // A named statement is planned for its values five times, and then perhaps once for all.
  for (let round = 0; round < 8; round++) await live(1_000 + round * 10);
  const bad = explained.filter(
    ({ pages, scans }) => pages > MOST_PAGES || scans.some((table) => table !== "meta"),
  );
  expect(bad).toEqual([]);
  expect(explained.length).toBeGreaterThan(80);
});
