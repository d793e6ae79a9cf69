import type { Redis } from "ioredis";
import type { EventFilter } from "../inbox/contract/event-query.ts";
import type { Inbox } from "../inbox/contract/inbox.ts";
import type {
  DueRecords,
  KnownRecord,
  ListCursor,
  ListOrder,
  ListPage,
  RecordStore,
  ScanPage,
  StoreCounts,
  Swap,
  SwapResult,
  VersionedRecord,
} from "../inbox/contract/store.ts";
import { canaryKey } from "../inbox/record/canary.ts";
import type { Lanes } from "../inbox/record/lane.ts";
import type { LoggerOption } from "../notices/logger.ts";
import type { Loss } from "../notices/notice.ts";
import { SetupWarnings } from "../notices/setup-warnings.ts";
import { checkCountOrZero, checkTime } from "../protocol/check-number.ts";
import { PayhooksError } from "../protocol/errors.ts";
import type { Clock } from "../time/clock.ts";
import { type Environment, environmentOf } from "../time/environment.ts";
import { type Connections, type ConnectionTarget, connectionsTo, nodeOf } from "./connections.ts";
import { countEvents } from "./counts.ts";
import { DatasetIds } from "./dataset-ids.ts";
import { takeDue } from "./due.ts";
import { type Group, Groups } from "./groups.ts";
import { Hints } from "./hints.ts";
import { listEvents } from "./lists.ts";
import { isAnyRecordMissing } from "./missing-records.ts";
import { readRecords } from "./read.ts";
import { Replicas, type WrittenRecord } from "./replicas.ts";
import { checkRights, isForbidden, lackingRightsError } from "./rights.ts";
import { scanRecords } from "./scan.ts";
import { limitedClient, type ScriptClient, scriptClient } from "./script-client.ts";
import { READ_SCRIPT, WRITE_SCRIPT } from "./scripts.ts";
import { checkServers } from "./server-checks.ts";
import { Shards } from "./shards.ts";
import { swapRecords } from "./swap.ts";

/** The address of a Redis inbox: a URL, an ioredis connection or cluster, or any client that runs scripts. */
export type RedisTarget = ConnectionTarget | ScriptClient;

/** Options of {@link redisStore}. */
export interface RedisStoreOptions {
  /** The beginning of every key. Default `payhooks`. It must not contain braces. */
  readonly prefix?: string | undefined;
  /** How many replicas must have an event before it is acknowledged. Default 0: only the primary. */
  readonly replicas?: number | undefined;
  /** The time after which a command on the path of a delivery is given up. Default 1.5 s; keep it below `acceptTimeoutMs`. */
  readonly commandTimeoutMs?: number | undefined;
  /**
   * Opens only an inbox that a receiver has used. Otherwise `open()` rejects with `ERR_INBOX_UNUSED`, and nothing is written.
   * For tools that look into an inbox. Default false.
   */
  readonly existing?: boolean | undefined;
  /** The logger for warnings at the start. Default: the receiver posts them as notices, so its logger gets them. */
  readonly logger?: LoggerOption | undefined;
  /** For tests: a clock, or everything that the store takes from outside, except Redis itself. */
  readonly clock?: Clock | Environment | undefined;
}

/**
 * Keeps records in Redis. Each record is one key. Sorted sets of its shard have its entries, by which it is found. One script
 * writes a record together with its entries.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID`; at `open()` `ERR_OPTION_MISSING`, `ERR_PEER_MISSING`, `ERR_REDIS_UNSUITABLE`;
 * with `existing`, `ERR_INBOX_UNUSED`.
 */
export function redisStore(target: RedisTarget | undefined, options: RedisStoreOptions = {}): RecordStore {
  const { replicas = 0, commandTimeoutMs = 1_500 } = options;
  const environment = environmentOf(options.clock);
  checkCountOrZero("replicas", replicas);
  checkTime("commandTimeoutMs", commandTimeoutMs);
  const makeStore = (access: RedisAccess): RecordStore =>
    new RedisStore(access, { ...options, replicas, commandTimeoutMs, environment });
  if (!isScriptClient(target)) {
    const connections = connectionsTo(target, commandTimeoutMs);
    return makeStore({
      connections,
      client: async () => scriptClient(await connections.commandConnection()),
    });
  }
  const limited = limitedClient(target, environment, commandTimeoutMs);
  if (replicas === 0) return makeStore({ connections: null, client: async () => limited });
  throw new PayhooksError(
    "ERR_OPTION_INVALID",
    "replicas needs a connection, but redisInbox was given a client that runs scripts.",
    {
      fix: "Give a URL or an ioredis connection. WAIT, which waits for replicas, needs one connection of its own.",
    },
  );
}

function isScriptClient(target: RedisTarget | undefined): target is ScriptClient {
  return typeof target === "object" && target !== null && !("duplicate" in target);
}

/** How many keys are tried to find one for each node. Keys are spread evenly. */
const MAX_CANARY_ATTEMPTS = 1_000;

/** How Redis is reached. */
interface RedisAccess {
  /** Null for a client that only runs scripts. */
  readonly connections: Connections | null;
  client(): Promise<ScriptClient>;
}

interface RedisStoreSettings extends RedisStoreOptions {
  readonly replicas: number;
  readonly commandTimeoutMs: number;
  readonly environment: Environment;
}

/** The parts of a store that is open. */
interface OpenStore {
  readonly groups: Groups;
  readonly hints: Hints;
  readonly replicas: Replicas | null;
}

class RedisStore implements RecordStore {
  readonly durability: Inbox["durability"];
  readonly replicated?: (records: readonly WrittenRecord[]) => Promise<void>;
  readonly onDue?: (wake: () => boolean) => Promise<() => void>;
  readonly #access: RedisAccess;
  readonly #settings: RedisStoreSettings;
  readonly #shards: Shards;
  #client: Promise<ScriptClient> | null = null;
  #opening: Promise<OpenStore> | null = null;
  #openStore: OpenStore | null = null;
  readonly #datasetIds = new DatasetIds();
  readonly #warnings: SetupWarnings;
  #hintConnection: ReturnType<Connections["blockingConnection"]> | null = null;

  constructor(access: RedisAccess, settings: RedisStoreSettings) {
    this.#access = access;
    this.#settings = settings;
    this.#shards = new Shards(settings.prefix ?? "payhooks");
    this.#warnings = new SetupWarnings(settings.logger);
    this.durability = settings.replicas > 0 ? "replicated" : "host";
    if (settings.replicas > 0) this.replicated = (records) => this.#waitUntilReplicated(records);
    const { connections } = access;
    if (connections !== null) this.onDue = (wake) => this.#onDue(connections, wake);
  }

  get warnings(): SetupWarnings["all"] {
    return this.#warnings.all;
  }

  get datasetId(): string {
    return this.#datasetIds.idOf(this.#shards.all[0]);
  }

  async open(): Promise<void> {
    try {
      await this.#prepare();
    } catch (error) {
      // The script itself may not be run.
      throw isForbidden(error) ? lackingRightsError("to run scripts", error) : error;
    }
  }

  async #prepare(): Promise<void> {
    const { groups, replicas } = await this.#open();
    const { existing = false, environment } = this.#settings;
    await replicas?.readHistories();
    if (!existing) await checkRights(await this.#oneOfEachNode(groups));
    await this.#datasetIds.readIds(await this.#oneOfEachNode(groups), existing ? null : environment.token());
  }

  async findLoss(knownRecords: readonly KnownRecord[]): Promise<Loss | null> {
    const { groups } = await this.#open();
    const { environment } = this.#settings;
    const findDatasetLoss = async (): Promise<Loss | null> =>
      this.#datasetIds.findLoss(await this.#oneOfEachNode(groups), environment.token());
    const loss = await findDatasetLoss();
    if (loss !== null || !(await isAnyRecordMissing(this.#shards, groups, knownRecords))) return loss;
    // The data may have been replaced between the two questions.
    return (await findDatasetLoss()) ?? "missing";
  }

  /** All callers share one attempt. After a failure, the next call tries again. */
  #open(): Promise<OpenStore> {
    this.#opening ??= this.#connect().catch((error: unknown) => {
      this.#opening = null;
      throw error;
    });
    return this.#opening;
  }

  async #connect(): Promise<OpenStore> {
    const { environment, replicas, commandTimeoutMs } = this.#settings;
    const groups = await Groups.open(this.#shards, () => this.#getClient(), environment);
    for (const { what, fix } of await checkServers(await this.#oneOfEachNode(groups))) {
      this.#warnings.add(what, fix);
    }
    const [first] = this.#shards.all;
    const connection = replicas > 0 ? await this.#access.connections?.nonRetryingConnection() : undefined;
    this.#openStore = {
      groups,
      hints: new Hints(first.keyOf("hints"), groups.groupOf(first), environment),
      replicas:
        connection === undefined
          ? null
          : new Replicas(connection, this.#shards, groups, {
              replicas,
              timeoutMs: commandTimeoutMs,
              clock: environment,
            }),
    };
    return this.#openStore;
  }

  #getClient(): Promise<ScriptClient> {
    this.#client ??= this.#access.client().catch((error: unknown) => {
      this.#client = null;
      throw error;
    });
    return this.#client;
  }

  /** One group of each node, as far as nodes are known. The group of the first shard comes first. */
  async #oneOfEachNode(groups: Groups): Promise<readonly Group[]> {
    if (this.#access.connections === null) return groups.all;
    const connection = await this.#access.connections.commandConnection();
    const byNode = new Map<Redis | null, Group>();
    for (const group of groups.all) {
      const node = nodeOf(connection, group.shards[0]?.slot ?? 0);
      if (!byNode.has(node)) byNode.set(node, group);
    }
    return [...byNode.values()];
  }

  async read(keys: readonly string[]): Promise<readonly (VersionedRecord | null)[]> {
    const { groups } = await this.#open();
    return readRecords(this.#shards, groups, keys);
  }

  async swap(items: readonly Swap[]): Promise<readonly SwapResult[]> {
    const { groups, hints } = await this.#open();
    const results = await swapRecords(this.#shards, groups, items);
    const announcedItems = items.filter(
      ({ shouldAnnounce }, index) => shouldAnnounce && results[index]?.kind === "written",
    );
    if (announcedItems.length > 0) hints.send(announcedItems.length);
    return results;
  }

  async takeDue(limit: Lanes, hideMs: number): Promise<DueRecords> {
    const { groups } = await this.#open();
    return takeDue(groups, limit, hideMs, (keys) => this.read(keys));
  }

  now(key: string): number {
    if (this.#openStore === null) return this.#settings.environment.now();
    return this.#openStore.groups.groupOf(this.#shards.shardOf(key)).clock.now();
  }

  async list(
    filter: EventFilter,
    cursor: ListCursor | null,
    limit: number,
    first: ListOrder = "oldest",
  ): Promise<ListPage> {
    const { groups } = await this.#open();
    return listEvents({ groups, read: (keys) => this.read(keys) }, filter, cursor, limit, first);
  }

  async scan(cursor: string | null, limit: number): Promise<ScanPage> {
    const { groups } = await this.#open();
    const nodes = await this.#oneOfEachNode(groups);
    return scanRecords(this.#shards, nodes, cursor, limit, (keys) => this.read(keys));
  }

  async counts(): Promise<StoreCounts> {
    const { groups } = await this.#open();
    return countEvents(groups);
  }

  async readNote(name: string): Promise<string | null> {
    const { groups } = await this.#open();
    const [first] = this.#shards.all;
    const [text] = await groups.groupOf(first).run(READ_SCRIPT, [first.keyOf(`note:${name}`)]);
    return typeof text === "string" ? text : null;
  }

  async writeNote(name: string, text: string): Promise<void> {
    const { groups } = await this.#open();
    const [first] = this.#shards.all;
    await groups.groupOf(first).run(WRITE_SCRIPT, [first.keyOf(`note:${name}`)], [text]);
  }

  async canaryKeys(token: string): Promise<readonly string[]> {
    const connection = await this.#access.connections?.commandConnection();
    if (connection === undefined) return [canaryKey(token)];
    const nodes = new Set(this.#shards.all.map(({ slot }) => nodeOf(connection, slot)));
    const keys = new Map<Redis | null, string>();
    for (let attempt = 0; keys.size < nodes.size && attempt < MAX_CANARY_ATTEMPTS; attempt++) {
      const key = canaryKey(token + attempt);
      const node = nodeOf(connection, this.#shards.shardOf(key).slot);
      if (!keys.has(node)) keys.set(node, key);
    }
    return [...keys.values()];
  }

  async #waitUntilReplicated(records: readonly WrittenRecord[]): Promise<void> {
    const { replicas } = await this.#open();
    await replicas?.waitUntilReplicated(records);
  }

  async #onDue(connections: Connections, wake: () => boolean): Promise<() => void> {
    const { hints } = await this.#open();
    this.#hintConnection ??= connections.blockingConnection().catch((error: unknown) => {
      this.#hintConnection = null;
      throw error;
    });
    return hints.listen(await this.#hintConnection, wake);
  }

  async close(): Promise<void> {
    await this.#access.connections?.close();
  }
}
