import type { Loss } from "../notices/notice.ts";
import { PayhooksError } from "../protocol/errors.ts";
import type { Group } from "./groups.ts";
import { IDENTIFY } from "./scripts.ts";
import type { Shard } from "./shards.ts";

/** A server's answer when it is asked for the id of its data set. */
interface IdAnswer {
  readonly shard: Shard;
  readonly datasetId: string;
  readonly isEvicting: boolean;
}

/**
 * Notices the loss of data by the id of the data set. Each node stores this id. If a node has another id, or none, its
 * data is gone. A node is asked about its first shard only. A node that gets a slot is known from then on.
 */
export class DatasetIds {
  readonly #known = new Map<Shard, string>();
  #isEvicting = false;

  /**
   * Learns the ids, and makes those that are missing.
   *
   * @param groups one of each node, beginning with that of the first shard
   * @param token a new id; null to make none
   * @throws PayhooksError `ERR_INBOX_UNUSED` if there is none and none is to be made.
   */
  async learn(groups: readonly Group[], token: string | null): Promise<void> {
    const answers = await Promise.all(groups.map((group) => ask(group, token ?? "")));
    if (answers[0]?.datasetId === "") throw unused();
    for (const { shard, datasetId } of answers) if (datasetId !== "") this.#known.set(shard, datasetId);
  }

  /** True if data was lost since the last call. A node that does not answer is left out. */
  async findLoss(groups: readonly Group[], token: string): Promise<Loss | null> {
    const answers = await Promise.allSettled(groups.map((group) => ask(group, token)));
    const answered = answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
    const [failure] = answers.flatMap((answer) => (answer.status === "rejected" ? [answer.reason] : []));
    if (answered.length === 0 && failure !== undefined) throw failure;
    let isReplaced = false;
    for (const { shard, datasetId } of answered) {
      const known = this.#known.get(shard);
      isReplaced ||= known !== undefined && known !== datasetId;
      this.#known.set(shard, datasetId);
    }
    const wasEvicting = this.#isEvicting;
    this.#isEvicting = answered.some(({ isEvicting }) => isEvicting);
    if (isReplaced) return "replaced";
    return this.#isEvicting && !wasEvicting ? "evicting" : null;
  }

  /** The last known id of a shard's data set. */
  of(shard: Shard): string {
    return this.#known.get(shard) ?? "";
  }
}

async function ask(group: Group, token: string): Promise<IdAnswer> {
  const [shard] = group.shards;
  if (shard === undefined) throw new Error("a group without shards");
  const [datasetId, policy] = await group.run(IDENTIFY, [shard.keyOf("dataset-id")], [token]);
  return { shard, datasetId: String(datasetId), isEvicting: policy !== "" && policy !== "noeviction" };
}

function unused(): PayhooksError {
  return new PayhooksError(
    "ERR_INBOX_UNUSED",
    "No receiver has used this Redis, with this prefix, as its inbox.",
    {
      fix: "Use the same address, database number and prefix as the receiver, and check whether the database was emptied.",
    },
  );
}
