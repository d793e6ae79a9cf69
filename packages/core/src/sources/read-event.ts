import { labelOf } from "../inbox/record/label.ts";
import { parseTimestamp } from "../protocol/timestamp.ts";
import type { SourceDefinition, SourceDelivery } from "./source.ts";
import { UnusableDelivery } from "./source-delivery.ts";

/** The checked result of `read`. */
export interface CheckedEvent {
  readonly name: string;
  readonly id: string;
  readonly data: unknown;
  readonly occurredAt: Date | null;
  readonly status: string;
  /** The stage of the status; null if it is in none. */
  readonly stage: number | null;
  readonly reference: string | null;
  /** The text by which the event is found. */
  readonly searchReference: string | null;
  readonly tenant: string | null;
  readonly fixedFacts: Readonly<Record<string, string>>;
  readonly subject: string | null;
}

const MAX_NAME_CHARS = 256;
const MAX_ID_CHARS = 1_024;

/** Asks `read`, and checks what it says. Throws `UnusableDelivery`, or what `read` throws. */
export function readEvent({ read, stageOf }: SourceDefinition, delivered: SourceDelivery): CheckedEvent {
  const result: unknown = read(delivered);
  if (typeof result !== "object" || result === null) throw new UnusableDelivery("read returned no event");
  if (typeof (result as { then?: unknown }).then === "function") {
    throw new UnusableDelivery("read returned a promise, but it has to be synchronous");
  }
  const event = result as Readonly<Record<string, unknown>>;
  const name = textIn(event, "name", MAX_NAME_CHARS);
  if (name === null || name === "*") throw new UnusableDelivery("read returned no name");
  const hasStages = stageOf !== null;
  const status = textIn(event, "status", MAX_NAME_CHARS);
  if (hasStages && status === null)
    throw new UnusableDelivery("read returned no status, but the source has stages");
  if (!hasStages && status !== null)
    throw new UnusableDelivery("read returned a status, but the source has no stages");
  const reference = textIn(event, "reference", MAX_ID_CHARS);
  const unsignedId = textIn(event, "unsignedId", MAX_ID_CHARS);
  const { fixedFacts = { event: name } } = event;
  if (typeof fixedFacts !== "object" || fixedFacts === null || Object.values(fixedFacts).some(isNotText)) {
    throw new UnusableDelivery("read returned fixedFacts that are not all texts");
  }
  const subject = textIn(event, "subject", MAX_ID_CHARS);
  const searchText = reference ?? unsignedId ?? subject;
  const occurredAt = timeIn(event.occurredAt);
  if (subject !== null && occurredAt === null)
    throw new UnusableDelivery("read returned a subject, but no occurredAt by which its events are ordered");
  return {
    name,
    id: textIn(event, "id", MAX_ID_CHARS) ?? delivered.digest,
    data: event.data,
    occurredAt,
    status: status ?? "",
    stage: stageOf === null ? null : (stageOf.get(status ?? "") ?? null),
    reference,
    searchReference: searchText === null ? null : labelOf(searchText),
    tenant: textIn(event, "tenant", MAX_NAME_CHARS),
    fixedFacts: fixedFacts as Readonly<Record<string, string>>,
    subject,
  };
}

const isNotText = (value: unknown): boolean => typeof value !== "string";

/** A text that is not empty; null if there is none. */
function textIn(event: Readonly<Record<string, unknown>>, member: string, max: number): string | null {
  const value = event[member];
  if (value === undefined || value === null) return null;
  if (typeof value !== "string" || value === "")
    throw new UnusableDelivery(`read returned a ${member} that is not text`);
  if (value.length > max)
    throw new UnusableDelivery(`read returned a ${member} of more than ${max} characters`);
  return value;
}

function timeIn(value: unknown): Date | null {
  if (value === undefined || value === null) return null;
  const time =
    value instanceof Date
      ? value.getTime()
      : typeof value === "number"
        ? value
        : parseTimestamp(value as string);
  if (time === null || !Number.isFinite(new Date(time).getTime()))
    throw new UnusableDelivery("read returned an occurredAt that is not a time");
  return new Date(time);
}
