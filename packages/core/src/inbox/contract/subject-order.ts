import type { StoredEvent } from "../record/stored-event.ts";

/** An event of a subject, in its order. */
export interface SubjectEvent
  extends Pick<StoredEvent, "eventId" | "event" | "status" | "amount" | "state" | "reason" | "acceptedAt"> {
  /** Its signed time, in milliseconds since the epoch. The events of a subject are ordered by it. */
  readonly signedAt: number;
  /** True for the latest event that has begun to run. No earlier event begins any more. */
  readonly isLatest: boolean;
}

/** The events of one subject (docs/concepts/order.md). */
export interface SubjectOrder {
  /** In the order of their signed times: the event that was asked about, and at most 20 others, the latest ones. */
  readonly events: readonly SubjectEvent[];
  /** False if there may be more: there are more than 20 others, or the inbox keeps no list of finished events. */
  readonly complete: boolean;
}
