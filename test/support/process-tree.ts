/** A program and the processes that it has started: which they are, and their processor time. */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";

const US_PER_TICK = 10_000;

/** Processor time of a program and of all that it has started itself, microseconds, in steps of 10 ms. Only Linux tells it: elsewhere 0. */
export function cpuUsOf(pid: number): number {
  // Those that have ended count with the one that started them.
  const own = ticksOf(pid, 4);
  return childrenOf(pid).reduce((sum, child) => sum + ticksOf(child, 2), own) * US_PER_TICK;
}

/** The first of: user, system, and the same of its ended children. */
function ticksOf(pid: number, fields: 2 | 4): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const values = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return values.slice(11, 11 + fields).reduce((sum, value) => sum + Number(value), 0);
  } catch {
    return 0;
  }
}

/** The processes that this one has started itself, and that have not ended. */
export function childrenOf(pid: number): readonly number[] {
  return processes()
    .filter(({ parent }) => parent === pid)
    .map((one) => one.pid);
}

/** Linux has them in /proc. macOS has no such folder, but it has `ps`. */
function processes(): readonly { readonly pid: number; readonly parent: number | null }[] {
  if (existsSync("/proc")) {
    const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
    return pids.map((pid) => ({ pid: Number(pid), parent: parentOf(pid) }));
  }
  const lines = execFileSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" });
  return [...lines.matchAll(/^ *(\d+) +(\d+) *$/gm)].map(([, pid, parent]) => ({
    pid: Number(pid),
    parent: Number(parent),
  }));
}

function parentOf(pid: string): number | null {
  try {
    return Number(/\) \S (\d+) /.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1]);
  } catch {
    return null;
  }
}
