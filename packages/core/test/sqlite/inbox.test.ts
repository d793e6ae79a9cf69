/** The inbox on SQLite: how often it commits, and how it is while its file cannot be opened. */
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { Inbox, Runner } from "../../src/inbox/contract/inbox.ts";
import { sqliteInbox } from "../../src/sqlite/index.ts";
import { verifiedEvent } from "../verified-event.ts";
import { newFile, openFile, watched } from "./database-files.ts";

// A thousand events, on a machine that does other things too.
vi.setConfig({ testTimeout: 30_000 });

const AT_ONCE = 50;
const EVENTS = 1_000;

function closing(inbox: Inbox): Inbox {
  onTestFinished(async () => void (await inbox.close({ graceMs: 0 })));
  return inbox;
}

/** Its handler does nothing but write down what it was called for. */
function writingRunner(): Runner & { readonly ran: string[] } {
  const ran: string[] = [];
  return {
    ran,
    async run(run) {
      run.noteCall();
      ran.push(run.input.id);
      const change = { name: "main", kind: "done", attempt: 1 } as const;
      return { outcome: { kind: "done" }, changes: [change], onWritten: () => {} };
    },
    firstHandler: () => "main",
    handlersOf: () => [],
    notify: () => {},
  };
}

/** Does `work` for each number below `count`, fifty at a time. */
async function inLanes(count: number, work: (n: number) => unknown): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
}

describe("fifty events at one time", () => {
  it("share their commits: less than 0.1 for an accept, less than 0.2 for a run", async () => {
    const { handle, done } = watched(openFile(newFile()));
    const commits = (): number => done.filter((sql) => sql === "COMMIT").length;
    const inbox = closing(sqliteInbox(handle));
    await inLanes(EVENTS, async (n) => {
      expect((await inbox.accept(verifiedEvent(n))).outcome).toBe("new");
    });
    expect(commits()).toBeGreaterThan(0);
    expect(commits() / EVENTS).toBeLessThan(0.1);
    const accepted = commits();
    const runner = writingRunner();
    const everything = { deadlineMs: 60_000, limit: Number.POSITIVE_INFINITY, concurrency: AT_ONCE };
    expect(await inbox.work(runner, everything)).toMatchObject({ ran: EVENTS, failed: 0, remaining: 0 });
    expect(new Set(runner.ran).size).toBe(EVENTS);
    expect((commits() - accepted) / EVENTS).toBeLessThan(0.2);
  });

  it("share them too where they are begun as they are accepted", async () => {
    const { handle, done } = watched(openFile(newFile()));
    const inbox = closing(sqliteInbox(handle));
    const runner = writingRunner();
    const running = await inbox.run(runner, { concurrency: 2 * AT_ONCE });
    done.length = 0;
    await inLanes(EVENTS, (n) => inbox.accept(verifiedEvent(n)));
    await vi.waitFor(() => expect(new Set(runner.ran).size).toBe(EVENTS), { timeout: 30_000 });
    await running.stop();
    expect(runner.ran).toHaveLength(EVENTS);
    expect(done.filter((sql) => sql === "COMMIT").length / EVENTS).toBeLessThan(0.2);
  });
});

describe("an inbox whose file cannot be opened", () => {
  it("says so when it is asked how it is, and works once the file can be opened", async () => {
    const file = join(newFile(), "later", "inbox.db");
    const inbox = closing(sqliteInbox(file));
    expect(await inbox.health()).toMatchObject({
      ok: false,
      detail: expect.stringMatching(/cannot be opened/),
      waiting: null,
    });
    await expect((async () => inbox.accept(verifiedEvent(1)))()).rejects.toMatchObject({
      code: "ERR_SQLITE_UNSUITABLE",
    });
    mkdirSync(dirname(file), { recursive: true });
    expect(await inbox.accept(verifiedEvent(1))).toMatchObject({ outcome: "new" });
    expect(await inbox.health()).toMatchObject({ ok: true, waiting: 1 });
  });
});
