import type { StoredEvent } from "@payhooks/core";
import { csvLine, EVENT_COLUMNS, eventRow } from "@payhooks/core/events";
import { printTableLine, printText } from "../command-line/printer.ts";
import type { Terminal } from "../command-line/terminal.ts";

export function printColumns(): void {
  printTableLine(csvLine(EVENT_COLUMNS));
}

/** Prints an event as one row. */
export function printRow(event: StoredEvent): void {
  printTableLine(csvLine(Object.values(eventRow(event))));
}

/** The terminal beside a table: messages about the whole list go to stderr. */
export function stderrTerminal(terminal: Terminal): Terminal {
  return { ...terminal, line: (text = "") => printText("stderr", `${text}\n`) };
}
