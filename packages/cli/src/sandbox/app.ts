import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
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
    const program = process.platform === "win32" ? programOnWindows(command, args) : { file: command, args };
    const child = spawn(program.file, program.args, {
      env: { ...process.env, ...environment },
      stdio: ["inherit", "pipe", "pipe"],
      windowsVerbatimArguments: program.file === CMD,
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

/**
 * What to start on Windows. npm and similar commands are .cmd files, which only cmd.exe runs. It reads one line, so their
 * arguments are quoted here. Other programs get them as they are.
 */
export function programOnWindows(
  command: string,
  args: readonly string[],
  { PATH = "", PATHEXT = ".COM;.EXE;.BAT;.CMD" }: NodeJS.ProcessEnv = process.env,
): { readonly file: string; readonly args: readonly string[] } {
  const folders = /[\\/]/.test(command) ? [""] : ["", ...PATH.split(";").filter(Boolean)];
  const extensions = ["", ...PATHEXT.split(";").map((extension) => extension.toLowerCase())];
  const found = folders
    .flatMap((folder) => extensions.map((extension) => join(folder, command + extension)))
    .find((path) => /\.(?:com|exe|bat|cmd)$/i.test(path) && existsSync(path));
  if (found === undefined || !/\.(?:bat|cmd)$/i.test(found)) return { file: command, args };
  const line = [found, ...args.map(quoted)].map(escapedForCmd).join(" ");
  return { file: CMD, args: ["/d", "/s", "/c", `"${line}"`] };
}

const CMD = "cmd.exe";

/** An argument in quotes, from which programs on Windows read it again. */
function quoted(argument: string): string {
  return `"${argument.replace(/(\\*)"/g, '$1$1\\"').replace(/(\\+)$/, "$1$1")}"`;
}

/** A ^ before every character that means something to cmd.exe, quotes included. */
function escapedForCmd(word: string): string {
  return word.replace(/[()[\]%!^"`<>&|;, *?]/g, "^$&");
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
