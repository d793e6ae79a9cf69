import type { DueRecord, DueRecords, Versioned } from "../inbox/store.ts";
import type { Group, Groups } from "./groups.ts";
import { TAKE_DUE } from "./scripts.ts";

/** What a look at one group, or at all groups, has found. */
interface Look {
  readonly taken: readonly { readonly key: string; readonly since: number }[];
  readonly left: number;
  /** When the first of the remaining due records fell due. */
  readonly oldest: number | null;
  readonly nextDueAt: number | null;
}

async function look(group: Group, limit: number, hideMs: number): Promise<Look> {
  const keys = group.shards.map(({ due }) => due);
  const [left, oldest, nextDueAt, ...taken] = await group.run(TAKE_DUE, keys, [limit, hideMs]);
  const records: { key: string; since: number }[] = [];
  for (let at = 0; at < taken.length; at += 2) {
    records.push({ key: String(taken[at]), since: Number(taken[at + 1]) });
  }
  return { taken: records, left: Number(left), oldest: timeOf(oldest), nextDueAt: timeOf(nextDueAt) };
}

function timeOf(answer: unknown): number | null {
  return answer === "" || answer === null ? null : Number(answer);
}

function least(times: readonly (number | null)[]): number | null {
  return times.reduce((a, b) => (a === null || (b !== null && b < a) ? b : a), null);
}

/** Asks what is due, without taking any of it. */
export async function lookAtDue(groups: Groups): Promise<Omit<Look, "taken">> {
  return sumOf(await Promise.all(groups.all.map((group) => look(group, 0, 0))));
}

/** Looks at several groups. Groups that cannot be reached are left out, unless all of them are. */
async function lookAt(
  groups: readonly Group[],
  limit: number,
  hideMs: number,
): Promise<ReadonlyMap<Group, Look>> {
  const found = new Map<Group, Look>();
  const failures: unknown[] = [];
  await Promise.all(
    groups.map(async (group) => {
      try {
        found.set(group, await look(group, limit, hideMs));
      } catch (error) {
        failures.push(error);
      }
    }),
  );
  if (found.size === 0 && failures.length > 0) throw failures[0];
  return found;
}

function sumOf(looks: readonly Look[]): Look {
  return {
    taken: looks.flatMap(({ taken }) => taken),
    left: looks.reduce((sum, { left }) => sum + left, 0),
    oldest: least(looks.map(({ oldest }) => oldest)),
    nextDueAt: least(looks.map(({ nextDueAt }) => nextDueAt)),
  };
}

/**
 * Takes the records that have been due for the longest time. A single group is asked for all of them. Of several groups,
 * each one with due records is asked for a share, so that each node gives what it has.
 */
async function take(groups: Groups, limit: number, hideMs: number): Promise<Look> {
  const [only, ...others] = groups.all;
  if (only !== undefined && others.length === 0) return look(only, limit, hideMs);
  const before = await lookAt(groups.all, 0, 0);
  const due = [...before]
    .filter(([, { left }]) => left > 0)
    .sort(([, a], [, b]) => (a.oldest ?? 0) - (b.oldest ?? 0))
    .slice(0, limit)
    .map(([group]) => group);
  const share = Math.floor(limit / Math.max(1, due.length));
  const after = await lookAt(due, share, hideMs);
  return sumOf([...new Map([...before, ...after]).values()]);
}

/** See `RecordStore.takeDue`. */
export async function takeDue(
  groups: Groups,
  limit: number,
  hideMs: number,
  read: (keys: readonly string[]) => Promise<readonly (Versioned | null)[]>,
): Promise<DueRecords> {
  const { taken, left, nextDueAt } = await take(groups, limit, hideMs);
  const sorted = taken.toSorted((a, b) => a.since - b.since);
  const found = await read(sorted.map(({ key }) => key));
  const records: DueRecord[] = [];
  sorted.forEach(({ key }, at) => {
    const versioned = found[at] ?? null;
    // A record that somebody has deleted by hand stays hidden.
    if (versioned !== null) records.push({ key, ...versioned });
  });
  return { records, left, nextDueAt };
}
