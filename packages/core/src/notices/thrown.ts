/**
 * Describes what the merchant's own functions throw: handlers, the observer, a factory. Their words may be shown, but are
 * limited in length.
 */

const MAX_LINE = 500;
const MAX_STACK = 4_000;
const MAX_CAUSES = 3;

/** An error as one line. */
export function lineOfThrown(error: unknown): string {
  return bounded(error instanceof Error ? `${error.name}: ${error.message}` : textOf(error), MAX_LINE);
}

/** Objects without a prototype, such as events, have no text. */
function textOf(thrown: unknown): string {
  try {
    return String(thrown);
  } catch {
    return "a value that has no text";
  }
}

/** The stack of an error and those of its causes; null if it has none. Further fields of the error are not shown. */
function stackOfThrown(error: unknown): string | null {
  const stacks: string[] = [];
  for (let one = error; one instanceof Error && stacks.length < MAX_CAUSES; one = one.cause) {
    if (typeof one.stack === "string") stacks.push(one.stack);
  }
  return stacks.length === 0 ? null : bounded(stacks.join("\ncaused by "), MAX_STACK);
}

/** Both, for a log line. The error itself is not passed on, since a logger would show all of its fields. */
export function factsOfThrown(error: unknown): { readonly error: string; readonly stack: string | null } {
  return { error: lineOfThrown(error), stack: stackOfThrown(error) };
}

function bounded(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text;
}
