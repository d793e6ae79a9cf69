import { spawn } from "node:child_process";
import { inject, onTestFinished } from "vitest";

/** The command on a terminal of its own, as `script` makes one. */
export class OnTerminal {
  output = "";
  readonly ended: Promise<number | null>;
  readonly #write: (text: string) => void;
  #onOutput: () => void = () => {};

  constructor(args: readonly string[]) {
    const quoted = [process.execPath, inject("payhooks"), ...args].map((one) => `'${one}'`).join(" ");
    const child = spawn("script", ["-qec", quoted, "/dev/null"], { stdio: "pipe" });
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      this.output += text.replaceAll("\r", "");
      this.#onOutput();
    });
    this.#write = (text) => void child.stdin.write(text);
    this.ended = new Promise((resolve) => child.on("close", resolve));
    onTestFinished(() => void child.kill("SIGKILL"));
  }

  async until(text: string): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#onOutput = () => {
        if (this.output.includes(text)) resolve();
      };
      this.#onOutput();
    });
  }

  type(text: string): void {
    this.#write(text);
  }
}
