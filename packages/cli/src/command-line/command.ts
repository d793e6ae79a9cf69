import type { CommandForm } from "./form.ts";
import type { Given } from "./given.ts";
import type { Terminal } from "./terminal.ts";

/** One command of `payhooks`. */
export interface Command extends CommandForm {
  /** Resolves with the exit code. */
  run(given: Given, terminal: Terminal): Promise<number>;
}
