/** An inbox that is restored to yesterday: what runs again, and what comes of it. */
import { createReceiver, type Notice, type Receiver } from "@payhooks/core";
import { pgEffects } from "@payhooks/core/effects/postgres";
import { postgresInbox } from "@payhooks/core/postgres";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { silent } from "../support/silent.ts";
import { type TestEvent, testEvent } from "./harness/events.ts";
import { PostgresServer } from "./harness/postgres-server.ts";
import { deliver } from "./harness/receivers.ts";
import { Scope, until, withScope } from "./harness/scope.ts";
import { keys } from "./harness/system.ts";

const servers = new Scope();
let server: PostgresServer;
beforeAll(async () => {
  server = await PostgresServer.start(servers);
}, 60_000);
afterAll(() => servers.close());

const BOOKS = "CREATE TABLE IF NOT EXISTS booked (id text NOT NULL)";

interface ReceiverFixture {
  readonly receiver: Receiver;
  readonly notices: readonly Notice[];
  /** The payments for which the handler was called. */
  readonly ran: readonly string[];
  /** The handler fails from now on, or no longer. */
  fail(fails: boolean): void;
  /** How often each of these payments is booked. */
  booked(...events: readonly TestEvent[]): Promise<readonly number[]>;
  close(): Promise<void>;
}

/** A receiver with its inbox in one database, and its books and effects in the same one or in another. */
async function startReceiver(
  inboxUrl: string,
  booksUrl: string,
  isExactlyOnce = true,
): Promise<ReceiverFixture> {
  const books = new pg.Pool({ connectionString: booksUrl });
  await books.query(BOOKS);
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    inbox: postgresInbox(inboxUrl, { pollMs: 50, logger: silent }),
    effects: pgEffects(books),
    logger: silent,
  }).ignore("WITHDRAWAL");
  const notices: Notice[] = [];
  receiver.observe((notice) => void notices.push(notice));
  const ran: string[] = [];
  let fails = false;
  const sql = "INSERT INTO booked VALUES ($1)";
  receiver.onDeposit(
    async ({ payTxnId }, ctx) => {
      ran.push(payTxnId);
      if (fails) throw new Error("the bank is down");
      if (isExactlyOnce) await ctx.transaction((tx) => tx.query(sql, [payTxnId]));
      else await books.query(sql, [payTxnId]);
    },
    { maxAttempts: 100, backoffMs: () => 2_000 },
  );
  await receiver.start();
  return {
    receiver,
    notices,
    ran,
    fail(now) {
      fails = now;
    },
    async booked(...events) {
      const { rows } = await books.query<{ id: string }>("SELECT id FROM booked");
      return events.map(({ payTxnId }) => rows.filter(({ id }) => id === payTxnId).length);
    },
    async close() {
      await receiver.close({ graceMs: 5_000 });
      await books.end();
    },
  };
}

/** A day: what was finished before the backup, what waited during it, and what came behind it. Then the restore. */
async function playDay(scope: Scope, inbox: string, books: string, isExactlyOnce: boolean) {
  const inboxUrl = await server.create(inbox);
  const booksUrl = books === inbox ? inboxUrl : await server.create(books);
  const [before, during, since] = [1, 2, 3].map(() => testEvent(keys.privateKey));
  if (before === undefined || during === undefined || since === undefined) throw new Error("no events");
  const first = await startReceiver(inboxUrl, booksUrl, isExactlyOnce);
  expect(await deliver(first.receiver, before)).toBe(200);
  await until("it is booked", async () => (await first.booked(before))[0] === 1);
  first.fail(true);
  expect(await deliver(first.receiver, during)).toBe(200);
  await until("it waits for its next attempt", () => first.notices.some(({ type }) => type === "retry"));
  const restore = server.backUp(inbox);
  first.fail(false);
  expect(await deliver(first.receiver, since)).toBe(200);
  await until("all are booked", async () => {
    return (await first.booked(before, during, since)).every((times) => times === 1);
  });
  await first.close();
  await restore();
  const second = scope.add(await startReceiver(inboxUrl, booksUrl, isExactlyOnce), (one) => one.close());
  // The service sends again what it has no answer for, and sometimes what it has one for.
  for (const event of [before, since]) expect(await deliver(second.receiver, event)).toBe(200);
  await until("the rest has run again", () =>
    [during, since].every(({ payTxnId }) => second.ran.includes(payTxnId)),
  );
  await until("nothing is left", async () => {
    const { waiting, retrying, running } = await second.receiver.health();
    return waiting === 0 && retrying === 0 && running === 0;
  });
  expect(second.ran.toSorted()).toEqual([during.payTxnId, since.payTxnId].toSorted());
  const skipped = second.notices.filter(({ type }) => type === "effect-skipped");
  return { times: await second.booked(before, during, since), skipped: skipped.length };
}

describe("an inbox that is restored to yesterday", { timeout: 90_000 }, () => {
  it("with the books, in one database: later events run again, and are booked once", () =>
    withScope(async (scope) => {
      expect(await playDay(scope, "shop", "shop", true)).toEqual({ times: [1, 1, 1], skipped: 0 });
    }));

  it("without the books: events that run again find their effects, and skip them", () =>
    withScope(async (scope) => {
      expect(await playDay(scope, "inbox", "books", true)).toEqual({ times: [1, 1, 1], skipped: 2 });
    }));

  it("control: without effects they are booked twice", () =>
    withScope(async (scope) => {
      expect(await playDay(scope, "inbox_2", "books_2", false)).toEqual({ times: [1, 2, 2], skipped: 0 });
    }));
});
