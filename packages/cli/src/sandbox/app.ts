import { type ChildProcessByStdio, spawn } from "node:child_process";
import { constants } from "node:os";
import type { Readable } from "node:stream";
import { CliError } from "../command-line/errors.ts";
import { waitForAbort } from "../command-line/output.ts";
import { printText, type Stream } from "../command-line/printer.ts";
import type { Terminal } from "../command-line/terminal.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const CANNOT_START_EXIT_CODE = 127;

/** Signals within this time are one: npm repeats those that a terminal has sent to the whole process group. */
const SIGNAL_DEBOUNCE_MS = 500;
/** How long the command may take to end. A receiver waits for its handlers for a shorter time. */
const GRACE_MS = 15_000;
/** How long what the command has started may take to end when the command has ended by itself. */
const LEFT_BEHIND_GRACE_MS = 2_000;

/**
 * Runs a command with further variables, and prefixes each line that it prints. Resolves with its exit code. The command and
 * everything that it has started get our signals, and SIGTERM when `stop` is aborted. At a second signal, or after 15 s, they are
 * killed. What the command leaves behind when it ends by itself gets SIGTERM as well, and is killed after 2 s.
 */
export function runApp(
  command: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  terminal: Terminal,
  stop: AbortSignal,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const isWindows = process.platform === "win32";
    const child = spawn(isWindows ? lineForWindows([command, ...args]) : command, isWindows ? [] : args, {
      env: { ...process.env, ...environment },
      stdio: ["inherit", "pipe", "pipe"],
      shell: isWindows,
      // A process group of its own. The server of `npx tsx server.ts` is a grandchild, which a signal to the child may not reach.
      detached: !isWindows,
    });
    const shutdown = new Shutdown(child);
    const forward = (signal: NodeJS.Signals): void => shutdown.signal(signal);
    for (const signal of SIGNALS) process.on(signal, forward);
    void waitForAbort(stop).then(() => shutdown.signal("SIGTERM"));
    const stopForwarding = (): void => {
      shutdown.cancel();
      for (const signal of SIGNALS) process.off(signal, forward);
    };
    prefixLines(child.stdout, "stdout", terminal);
    prefixLines(child.stderr, "stderr", terminal);
    child.on("error", (error: NodeJS.ErrnoException) => {
      stopForwarding();
      const why = error.code === "ENOENT" ? "there is no such command" : (error.code ?? error.message);
      const fix = "Check its name and the PATH.";
      reject(
        new CliError("ERR_COMMAND", `${command} cannot be started: ${why}.`, fix, CANNOT_START_EXIT_CODE),
      );
    });
    child.on("exit", () => shutdown.endLeftBehind());
    // Unlike "exit", "close" comes after everything that the app printed has been read. A process that it has left behind delays it.
    child.on("close", (code, signal) => {
      stopForwarding();
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
    });
  });
}

/** Ends a command with everything that it has started. */
class Shutdown {
  readonly #child: ChildProcessByStdio<null, Readable, Readable>;
  #signalledAt: number | null = null;
  #timer: NodeJS.Timeout | undefined;

  constructor(child: ChildProcessByStdio<null, Readable, Readable>) {
    this.#child = child;
  }

  signal(signal: NodeJS.Signals): void {
    if (this.#signalledAt === null) {
      this.#begin(signal, GRACE_MS);
    } else if (Date.now() - this.#signalledAt >= SIGNAL_DEBOUNCE_MS) this.#kill();
  }

  /** Ends what is left of the group after the command. If a signal has been passed on, that goes on to its own end. */
  endLeftBehind(): void {
    if (this.#signalledAt === null) this.#begin("SIGTERM", LEFT_BEHIND_GRACE_MS);
  }

  cancel(): void {
    clearTimeout(this.#timer);
  }

  #begin(signal: NodeJS.Signals, graceMs: number): void {
    this.#signalledAt = Date.now();
    this.#timer = setTimeout(() => this.#kill(), graceMs);
    this.#send(signal);
  }

  #kill(): void {
    this.#send("SIGKILL");
    // A process that has left the group may still hold our end of its output.
    this.#child.stdout.destroy();
    this.#child.stderr.destroy();
  }

  #send(signal: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (process.platform === "win32" || pid === undefined) {
      this.#child.kill(signal);
      return;
    }
    try {
      process.kill(-pid, signal);
    } catch {
      // Nothing of the group is left.
    }
  }
}

/** One line for cmd.exe, which alone starts npm and similar commands on Windows. */
function lineForWindows(words: readonly string[]): string {
  return words
    .map((word) => (/^[\w./\\:@+=-]+$/.test(word) ? word : `"${word.replaceAll('"', '\\"')}"`))
    .join(" ");
}

/** The colours of an application that writes them to no screen as well, and the carriage return of Windows. */
const DECORATION_PATTERN = new RegExp(`${"\u001b"}\\[[\\d;:]*m|\r$`, "g");

/**
 * Passes lines on behind a prefix. They may have texts in them that somebody has sent to the application. With --json they go to
 * the standard error without a prefix, and the JSON stays apart.
 */
function prefixLines(from: Readable, to: Stream, terminal: Terminal): void {
  const mark = terminal.isJson ? "" : `${terminal.paint("cyan", "app |")} `;
  const print = (line: string): void =>
    printText(terminal.isJson ? "stderr" : to, `${mark}${line.replace(DECORATION_PATTERN, "")}\n`);
  let rest = "";
  from.setEncoding("utf8");
  from.on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) print(line);
  });
  // Unlike "end", "close" comes even if the stream was destroyed.
  from.on("close", () => {
    if (rest !== "") print(rest);
  });
}
