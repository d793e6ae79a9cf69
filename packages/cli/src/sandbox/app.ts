import { spawn } from "node:child_process";
import { constants } from "node:os";
import type { Readable } from "node:stream";
import { CliError } from "../command-line/errors.ts";
import type { Terminal } from "../command-line/terminal.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const CANNOT_START = 127;

/** Runs a command with further variables, and prefixes each line that it prints. Resolves with its exit code. */
export function runApp(
  command: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  terminal: Terminal,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      env: { ...process.env, ...environment },
      stdio: ["inherit", "pipe", "pipe"],
      // On Windows, npm and similar commands are .cmd files, which need a shell.
      shell: process.platform === "win32",
    });
    const forward = (signal: NodeJS.Signals): void => {
      // A terminal sends Ctrl-C to the whole process group, so the app has it already.
      if (signal === "SIGINT" && process.stdin.isTTY) return;
      child.kill(signal);
    };
    for (const signal of SIGNALS) process.on(signal, forward);
    const stop = (): void => {
      for (const signal of SIGNALS) process.off(signal, forward);
    };
    prefix(child.stdout, process.stdout, terminal);
    prefix(child.stderr, process.stderr, terminal);
    child.on("error", (error: NodeJS.ErrnoException) => {
      stop();
      const why = error.code === "ENOENT" ? "there is no such command" : (error.code ?? error.message);
      const fix = "Check its name and the PATH.";
      reject(new CliError("ERR_COMMAND", `${command} cannot be started: ${why}.`, fix, CANNOT_START));
    });
    // Unlike "exit", "close" comes after everything that the app printed has been read.
    child.on("close", (code, signal) => {
      stop();
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
    });
  });
}

/** Passes lines on behind a prefix. With --json they go to the standard error as they are, and the JSON stays apart. */
function prefix(from: Readable, to: NodeJS.WriteStream, terminal: Terminal): void {
  const mark = terminal.isJson ? "" : `${terminal.paint("cyan", "app |")} `;
  const target = terminal.isJson ? process.stderr : to;
  let rest = "";
  from.setEncoding("utf8");
  from.on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) target.write(`${mark}${line}\n`);
  });
  from.on("end", () => {
    if (rest !== "") target.write(`${mark}${rest}\n`);
  });
}
