import type { DueRecord, DueRecords, VersionedRecord } from "../inbox/contract/store.ts";
import { type Lane, type Lanes, ZERO_PER_LANE } from "../inbox/record/lane.ts";
import { dueKeys, type Group, type Groups } from "./groups.ts";
import { TAKE_DUE_SCRIPT } from "./scripts.ts";

/** The result of a poll of one group, or of all groups. */
interface GroupPollResult {
  readonly taken: readonly { readonly key: string; readonly since: number }[];
  readonly left: Lanes;
  /** When the first of the remaining due records of each lane fell due. */
  readonly oldest: Lanes<number | null>;
  readonly nextDueAt: number | null;
}

/** Makes something for each lane. */
const mapLanes = <T>(make: (lane: Lane) => T): Lanes<T> => ({
  usual: make("usual"),
  patient: make("patient"),
});

async function poll(group: Group, limit: Lanes, hideMs: number): Promise<GroupPollResult> {
  const keys = dueKeys(group.shards);
  const answers = await group.run(TAKE_DUE_SCRIPT, keys, [limit.usual, limit.patient, hideMs]);
  const [usual, patient, oldestUsual, oldestPatient, nextDueAt, ...taken] = answers;
  const records: { key: string; since: number }[] = [];
  for (let index = 0; index < taken.length; index += 2) {
    records.push({ key: String(taken[index]), since: Number(taken[index + 1]) });
  }
  return {
    taken: records,
    left: { usual: Number(usual), patient: Number(patient) },
    oldest: { usual: answerTimeOf(oldestUsual), patient: answerTimeOf(oldestPatient) },
    nextDueAt: answerTimeOf(nextDueAt),
  };
}

function answerTimeOf(answer: unknown): number | null {
  return answer === "" || answer === null ? null : Number(answer);
}

function earliestOf(times: readonly (number | null)[]): number | null {
  return times.reduce((a, b) => (a === null || (b !== null && b < a) ? b : a), null);
}

/** When the longest-waiting due record of all groups became due; null when none is due. */
export async function findOldestDue(groups: Groups): Promise<number | null> {
  const { oldest } = combineResults(
    await Promise.all(groups.all.map((group) => poll(group, ZERO_PER_LANE, 0))),
  );
  return earliestOf([oldest.usual, oldest.patient]);
}

/** Polls several groups. Groups that cannot be reached are left out, unless all of them are. */
async function pollGroups(
  limits: ReadonlyMap<Group, Lanes>,
  hideMs: number,
): Promise<ReadonlyMap<Group, GroupPollResult>> {
  const results = new Map<Group, GroupPollResult>();
  const failures: unknown[] = [];
  await Promise.all(
    [...limits].map(async ([group, limit]) => {
      try {
        results.set(group, await poll(group, limit, hideMs));
      } catch (error) {
        failures.push(error);
      }
    }),
  );
  if (results.size === 0 && failures.length > 0) throw failures[0];
  return results;
}

function combineResults(results: readonly GroupPollResult[]): GroupPollResult {
  return {
    taken: results.flatMap(({ taken }) => taken),
    left: mapLanes((lane) => results.reduce((sum, { left }) => sum + left[lane], 0)),
    oldest: mapLanes((lane) => earliestOf(results.map(({ oldest }) => oldest[lane]))),
    nextDueAt: earliestOf(results.map(({ nextDueAt }) => nextDueAt)),
  };
}

/**
 * Takes the records that have been due for the longest time. A single group is asked for all of them. Of several groups,
 * each one with due records is asked for a share, so that each node gives what it has.
 */
async function takeFromGroups(groups: Groups, limit: Lanes, hideMs: number): Promise<GroupPollResult> {
  const [only, ...others] = groups.all;
  if (only !== undefined && others.length === 0) return poll(only, limit, hideMs);
  const before = await pollGroups(new Map(groups.all.map((group) => [group, ZERO_PER_LANE])), 0);
  const shares = mapLanes((lane) => sharesOf(before, lane, limit[lane]));
  const requests = new Map(
    [...shares.usual.keys(), ...shares.patient.keys()].map((group) => [
      group,
      mapLanes((lane) => shares[lane].get(group) ?? 0),
    ]),
  );
  const after = await pollGroups(requests, hideMs);
  return combineResults([...new Map([...before, ...after]).values()]);
}

/** How many records of a lane to ask each group for. */
function sharesOf(
  results: ReadonlyMap<Group, GroupPollResult>,
  lane: Lane,
  limit: number,
): ReadonlyMap<Group, number> {
  const due = [...results]
    .filter(([, { left }]) => left[lane] > 0)
    .sort(([, a], [, b]) => (a.oldest[lane] ?? 0) - (b.oldest[lane] ?? 0))
    .slice(0, limit);
  return new Map(due.map(([group]) => [group, Math.floor(limit / due.length)]));
}

/** See `RecordStore.takeDue`. */
export async function takeDue(
  groups: Groups,
  limit: Lanes,
  hideMs: number,
  readRecords: (keys: readonly string[]) => Promise<readonly (VersionedRecord | null)[]>,
): Promise<DueRecords> {
  const { taken, left, nextDueAt } = await takeFromGroups(groups, limit, hideMs);
  const sorted = taken.toSorted((a, b) => a.since - b.since);
  const storedRecords = await readRecords(sorted.map(({ key }) => key));
  const records: DueRecord[] = [];
  sorted.forEach(({ key }, index) => {
    const versioned = storedRecords[index] ?? null;
    // A record that was deleted by hand stays hidden.
    if (versioned !== null) records.push({ key, ...versioned });
  });
  return { records, left, nextDueAt };
}
