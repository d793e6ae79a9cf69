/** A MariaDB of a test's own, on a port of its own, in a folder that goes with it. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createConnection } from "mysql2/promise";
import { freePort } from "../support/free-port.ts";
import { GuardedProgram } from "../support/guarded.ts";

export interface MariadbServer {
  readonly url: string;
  stop(): Promise<void>;
}

export async function startMariadb(): Promise<MariadbServer> {
  const folder = mkdtempSync(join(tmpdir(), "payhooks-mariadb-"));
  const data = join(folder, "data");
  const user = process.getuid?.() === 0 ? ["--user=root"] : [];
  const asked = ["--no-defaults", `--datadir=${data}`, "--auth-root-authentication-method=normal", ...user];
  execFileSync("mariadb-install-db", asked, { cwd: folder, stdio: "ignore" });
  const port = await freePort();
  const options = [
    ...["--no-defaults", `--datadir=${data}`, `--port=${port}`, "--bind-address=127.0.0.1", ...user],
    ...[`--socket=${join(folder, "socket")}`, `--pid-file=${join(folder, "pid")}`],
  ];
  const program = await GuardedProgram.start("mariadbd", options, { cwd: folder });
  const url = `mysql://root@127.0.0.1:${port}/shop`;
  await whenReady(port, program);
  return {
    url,
    async stop() {
      program.kill("SIGKILL");
      await program.exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function whenReady(port: number, program: GuardedProgram): Promise<void> {
  for (;;) {
    try {
      const connection = await createConnection({ host: "127.0.0.1", port, user: "root" });
      await connection.query("CREATE DATABASE shop");
      await connection.end();
      return;
    } catch (error) {
      if (!program.isRunning) throw new Error("MariaDB ended at its start", { cause: error });
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
