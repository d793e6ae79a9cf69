import type { CommandForm } from "./form.ts";
import type { ParsedArguments } from "./parsed-arguments.ts";
import type { Terminal } from "./terminal.ts";

/** One command of `payhooks`. */
export interface Command extends CommandForm {
  /** True if the call changes something. Then it runs to its end, even if its output is no longer read. */
  changes?(args: ParsedArguments): boolean;
  /**
   * True if it runs until somebody stops it. Then it keeps running even if its output is no longer read, and ends in
   * good order when `stop` is aborted.
   */
  readonly runsUntilStopped?: boolean;
  /**
   * Resolves with the exit code.
   *
   * @param stop is aborted if the output cannot be written.
   */
  run(args: ParsedArguments, terminal: Terminal, stop: AbortSignal): Promise<number>;
}
