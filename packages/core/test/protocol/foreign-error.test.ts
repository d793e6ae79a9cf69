import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { inspect } from "node:util";
import { PayhooksError } from "@payhooks/core";
import { createInbox, memoryStore } from "@payhooks/core/inbox";
import { redisInbox } from "@payhooks/core/redis";
import { fakeClock } from "@payhooks/core/testing";
import Database from "libsql";
import { describe, expect, it } from "vitest";
import { describeError, errorWithoutData, originOf } from "../../src/protocol/foreign-error.ts";
import { rejectedBy } from "../receiving.ts";

const DATA = "CANARY";

/** The value that an action throws, or that a promise rejects with. */
async function thrown(action: () => unknown): Promise<unknown> {
  try {
    await action();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

const refused = (): Promise<never> =>
  new Promise((_, reject) => connect(1, "127.0.0.1").once("error", reject));
const sqlite = (sql: string, ...given: readonly string[]): void => {
  const database = new Database(":memory:");
  database.exec("CREATE TABLE t (a TEXT CHECK (a = 'b'))");
  database.prepare(sql).run(...given);
};
const reply = (message: string): Error =>
  Object.assign(new Error(message), { name: "ReplyError", command: { name: "evalsha", args: [DATA] } });

describe("an error of others", () => {
  it.each([
    ["a system call", refused, "Error: ECONNREFUSED, connect 127.0.0.1:1"],
    ["a file", () => readFileSync(`/none/${DATA}`), "Error: ENOENT, open"],
    ["a URL", () => new URL(`redis://:${DATA}/x@h`), "TypeError: ERR_INVALID_URL, Invalid URL"],
    ["JSON", () => JSON.parse(`{"a": ${DATA}`), "SyntaxError"],
    [
      "SQLite",
      () => sqlite("INSERT INTO t VALUES (?)", DATA),
      expect.stringMatching(/^SqliteError: SQLITE_CONSTRAINT/),
    ],
    ["Redis", () => Promise.reject(reply(`OOM command not allowed ${DATA}`)), "ReplyError: OOM, evalsha"],
    [
      "Redis, a text that is known",
      () => Promise.reject(reply(`ERR max number of clients reached ${DATA}`)),
      "ReplyError: ERR, max number of clients reached, evalsha",
    ],
    [
      "a driver without codes",
      () => Promise.reject(new Error("Command timed out")),
      "Error: Command timed out",
    ],
    [
      "a database, by number and by letters",
      () => Promise.reject(Object.assign(new Error(DATA), { code: "23505", detail: DATA })),
      "Error: 23505",
    ],
    [
      "one that was caused by another",
      () => Promise.reject(new TypeError(DATA, { cause: Object.assign(new Error(DATA), { code: 7 }) })),
      "TypeError, caused by Error: 7",
    ],
    [
      "several in one",
      () => Promise.reject(new AggregateError([Object.assign(new Error(DATA), { code: "ETIMEDOUT" })], DATA)),
      "AggregateError, caused by Error: ETIMEDOUT",
    ],
    ["text", () => Promise.reject(DATA), "a thrown string"],
    ["nothing", () => Promise.reject(null), "a thrown null"],
    [
      "an object",
      () => Promise.reject({ message: DATA, code: `${DATA} ${DATA}`, name: "not a name" }),
      "Error",
    ],
    [
      "one of ours, whose words are chosen",
      () =>
        Promise.reject(
          new PayhooksError("ERR_INBOX_FULL", "Full.", { fix: "Wait.", cause: new Error(DATA) }),
        ),
      "ERR_INBOX_FULL: Full. Wait.",
    ],
  ])("is described without the data that it was given: of %s", async (_, fail, text) => {
    const error = await thrown(fail);
    expect(describeError(error)).toEqual(text);
    expect(describeError(error)).not.toContain(DATA);
    const kept = errorWithoutData(error);
    expect(inspect(kept, { depth: 9, showHidden: true })).not.toContain(DATA);
    expect(JSON.stringify({ ...kept, stack: kept.stack })).not.toContain(DATA);
  });

  it("says where it was thrown, whatever its message pretends", async () => {
    const error = await thrown(() => {
      throw new Error(`x\n    at ${DATA} (f.js:1:1)\n    at more`);
    });
    expect(originOf(error)).toMatch(/^ {4}at .*foreign-error\.test\.ts:\d+/);
    expect(originOf(error)).not.toContain(DATA);
    expect(originOf(DATA)).toBeNull();
    expect(originOf(new PayhooksError("ERR_INBOX_FULL", "Full."))).toBeNull();
    expect(originOf(new PayhooksError("ERR_INBOX_FULL", "Full.", { cause: error }))).toBe(originOf(error));
  });

  it("keeps its kind and its code as the cause of one of ours, and nothing else", async () => {
    const cause = Object.assign(new RangeError(DATA), { code: "E_X", errno: -7, command: { args: [DATA] } });
    const error = new PayhooksError("ERR_INBOX_UNAVAILABLE", "x", { cause });
    expect(error.cause).toMatchObject({ name: "RangeError", message: "RangeError: E_X", code: "E_X" });
    expect(Object.keys(error.cause as object)).toEqual(["code"]);
    expect(Object.keys(error)).not.toContain("cause");
    expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(DATA);
  });
});

describe("an inbox", () => {
  it("rejects with errors of ours alone, also where its store throws at once", async () => {
    const clock = fakeClock();
    const store = memoryStore({ clock, maxRecords: 10, maxUnfinished: 10 });
    const fail = (): never => {
      throw Object.assign(new Error(DATA), { code: "E_STORE" });
    };
    const broken = { ...store, read: fail, swap: fail, list: fail, counts: fail, close: fail };
    const inbox = createInbox(broken, { clock, leaseMs: 1 });
    const health = async () => {
      const asked = inbox.health();
      await clock.advance(1_000);
      return asked;
    };
    expect(await health()).toMatchObject({ ok: false, detail: "Error: E_STORE" });
    const eventId = "0".repeat(48);
    const decision = { by: "ada", note: "a test" };
    const replaying = inbox.events.replay(eventId, decision);
    const gone = rejectedBy(replaying);
    expect(await health()).toMatchObject({ ok: false, detail: "Error: E_STORE" });
    const errors = await Promise.all(
      [inbox.events.get(eventId), inbox.events.list({ state: "held" }), inbox.close({ graceMs: 0 })].map(
        rejectedBy,
      ),
    );
    errors.push(await gone);
    for (const error of errors) {
      expect(error.code).toBe("ERR_INBOX_UNAVAILABLE");
      expect(error.message).toMatch(/^The inbox failed: Error: E_STORE\. Check that its store is up/);
    }
  });

  it("says why Redis cannot be reached", async () => {
    const error = await rejectedBy(redisInbox("redis://127.0.0.1:1").ready());
    expect(error.message).toContain("The inbox failed: Error: ECONNREFUSED, connect 127.0.0.1:1.");
  });
});
