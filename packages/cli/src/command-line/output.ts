import type { Command } from "./command.ts";
import { EXIT } from "./errors.ts";
import type { ParsedArguments } from "./parsed-arguments.ts";
import { printText } from "./printer.ts";

/** Ends a command whose standard output or standard error cannot be written. There is one per process. */
export class Output {
  /** True once something could not be written although somebody may want to read it, as on a full disk. */
  isBroken = false;
  readonly #stop = new AbortController();
  #finishesUnread = false;
  #runsUntilStopped = false;

  constructor() {
    process.stdout.on("error", (error: NodeJS.ErrnoException) => {
      // The program that reads our output may stop early, as in `payhooks events | head`.
      if (error.code !== "EPIPE") this.#break(error);
      else if (!this.#finishesUnread) process.exit(EXIT.ok);
    });
    process.stderr.on("error", (error: NodeJS.ErrnoException) => {
      // Nobody reads the errors any more. The exit code still reports them.
      if (error.code !== "EPIPE") this.#break(error);
    });
  }

  /** Aborted when a command that runs until it is stopped has to stop. */
  get stop(): AbortSignal {
    return this.#stop.signal;
  }

  /** Says which command writes from now on. */
  setCommand(command: Command, args: ParsedArguments): void {
    this.#runsUntilStopped = command.runsUntilStopped ?? false;
    this.#finishesUnread = this.#runsUntilStopped || (command.changes?.(args) ?? false);
  }

  #break(error: NodeJS.ErrnoException): void {
    // Each further line fails as well, the one below among them.
    if (this.isBroken) return;
    this.isBroken = true;
    printText("stderr", `payhooks: The output cannot be written: ${error.code ?? error.message}.\n`);
    if (!this.#runsUntilStopped) process.exit(EXIT.failure);
    this.#stop.abort();
  }
}

/** Resolves when the signal is aborted. */
export function waitForAbort(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
