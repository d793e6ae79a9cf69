/**
 * Describes errors that the merchant's own functions throw: handlers, the observer, a factory. Their words may be shown,
 * but are limited in length.
 */

import { isError, propertyOf, stringOf } from "../protocol/foreign-value.ts";

const MAX_LINE_CHARS = 500;
const MAX_STACK_CHARS = 4_000;
const MAX_CAUSES = 3;

/** An error as one line. */
export function lineOfThrown(error: unknown): string {
  if (!isError(error)) return truncate(stringOf(error), MAX_LINE_CHARS);
  const [name = "Error", message = ""] = [propertyOf(error, "name"), propertyOf(error, "message")];
  return truncate(`${stringOf(name)}: ${stringOf(message)}`, MAX_LINE_CHARS);
}

/** The stack of an error and those of its causes; null if it has none. Further fields of the error are not shown. */
function stackOfThrown(error: unknown): string | null {
  const stacks: string[] = [];
  let current = error;
  for (let causes = 0; isError(current) && causes < MAX_CAUSES; causes++) {
    const stack = propertyOf(current, "stack");
    if (typeof stack === "string") stacks.push(stack);
    current = propertyOf(current, "cause");
  }
  return stacks.length === 0 ? null : truncate(stacks.join("\ncaused by "), MAX_STACK_CHARS);
}

/** Both, for a log line. The error itself is not passed on, because a logger would show all of its fields. */
export function factsOfThrown(error: unknown): { readonly error: string; readonly stack: string | null } {
  return { error: lineOfThrown(error), stack: stackOfThrown(error) };
}

function truncate(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text;
}
