import type { StoredEvent } from "../record/stored-event.ts";

/** One row of a table of events. Times are in UTC, in ISO 8601. A value that the event does not have is null. */
export interface EventRow {
  readonly eventId: string;
  readonly state: string;
  readonly reason: string | null;
  readonly flow: string;
  readonly tenant: string;
  readonly event: string | null;
  readonly status: string | null;
  readonly amount: string | null;
  readonly referenceId: string | null;
  readonly id: string | null;
  readonly acceptedAt: string;
  readonly heldAt: string | null;
  /** The largest number of attempts of one handler. */
  readonly attempts: number;
  readonly replays: number;
  readonly copies: number;
  /** The error of its last handler that failed, or why it is held. */
  readonly lastError: string | null;
}

type Columns = { readonly [Name in keyof EventRow]: (event: StoredEvent) => EventRow[Name] };

const COLUMNS: Columns = {
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

/** The names of the columns, in their order. */
export const EVENT_COLUMNS: readonly (keyof EventRow)[] = Object.keys(COLUMNS) as (keyof EventRow)[];

/** The row of an event, for an export: everything that a decision needs, without the signed text. */
export function eventRow(event: StoredEvent): EventRow {
  const cells = EVENT_COLUMNS.map((name) => [name, COLUMNS[name](event)] as const);
  return Object.fromEntries(cells) as unknown as EventRow;
}

/** A spreadsheet runs a text that begins with one of these as a formula. */
const FORMULA_PATTERN = /^[\s\p{Cc}]*[=+\-@]/u;

/**
 * One line of CSV (RFC 4180), without its line end. A text that a spreadsheet would run as a formula begins with an apostrophe.
 */
export function csvLine(cells: readonly (string | number | null)[]): string {
  return cells.map(csvCell).join(",");
}

function csvCell(value: string | number | null): string {
  const text = String(value ?? "");
  const safe = FORMULA_PATTERN.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) || safe !== safe.trim() ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}
