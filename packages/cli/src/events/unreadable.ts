import type { UnreadableEvents } from "@payhooks/core";
import { addUnreadable } from "@payhooks/core/events";
import { CliError, errorPartsOf } from "../command-line/errors.ts";

/** The events that a command has to leave out, because their records cannot be read. */
export class UnreadableCounter {
  #unreadable: UnreadableEvents | null = null;

  readonly add = (page: UnreadableEvents): void => {
    this.#unreadable = addUnreadable(this.#unreadable, page);
  };

  get hasAny(): boolean {
    return this.#unreadable !== null;
  }

  /** Throws if something was left out. */
  check(): void {
    checkAllRead(this.#unreadable);
  }
}

/** Throws if events were left out, so that nobody believes that the output is complete. */
export function checkAllRead(unreadable: UnreadableEvents | null): void {
  if (unreadable === null) return;
  const { count, error } = unreadable;
  const summary =
    count === null
      ? "Events may be missing here, because not everything in this inbox can be searched."
      : `${count} ${count === 1 ? "event was" : "events were"} left out, because not everything in this inbox can be read.`;
  const { code, message, fix } = errorPartsOf(error);
  throw new CliError(code, `${summary} ${message}`, fix);
}
