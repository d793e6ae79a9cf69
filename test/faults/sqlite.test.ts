/** The kill suite of Redis on SQLite, and deaths in the middle of what SQLite does by itself. */
import type { SqliteHandle } from "@payhooks/core/sqlite";
import { sqliteStore } from "@payhooks/core/sqlite";
import { describe, expect, it } from "vitest";
import type { KillDuring } from "./harness/child-config.ts";
import { testEvent } from "./harness/events.ts";
import { stopInTake } from "./harness/frozen-take.ts";
import { newSqliteInbox, openHandle } from "./harness/inbox.ts";
import { type KillFixture, killAtPoints, killUnderLoad } from "./harness/kill-cases.ts";
import { KILL_POINTS } from "./harness/kill-points.ts";
import { ProcessUnderTest } from "./harness/processes.ts";
import { isLong, lengthOf, report } from "./harness/report.ts";
import { newSeed, seededRandom, withScope } from "./harness/scope.ts";
import { Sender } from "./harness/sender.ts";
import { keys, SOUND, System } from "./harness/system.ts";

const onSqlite: KillFixture = {
  name: "SQLite",
  // 16 at one time, handlers of 200 ms, and a commit of about one; up to 20 on a disk that others use too.
  doublesPerKill: isLong ? 0.1 : 2,
  inboxAt: async (scope) => newSqliteInbox(scope),
};

const options = { concurrent: !isLong };
describe("kill -9 under load", options, () => killUnderLoad(onSqlite, lengthOf(5, 200)));
describe("kill -9 at a point", options, () => killAtPoints(onSqlite, KILL_POINTS, lengthOf(1, 10)));

it(
  "a process that is stopped directly after a take holds nothing that others need",
  { timeout: 120_000 },
  () => withScope((scope) => stopInTake(scope, newSqliteInbox(scope))),
);

describe("kill -9 in the middle of", () => {
  const kills = lengthOf(3, 50);

  it.each<{ readonly what: KillDuring; readonly withinUs: number }>([
    { what: "checkpoint", withinUs: 4_000 },
    { what: "pruning", withinUs: 1_500 },
  ])(
    `a $what, ${kills} times: nothing is lost, and the file is whole`,
    {
      timeout: 60_000 + kills * 6_000,
    },
    ({ what, withinUs }) =>
      withScope(async (scope) => {
        const seed = newSeed(`kill during ${what}`);
        const random = seededRandom(seed);
        const inbox = newSqliteInbox(scope);
        if (what === "pruning") await addExpired(inbox, 50_000);
        const system = System.create(scope, inbox, seed);
        const config = await system.config({ handlerMs: 50 });
        const sender = scope.add(new Sender({ ports: [config.port] }), (one) => one.close());
        let over = false;
        const sending = sender.run(() => testEvent(keys.privateKey), { isOver: () => over, perSecond: 150 });
        scope.add(null, () => {
          over = true;
          return sending;
        });
        for (let kill = 0; kill < kills; kill++) {
          const killDuring = { what, afterUs: Math.floor(random() * withinUs) };
          const one = await ProcessUnderTest.start(scope, { ...config, killDuring });
          expect(await one.exited).toMatchObject({ signal: "SIGKILL" });
          expect(integrityOf(inbox)).toBe("ok");
        }
        over = true;
        await sending.catch(() => {});
        if (what === "pruning") {
          // Some of it is gone, and some of it not: the processes died in the midst of it.
          expect(expiredIn(inbox)).toBeGreaterThan(0);
          expect(expiredIn(inbox)).toBeLessThan(50_000);
        }
        await ProcessUnderTest.start(scope, config);
        const verdict = await system.judge(sender);
        report(`SQLite: kill -9 during ${what} × ${kills}`, verdict, sender);
        expect(verdict).toMatchObject(SOUND);
        expect(verdict.acknowledged).toBeGreaterThanOrEqual(kills * 5);
      }),
  );
});

interface Statement {
  get(...parameters: readonly unknown[]): Record<string, unknown> | undefined;
  run(...parameters: readonly unknown[]): unknown;
}

function withHandle<T>(
  inbox: { readonly file: string; readonly driver: string },
  use: (handle: SqliteHandle) => T,
): T {
  const handle = openHandle(inbox);
  try {
    handle.exec("PRAGMA busy_timeout = 5000");
    return use(handle);
  } finally {
    handle.close();
  }
}

async function addExpired(
  inbox: { readonly file: string; readonly driver: string },
  count: number,
): Promise<void> {
  const store = sqliteStore(openHandle(inbox));
  await store.open();
  // Earlier looks have found them expired, the last one a minute ago.
  const lookedAt = Date.now() - 60_000;
  await store.writeNote?.("looks", `${lookedAt} ${lookedAt - 3_600_000}`);
  await store.close();
  withHandle(inbox, (handle) =>
    handle.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
      INSERT INTO records (key, version, text, lane, due_in_ms, expires_at)
      SELECT 'expired-' || i, 'v' || i, '', 'usual', 0, i FROM n`),
  );
}

function expiredIn(inbox: { readonly file: string; readonly driver: string }): number {
  return withHandle(inbox, (handle) =>
    Number(
      (handle.prepare("SELECT count(*) AS n FROM records WHERE key LIKE 'expired-%'") as Statement).get()?.n,
    ),
  );
}

function integrityOf(inbox: { readonly file: string; readonly driver: string }): unknown {
  return withHandle(
    inbox,
    (handle) => Object.values((handle.prepare("PRAGMA integrity_check") as Statement).get() ?? {})[0],
  );
}
