/**
 * `npm run bench -- --search`: how long it takes to find, list and count among a million finished events and ten thousand held
 * ones, on SQLite and PostgreSQL. Each question is asked of an inbox, as the receiver asks it.
 */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { type ConsoleHandler, payhooksConsole } from "@payhooks/console";
import { createReceiver, type EventQuery } from "@payhooks/core";
import { createInbox, type Inbox, type RecordStore } from "@payhooks/core/inbox";
import { postgresStore } from "@payhooks/core/postgres";
import { sqliteStore } from "@payhooks/core/sqlite";
import { createTestKeys } from "@payhooks/core/testing";
import Database from "libsql";
import { Pool } from "pg";
import { PostgresServer } from "../faults/harness/postgres-server.ts";
import { withScope } from "../faults/harness/scope.ts";
import { fillStore } from "./finished-records.ts";
import { benchEvent } from "./redis-event.ts";
import { writeReport } from "./report.ts";
import { type SearchFigures, type SearchResults, writeSearch } from "./search-results.ts";

const FINISHED = 1_000_000;
const HELD = 10_000;
const ROUNDS = 15;
const DAY_MS = 86_400_000;
/** Statements with which the database copies the rest, which is faster than a million writes. */
const WRITTEN = 1_000;

interface Ground {
  readonly name: string;
  readonly store: RecordStore;
  /** Copies what is there until there are so many, with references and times of their own. */
  copy(times: number): Promise<void>;
}

/** The subjects of the questions: an inbox, and the console over it. */
interface Asked {
  readonly inbox: Inbox;
  readonly page: ConsoleHandler<unknown>;
}

interface Question {
  readonly what: string;
  ask(inbox: Inbox, page: Asked["page"]): Promise<unknown>;
}

const questions: readonly Question[] = [
  {
    what: "find, by a finished payment's reference",
    ask: (inbox) => found(inbox, { referenceId: "copy-500000" }),
  },
  { what: "find, by a held payment's reference", ask: (inbox) => found(inbox, { referenceId: "held-5000" }) },
  { what: "find, by what a reading names", ask: (inbox) => found(inbox, { referenceId: "reading-5001" }) },
  { what: "find, by a transaction", ask: (inbox) => found(inbox, { id: "held-tx-5000" }) },
  { what: "find, nothing there", ask: (inbox) => inbox.events.list({ referenceId: "nobody's" }) },
  { what: "list: everything unfinished", ask: (inbox) => page(inbox, {}, "oldest") },
  { what: "list: everything unfinished, newest first", ask: (inbox) => page(inbox, {}, "newest") },
  { what: "list: held", ask: (inbox) => page(inbox, { state: "held" }, "oldest") },
  {
    what: "list: held for one reason, newest first",
    ask: (inbox) => page(inbox, { reason: "ambiguous" }, "newest"),
  },
  { what: "list: finished", ask: (inbox) => page(inbox, { state: "finished" }, "oldest") },
  { what: "list: finished, newest first", ask: (inbox) => page(inbox, { state: "finished" }, "newest") },
  {
    what: "list: finished, of one day",
    ask: (inbox) =>
      page(
        inbox,
        { state: "finished", since: Date.now() - 4 * DAY_MS, until: Date.now() - 3 * DAY_MS },
        "oldest",
      ),
  },
  { what: "counts", ask: (inbox) => inbox.events.counts() },
  { what: "the console's first view", ask: (_, page) => view(page, "") },
  { what: "the console's search by a reference", ask: (_, page) => view(page, "?search=held-5000") },
];

async function view(page: Asked["page"], query: string): Promise<void> {
  const response = await page(new Request(`http://127.0.0.1/payhooks${query}`));
  const html = await response.text();
  if (response.status !== 200 || !html.includes("held-")) throw new Error(`${response.status}: ${html}`);
}

/** The console of a receiver that runs nothing. */
function consoleOver(inbox: Inbox): Asked["page"] {
  const receiver = createReceiver({
    payments: { publicKey: createTestKeys().publicKey },
    inbox,
    run: "elsewhere",
  });
  return payhooksConsole(receiver, { authorize: () => ({ by: "bench", can: ["view"] }) });
}

async function found(inbox: Inbox, query: EventQuery): Promise<void> {
  const { events } = await inbox.events.list(query);
  if (events.length !== 1) throw new Error(`${events.length} events for ${JSON.stringify(query)}`);
}

async function page(inbox: Inbox, filter: EventQuery, first: "oldest" | "newest"): Promise<void> {
  const { events } = await inbox.events.list({ ...filter, first });
  if (events.length !== 50) throw new Error(`${events.length} events of ${JSON.stringify(filter)}`);
}

/** Every second one can be read in several ways. */
function heldEvent(n: number): Parameters<Inbox["accept"]>[0] {
  const event = benchEvent();
  const isAmbiguous = n % 2 === 1;
  const id = isAmbiguous ? event.id : `held-tx-${n}`;
  const body = JSON.stringify({ referenceId: `held-${n}` });
  return {
    ...event,
    id,
    key: isAmbiguous ? event.key : keyOfTransaction(id),
    rank: null,
    verdict: isAmbiguous ? "ambiguous" : "unexpected",
    detail: "as sampled",
    foundBy: isAmbiguous ? [`reading-${n}`, `reading-${n}&more`] : [],
    delivery: { ...event.delivery, content: Buffer.from(body) },
  };
}

async function measure({ name, store, copy }: Ground): Promise<SearchFigures> {
  const inbox = createInbox(store);
  await inbox.ready();
  const started = Date.now();
  await fillStore(store, { from: 0, to: WRITTEN });
  await copy(FINISHED / WRITTEN);
  for (let n = 0; n < HELD; n += 100) {
    await Promise.all(Array.from({ length: 100 }, (_, i) => inbox.accept(heldEvent(n + i))));
  }
  console.log(`${name}: filled in ${Math.round((Date.now() - started) / 1_000)} s`);
  const page = consoleOver(inbox);
  const times = new Map<string, number[]>(questions.map(({ what }) => [what, []]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const { what, ask } of questions) {
      const since = performance.now();
      await ask(inbox, page);
      times.get(what)?.push(performance.now() - since);
    }
  }
  await inbox.close({ graceMs: 0 });
  const rows = [...times].map(([what, ms]) => {
    const sorted = ms.toSorted((a, b) => a - b);
    return { what, medianMs: sorted[Math.floor(ROUNDS / 2)] ?? 0, mostMs: sorted.at(-1) ?? 0 };
  });
  for (const { what, medianMs, mostMs } of rows) {
    console.log(`  ${what.padEnd(45)} ${medianMs.toFixed(1)} ms, at most ${mostMs.toFixed(1)} ms`);
  }
  return { name, rows };
}

/** As the payments flow makes the key of a transaction's record. */
function keyOfTransaction(id: string): string {
  return createHash("sha256")
    .update(JSON.stringify(["", "payments", id]))
    .digest("hex")
    .slice(0, 32);
}

function sqliteInboxFixture(folder: string): Ground {
  const file = join(folder, "search.db");
  return {
    name: "SQLite",
    store: sqliteStore(file),
    async copy(times) {
      const database = new Database(file);
      database.exec(`
        PRAGMA synchronous = OFF;
        BEGIN;
        CREATE TEMP TABLE copies AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${times - 1})
          SELECT i * ${WRITTEN} AS shift FROM n;
        INSERT INTO records (row_id, key, version, text, lane, due_at, due_in_ms, expires_at)
          SELECT row_id + shift, printf('%032x', row_id + shift), version, text, lane, NULL, 0, expires_at
          FROM copies CROSS JOIN (SELECT * FROM records LIMIT ${WRITTEN});
        INSERT INTO events (record, event_id, state, reason, flow, tenant, id, event, status, reference_id, accepted_at)
          SELECT record + shift, printf('%032x', record + shift) || substr(event_id, 33), state, NULL, flow, tenant,
            'tx-' || (record + shift), event, status, 'copy-' || (record + shift),
            accepted_at - (${FINISHED} - record - shift) * ${(8 * DAY_MS) / FINISHED}
          FROM copies CROSS JOIN (SELECT * FROM events LIMIT ${WRITTEN});
        COMMIT;`);
      database.close();
    },
  };
}

function postgresInboxFixture(url: string): Ground {
  return {
    name: "PostgreSQL",
    store: postgresStore(url),
    async copy(times) {
      const pool = new Pool({ connectionString: url, max: 1 });
      const rows = (times - 1) * WRITTEN;
      await pool.query(`INSERT INTO payhooks.records (key, version, lane, due_at, expires_at, text)
        SELECT md5('copy ' || n), version, lane, NULL, expires_at, text
        FROM (SELECT * FROM payhooks.records LIMIT 1) AS one, generate_series(1, ${rows}) AS n`);
      await pool.query(`INSERT INTO payhooks.labels (record, accepted_at, flow, tenant, id, event, status, reference_id, event_id)
        SELECT row_id, now() - (${FINISHED} - row_id) * interval '${(8 * DAY_MS) / FINISHED} milliseconds', 'payments', '',
          'tx-' || row_id, 'DEPOSIT', 'SUCCESS', 'copy-' || row_id, key || repeat('0', 16)
        FROM payhooks.records WHERE row_id > ${WRITTEN}`);
      // As the server does by itself after a while.
      await pool.query("VACUUM ANALYZE");
      await pool.end();
    },
  };
}

await withScope(async (scope) => {
  const folder = mkdtempSync(join(tmpdir(), "payhooks-search-"));
  const server = await PostgresServer.start(scope);
  try {
    const grounds = [sqliteInboxFixture(folder), postgresInboxFixture(server.url)];
    const stores: SearchFigures[] = [];
    for (const ground of grounds) stores.push(await measure(ground));
    const results: SearchResults = {
      node: process.versions.node,
      load: loadavg()[0] ?? 0,
      measuredOn: new Date().toISOString().slice(0, 10),
      finished: FINISHED,
      held: HELD,
      rounds: ROUNDS,
      stores,
    };
    writeSearch(results);
    writeReport();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
