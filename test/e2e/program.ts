import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { root } from "../package/workspace.ts";

/** A program that is no file. It imports what a file of the folder could. */
export interface JavaScript {
  readonly code: string;
  readonly folder: string;
}

/** A TypeScript program of the workspace, started from its sources as `npm start` does. */
export class RunningProgram {
  /** Everything that it has printed. */
  output = "";
  readonly exitCode: Promise<number | null>;
  readonly #process: ChildProcess;
  #onOutput: () => void = () => {};

  constructor(
    program: string | JavaScript,
    args: readonly string[] = [],
    env: Readonly<Record<string, string>> = {},
  ) {
    const isFile = typeof program === "string";
    const run = isFile ? [join(root, program)] : ["--input-type=module", "--eval", program.code];
    const flags = ["--conditions=payhooks-source", "--import=tsx", ...run, ...args];
    this.#process = spawn(process.execPath, flags, {
      cwd: isFile ? root : join(root, program.folder),
      env: { ...process.env, NO_COLOR: "1", ...env },
    });
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.output += text;
        this.#onOutput();
      });
    }
    this.exitCode = new Promise((resolve, reject) => {
      this.#process.on("error", reject).on("close", (code) => resolve(code));
    });
  }

  /** Waits until the output matches. Fails with the output when the program ends first. */
  async until(pattern: RegExp): Promise<RegExpExecArray> {
    const matched = new Promise<RegExpExecArray>((resolve) => {
      this.#onOutput = () => {
        const match = pattern.exec(this.output);
        if (match !== null) resolve(match);
      };
      this.#onOutput();
    });
    const ended = this.exitCode.then((code) => {
      throw new Error(`ended with ${code} before printing ${pattern}:\n${this.output}`);
    });
    return Promise.race([matched, ended]);
  }

  signal(name: NodeJS.Signals): void {
    this.#process.kill(name);
  }

  /** For the end of a test that failed. */
  kill(): void {
    this.#process.kill("SIGKILL");
  }
}
