/** What the merchant's own functions throw: handlers, the observer, a factory. Their words are his, and kept in bounds. */

const MAX_LINE = 500;
const MAX_STACK = 4_000;
const MAX_CAUSES = 3;

/** An error as one line. */
export function lineOfThrown(error: unknown): string {
  return bounded(error instanceof Error ? `${error.name}: ${error.message}` : String(error), MAX_LINE);
}

/** The stack of an error, with those of its causes; null for what has none. Further fields of it are not shown. */
function stackOfThrown(error: unknown): string | null {
  const stacks: string[] = [];
  for (let one = error; one instanceof Error && stacks.length < MAX_CAUSES; one = one.cause) {
    if (typeof one.stack === "string") stacks.push(one.stack);
  }
  return stacks.length === 0 ? null : bounded(stacks.join("\ncaused by "), MAX_STACK);
}

/** Both, for a log line: not the error itself, of which a logger would show every field. */
export function factsOfThrown(error: unknown): { readonly error: string; readonly stack: string | null } {
  return { error: lineOfThrown(error), stack: stackOfThrown(error) };
}

function bounded(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text;
}
