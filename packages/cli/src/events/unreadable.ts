import type { UnreadableEvents } from "@payhooks/core";
import { CliError, withoutFix } from "../command-line/errors.ts";

/** The events that a command has to leave out, because their records cannot be read. */
export class UnreadableCounter {
  #found: UnreadableEvents | null = null;

  readonly add = ({ count, error }: UnreadableEvents): void => {
    const before = this.#found;
    if (before === null) this.#found = { count, error };
    else
      this.#found = {
        count: before.count === null || count === null ? null : before.count + count,
        error: before.error,
      };
  };

  get isAny(): boolean {
    return this.#found !== null;
  }

  /** Throws if something was left out. */
  check(): void {
    checkRead(this.#found);
  }
}

/** Throws if events were left out, so that nobody believes that the output is complete. */
export function checkRead(unreadable: UnreadableEvents | null): void {
  if (unreadable === null) return;
  const { count, error } = unreadable;
  const what =
    count === null
      ? "Events may be missing here, because not everything in this inbox can be searched."
      : `${count} ${count === 1 ? "event was" : "events were"} left out, because not everything in this inbox can be read.`;
  const { code, message, fix } = withoutFix(error);
  throw new CliError(code, `${what} ${message}`, fix);
}
