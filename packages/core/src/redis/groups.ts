import { LANES } from "../inbox/record/lane.ts";
import { ServerClock } from "../inbox/server-clock.ts";
import type { Clock } from "../time/clock.ts";
import { isCrossSlot } from "./failure.ts";
import type { ScriptClient } from "./script-client.ts";
import { TAKE_DUE_SCRIPT } from "./scripts.ts";
import type { Shard, Shards } from "./shards.ts";

/** Shards whose keys one script may touch, on a server with one clock. */
export class Group {
  readonly shards: readonly Shard[];
  readonly clock: ServerClock;
  readonly #client: () => Promise<ScriptClient>;
  readonly #localClock: Clock;

  constructor(shards: readonly Shard[], client: () => Promise<ScriptClient>, localClock: Clock) {
    this.shards = shards;
    this.clock = new ServerClock(localClock);
    this.#client = client;
    this.#localClock = localClock;
  }

  /** Runs a script. The time in its answer goes to the clock, and the rest is returned. */
  async run(
    script: string,
    keys: readonly string[],
    args: readonly (string | number)[] = [],
  ): Promise<readonly unknown[]> {
    const client = await this.#client();
    const askedAt = this.#localClock.monotonic();
    const [time, ...answers] = (await client.eval(script, [...keys], args.map(String))) as unknown[];
    this.clock.recordServerTime(Number(time), askedAt);
    return answers;
  }
}

/**
 * How shards are grouped. On one server all shards form one group, because sending a command costs more than its work.
 * On a cluster, or behind a proxy to one, each shard is a group of its own.
 */
export class Groups {
  readonly all: readonly Group[];
  readonly #groupByShard: ReadonlyMap<Shard, Group>;
  readonly #first: Group;

  private constructor(first: Group, ...others: readonly Group[]) {
    this.all = [first, ...others];
    this.#first = first;
    this.#groupByShard = new Map(this.all.flatMap((group) => group.shards.map((shard) => [shard, group])));
  }

  /** Finds out whether the server is a single server or a cluster, and asks for each group's time. */
  static async open(shards: Shards, client: () => Promise<ScriptClient>, localClock: Clock): Promise<Groups> {
    const singleGroup = new Group(shards.all, client, localClock);
    try {
      await probe(singleGroup);
      return new Groups(singleGroup);
    } catch (error) {
      if (!isCrossSlot(error)) throw error;
    }
    const [first, ...others] = shards.all;
    const groups = new Groups(
      new Group([first], client, localClock),
      ...others.map((shard) => new Group([shard], client, localClock)),
    );
    await Promise.all(groups.all.map(probe));
    return groups;
  }

  groupOf(shard: Shard): Group {
    return this.#groupByShard.get(shard) ?? this.#first;
  }

  /** Runs a script in every group at one time. */
  runAll(
    script: string,
    keysOf: (shard: Shard) => readonly string[],
    args: readonly (string | number)[] = [],
  ): Promise<readonly (readonly unknown[])[]> {
    return Promise.all(this.all.map((group) => group.run(script, group.shards.flatMap(keysOf), args)));
  }
}

/** The keys that a poll needs: those of the usual lane, then those of the patient one. */
export function dueKeys(shards: readonly Shard[]): readonly string[] {
  return LANES.flatMap((lane) => shards.map(({ due }) => due[lane]));
}

/** Runs a script over all keys of one kind. It changes nothing. */
async function probe(group: Group): Promise<void> {
  await group.run(TAKE_DUE_SCRIPT, dueKeys(group.shards), [0, 0, 0]);
}

/** Sorts things by the group that they belong to. */
export function partitionByGroup<T>(
  groups: Groups,
  things: readonly T[],
  shardOf: (thing: T) => Shard,
): ReadonlyMap<Group, readonly T[]> {
  const partitions = new Map<Group, T[]>();
  for (const thing of things) {
    const group = groups.groupOf(shardOf(thing));
    const partition = partitions.get(group);
    if (partition === undefined) partitions.set(group, [thing]);
    else partition.push(thing);
  }
  return partitions;
}
