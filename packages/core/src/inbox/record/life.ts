import type { FlowName } from "../../protocol/events.ts";
import type { HeldReason } from "../../protocol/held-reasons.ts";
import type { SlotState, StoredDelivery } from "./event.ts";
import type { HistoryEntry, Step } from "./lease.ts";

/** One event's whole life. */
export interface Life {
  readonly eventId: string;
  readonly flow: FlowName;
  readonly tenant: string;
  readonly id: string;
  readonly event: string;
  readonly status: string;
  readonly state: SlotState;
  readonly reason: HeldReason | null;
  readonly detail: string | null;
  /** The merchant's reference of a payment; null where there is none, where the reading is not certain, and where the inbox no longer knows it. */
  readonly referenceId: string | null;
  /** When it was accepted: its first delivery (milliseconds since the epoch, the store's clock). */
  readonly acceptedAt: number;
  /** When its last delivery came that was counted: see `copies`. */
  readonly lastDeliveryAt: number;
  /** Further deliveries of it, while it was unfinished or held. Those that come within a second of one another are one. */
  readonly copies: number;
  readonly replays: number;
  /** How each handler stands. Empty once the event is done. */
  readonly steps: Readonly<Record<string, Step>>;
  /**
   * What has happened, the oldest first: tries that failed, with their errors, and who replayed or discarded it, and why. At
   * most 50 lines, and 8 shortened ones once the event has ended. Of one that was done at its first try, nothing is kept.
   */
  readonly history: readonly HistoryEntry[];
  /** What arrived, while the event is unfinished or held; null once it is done. */
  readonly delivery: StoredDelivery | null;
}

/** An entry of the held list: an event's life with what arrived. */
export interface Held extends Life {
  readonly state: "held";
  readonly reason: HeldReason;
  readonly heldAt: number;
  readonly delivery: StoredDelivery;
}

/** Who decides about a held entry, and why. Both are kept in its history. */
export interface Decision {
  readonly by: string;
  readonly note: string;
}

/** How to replay a held entry. */
export interface ReplayDecision extends Decision {
  /** The handlers to run, finished ones too; default: those that have not finished. */
  readonly handlers?: readonly string[] | undefined;
  /**
   * For an entry that never met the table of deduplication (`ambiguous`, `malformed`, `unexpected`, `unrecognized`) and
   * was signed longer ago than `windowMs`: run it although the event may have run before and its record have expired.
   * There is a `double-risk` notice. Default false: such an entry stays held. The same for one that arrived longer ago than
   * its `effects` are kept.
   */
  readonly evenIfExpired?: boolean | undefined;
  /**
   * With `handlers`: their effects happen anew, under a new `effectId`. Default false: a handler that is replayed finds
   * what it has committed, and leaves it out.
   */
  readonly again?: boolean | undefined;
}
