/** One of several processes on one file: accepts what all of them accept, and runs what it can take. */
import { appendFileSync } from "node:fs";
import type { Accepted, AcceptOutcome } from "../src/inbox/inbox.ts";
import { sqliteInbox } from "../src/sqlite/index.ts";
import { eventOf, inLanes } from "./sqlite-events.ts";

const [file = "", log = "", count = "0"] = process.argv.slice(2);
const inbox = sqliteInbox(file, { pollMs: 20 });
const outcomes: Partial<Record<AcceptOutcome, number>> = {};
const running = await inbox.run(
  {
    async run(lease) {
      await lease.step("main", { kind: "started" });
      appendFileSync(log, `${lease.data.id}\n`);
      await lease.step("main", { kind: "done" });
      return { kind: "done" };
    },
    notify: ({ type }) => {
      if (type === "double-risk" || type === "record-missing") appendFileSync(log, `${type}\n`);
    },
  },
  { concurrency: 8 },
);
await inLanes(20, Number(count), async (n) => {
  const { outcome } = await acknowledged(n);
  outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
});
process.send?.(outcomes);

/** As the service does: again, until it is acknowledged. */
async function acknowledged(n: number): Promise<Accepted> {
  for (;;) {
    try {
      return await inbox.accept(eventOf(n, Date.now()));
    } catch (error) {
      if ((error as { code?: unknown }).code !== "ERR_INBOX_UNAVAILABLE") throw error;
    }
  }
}

process.once("message", async () => {
  await running.stop();
  await inbox.close({ graceMs: 1_000 });
  process.disconnect();
});
// A test that died must not leave a process behind.
process.once("disconnect", () => setImmediate(() => process.exit()));
