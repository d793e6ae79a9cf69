/** One inbox at a steady load, in a process of its own that tells what it holds whenever it is asked. */
import { readdirSync } from "node:fs";
import type { ListCursor } from "@payhooks/core/inbox";
import { idleRunner } from "./finished-records.ts";
import { heapInUse } from "./heap.ts";
import { type InboxName, openInbox } from "./inboxes.ts";
import { benchEvent } from "./redis-event.ts";
import type { SoakSample, SoakSettings } from "./soak.ts";

/** Events are accepted in portions, so many a second. */
const PORTIONS = 20;
const MAX_RECORDS = 5_000;

const settings = JSON.parse(process.argv[2] ?? "") as SoakSettings & { readonly name: InboxName };
const { inbox, store } = await openInbox(settings.name, { ...settings, maxRecords: MAX_RECORDS });
let accepted = 0;
let handled = 0;
let failed = 0;
await inbox.run(
  {
    ...idleRunner,
    async run(run) {
      const end = await idleRunner.run(run);
      return { ...end, onWritten: () => void handled++ };
    },
  },
  { concurrency: 16 },
);

const startedAt = performance.now();
const load = setInterval(() => {
  // As many as should have been accepted by now: a timer that came late is made up for.
  const due = Math.floor(((performance.now() - startedAt) / 1_000) * settings.rate);
  while (accepted < due) {
    accepted++;
    void accept();
  }
}, 1_000 / PORTIONS);

async function accept(): Promise<void> {
  try {
    await inbox.accept({ ...benchEvent(), retentionMs: settings.retentionMs });
  } catch {
    failed++;
  }
}

async function sample(): Promise<Omit<SoakSample, "keys">> {
  const heap = heapInUse();
  return {
    accepted,
    handled,
    failed,
    rss: process.memoryUsage().rss,
    heap,
    descriptors: readdirSync("/proc/self/fd").length,
    connections: process.getActiveResourcesInfo().filter((one) => one === "TCPSocketWrap").length,
  };
}

/** Records in memory; elsewhere whoever asks counts them. */
async function recordsInMemory(): Promise<number> {
  let count = 0;
  for (const state of ["waiting", "running", "finished"] as const) {
    let cursor: ListCursor | null = null;
    do {
      const page = await store.list({ state }, cursor, 1_000);
      count += page.events.length;
      cursor = page.next;
    } while (cursor !== null);
  }
  return count;
}

process.on("message", async (order) => {
  if (order === "sample") {
    process.send?.({
      ...(await sample()),
      keys: settings.name === "memory" ? await recordsInMemory() : null,
    });
    return;
  }
  clearInterval(load);
  await inbox.close({ graceMs: 10_000 });
  process.exit();
});
process.once("disconnect", () => process.exit());
process.send?.("ready");
