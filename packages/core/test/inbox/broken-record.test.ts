import { fakeClock } from "@payhooks/core/testing";
import { expect, it } from "vitest";
import type { Runner } from "../../src/inbox/contract/inbox.ts";
import type { RecordStore, VersionedRecord } from "../../src/inbox/contract/store.ts";
import { createInbox } from "../../src/inbox/engine.ts";
import type { IdempotencyRecord } from "../../src/inbox/record/record.ts";
import { memoryStore } from "../../src/memory/store.ts";
import type { UndatedNotice } from "../../src/notices/notice.ts";
import { environmentOf } from "../../src/time/environment.ts";
import { verifiedEvent } from "../verified-event.ts";

it("a record whose change throws gives its place back, is not run again, and does not stop other records", async () => {
  const clock = fakeClock();
  const environment = environmentOf(clock);
  const memory = memoryStore({ clock: environment });
  const inbox = createInbox(memory, { clock: environment, leaseMs: 1_000 });
  const ran: string[] = [];
  const notices: UndatedNotice[] = [];
  /** While a handler runs, something else takes a part of the record that its end needs. */
  function damage(key: string): void {
    const [found] = memory.read([key]);
    if (found === null || found === undefined || "unreadable" in found.record) throw new Error("no record");
    const record = structuredClone(found.record) as IdempotencyRecord;
    for (const slot of Object.values(record.slots)) Reflect.set(slot.work ?? {}, "history", null);
    memory.restore(key, { version: "damaged", record });
  }
  const runner: Runner = {
    run: async ({ input }) => {
      ran.push(input.id);
      if (input.id !== "tx-9") damage(input.key);
      return { outcome: { kind: "done" }, changes: [], onWritten: () => {} };
    },
    firstHandler: () => null,
    handlersOf: () => [],
    notify: (notice) => void notices.push(notice),
  };
  const event = (n: number) => verifiedEvent(n, { signedAt: clock.now() });
  for (const n of [1, 2, 3]) await inbox.accept(event(n));
  const working = inbox.work(runner, { deadlineMs: 500, limit: 10, concurrency: 1 });
  await clock.advance("1s");
  await working;
  await inbox.accept(event(9));
  // The leases of the damaged ones have ended, so they are due again.
  await clock.advance("1m");
  const again = inbox.work(runner, { deadlineMs: 500, limit: 10, concurrency: 1 });
  await clock.advance("1s");
  await again;
  expect(ran).toEqual(["tx-1", "tx-2", "tx-3", "tx-9"]);
  expect(notices).toContainEqual(
    expect.objectContaining({
      type: "inbox-error",
      during: "finish",
      error: expect.stringMatching(/cannot be read.*TypeError/),
    }),
  );
  // They wait for somebody to repair them.
  expect((await inbox.close({ graceMs: 0 })).unfinished).toBe(3);
});

it("an event whose record is damaged while it runs is run again once somebody has repaired the record", async () => {
  const clock = fakeClock();
  const environment = environmentOf(clock);
  const memory = memoryStore({ clock: environment });
  let isDamaged = false;
  const seen = <V extends VersionedRecord>(found: V): V =>
    isDamaged ? { ...found, record: { unreadable: "its text is damaged" } } : found;
  const read = (key: string): VersionedRecord | null => {
    const [found = null] = memory.read([key]);
    return found && seen(found);
  };
  const store: RecordStore = {
    ...memory,
    read: (keys) => keys.map(read),
    swap: (items) =>
      isDamaged ? items.map(({ key }) => ({ kind: "conflict", current: read(key) })) : memory.swap(items),
    takeDue(limit, hideMs) {
      const due = memory.takeDue(limit, hideMs);
      return { ...due, records: due.records.map(seen) };
    },
  };
  const inbox = createInbox(store, { clock: environment, leaseMs: 1_000 });
  let runs = 0;
  const runner: Runner = {
    run: async () => {
      runs++;
      isDamaged = runs === 1;
      return { outcome: { kind: "done" }, changes: [], onWritten: () => {} };
    },
    firstHandler: () => null,
    handlersOf: () => [],
    notify: () => {},
  };
  await inbox.accept(verifiedEvent(1, { signedAt: clock.now() }));
  await inbox.run(runner, { concurrency: 1 });
  await clock.advance("1m");
  expect(runs).toBe(1);
  isDamaged = false;
  await clock.advance("1m");
  expect(runs).toBe(2);
  expect(await inbox.close({ graceMs: 0 })).toEqual({ unfinished: 0 });
});
