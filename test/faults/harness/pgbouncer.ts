import { writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { freePort } from "../../support/free-port.ts";
import { GuardedProgram } from "../../support/guarded.ts";
import { owner, type PostgresServer } from "./postgres-server.ts";
import { newFolder } from "./receivers.ts";
import { type Scope, until } from "./scope.ts";

/** A PgBouncer of a test's own in transaction mode, before a server. */
export class PgBouncer {
  readonly port: number;
  readonly #file: string;
  #program: GuardedProgram | null = null;

  private constructor(port: number, file: string) {
    this.port = port;
    this.#file = file;
  }

  static async start(scope: Scope, server: PostgresServer): Promise<PgBouncer> {
    const folder = newFolder(scope);
    server.ownFolder(folder);
    const port = await freePort();
    const users = join(folder, "users.txt");
    const file = join(folder, "pgbouncer.ini");
    writeFileSync(users, '"postgres" ""\n');
    writeFileSync(
      file,
      `[databases]
* = host=127.0.0.1 port=${server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${users}
pool_mode = transaction
default_pool_size = 3
max_client_conn = 500
`,
    );
    const bouncer = scope.add(new PgBouncer(port, file), (one) => one.kill());
    await bouncer.up();
    return bouncer;
  }

  async up(): Promise<void> {
    const program = await GuardedProgram.start("pgbouncer", ["-q", this.#file], owner());
    this.#program = program;
    const connectionString = `postgres://postgres@127.0.0.1:${this.port}/postgres`;
    await until("PgBouncer answers", async () => {
      if (!program.isRunning) throw new Error("PgBouncer ended at its start");
      const client = new pg.Client({ connectionString });
      client.on("error", () => {});
      try {
        await client.connect();
        await client.query("SELECT 1");
        return true;
      } catch {
        return false;
      } finally {
        await client.end().catch(() => {});
      }
    });
  }

  /** Every connection through it breaks. */
  async kill(): Promise<void> {
    this.#program?.kill("SIGKILL");
    await this.#program?.exited;
  }
}
