/** One of several processes on one file: writes what all of them write, and runs what it can take. */
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { DueRecord, Swap, SwapResult } from "../../src/inbox/contract/store.ts";
import { accept } from "../../src/inbox/record/accept-into-record.ts";
import { copyRecord } from "../../src/inbox/record/codec.ts";
import { indexOf } from "../../src/inbox/record/index-of.ts";
import { beginNext, endRun } from "../../src/inbox/record/leased-run.ts";
import type { IdempotencyRecord } from "../../src/inbox/record/record.ts";
import { sqliteStore } from "../../src/sqlite/store.ts";
import { systemClock } from "../../src/time/clock.ts";
import { environmentOf } from "../../src/time/environment.ts";
import { verifiedEvent } from "../verified-event.ts";

const HIDE_MS = 30_000;
const AT_ONCE = 8;

const [file = "", log = "", count = "0"] = process.argv.slice(2);
const { token } = environmentOf(systemClock);
const store = sqliteStore(file);
await store.open();

let stopped = false;
process.once("message", () => {
  stopped = true;
});
const running = run();
const outcomes = { written: 0, conflict: 0 };
for (let n = 0; n < Number(count); n += AT_ONCE) {
  await Promise.all(Array.from({ length: AT_ONCE }, (_, at) => acceptOne(n + at)));
}
process.send?.(outcomes);
await running;
await store.close();
process.disconnect();

async function acceptOne(n: number): Promise<void> {
  const event = verifiedEvent(n);
  const { record } = accept(null, event, {
    now: event.delivery.receivedAt,
    delayMs: 0,
    lane: "usual",
    isReferenceReused: false,
    admit: () => {},
  });
  if (record === null) throw new Error("A new event makes a record.");
  const { kind } = await write(event.key, null, record);
  if (kind === "written" || kind === "conflict") outcomes[kind]++;
}

/** Again until its fate is known, as the engine does. */
async function write(key: string, before: DueRecord | null, record: IdempotencyRecord): Promise<SwapResult> {
  const version = token();
  for (;;) {
    const swap: Swap = {
      key,
      expected: before?.version ?? null,
      version,
      record,
      index: indexOf(key, record),
      before: before === null ? null : indexOf(key, recordOf(before)),
      at: store.now(key),
      shouldAnnounce: false,
    };
    const [result] = await store.swap([swap]);
    if (result !== undefined && result.kind !== "not-written") return result;
  }
}

async function run(): Promise<void> {
  while (!stopped) {
    const { records } = await store.takeDue({ usual: AT_ONCE, patient: 0 }, HIDE_MS);
    await Promise.all(records.map(runOne));
    if (records.length === 0) await sleep(5);
  }
}

async function runOne(due: DueRecord): Promise<void> {
  const now = store.now(due.key);
  const record = copyRecord(recordOf(due));
  const input = beginNext(record, {
    key: due.key,
    token: token(),
    leaseMs: HIDE_MS,
    now,
    earlyBecause: null,
    mayRunCrashSuspect: () => true,
    firstHandler: () => null,
    handlersOf: () => [],
  });
  if (input === null) throw new Error(`Nothing is due in ${due.key}.`);
  const begun = await write(due.key, due, record);
  if (begun.kind !== "written") return;
  appendFileSync(log, `${input.id}\n`);
  const [current] = await store.read([due.key]);
  if (current === null || current === undefined) throw new Error(`${due.key} is gone.`);
  const done = copyRecord(record);
  endRun(done, input, { kind: "done" }, [], store.now(due.key));
  const ended = await write(due.key, { ...current, key: due.key }, done);
  if (ended.kind !== "written") throw new Error(`The end was answered ${ended.kind}.`);
}

function recordOf({ record }: DueRecord): IdempotencyRecord {
  if ("unreadable" in record) throw new Error(record.unreadable);
  return record;
}
