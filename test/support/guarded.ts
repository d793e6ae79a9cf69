import { spawn } from "node:child_process";

/** Ends the program with whoever started it, even if that was killed: its standard input is closed then. */
const GUARD = `
exec 3<&0
signal=$1
shift
"$@" >/dev/null 2>&1 </dev/null 3<&- &
pid=$!
echo $pid
{ read -r _ <&3; kill -$signal $pid; } 2>/dev/null >/dev/null &
wait $pid
`;

export interface GuardedOptions {
  readonly cwd?: string;
  readonly uid?: number;
  readonly gid?: number;
  /** The signal for it when the process that started it has ended. Default KILL. */
  readonly signal?: "KILL" | "QUIT";
}

/** A program of a test's own, such as a database. It does not outlive the test. */
export class GuardedProgram {
  readonly pid: number;
  readonly exited: Promise<void>;
  #isRunning = true;

  private constructor(pid: number, exited: Promise<void>) {
    this.pid = pid;
    this.exited = exited.finally(() => {
      this.#isRunning = false;
    });
  }

  static async start(
    program: string,
    args: readonly string[],
    { signal = "KILL", ...options }: GuardedOptions = {},
  ): Promise<GuardedProgram> {
    const guard = spawn("sh", ["-c", GUARD, "sh", signal, program, ...args], {
      ...options,
      stdio: ["pipe", "pipe", "ignore"],
    });
    guard.stdin.on("error", () => {});
    const exited = new Promise<void>((resolve, reject) => {
      guard.once("error", reject);
      guard.once("exit", () => {
        guard.stdin.end();
        resolve();
      });
    });
    const pid = new Promise<number>((resolve) => {
      guard.stdout.once("data", (line: Buffer) => resolve(Number(line.toString())));
    });
    const started = await Promise.race([pid, exited]);
    if (typeof started !== "number") throw new Error(`${program} was not started`);
    return new GuardedProgram(started, exited);
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  kill(signal: NodeJS.Signals): void {
    if (this.#isRunning) process.kill(this.pid, signal);
  }
}
