import type { UnreadableEvents } from "@payhooks/core";
import { addUnreadable } from "@payhooks/core/events";
import { CliError, errorPartsOf } from "../command-line/errors.ts";
import type { Terminal } from "../command-line/terminal.ts";

/** The events that a command has to leave out, because their records cannot be read. */
export class UnreadableCounter {
  #unreadable: UnreadableEvents | null = null;

  readonly add = (page: UnreadableEvents): void => {
    this.#unreadable = addUnreadable(this.#unreadable, page);
  };

  get hasAny(): boolean {
    return this.#unreadable !== null;
  }

  /** Says before a decision what it leaves out. */
  print(terminal: Terminal): void {
    printUnreadable(this.#unreadable, terminal);
  }

  /** Throws if something was left out. */
  check(): void {
    checkAllRead(this.#unreadable);
  }
}

/** Throws if events were left out, so that nobody believes that the output is complete. */
export function checkAllRead(unreadable: UnreadableEvents | null): void {
  if (unreadable === null) return;
  const { code, text, fix } = explanationOf(unreadable);
  throw new CliError(code, text, fix);
}

/** Says before a decision which events it leaves out, so that a person can find out about them first. */
export function printUnreadable(unreadable: UnreadableEvents | null, { line, paint }: Terminal): void {
  if (unreadable === null) return;
  const { text, fix } = explanationOf(unreadable);
  line(paint("yellow", text));
  if (fix !== "") line(fix);
}

function explanationOf({ count, error }: UnreadableEvents): {
  readonly code: string;
  readonly text: string;
  readonly fix: string;
} {
  const summary =
    count === null
      ? "Events may be missing here, because not everything in this inbox can be searched."
      : `${count} ${count === 1 ? "event is" : "events are"} left out, because not everything in this inbox can be read.`;
  const { code, message, fix } = errorPartsOf(error);
  return { code, text: `${summary} ${message}`, fix };
}
