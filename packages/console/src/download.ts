import type { AnyReceiver, StoredEvent, UnreadableEvents } from "@payhooks/core";
import { csvLine, EVENT_COLUMNS, type EventRow, eachEvent, eventRow } from "@payhooks/core/events";
import { type ConsoleQuery, filterOf } from "./query.ts";
import { type Redactor, redactorOf } from "./redaction/redaction.ts";

/** A kind of file that a list can be downloaded as. */
export type DownloadKind = "csv" | "jsonl";

interface FileForm {
  readonly type: string;
  readonly head: string;
  readonly line: (row: EventRow) => string;
}

const FILE_FORMS: Readonly<Record<DownloadKind, FileForm>> = {
  csv: { type: "text/csv; charset=utf-8", head: `${csvLine(EVENT_COLUMNS)}\r\n`, line: csvOf },
  jsonl: { type: "application/x-ndjson; charset=utf-8", head: "", line: jsonOf },
};

export function isDownload(kind: string | undefined): kind is DownloadKind {
  return kind !== undefined && Object.hasOwn(FILE_FORMS, kind);
}

/**
 * All events of a list as a file, the oldest first, in the columns of `payhooks events --csv`. They are read page by
 * page, as fast as the browser takes them. If the inbox fails on the way, or has an event that cannot be read, the
 * download fails: it does not end as if it were whole.
 */
export async function download(
  receiver: AnyReceiver,
  query: ConsoleQuery,
  kind: DownloadKind,
  redact: readonly string[],
): Promise<Response> {
  const { type, head, line } = FILE_FORMS[kind];
  let unreadable: UnreadableEvents | null = null;
  const events = eachEvent(receiver.events, { ...filterOf(query), limit: PAGE_SIZE }, (unreadableEvents) => {
    unreadable ??= unreadableEvents;
  });
  // The first page is read before the answer begins, so that an inbox that does not answer is an error and not an empty file.
  let next = await events.next();
  checkAllRead(unreadable);
  const redactor = redactorOf(redact, receiver);
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(encoder.encode(head)),
    async pull(controller) {
      if (next.done === true) return controller.close();
      controller.enqueue(encoder.encode(line(rowOf(next.value, redactor))));
      next = await events.next();
      checkAllRead(unreadable);
    },
    cancel: async () => void (await events.return(undefined)),
  });
  const day = new Date().toISOString().slice(0, 10);
  return new Response(body, {
    headers: {
      "content-type": type,
      "content-disposition": `attachment; filename="payhooks-${query.state}-${day}.${kind}"`,
    },
  });
}

const PAGE_SIZE = 500;

function checkAllRead(unreadable: UnreadableEvents | null): void {
  if (unreadable !== null) throw unreadable.error;
}

/**
 * A row of which nothing is redacted. An error may contain values of redacted fields, so it is left out if there are
 * redacted fields.
 */
function rowOf(event: StoredEvent, redactor: Redactor): EventRow {
  const row = eventRow(event);
  const redaction = redactor.redact(event);
  const { lastError } = row;
  return {
    ...row,
    id: redaction.redactLabel("id", event.id),
    tenant: redaction.redactLabel("tenant", event.tenant),
    event: redaction.redactLabel("event", event.event),
    status: redaction.redactLabel("status", event.status),
    amount: redaction.redactLabel("amount", event.amount),
    referenceId: redaction.redactLabel("referenceId", event.referenceId),
    lastError: lastError === null ? null : redactor.withoutFields.redactText(lastError),
  };
}

function csvOf(row: EventRow): string {
  return `${csvLine(EVENT_COLUMNS.map((name) => row[name]))}\r\n`;
}

function jsonOf(row: EventRow): string {
  return `${JSON.stringify(row)}\n`;
}
