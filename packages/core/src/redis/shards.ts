import type { Lanes } from "../inbox/record/lane.ts";
import { PayhooksError } from "../protocol/errors.ts";

/**
 * The hash tags of the shards, one for each 64th of a cluster's slots. Nodes with equally many slots have equally many shards,
 * or one more.
 */
const HASH_TAGS =
  "iv9 kuo hd8 bnv iry cx7 qkp bj6 mz4 gpz lh5 nkc ewl g02 dem 3lk pl3 cmu h12 jvl ajc ci5 " +
  "hqz 7qd mk6 gax ly7 fsy efn ge8 dto fw9 c9o xu9 bof yg8 k47 azq si6 hah gqj e64 fck 1jm " +
  "v32 e2t nn3 lme cle ao3 j3t y22 rj5 aks j74 hpj oip 0in fri d57 om0 mnf wt9 d1w";
const SLOTS_PER_SHARD = 256;
/** The position of each tag's slot within its 64th. A test counts it. */
const SLOT_IN_SHARD = 127;

/** A sixty-fourth of all records, and everything by which they are found. A cluster keeps the keys of one shard on one node. */
export class Shard {
  /** The shard's slot, of the 16,384 of a cluster. */
  readonly slot: number;
  /** For each lane, the sorted set of its records by the time at which they have to be looked at. */
  readonly due: Lanes<string>;
  readonly #base: string;

  constructor(prefix: string, tag: string, index: number) {
    this.slot = index * SLOTS_PER_SHARD + SLOT_IN_SHARD;
    this.#base = `${prefix}:{${tag}}:`;
    this.due = { usual: this.keyOf("due"), patient: this.keyOf("patient") };
  }

  /** The key in Redis of a record, or of something else in the shard. */
  keyOf(name: string): string {
    return this.#base + name;
  }
}

/** The shards of a prefix. Their number never changes, because a record's key decides which one it is in. */
export class Shards {
  readonly all: readonly [Shard, ...Shard[]];
  readonly prefix: string;

  /** @throws PayhooksError `ERR_OPTION_INVALID` for a prefix that would hide the shards' tags from a cluster. */
  constructor(prefix: string) {
    if (/[{}]/.test(prefix)) {
      throw new PayhooksError("ERR_OPTION_INVALID", `The prefix ${JSON.stringify(prefix)} has a brace.`, {
        fix: "Choose one without { and }: a Redis Cluster chooses the node by the text in braces.",
      });
    }
    this.prefix = prefix;
    const [first = "", ...others] = HASH_TAGS.split(" ");
    this.all = [
      new Shard(prefix, first, 0),
      ...others.map((tag, index) => new Shard(prefix, tag, index + 1)),
    ];
  }

  shardOf(recordKey: string): Shard {
    let hash = 0;
    for (let index = 0; index < recordKey.length; index++) {
      hash = (Math.imul(hash, 31) + recordKey.charCodeAt(index)) | 0;
    }
    // The upper bits depend on every character, unlike the lowest ones.
    return this.all[(hash >>> 10) % this.all.length] ?? this.all[0];
  }
}
