import { UsageError } from "../command-line/errors.ts";
import type { ParsedArguments } from "../command-line/parsed-arguments.ts";

/** The handlers that a replay is for; undefined if they are not named. */
export function handlersIn(args: ParsedArguments): readonly string[] | undefined {
  return args
    .text("handlers")
    ?.split(",")
    .map((name) => name.trim())
    .filter(Boolean);
}

/** Running again what has finished needs the handlers named. */
export function checkAgain(args: ParsedArguments): void {
  if (args.flag("repeat-effects") && !args.flag("handlers"))
    throw new UsageError("--repeat-effects goes with --handlers.");
}

/** The error of a decision that needs a confirmation, if nobody can answer. */
export function nobodyToAsk(): UsageError {
  return new UsageError(
    "Nothing was decided, since nobody can be asked here.",
    "Look at the events with --dry-run, then give --yes.",
  );
}
