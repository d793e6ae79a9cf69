/** A MariaDB of a test's own, on a port of its own, in a folder that goes with it. */
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createConnection } from "mysql2/promise";
import { freePort } from "../faults/harness/redis-server.ts";

export interface MariadbServer {
  readonly url: string;
  stop(): Promise<void>;
}

/** Ends the server with whoever started it, even if that was killed: its standard input is closed then. */
const GUARD = `
exec 3<&0
"$@" >/dev/null 2>&1 </dev/null 3<&- &
pid=$!
{ read -r _ <&3; kill -KILL $pid; } 2>/dev/null >/dev/null &
wait $pid
`;

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
  const child = spawn("sh", ["-c", GUARD, "sh", "mariadbd", ...options], { cwd: folder });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const url = `mysql://root@127.0.0.1:${port}/shop`;
  await whenReady(port, () => child.exitCode !== null);
  return {
    url,
    async stop() {
      child.stdin.end();
      await exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function whenReady(port: number, hasEnded: () => boolean): Promise<void> {
  for (;;) {
    try {
      const connection = await createConnection({ host: "127.0.0.1", port, user: "root" });
      await connection.query("CREATE DATABASE shop");
      await connection.end();
      return;
    } catch (error) {
      if (hasEnded()) throw new Error("MariaDB ended at its start", { cause: error });
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
