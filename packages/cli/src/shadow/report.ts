/**
 * The journal of a shadow, event by event. Each event is in one row, the gravest that it fits. A delivery without a certain
 * event is in a row of its own, by the beginning of its body's hash.
 */
import type { ShadowLine } from "@payhooks/core/shadow";

/** The rows of the report, in its order. */
export const ROWS = {
  both: {
    title: "verified by both, and handled once by the old receiver",
    advice: null,
  },
  pending: {
    title: "a PENDING that the old receiver has accepted",
    advice: null,
  },
  "refused-by-both": {
    title: "deliveries that both refuse",
    advice: null,
  },
  forged: {
    title: "not authentic for Payhooks, but accepted by the old receiver",
    advice:
      "The old receiver may act on forgeries. If these are genuine, Payhooks has the wrong key, or not the exact bytes: save one, and try payhooks verify.",
  },
  twice: {
    title: "handled more than once by the old receiver",
    advice: "Look into your books. Payhooks would have run each of them once.",
  },
  "refused-by-old": {
    title: "authentic, but refused by the old receiver",
    advice: "They wait in the inbox, and run after the switch.",
  },
  unanswered: {
    title: "authentic, and the old receiver gave no answer",
    advice: "They wait in the inbox, and run after the switch.",
  },
  open: {
    title: "accepted by the old receiver, which has not said that it handled them",
    advice:
      "They wait in the inbox, and run after the switch. Let the old queue run empty first. If your books have one all the same, erase it: payhooks events erase EVENT_ID --unfinished.",
  },
  copy: {
    title: "taken for a copy by the old receiver, but new to Payhooks",
    advice:
      "They are held, and do not run. If your books have the event, discard it. If not, the old receiver has lost it: replay it after the switch.",
  },
  "only-old": {
    title: "handled by the old receiver, and never delivered to Payhooks",
    advice:
      "That is usual for what it accepted before the shadow began: no copy of these runs after the switch. Any other is a delivery that Payhooks did not get, or a forgery.",
  },
  held: {
    title: "authentic, but held by Payhooks",
    advice: "They do not run before a person decides. The reason says why.",
  },
  "refused-by-payhooks": {
    title: "accepted by the old receiver, but refused by Payhooks for another reason than its signature",
    advice: "After the switch the service gets this answer. The code is in docs/reference/errors.md.",
  },
  "not-recorded": {
    title: "not recorded, because Payhooks could not take them at that time",
    advice: "Look at the inbox and at the load. After the switch the service sends such deliveries again.",
  },
  "not-marked": {
    title: "not marked: the inbox did not learn what the old receiver did with them",
    advice:
      "Do not switch yet. Payhooks tries again as long as its process runs, for 10,000 events at most. If the process has ended, or for those not tried again, call markHandled for each of them. Otherwise copies of them may run after the switch.",
  },
} as const;

export type Row = keyof typeof ROWS;

/** An event, or a delivery without one, in a row. */
export interface ReportEntry {
  readonly flow: string;
  readonly tenant: string | null;
  /** Null if the delivery has no event that is certain. */
  readonly id: string | null;
  readonly event: string | null;
  readonly status: string | null;
  readonly eventId: string | null;
  /** The beginning of the SHA-256 of a body. */
  readonly body: string | null;
  /** The reason for which it is held, the code of a refusal, or how often it was handled. */
  readonly why: string | null;
  /** The first time that the journal has it, in milliseconds since the epoch. */
  readonly at: number;
}

export interface Report {
  readonly from: number | null;
  readonly until: number | null;
  readonly deliveries: number;
  readonly rows: Readonly<Record<Row, readonly ReportEntry[]>>;
}

type DeliveryLine = Extract<ShadowLine, { type: "delivery" }>;
type EventNames = NonNullable<DeliveryLine["event"]>;

/** The lines of the journal about one event. */
interface SeenEvent {
  readonly names: EventNames;
  at: number;
  eventId: string | null;
  readonly deliveries: DeliveryLine[];
  handled: number;
  /** The last line about each mark says whether it was made. */
  readonly unmarked: Set<string>;
  /** One of them is not tried again. */
  isDropped: boolean;
}

export function reportOf(lines: readonly ShadowLine[]): Report {
  const inOrder = [...lines].sort((a, b) => a.at - b.at);
  const rows = Object.fromEntries(Object.keys(ROWS).map((row) => [row, [] as ReportEntry[]])) as Record<
    Row,
    ReportEntry[]
  >;
  const events = new Map<string, SeenEvent>();
  const bodies = new Map<string, DeliveryLine[]>();
  /** Bodies that Payhooks has recorded, perhaps not at the first delivery. */
  const recordedBodies = new Set(
    inOrder.flatMap((line) => (line.type === "delivery" && line.code === null ? [line.body] : [])),
  );
  let deliveries = 0;
  for (const line of inOrder) {
    if (line.type === "delivery") {
      // A challenge of a source, or an event without a handler, does not count as a difference.
      if (line.outcome === "answered" || line.outcome === "unwanted") continue;
      deliveries++;
    }
    if (line.type === "delivery" && (line.event === null || isHeld(line))) {
      const key = JSON.stringify([line.flow, line.eventId ?? line.body]);
      const bodyLines = bodies.get(key);
      if (bodyLines === undefined) bodies.set(key, [line]);
      else bodyLines.push(line);
      continue;
    }
    const { event } = line;
    if (event === null) continue;
    const key = JSON.stringify([event.flow, event.tenant, event.id, event.event, event.status]);
    let seenEvent = events.get(key);
    if (seenEvent === undefined) {
      seenEvent = {
        names: event,
        at: line.at,
        eventId: null,
        deliveries: [],
        handled: 0,
        unmarked: new Set(),
        isDropped: false,
      };
      events.set(key, seenEvent);
    }
    addLine(seenEvent, line);
  }
  for (const seenEvent of events.values()) rows[rowOf(seenEvent)].push(entryOf(seenEvent));
  for (const bodyLines of bodies.values()) {
    const [first] = bodyLines;
    if (first === undefined || (first.eventId === null && recordedBodies.has(first.body))) continue;
    rows[rowOfBody(bodyLines)].push(entryOfBody(bodyLines, first));
  }
  return { from: inOrder[0]?.at ?? null, until: inOrder.at(-1)?.at ?? null, deliveries, rows };
}

/** The rows that a person should look at, and that have something. */
export function differencesIn({ rows }: Report): readonly Row[] {
  return (Object.keys(ROWS) as Row[]).filter((row) => ROWS[row].advice !== null && rows[row].length > 0);
}

function addLine(seenEvent: SeenEvent, line: ShadowLine): void {
  switch (line.type) {
    case "delivery":
      seenEvent.deliveries.push(line);
      break;
    case "handled":
      // A report that could not be recorded may be made again.
      if (!seenEvent.unmarked.has("handled")) seenEvent.handled++;
      break;
    case "marked":
      if (line.state === null) seenEvent.unmarked.add(line.as);
      else seenEvent.unmarked.delete(line.as);
      seenEvent.isDropped = line.dropped === true || (seenEvent.isDropped && seenEvent.unmarked.size > 0);
  }
  if (line.type !== "handled") seenEvent.eventId ??= line.eventId;
}

function isHeld({ outcome, reason }: DeliveryLine): boolean {
  return outcome === "held" || (outcome === "duplicate" && reason !== null && reason !== "rejected");
}

function rowOf({ names, deliveries, handled, unmarked }: SeenEvent): Row {
  const recordedDeliveries = deliveries.filter(({ code }) => code === null);
  const hasOldAnswer = (answer: DeliveryLine["old"]): boolean => deliveries.some(({ old }) => old === answer);
  if (unmarked.size > 0) return "not-marked";
  if (handled > 1) return "twice";
  if (handled === 1) return recordedDeliveries.length === 0 ? "only-old" : "both";
  if (recordedDeliveries.length === 0)
    return deliveries.some(isForAWhile) ? "not-recorded" : "refused-by-payhooks";
  const [first] = recordedDeliveries;
  const isNew = first?.outcome === "new" || first?.outcome === "progress";
  if (isNew && first.old === "duplicate") return "copy";
  if (hasOldAnswer("accepted") || hasOldAnswer("duplicate"))
    return names.status === "PENDING" ? "pending" : "open";
  return hasOldAnswer(null) ? "unanswered" : "refused-by-old";
}

/** Payhooks could not take it, and would have asked the service to send it again. */
function isForAWhile({ status }: DeliveryLine): boolean {
  return status >= 500;
}

/** The row of deliveries with the same body, or with the same event that is held. */
function rowOfBody(bodyLines: readonly DeliveryLine[]): Row {
  if (bodyLines.some(isHeld)) return "held";
  const wasAccepted = bodyLines.some(({ old }) => old === "accepted" || old === "duplicate");
  const code = bodyLines.at(-1)?.code;
  if (bodyLines.every(isForAWhile)) return "not-recorded";
  if (!wasAccepted) return "refused-by-both";
  return code?.startsWith("ERR_SIGNATURE_") ? "forged" : "refused-by-payhooks";
}

function entryOf({ names, at, eventId, deliveries, handled, isDropped }: SeenEvent): ReportEntry {
  const code = deliveries.every((line) => line.code !== null) ? (deliveries.at(-1)?.code ?? null) : null;
  const why = isDropped ? "not tried again" : handled > 1 ? `${handled} times` : handled === 0 ? code : null;
  return { ...names, eventId, body: null, why, at };
}

function entryOfBody(same: readonly DeliveryLine[], first: DeliveryLine): ReportEntry {
  const { flow, event, eventId, body, at } = first;
  const last = same.at(-1) ?? first;
  const { tenant = null, id = null, event: name = null, status = null } = event ?? {};
  return { flow, tenant, id, event: name, status, eventId, body, why: last.reason ?? last.code, at };
}
