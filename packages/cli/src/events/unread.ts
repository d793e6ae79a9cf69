import type { UnreadEvents } from "@payhooks/core";
import { CliError, withoutFix } from "../command-line/errors.ts";

/** The events that a command has to leave out, because their records cannot be read. */
export class Unread {
  #found: UnreadEvents | null = null;

  readonly add = ({ count, error }: UnreadEvents): void => {
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
export function checkRead(unread: UnreadEvents | null): void {
  if (unread === null) return;
  const { count, error } = unread;
  const what =
    count === null
      ? "Events may be missing here, because not everything in this inbox can be searched."
      : `${count} ${count === 1 ? "event was" : "events were"} left out, because not everything in this inbox can be read.`;
  const { code, message, fix } = withoutFix(error);
  throw new CliError(code, `${what} ${message}`, fix);
}
