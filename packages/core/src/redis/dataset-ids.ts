import type { Loss } from "../notices/notice.ts";
import { PayhooksError } from "../protocol/errors.ts";
import type { Group } from "./groups.ts";
import { IDENTIFY_SCRIPT } from "./scripts.ts";
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
  readonly #idByShard = new Map<Shard, string>();
  #isEvicting = false;

  /**
   * Reads the ids, and makes those that are missing.
   *
   * @param groups one of each node, beginning with that of the first shard
   * @param token a new id; null to make none
   * @throws PayhooksError `ERR_INBOX_UNUSED` if there is none and none is to be made.
   */
  async readIds(groups: readonly Group[], token: string | null): Promise<void> {
    const answers = await Promise.all(groups.map((group) => identify(group, token ?? "")));
    if (answers[0]?.datasetId === "") throw unusedInboxError();
    for (const { shard, datasetId } of answers) if (datasetId !== "") this.#idByShard.set(shard, datasetId);
  }

  /** True if data was lost since the last call. A node that does not answer is left out. */
  async findLoss(groups: readonly Group[], token: string): Promise<Loss | null> {
    const answers = await Promise.allSettled(groups.map((group) => identify(group, token)));
    const idAnswers = answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
    const [failure] = answers.flatMap((answer) => (answer.status === "rejected" ? [answer.reason] : []));
    if (idAnswers.length === 0 && failure !== undefined) throw failure;
    let isReplaced = false;
    for (const { shard, datasetId } of idAnswers) {
      const knownId = this.#idByShard.get(shard);
      isReplaced ||= knownId !== undefined && knownId !== datasetId;
      this.#idByShard.set(shard, datasetId);
    }
    const wasEvicting = this.#isEvicting;
    this.#isEvicting = idAnswers.some(({ isEvicting }) => isEvicting);
    if (isReplaced) return "replaced";
    return this.#isEvicting && !wasEvicting ? "evicting" : null;
  }

  /** The last known id of a shard's data set. */
  idOf(shard: Shard): string {
    return this.#idByShard.get(shard) ?? "";
  }
}

async function identify(group: Group, token: string): Promise<IdAnswer> {
  const [shard] = group.shards;
  if (shard === undefined) throw new Error("a group without shards");
  const [datasetId, policy] = await group.run(IDENTIFY_SCRIPT, [shard.keyOf("dataset-id")], [token]);
  return { shard, datasetId: String(datasetId), isEvicting: policy !== "" && policy !== "noeviction" };
}

function unusedInboxError(): PayhooksError {
  return new PayhooksError(
    "ERR_INBOX_UNUSED",
    "No receiver has used this Redis, with this prefix, as its inbox.",
    {
      fix: "Use the same address, database number and prefix as the receiver, and check whether the database was emptied.",
    },
  );
}
