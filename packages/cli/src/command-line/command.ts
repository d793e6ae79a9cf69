import type { CommandForm } from "./form.ts";
import type { Given } from "./given.ts";
import type { Terminal } from "./terminal.ts";

/** One command of `payhooks`. */
export interface Command extends CommandForm {
  /** True if the call changes something. Then it goes on to its end, even if nobody reads its output any more. */
  changes?(given: Given): boolean;
  /** Resolves with the exit code. */
  run(given: Given, terminal: Terminal): Promise<number>;
}
