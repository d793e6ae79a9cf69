import type { DueRecord, DueRecords, Versioned } from "../inbox/contract/store.ts";
import { type Lane, type Lanes, NO_EVENTS } from "../inbox/record/lane.ts";
import { dueKeys, type Group, type Groups } from "./groups.ts";
import { TAKE_DUE } from "./scripts.ts";

/** The result of a poll of one group, or of all groups. */
interface Polled {
  readonly taken: readonly { readonly key: string; readonly since: number }[];
  readonly left: Lanes;
  /** When the first of the remaining due records of each lane fell due. */
  readonly oldest: Lanes<number | null>;
  readonly nextDueAt: number | null;
}

/** Makes something for each lane. */
const ofEach = <T>(make: (lane: Lane) => T): Lanes<T> => ({ usual: make("usual"), patient: make("patient") });

async function poll(group: Group, limit: Lanes, hideMs: number): Promise<Polled> {
  const keys = dueKeys(group.shards);
  const answers = await group.run(TAKE_DUE, keys, [limit.usual, limit.patient, hideMs]);
  const [usual, patient, oldestUsual, oldestPatient, nextDueAt, ...taken] = answers;
  const records: { key: string; since: number }[] = [];
  for (let at = 0; at < taken.length; at += 2) {
    records.push({ key: String(taken[at]), since: Number(taken[at + 1]) });
  }
  return {
    taken: records,
    left: { usual: Number(usual), patient: Number(patient) },
    oldest: { usual: timeOf(oldestUsual), patient: timeOf(oldestPatient) },
    nextDueAt: timeOf(nextDueAt),
  };
}

function timeOf(answer: unknown): number | null {
  return answer === "" || answer === null ? null : Number(answer);
}

function least(times: readonly (number | null)[]): number | null {
  return times.reduce((a, b) => (a === null || (b !== null && b < a) ? b : a), null);
}

/** Since when the record of all groups that waits longest has been due; null when none is due. */
export async function oldestDue(groups: Groups): Promise<number | null> {
  const { oldest } = sumOf(await Promise.all(groups.all.map((group) => poll(group, NO_EVENTS, 0))));
  return least([oldest.usual, oldest.patient]);
}

/** Polls several groups. Groups that cannot be reached are left out, unless all of them are. */
async function pollGroups(
  limits: ReadonlyMap<Group, Lanes>,
  hideMs: number,
): Promise<ReadonlyMap<Group, Polled>> {
  const found = new Map<Group, Polled>();
  const failures: unknown[] = [];
  await Promise.all(
    [...limits].map(async ([group, limit]) => {
      try {
        found.set(group, await poll(group, limit, hideMs));
      } catch (error) {
        failures.push(error);
      }
    }),
  );
  if (found.size === 0 && failures.length > 0) throw failures[0];
  return found;
}

function sumOf(polled: readonly Polled[]): Polled {
  return {
    taken: polled.flatMap(({ taken }) => taken),
    left: ofEach((lane) => polled.reduce((sum, { left }) => sum + left[lane], 0)),
    oldest: ofEach((lane) => least(polled.map(({ oldest }) => oldest[lane]))),
    nextDueAt: least(polled.map(({ nextDueAt }) => nextDueAt)),
  };
}

/**
 * Takes the records that have been due for the longest time. A single group is asked for all of them. Of several groups,
 * each one with due records is asked for a share, so that each node gives what it has.
 */
async function take(groups: Groups, limit: Lanes, hideMs: number): Promise<Polled> {
  const [only, ...others] = groups.all;
  if (only !== undefined && others.length === 0) return poll(only, limit, hideMs);
  const before = await pollGroups(new Map(groups.all.map((group) => [group, NO_EVENTS])), 0);
  const shares = ofEach((lane) => sharesOf(before, lane, limit[lane]));
  const requests = new Map(
    [...shares.usual.keys(), ...shares.patient.keys()].map((group) => [
      group,
      ofEach((lane) => shares[lane].get(group) ?? 0),
    ]),
  );
  const after = await pollGroups(requests, hideMs);
  return sumOf([...new Map([...before, ...after]).values()]);
}

/** How many records of a lane to ask each group for. */
function sharesOf(found: ReadonlyMap<Group, Polled>, lane: Lane, limit: number): ReadonlyMap<Group, number> {
  const due = [...found]
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
  read: (keys: readonly string[]) => Promise<readonly (Versioned | null)[]>,
): Promise<DueRecords> {
  const { taken, left, nextDueAt } = await take(groups, limit, hideMs);
  const sorted = taken.toSorted((a, b) => a.since - b.since);
  const found = await read(sorted.map(({ key }) => key));
  const records: DueRecord[] = [];
  sorted.forEach(({ key }, at) => {
    const versioned = found[at] ?? null;
    // A record that was deleted by hand stays hidden.
    if (versioned !== null) records.push({ key, ...versioned });
  });
  return { records, left, nextDueAt };
}
