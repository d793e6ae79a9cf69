import { type ChildProcess, spawn } from "node:child_process";
import { inject, onTestFinished } from "vitest";

/** The output of a command, and how it ended. */
export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** The lines of the standard output as JSON. */
  json<Value = Record<string, unknown>>(): Value[];
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly input?: string | Buffer;
  readonly cwd?: string;
}

/** A command that is running; it is killed when the test is over. */
export class RunningCommand {
  stdout = "";
  stderr = "";
  readonly process: ChildProcess;
  readonly ended: Promise<CommandResult>;
  #onOutput: () => void = () => {};

  constructor(args: readonly string[], { env = {}, input = "", cwd }: RunOptions = {}) {
    const inherited = { ...process.env };
    for (const name of OURS) delete inherited[name];
    const options = { env: { ...inherited, ...env }, ...(cwd !== undefined && { cwd }) };
    const child = spawn(process.execPath, [inject("payhooks"), ...args], { ...options, stdio: "pipe" });
    this.process = child;
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text;
      this.#onOutput();
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
      this.#onOutput();
    });
    child.stdin.on("error", () => {});
    child.stdin.end(input);
    this.ended = new Promise((resolve, reject) => {
      child.on("error", reject).on("close", (code) => resolve(this.#result(code)));
    });
    onTestFinished(() => void child.kill("SIGKILL"));
  }

  /** Waits until the standard output matches; fails with the output when the command ends first. */
  async until(pattern: RegExp): Promise<RegExpExecArray> {
    const matched = new Promise<RegExpExecArray>((resolve) => {
      this.#onOutput = () => {
        const match = pattern.exec(this.stdout);
        if (match !== null) resolve(match);
      };
      this.#onOutput();
    });
    const ended = this.ended.then(({ code }) => {
      throw new Error(`ended with ${code} before printing ${pattern}:\n${this.stdout}${this.stderr}`);
    });
    return Promise.race([matched, ended]);
  }

  #result(code: number | null): CommandResult {
    const { stdout, stderr } = this;
    const json = <Value>(): Value[] =>
      stdout
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line) as Value);
    return { code, stdout, stderr, json };
  }
}

/** Variables that the command reads, and that must not come from whoever runs the tests. */
const OURS = [
  "PAY_PUBLIC_KEY",
  "PAY_MERCHANT_ID",
  "CONNECT_WEBHOOK_SECRET",
  "REDIS_URL",
  "DATABASE_URL",
  "NO_COLOR",
  "FORCE_COLOR",
  "PAYHOOKS_DEBUG",
  "PAYHOOKS_NAMES",
  "PAYHOOKS_SLACK_URL",
  "PAYHOOKS_PAGERDUTY_KEY",
  "PAYHOOKS_WEBHOOK_URL",
  "PAYHOOKS_WEBHOOK_SECRET",
];

/** Runs `payhooks` to its end. */
export function payhooks(args: readonly string[], options?: RunOptions): Promise<CommandResult> {
  return new RunningCommand(args, options).ended;
}
