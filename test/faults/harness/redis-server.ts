import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { type Scope, until } from "./scope.ts";

/** How a server keeps what it is given, and whose copy it is. */
export interface RedisSettings {
  readonly aof?: "always" | "everysec" | "none";
  readonly replicaOf?: number;
  /** Further lines of the command line, such as `["--maxmemory", "10mb"]`. */
  readonly extra?: readonly string[];
}

/** Ends the server with whoever started it, even if that was killed: its standard input is closed then. */
const GUARD = `
exec 3<&0
redis-server "$@" >/dev/null 2>&1 </dev/null 3<&- &
pid=$!
echo $pid
{ read -r _ <&3; kill -9 $pid; } 2>/dev/null >/dev/null &
wait $pid
`;

/** A port on loopback that nobody listens on now. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      server.close(() => resolve(port));
    });
  });
}

/** A Redis of a test's own, in a directory of its own, that can be killed, frozen and started again. */
export class RedisServer {
  readonly port: number;
  readonly #directory: string;
  readonly #arguments: readonly string[];
  #pid: number | null = null;
  #exited: Promise<void> = Promise.resolve();
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
    const guard = spawn("sh", ["-c", GUARD, "redis-server", ...this.#arguments], {
      stdio: ["pipe", "pipe", "ignore"],
    });
    guard.stdin.on("error", () => {});
    this.#exited = new Promise((resolve, reject) => {
      guard.once("error", reject);
      guard.once("exit", () => {
        this.#pid = null;
        guard.stdin.end();
        resolve();
      });
    });
    this.#pid = await new Promise<number>((resolve) => {
      guard.stdout.once("data", (line: Buffer) => resolve(Number(line.toString())));
    });
    await until("redis-server answers", async () => (await this.tell("PING").catch(() => null)) === "PONG");
  }

  async kill(): Promise<void> {
    this.#signal("SIGCONT");
    this.#signal("SIGKILL");
    await this.#exited;
  }

  freeze(): void {
    this.#signal("SIGSTOP");
  }

  thaw(): void {
    this.#signal("SIGCONT");
  }

  #signal(name: NodeJS.Signals): void {
    if (this.#pid !== null) process.kill(this.#pid, name);
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
