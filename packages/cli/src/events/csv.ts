import type { StoredEvent } from "@payhooks/core";
import { printText } from "../command-line/printer.ts";
import type { Terminal } from "../command-line/terminal.ts";
import { timeOf } from "./event.ts";

/** The columns of a list as CSV, with what each says of an event. */
const COLUMNS: Readonly<Record<string, (event: StoredEvent) => string | number | null>> = {
  eventId: ({ eventId }) => eventId,
  state: ({ state }) => state,
  reason: ({ reason }) => reason,
  flow: ({ flow }) => flow,
  tenant: ({ tenant }) => tenant,
  event: ({ event }) => event,
  status: ({ status }) => status,
  amount: ({ amount }) => amount,
  referenceId: ({ referenceId }) => referenceId,
  id: ({ id }) => id,
  acceptedAt: ({ acceptedAt }) => timeOf(acceptedAt),
  heldAt: ({ heldAt }) => (heldAt === null ? null : timeOf(heldAt)),
  attempts: ({ handlers }) =>
    Object.values(handlers).reduce((most, { attempts }) => Math.max(most, attempts), 0),
  replays: ({ replays }) => replays,
  copies: ({ copies }) => copies,
  lastError: ({ handlers, detail }) =>
    Object.values(handlers).findLast(({ error }) => error !== null)?.error ?? detail,
};

/** A spreadsheet takes a text that begins so for a formula, and runs it. */
const FORMULA = /^[\s\p{Cc}]*[=+\-@]/u;

/** One cell. What would be a formula begins with an apostrophe, so that it is a text. */
function cellOf(value: string | number | null): string {
  const text = String(value ?? "");
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) || safe !== safe.trim() ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Prints the names of the columns. */
export function printColumns(): void {
  printText("stdout", `${Object.keys(COLUMNS).join(",")}\n`);
}

/** Prints an event as one row. */
export function printRow(event: StoredEvent): void {
  const cells = Object.values(COLUMNS).map((column) => cellOf(column(event)));
  printText("stdout", `${cells.join(",")}\n`);
}

/** The terminal beside a table: what is said about the whole list goes to stderr. */
export function besideTable(terminal: Terminal): Terminal {
  return { ...terminal, line: (text = "") => printText("stderr", `${text}\n`) };
}
