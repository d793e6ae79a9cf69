import { UsageError } from "../command-line/errors.ts";
import type { ParsedArguments } from "../command-line/parsed-arguments.ts";

/** The handlers that a replay is for; undefined if they are not named. A variable of the shell that is not set names none. */
export function handlersIn(args: ParsedArguments): readonly string[] | undefined {
  const text = args.text("handlers");
  const names = text
    ?.split(",")
    .map((name) => name.trim())
    .filter(Boolean);
  if (names?.length === 0) {
    throw new UsageError("--handlers names no handler.", "For all handlers, leave it out.");
  }
  return names;
}

/** Running again what has finished needs the handlers named. */
export function checkRepeatEffects(args: ParsedArguments): void {
  if (args.flag("repeat-effects") && !args.flag("handlers"))
    throw new UsageError("--repeat-effects goes with --handlers.");
}

/** The error of a decision that needs a confirmation, if nobody can answer. */
export function cannotConfirmError(): UsageError {
  return new UsageError(
    "Nothing was decided, because nobody can be asked here.",
    "Look at the events with --dry-run, then give --yes.",
  );
}
