/** A MariaDB of a test's own, on a port of its own, in a folder that goes with it. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createConnection } from "mysql2/promise";
import { freePort } from "../support/free-port.ts";
import { GuardedProgram } from "../support/guarded.ts";
import { cpuUsOf } from "../support/process-tree.ts";

export interface MariadbServer {
  readonly url: string;
  /** Ends the server at once, as a power failure does, or stops it where it is. */
  kill(signal: "SIGKILL" | "SIGSTOP" | "SIGCONT"): Promise<void>;
  /** Processor time since its start, microseconds; told in steps of 10 ms. */
  cpuUs(): number;
  /** Starts it again on the same data. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** @param settings further options of the server, such as `--read-only` */
export async function startMariadb(settings: readonly string[] = []): Promise<MariadbServer> {
  const folder = mkdtempSync(join(tmpdir(), "payhooks-mariadb-"));
  const data = join(folder, "data");
  const user = process.getuid?.() === 0 ? ["--user=root"] : [];
  // A server that starts deletes what looks like old temporary tables in its tmpdir, also those of its neighbours.
  const asked = ["--no-defaults", `--datadir=${data}`, `--tmpdir=${folder}`, ...user];
  execFileSync("mariadb-install-db", [...asked, "--auth-root-authentication-method=normal"], {
    cwd: folder,
    stdio: "pipe",
  });
  const port = await freePort();
  const options = [
    ...[...asked, `--port=${port}`, "--bind-address=127.0.0.1"],
    ...[`--socket=${join(folder, "socket")}`, `--pid-file=${join(folder, "pid")}`, ...settings],
  ];
  const start = async (): Promise<GuardedProgram> => {
    const program = await GuardedProgram.start("mariadbd", options, { cwd: folder });
    await whenReady(port, program);
    return program;
  };
  let program = await start();
  const kill = async (signal: "SIGKILL" | "SIGSTOP" | "SIGCONT"): Promise<void> => {
    program.kill(signal);
    if (signal === "SIGKILL") await program.exited;
  };
  return {
    url: `mysql://root@127.0.0.1:${port}/shop`,
    kill,
    cpuUs: () => cpuUsOf(program.pid),
    async start() {
      program = await start();
    },
    async stop() {
      await kill("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function whenReady(port: number, program: GuardedProgram): Promise<void> {
  for (;;) {
    try {
      const connection = await createConnection({ host: "127.0.0.1", port, user: "root" });
      await connection.query("CREATE DATABASE IF NOT EXISTS shop");
      await connection.end();
      return;
    } catch (error) {
      if (!program.isRunning) throw new Error("MariaDB ended at its start", { cause: error });
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
