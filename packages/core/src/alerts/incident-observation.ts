import type { EventCounts } from "../inbox/contract/events.ts";
import type { Loss, Notice, StallKind } from "../notices/notice.ts";
import type { IncidentKind } from "./message.ts";

/** A fault, as one process sees it now. It counts for a while, so no process has to take it back. */
export interface IncidentObservation {
  /** The subject, the same in every process: incidents with the same key are one. */
  readonly incident: string;
  readonly kind: IncidentKind;
  readonly summary: string;
  /** How bad it is: a larger number is worse; 0 if there is nothing to count. */
  readonly level: number;
  /** True for a fault that happens once: no message says later that it is over. */
  readonly isOnce: boolean;
}

/** How long a repeated observation counts, so that it does not end while another process takes over. */
export const REPEATED_OBSERVATION_TTL_MS = 150_000;
/** Alerts of one kind come once in a quarter of an hour. */
const ALERT_TTL_MS = 20 * 60_000;

/** For how long an observation counts. */
export const OBSERVATION_TTL_MS: Readonly<Record<IncidentKind, number>> = {
  overdue: REPEATED_OBSERVATION_TTL_MS,
  held: REPEATED_OBSERVATION_TTL_MS,
  stalled: REPEATED_OBSERVATION_TTL_MS,
  "all-failing": ALERT_TTL_MS,
  probing: ALERT_TTL_MS,
  "held-full": ALERT_TTL_MS,
  refused: ALERT_TTL_MS,
  "keys-unreadable": ALERT_TTL_MS,
  "data-lost": 24 * 60 * 60_000,
  test: 0,
};

const STALL_TEXTS: Readonly<Record<StallKind, string>> = {
  start: "a process cannot start",
  accept: "events cannot be accepted",
  take: "events that are due cannot be begun",
  end: "the end of a run cannot be written",
};

const LOSS_TEXTS: Readonly<Record<Loss, string>> = {
  replaced: "The store does not have the data that it had: it was emptied, or replaced.",
  missing: "Records that were stored are gone.",
  "log-removed": "The write-ahead log of the SQLite file was removed or damaged.",
  evicting: "The store drops records when it is full.",
};

/** The fault that a notice reports; null for all other notices. A `stalled` counts until its `recovered`. */
export function observationIn(notice: Notice): IncidentObservation | null {
  switch (notice.type) {
    case "stalled":
      return observationOf(
        "stalled",
        "",
        `Nothing may get through: ${STALL_TEXTS[notice.during]} (${notice.error}).`,
      );
    case "data-lost":
      return { ...observationOf("data-lost", notice.why, LOSS_TEXTS[notice.why]), isOnce: true };
    case "keys-unreadable":
      return observationOf(
        "keys-unreadable",
        notice.option,
        `The keys of ${notice.option} cannot be read again (${notice.code}).`,
      );
    case "alert":
      return observationInAlert(notice);
    default:
      return null;
  }
}

function observationInAlert(alert: Extract<Notice, { readonly type: "alert" }>): IncidentObservation | null {
  const { kind, flow, code, failures, windowMs } = alert;
  // If no event can be stored, the notice `stalled` says why.
  if (kind === "refused" && code === "ERR_INBOX_UNAVAILABLE") return null;
  const within = `within ${Math.round(windowMs / 60_000)} min`;
  const summaries = {
    "all-failing": `${flow}: ${failures} deliveries ${within} failed with ${code}, and none was authentic.`,
    probing: `${flow}: ${failures} deliveries ${within} failed with ${code}, while others were authentic.`,
    "held-full": `${flow}: too many events are held, and further ones are refused.`,
    refused: `${flow}: ${failures} authentic deliveries ${within} were refused with ${code}.`,
  };
  return observationOf(kind, kind === "refused" ? `${flow}:${code}` : flow, summaries[kind]);
}

/** The faults that the counts of the inbox show. */
export function observationsInCounts(counts: EventCounts, overdueMs: number): readonly IncidentObservation[] {
  const { held, heldBy, oldestDueMs } = counts;
  const observations: IncidentObservation[] = [];
  if (oldestDueMs !== null && oldestDueMs > overdueMs) {
    const minutes = Math.floor(oldestDueMs / 60_000);
    observations.push(
      observationOf("overdue", "", `The oldest event that is due has waited for ${minutes} min.`),
    );
  }
  if (held > 0) {
    const reasons = Object.entries(heldBy).map(([reason, count]) => `${count} ${reason}`);
    const summary = `${held} ${held === 1 ? "event is" : "events are"} held for a person: ${reasons.join(", ")}.`;
    observations.push({ ...observationOf("held", "", summary), level: held });
  }
  return observations;
}

function observationOf(kind: IncidentKind, subject: string, summary: string): IncidentObservation {
  return { incident: subject === "" ? kind : `${kind}:${subject}`, kind, summary, level: 0, isOnce: false };
}
