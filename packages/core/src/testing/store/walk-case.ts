/** A random walk over a few records. After every write, the indexes must agree with the records. */
import assert from "node:assert/strict";
import type { RecordStore } from "../../inbox/contract/store.ts";
import { type EventState, indexOf, type RecordIndex } from "../../inbox/record/index-of.ts";
import { LANES, type Lane } from "../../inbox/record/lane.ts";
import type { IdempotencyRecord } from "../../inbox/record/record.ts";
import type { RunOutcome } from "../../inbox/record/run-outcome.ts";
import type { StoreCase } from "./fixture.ts";
import { newSeed, seededRandom } from "./random.ts";
import { acceptedRecord, begunRecord, decidedRecord, endedRecord, HOUR_MS, keyOf } from "./records.ts";
import { countsByReason, type PutRecord, swapAll, swapOf, takeOfBothLanes } from "./writes.ts";

const KEY_COUNT = 8;
/** The most records that are written in one call. */
const MOST_PER_CALL = 4;
const CLOCK_ERROR_MS = 1_000;
const STEP_COUNT = 300;
/** After so many steps, the oldest key is no longer written, and a new one is. */
const STEPS_BETWEEN_NEW_KEYS = 10;
const LISTED_STATES: readonly EventState[] = ["waiting", "retrying", "running", "held"];
const HOLD_REASONS = ["malformed", "unexpected", "ambiguous"] as const;

/** A record as it was last written, and as it was before its current lease. */
interface TrackedRecord extends PutRecord {
  readonly unleased: IdempotencyRecord;
}

type Choose = <T>(choices: readonly [T, ...T[]]) => T;

export const walkCase: StoreCase = {
  name: "the indexes agree with the records after each of hundreds of random writes",
  async run(rig) {
    const store = await rig.open();
    const seed = newSeed("store walk");
    const random = seededRandom(seed);
    const choose: Choose = (choices) => choices[Math.floor(random() * choices.length)] ?? choices[0];
    const trackedRecords = new Map<string, TrackedRecord>();
    let writes = 0;
    for (let step = 0; step < STEP_COUNT; step++) {
      await rig.advance(1);
      // Some records are written alone, and others together.
      const keys = Array.from({ length: choose([1, 1, MOST_PER_CALL]) }, () =>
        keyOf(Math.floor(random() * KEY_COUNT) + Math.floor(step / STEPS_BETWEEN_NEW_KEYS)),
      );
      const steps = [...new Set(keys)].flatMap((key) => {
        const before = trackedRecords.get(key) ?? null;
        const next = nextOf(key, store.now(key), before, choose);
        if (next === null) return [];
        // A write that conflicts must leave the indexes as they are.
        const conflicting = choose([
          { at: store.now(key) + 60_000 },
          { at: store.now(key) - 60_000 },
          { expected: "nobodyknows00" },
        ]);
        const mustConflict = random() < 0.2;
        return [
          {
            next,
            mustConflict,
            swap: swapOf(store, key, before, next.record, mustConflict ? conflicting : {}),
          },
        ];
      });
      const results = await swapAll(
        store,
        steps.map(({ swap }) => swap),
      );
      steps.forEach(({ next, mustConflict, swap: { key, version } }, index) => {
        assert.equal(
          results[index]?.kind,
          mustConflict ? "conflict" : "written",
          `seed ${seed}, step ${step}`,
        );
        if (mustConflict) return;
        writes++;
        trackedRecords.set(key, { key, version, ...next });
      });
      if (steps.length === 0) continue;
      await expectIndexesToAgree(store, trackedRecords, `seed ${seed}, step ${step}`);
    }
    assert.ok(writes > STEP_COUNT / 5, "Too few writes were made.");
    for (const lane of LANES) {
      const due = indexesOf(trackedRecords)
        .filter((index) => index.lane === lane && index.dueAt !== null && index.dueAt <= store.now(keyOf(0)))
        .toSorted((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0));
      const { records, left } = await store.takeDue({ usual: 0, patient: 0, [lane]: STEP_COUNT }, HOUR_MS);
      const times = records.map(({ key }) => due.find((index) => index.key === key)?.dueAt);
      assert.deepEqual([times, left[lane]], [due.map(({ dueAt }) => dueAt), 0], `seed ${seed}, ${lane}`);
    }
  },
};

/** The next write; null if the record has to wait. */
function nextOf(
  key: string,
  now: number,
  before: TrackedRecord | null,
  choose: Choose,
): { readonly record: IdempotencyRecord; readonly unleased: IdempotencyRecord } | null {
  const withoutLease = (record: IdempotencyRecord) => ({ record, unleased: record });
  if (before === null) {
    const heldReason = choose([undefined, undefined, ...HOLD_REASONS]);
    const delayMs = choose([0, 0, HOUR_MS]);
    const status = choose(["PENDING", "SUCCESS"]);
    const lane = choose<Lane>(["usual", "usual", "patient"]);
    const sample = { delayMs, status, lane };
    return withoutLease(
      acceptedRecord(key, now, heldReason === undefined ? sample : { ...sample, held: heldReason }),
    );
  }
  const { record, unleased } = before;
  const slots = Object.values(unleased.slots);
  const action = choose(["run", "run", "decide", "accept"]);
  if (action === "accept") {
    const status = choose(["SUCCESS", "FAILED", "CANCELLED"]);
    const isNewStatus = slots.every((slot) => slot.status !== status);
    if (record.lease === null && isNewStatus)
      return withoutLease(acceptedRecord(key, now, { status }, unleased));
  }
  if (action === "decide" && record.lease === null && slots.some(({ state }) => state === "held")) {
    return withoutLease(decidedRecord(key, now, unleased, choose(["replay", "discard"])));
  }
  const mayRun = slots.some(({ state, work }) => state === "waiting" && (work?.dueAt ?? 0) <= now);
  if (!mayRun) return null;
  if (record.lease === null && choose([true, false])) {
    return { record: begunRecord(key, now, unleased, HOUR_MS), unleased };
  }
  const outcome = choose<RunOutcome>([
    { kind: "done" },
    { kind: "retry", delayMs: HOUR_MS },
    { kind: "held", reason: "rejected", detail: null, onHeld: choose([[], ["held:held"]]) },
    { kind: "handed-back" },
  ]);
  return withoutLease(endedRecord(key, now, unleased, outcome));
}

function indexesOf(
  trackedRecords: ReadonlyMap<string, TrackedRecord>,
): readonly (RecordIndex & { readonly key: string })[] {
  return [...trackedRecords.values()].map(({ key, record }) => ({ key, ...indexOf(key, record) }));
}

async function expectIndexesToAgree(
  store: RecordStore,
  trackedRecords: ReadonlyMap<string, TrackedRecord>,
  where: string,
): Promise<void> {
  const indexes = indexesOf(trackedRecords);
  const events = indexes.flatMap((index) => index.events);
  const count = (state: EventState): number => events.filter((event) => event.state === state).length;
  const heldBy: Record<string, number> = {};
  for (const { reason } of events) if (reason !== null) heldBy[reason] = (heldBy[reason] ?? 0) + 1;
  // A store may have several clocks, which are known only roughly. Every record is due at once or in an hour, so a second makes
  // no difference.
  const now = store.now(keyOf(0)) + CLOCK_ERROR_MS;
  const times = indexes.flatMap(({ dueAt }) => (dueAt === null ? [] : [dueAt])).toSorted((a, b) => a - b);
  assert.deepEqual(
    await countsByReason(store),
    {
      waiting: count("waiting"),
      retrying: count("retrying"),
      running: count("running"),
      held: count("held"),
      heldBy: Object.entries(heldBy).toSorted(([a], [b]) => (a < b ? -1 : 1)),
      oldestDueAt: times.find((at) => at <= now) ?? null,
    },
    where,
  );
  const { left, nextDueAt } = await takeOfBothLanes(store, 0, HOUR_MS);
  assert.deepEqual(
    [left > 0, nextDueAt],
    [times.some((at) => at <= now), times.find((at) => at > now) ?? null],
    where,
  );
  for (const state of LISTED_STATES) {
    const page = await store.list({ state }, null, STEP_COUNT);
    const expected = events
      .filter((event) => event.state === state)
      .toSorted((a, b) => a.acceptedAt - b.acceptedAt || (a.eventId < b.eventId ? -1 : 1));
    assert.deepEqual(
      page.events.map(({ eventId }) => eventId),
      expected.map(({ eventId }) => eventId),
      `${where}, ${state}`,
    );
  }
  const keys = [...trackedRecords.keys()];
  const versions = (await store.read(keys)).map((versioned) => versioned?.version);
  assert.deepEqual(
    versions,
    [...trackedRecords.values()].map(({ version }) => version),
    where,
  );
}
