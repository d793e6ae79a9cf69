/** A PostgreSQL of a test's own, on a port of its own, in a folder that goes with it. */
import { execFileSync, spawn } from "node:child_process";
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { postgresBin } from "../../scripts/postgres-server.mjs";
import { freePort } from "../faults/harness/redis-server.ts";

export interface PostgresServer {
  readonly url: string;
  stop(): Promise<void>;
}

/** Ends the server with whoever started it, even if that was killed: its standard input is closed then. */
const GUARD = `
exec 3<&0
"$@" >/dev/null 2>&1 </dev/null 3<&- &
pid=$!
{ read -r _ <&3; kill -QUIT $pid; } 2>/dev/null >/dev/null &
wait $pid
`;

/** PostgreSQL refuses to run as root: Debian's package brings a user for it. */
function owner(): { readonly uid?: number; readonly gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const idOf = (flag: string): number => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  return { uid: idOf("-u"), gid: idOf("-g") };
}

export async function startPostgres(): Promise<PostgresServer> {
  const bin = postgresBin();
  if (bin === null) throw new Error("PostgreSQL is not installed");
  const as = owner();
  const folder = mkdtempSync(join(tmpdir(), "payhooks-postgres-"));
  if (as.uid !== undefined && as.gid !== undefined) chownSync(folder, as.uid, as.gid);
  const data = join(folder, "data");
  const asked = ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"];
  execFileSync(join(bin, "initdb"), asked, { ...as, cwd: folder, stdio: "ignore" });
  const port = await freePort();
  const options = ["-D", data, "-p", String(port), "-h", "127.0.0.1", "-k", folder, "-c", "fsync=off"];
  const child = spawn("sh", ["-c", GUARD, "sh", join(bin, "postgres"), ...options], { ...as, cwd: folder });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  await whenReady(url, () => child.exitCode !== null);
  return {
    url,
    async stop() {
      child.stdin.end();
      await exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function whenReady(url: string, hasEnded: () => boolean): Promise<void> {
  for (;;) {
    const client = new pg.Client({ connectionString: url });
    try {
      await client.connect();
      return;
    } catch (error) {
      if (hasEnded()) throw new Error("PostgreSQL ended at its start", { cause: error });
      await new Promise((resolve) => setTimeout(resolve, 50));
    } finally {
      await client.end().catch(() => {});
    }
  }
}
