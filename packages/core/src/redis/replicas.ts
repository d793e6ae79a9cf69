import type { Cluster, Redis } from "ioredis";
import { PayhooksError } from "../protocol/errors.ts";
import { type Clock, Stopwatch } from "../time/clock.ts";
import { isCluster, nodeOf } from "./connections.ts";
import { type Groups, partitionByGroup } from "./groups.ts";
import { CONFIRM_SCRIPT } from "./scripts.ts";
import type { Shard, Shards } from "./shards.ts";
import { versionPrefixOf } from "./stored-text.ts";

/** A record that replicas must have, at this version or a later one. */
export interface WrittenRecord {
  readonly key: string;
  readonly version: string;
}

/** How many replicas must have a record, and how long to wait for them. */
interface ReplicaRequirement {
  readonly replicas: number;
  readonly timeoutMs: number;
  /** Measures the age of a history. */
  readonly clock: Clock;
}

/** A record that was written before a failover is asked for within this time after it, or not at all. */
const MAX_ASK_DELAY_MS = 10_000;

/** Confirms that replicas have records. Each record is checked on its own node. */
export class Replicas {
  readonly #connection: Redis | Cluster;
  readonly #shards: Shards;
  readonly #groups: Groups;
  readonly #requirement: ReplicaRequirement;
  readonly #nodes = new WeakMap<Redis, NodeReplicas>();

  /** @param connection one that never sends anything a second time */
  constructor(connection: Redis | Cluster, shards: Shards, groups: Groups, requirement: ReplicaRequirement) {
    this.#connection = connection;
    this.#shards = shards;
    this.#groups = groups;
    this.#requirement = requirement;
  }

  /** Reads the histories of all nodes. To be called before this process writes anything. */
  async readHistories(): Promise<void> {
    const nodes = new Set(this.#shards.all.map((shard) => this.#nodeAt(shard)));
    await Promise.all([...nodes].map((node) => node.readHistory()));
  }

  /** Rejects unless the required number of replicas has all of the records in time. */
  async waitUntilReplicated(records: readonly WrittenRecord[]): Promise<void> {
    const byNode = new Map<NodeReplicas, WrittenRecord[]>();
    for (const record of records) {
      const node = this.#nodeOf(record);
      byNode.set(node, [...(byNode.get(node) ?? []), record]);
    }
    try {
      await Promise.all([...byNode].map(([node, nodeRecords]) => node.waitUntilReplicated(nodeRecords)));
    } catch (error) {
      // The node may have lost the record's slot, or may be gone.
      if (isCluster(this.#connection)) this.#connection.refreshSlotsCache(() => {});
      throw error;
    }
  }

  #nodeOf({ key }: WrittenRecord): NodeReplicas {
    return this.#nodeAt(this.#shards.shardOf(key));
  }

  #nodeAt({ slot }: Shard): NodeReplicas {
    const node = nodeOf(this.#connection, slot);
    if (node === null) throw unconfirmedError("No node is known that has the event's record");
    let nodeReplicas = this.#nodes.get(node);
    if (nodeReplicas === undefined) {
      nodeReplicas = new NodeReplicas(node, this.#shards, this.#groups, this.#requirement);
      this.#nodes.set(node, nodeReplicas);
    }
    return nodeReplicas;
  }
}

/** Records that a caller waits for. */
interface Waiter {
  readonly records: readonly WrittenRecord[];
  /** The history in which the records were written; null if they may be from an earlier one than the node's. */
  readonly history: string | null;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Confirms records of one node, in rounds. All requests that come during a round share the next one. A round checks that the
 * records are there, writes a mark behind them, and waits until replicas have the mark, all on one connection. If a failover
 * comes in between, either the new primary does not have the records, or the connection ends.
 */
class NodeReplicas {
  readonly #node: Redis;
  readonly #shards: Shards;
  readonly #groups: Groups;
  readonly #requirement: ReplicaRequirement;
  /** `since`: when it was noticed; null if that was before the first write of this process. */
  #history: { readonly id: string | null; readonly since: Stopwatch | null } | null = null;
  #waiting: Waiter[] = [];
  #isBusy = false;

  constructor(node: Redis, shards: Shards, groups: Groups, requirement: ReplicaRequirement) {
    this.#node = node;
    this.#shards = shards;
    this.#groups = groups;
    this.#requirement = requirement;
  }

  async readHistory(): Promise<void> {
    if (this.#history !== null) return;
    this.#history = { id: historyIn(await this.#node.info("replication")), since: null };
  }

  waitUntilReplicated(records: readonly WrittenRecord[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ records, history: this.#historyOfWrites, resolve, reject });
      if (!this.#isBusy) void this.#runRounds();
    });
  }

  /** The history in which everything was written that is asked for now; null right after a failover, or while it is not known. */
  get #historyOfWrites(): string | null {
    const current = this.#history;
    if (current === null) return null;
    return current.since === null || current.since.elapsedMs >= MAX_ASK_DELAY_MS ? current.id : null;
  }

  async #runRounds(): Promise<void> {
    this.#isBusy = true;
    while (this.#waiting.length > 0) {
      const round = this.#waiting.splice(0);
      try {
        const confirmation = await this.#confirm(round.flatMap(({ records }) => records));
        for (const waiter of round) this.#settle(waiter, confirmation);
        if (this.#history?.id !== confirmation.history)
          this.#history = { id: confirmation.history, since: new Stopwatch(this.#requirement.clock) };
      } catch (error) {
        for (const { reject } of round) reject(error);
      }
    }
    this.#isBusy = false;
  }

  /**
   * A record with another version has usually been changed since, and still contains what is to be confirmed. But if
   * the node's history has changed since the write, this may be an older version, and the requested version may be
   * lost. Somebody else may have been the first to ask in the new history, so a history counts only once it is older
   * than any such write.
   */
  #settle({ records, history, resolve, reject }: Waiter, confirmation: Confirmation): void {
    const isSame = history !== null && history === confirmation.history;
    const isThere = ({ key, version }: WrittenRecord): boolean => {
      const state = confirmation.states.get(key + version);
      return state === "as-written" || (state === "changed" && isSame);
    };
    if (records.every(isThere)) resolve();
    else
      reject(unconfirmedError("The record of the event is gone since it was written: there was a failover"));
  }

  async #confirm(records: readonly WrittenRecord[]): Promise<Confirmation> {
    const { replicas, timeoutMs } = this.#requirement;
    const pipeline = this.#node.pipeline();
    const requests: (readonly WrittenRecord[])[] = [];
    for (const [group, groupRecords] of partitionByGroup(this.#groups, records, ({ key }) =>
      this.#shards.shardOf(key),
    )) {
      const mark = group.shards.slice(0, 1).map((shard) => shard.keyOf("mark"));
      const keys = [...mark, ...groupRecords.map(({ key }) => this.#shards.shardOf(key).keyOf(key))];
      pipeline.eval(
        CONFIRM_SCRIPT,
        keys.length,
        ...keys,
        ...groupRecords.map(({ version }) => versionPrefixOf(version)),
      );
      requests.push(groupRecords);
    }
    pipeline.info("replication");
    pipeline.wait(replicas, Math.ceil(timeoutMs));
    const answers = await answersOf(pipeline);
    this.#checkReached(answers);
    const info = answers.at(-2);
    const states = new Map<string, RecordState>();
    requests.forEach((groupRecords, index) => {
      const [, ...stateCodes] = (answers[index] ?? []) as readonly unknown[];
      groupRecords.forEach(({ key, version }, n) => {
        const state = STATES_BY_ANSWER[Number(stateCodes[n])];
        if (state !== undefined) states.set(key + version, state);
      });
    });
    return { states, history: historyIn(info) };
  }

  /** The last answer is the number of replicas that were reached. */
  #checkReached(answers: readonly unknown[]): void {
    const { replicas, timeoutMs } = this.#requirement;
    const reached = Number(answers.at(-1));
    if (reached >= replicas) return;
    throw unconfirmedError(`${reached} of ${replicas} replicas have the event after ${timeoutMs} ms`);
  }
}

function historyIn(info: unknown): string | null {
  return /^master_replid:(\w+)/m.exec(String(info))?.[1] ?? null;
}

/** The answers to a pipeline's commands. Throws the first error among them. */
async function answersOf(pipeline: ReturnType<Redis["pipeline"]>): Promise<readonly unknown[]> {
  const answers = (await pipeline.exec()) ?? [];
  for (const [error] of answers) if (error !== null) throw error;
  return answers.map(([, answer]) => answer);
}

/** The states that the script can report, by its answer. There is no state for a record that does not exist. */
const STATES_BY_ANSWER = [undefined, "changed", "as-written"] as const;
type RecordState = NonNullable<(typeof STATES_BY_ANSWER)[number]>;

/** The result of a round. */
interface Confirmation {
  /** The states by key and version. Records that do not exist are left out. */
  readonly states: ReadonlyMap<string, RecordState>;
  /**
   * The id of the node's replication history. Redis gives a primary a new history when it starts, and when it stops
   * being a replica.
   */
  readonly history: string | null;
}

function unconfirmedError(problem: string): PayhooksError {
  return new PayhooksError("ERR_INBOX_UNAVAILABLE", `${problem}.`, {
    fix: "Check that the replicas are connected. Until they are, deliveries are answered 503 and retried by the sender.",
  });
}
