import { execFileSync } from "node:child_process";
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { postgresBin } from "../../../scripts/postgres-server.mjs";
import { freePort } from "../../support/free-port.ts";
import { GuardedProgram } from "../../support/guarded.ts";
import { childrenOf, cpuUsOf } from "../../support/process-tree.ts";
import { type Scope, until } from "./scope.ts";

let backups = 0;

/** PostgreSQL refuses to run as root: Debian's package brings a user for it. */
export function owner(): { readonly uid?: number; readonly gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const idOf = (flag: string): number => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  return { uid: idOf("-u"), gid: idOf("-g") };
}

/** How a server is made. */
export interface ServerOptions {
  /** Lines of its configuration, such as `max_connections=10`. */
  readonly settings?: readonly string[];
  /** The folder of a small disk to have its data on. */
  readonly disk?: string;
}

/** A PostgreSQL of a test's own, on a port of its own, in a folder that goes with it; it can be killed and frozen. */
export class PostgresServer {
  readonly port: number;
  readonly #bin: string;
  readonly #folder: string;
  readonly #settings: readonly string[];
  #program: GuardedProgram | null = null;

  private constructor(port: number, bin: string, folder: string, settings: readonly string[]) {
    this.port = port;
    this.#bin = bin;
    this.#folder = folder;
    this.#settings = settings;
  }

  static async start(scope: Scope, { settings = [], disk }: ServerOptions = {}): Promise<PostgresServer> {
    const server = await PostgresServer.#create(settings, disk ?? tmpdir());
    scope.add(server, (one) => one.stop());
    const asked = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"];
    if (disk !== undefined) asked.push("--wal-segsize=4");
    server.#run("initdb", ["-D", server.#data, ...asked]);
    await server.up();
    return server;
  }

  /** A standby, which follows the primary by now under the name `standby`. */
  static async startStandby(scope: Scope, primary: PostgresServer): Promise<PostgresServer> {
    const standby = await PostgresServer.#create([], tmpdir());
    scope.add(standby, (one) => one.stop());
    const from = `host=127.0.0.1 port=${primary.port} user=postgres application_name=standby`;
    standby.#run("pg_basebackup", ["-D", standby.#data, "-R", "-X", "stream", "-c", "fast", "-d", from]);
    await standby.up();
    await until("the standby follows", async () => {
      const rows = await primary.tell("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'");
      return rows.length > 0;
    });
    return standby;
  }

  static async #create(settings: readonly string[], within: string): Promise<PostgresServer> {
    const bin = postgresBin();
    if (bin === null) throw new Error("PostgreSQL is not installed");
    const folder = mkdtempSync(join(within, "payhooks-postgres-"));
    const { uid, gid } = owner();
    if (uid !== undefined && gid !== undefined) chownSync(folder, uid, gid);
    return new PostgresServer(await freePort(), bin, folder, settings);
  }

  /** An empty folder that the server owns. */
  ownFolder(path: string): void {
    mkdirSync(path, { recursive: true });
    const { uid, gid } = owner();
    if (uid !== undefined && gid !== undefined) chownSync(path, uid, gid);
  }

  get #data(): string {
    return join(this.#folder, "data");
  }

  #run(program: string, args: readonly string[]): void {
    execFileSync(join(this.#bin, program), args, { ...owner(), cwd: this.#folder, stdio: "ignore" });
  }

  get url(): string {
    return this.urlOf(this.port);
  }

  /** The same by way of a proxy. */
  urlOf(port: number): string {
    return `postgres://postgres@127.0.0.1:${port}/postgres`;
  }

  /** Starts it, or starts it again on what it has kept. Resolves once it answers. */
  async up(): Promise<void> {
    const fixed = ["-D", this.#data, "-p", String(this.port), "-h", "127.0.0.1", "-k", this.#folder];
    // Data that a killed server has written stays written, since the machine goes on.
    const options = ["fsync=off", ...this.#settings].flatMap((setting) => ["-c", setting]);
    const program = await GuardedProgram.start(join(this.#bin, "postgres"), [...fixed, ...options], {
      ...owner(),
      cwd: this.#folder,
      signal: "QUIT",
    });
    this.#program = program;
    await until(
      "PostgreSQL answers",
      () =>
        this.tell("SELECT 1").then(
          () => true,
          () => {
            if (!program.isRunning) throw new Error("PostgreSQL ended at its start");
            return false;
          },
        ),
      { withinMs: 60_000 },
    );
  }

  /** One statement, on a connection of the test's own. */
  async tell(sql: string): Promise<readonly Record<string, unknown>[]> {
    const client = new pg.Client({ connectionString: this.url, connectionTimeoutMillis: 5_000 });
    client.on("error", () => {});
    try {
      await client.connect();
      return (await client.query(sql)).rows as Record<string, unknown>[];
    } finally {
      await client.end().catch(() => {});
    }
  }

  /** From now on this role needs its password, where all others need none. */
  async requirePasswordOf(role: string): Promise<void> {
    const file = join(this.#data, "pg_hba.conf");
    writeFileSync(file, `host all ${role} 127.0.0.1/32 md5\n${readFileSync(file, "utf8")}`);
    await this.tell("SELECT pg_reload_conf()");
  }

  /** As if its machine lost power, but for what it had given to the disk. */
  async kill(): Promise<void> {
    this.#signal("SIGKILL");
    await this.#program?.exited;
  }

  freeze(): void {
    this.#signal("SIGSTOP");
  }

  thaw(): void {
    this.#signal("SIGCONT");
  }

  /** Makes an empty database; its address. */
  async create(database: string): Promise<string> {
    await this.tell(`CREATE DATABASE ${database}`);
    return this.url.replace(/\/postgres$/, `/${database}`);
  }

  /** Backs a database up, as a job at night does. The returned function puts it back to that. */
  backUp(database: string): () => Promise<void> {
    const file = join(this.#folder, `${database}-${++backups}.dump`);
    const server = ["-h", "127.0.0.1", "-p", String(this.port), "-U", "postgres"];
    this.#run("pg_dump", [...server, "-Fc", "-f", file, database]);
    return async () => {
      await this.tell(`DROP DATABASE ${database} WITH (FORCE)`);
      await this.tell(`CREATE DATABASE ${database}`);
      this.#run("pg_restore", [...server, "-d", database, file]);
    };
  }

  /** Processor time of all its processes so far, microseconds; told in steps of 10 ms. */
  cpuUs(): number {
    return this.#program?.isRunning === true ? cpuUsOf(this.#program.pid) : 0;
  }

  /** A standby becomes the primary. */
  async promote(): Promise<void> {
    await this.tell("SELECT pg_promote()");
  }

  /** The server is many processes: all of them, the one that would start others first. */
  #signal(name: NodeJS.Signals): void {
    if (this.#program?.isRunning !== true) return;
    const { pid } = this.#program;
    // Those that it had: once it has ended, they are nobody's children.
    const before = childrenOf(pid);
    process.kill(pid, name);
    for (const child of new Set([...before, ...childrenOf(pid)])) {
      try {
        process.kill(child, name);
      } catch {
        // It has ended by itself.
      }
    }
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
