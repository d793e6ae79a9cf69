import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { freePort } from "../../support/free-port.ts";
import { GuardedProgram } from "../../support/guarded.ts";
import { type Scope, until } from "./scope.ts";

/** How a server keeps what it is given, and whose copy it is. */
export interface RedisSettings {
  readonly aof?: "always" | "everysec" | "none";
  readonly replicaOf?: number;
  /** Further lines of the command line, such as `["--maxmemory", "10mb"]`. */
  readonly extra?: readonly string[];
}

/** A Redis of a test's own, in a directory of its own, that can be killed, frozen and started again. */
export class RedisServer {
  readonly port: number;
  readonly #directory: string;
  readonly #arguments: readonly string[];
  #program: GuardedProgram | null = null;
  #admin: Redis | null = null;

  private constructor(port: number, directory: string, args: readonly string[]) {
    this.port = port;
    this.#directory = directory;
    this.#arguments = args;
  }

  static async start(scope: Scope, settings: RedisSettings = {}): Promise<RedisServer> {
    const { aof = "everysec", replicaOf, extra = [] } = settings;
    const port = await freePort();
    const directory = mkdtempSync(join(tmpdir(), "payhooks-redis-"));
    const args = [
      ...["--port", String(port), "--bind", "127.0.0.1", "--dir", directory, "--save", ""],
      ...["--appendonly", aof === "none" ? "no" : "yes"],
      ...(aof === "none" ? [] : ["--appendfsync", aof]),
      ...["--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"],
      ...(replicaOf === undefined ? [] : ["--replicaof", "127.0.0.1", String(replicaOf)]),
      ...extra,
    ];
    const server = scope.add(new RedisServer(port, directory, args), (one) => one.stop());
    await server.up();
    return server;
  }

  /** A copy of a server, which follows it by now. */
  static async startReplica(scope: Scope, primary: RedisServer): Promise<RedisServer> {
    const replica = await RedisServer.start(scope, { replicaOf: primary.port });
    await until("the replica follows", async () => (await replica.info("master_link_status")) === "up");
    return replica;
  }

  /** A Sentinel that watches the primary under the name `payhooks`. */
  static async startSentinel(scope: Scope, primary: number): Promise<RedisServer> {
    const port = await freePort();
    const directory = mkdtempSync(join(tmpdir(), "payhooks-sentinel-"));
    mkdirSync(directory, { recursive: true });
    const file = join(directory, "sentinel.conf");
    const lines = [
      `port ${port}`,
      "bind 127.0.0.1",
      `dir ${directory}`,
      `sentinel monitor payhooks 127.0.0.1 ${primary} 1`,
      "sentinel down-after-milliseconds payhooks 1000",
      "sentinel failover-timeout payhooks 3000",
    ];
    writeFileSync(file, `${lines.join("\n")}\n`);
    const sentinel = scope.add(new RedisServer(port, directory, [file, "--sentinel"]), (one) => one.stop());
    await sentinel.up();
    return sentinel;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Starts it, or starts it again on what it has kept. Resolves once it answers. */
  async up(): Promise<void> {
    const program = await GuardedProgram.start("redis-server", this.#arguments);
    this.#program = program;
    await until("redis-server answers", () =>
      this.tell("PING").then(
        (answer) => answer === "PONG",
        () => {
          if (!program.isRunning) throw new Error(`redis-server ended at its start, on port ${this.port}`);
          return false;
        },
      ),
    );
  }

  async kill(): Promise<void> {
    this.#signal("SIGCONT");
    this.#signal("SIGKILL");
    await this.#program?.exited;
  }

  freeze(): void {
    this.#signal("SIGSTOP");
  }

  thaw(): void {
    this.#signal("SIGCONT");
  }

  #signal(name: NodeJS.Signals): void {
    this.#program?.kill(name);
  }

  /** Sends a command over the test's own connection. */
  async tell(command: string, ...args: readonly (string | number)[]): Promise<unknown> {
    this.#admin ??= this.client();
    return this.#admin.call(command, ...args);
  }

  /** A number from `INFO`. */
  async info(field: string): Promise<string> {
    const text = String(await this.tell("INFO"));
    return new RegExp(`^${field}:(.*?)\\r?$`, "m").exec(text)?.[1] ?? "";
  }

  client(): Redis {
    const client = new Redis(this.port, "127.0.0.1", {
      maxRetriesPerRequest: 0,
      retryStrategy: () => 50,
      commandTimeout: 5_000,
      showFriendlyErrorStack: true,
    });
    client.on("error", () => {});
    return client;
  }

  async stop(): Promise<void> {
    this.#admin?.disconnect();
    await this.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** Three primaries that share the slots among them. */
export async function startCluster(scope: Scope): Promise<readonly RedisServer[]> {
  const nodes: RedisServer[] = [];
  for (let i = 0; i < 3; i++) {
    nodes.push(
      await RedisServer.start(scope, {
        aof: "none",
        extra: ["--cluster-enabled", "yes", "--cluster-node-timeout", "5000"],
      }),
    );
  }
  const [first] = nodes;
  if (first === undefined) throw new Error("no node was started");
  for (const [index, node] of nodes.entries()) {
    const from = Math.ceil((index * 16384) / nodes.length);
    const to = Math.ceil(((index + 1) * 16384) / nodes.length) - 1;
    await node.tell("CLUSTER", "ADDSLOTSRANGE", from, to);
    if (node !== first) await node.tell("CLUSTER", "MEET", "127.0.0.1", first.port);
  }
  await until("the cluster is whole", async () => {
    for (const node of nodes) {
      if (!String(await node.tell("CLUSTER", "INFO")).includes("cluster_state:ok")) return false;
      if (!String(await node.tell("CLUSTER", "INFO")).includes("cluster_known_nodes:3")) return false;
    }
    return true;
  });
  return nodes;
}
