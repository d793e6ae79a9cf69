import type { EventFacts } from "../../notices/notice.ts";
import type { HeldReason } from "../../protocol/held-reasons.ts";
import type { SlotState, StoredDelivery } from "./event.ts";
import type { HandlerState } from "./handler-state.ts";
import type { HistoryEntry } from "./record.ts";

/** Another event of the same transaction, or of the same webhook. */
export interface OtherEvent
  extends Pick<StoredEvent, "eventId" | "event" | "status" | "state" | "reason" | "amount" | "acceptedAt"> {
  /** True if its handlers have run or will run. Then a replay runs a second event of the transaction. */
  readonly runsToo: boolean;
}

/** An event as the inbox has it, with its whole life. */
export interface StoredEvent extends EventFacts {
  /** `retrying` waits for another attempt. `done`, `stale` and `discarded` are ends: the event is finished. */
  readonly state: SlotState | "retrying";
  /** Why it is held; null otherwise. */
  readonly reason: HeldReason | null;
  /** The fault in words, while it is held. */
  readonly detail: string | null;
  /** The amount in its normal spelling. Null if the event has none, or if its reading is not certain. */
  readonly amount: string | null;
  /** Since when it is held; null if it is not. */
  readonly heldAt: number | null;
  /** The other events of the transaction, at most 10: first those that have run or will run, then the earliest. */
  readonly others: readonly OtherEvent[];
  /**
   * Changes with every fact that a decision about the event depends on: why it is held, how often it was replayed, its
   * amount, and which other events of its transaction run too. Null if the event is neither held nor kept. A decision
   * may name it.
   */
  readonly revision: string | null;
  /** When its first delivery was accepted (milliseconds since the epoch, on the store's clock). It never changes. */
  readonly acceptedAt: number;
  /** When the last delivery that was counted arrived: see `copies`. */
  readonly lastDeliveryAt: number;
  /** How many further deliveries of it arrived while it was unfinished or held. Deliveries within a second count as one. */
  readonly copies: number;
  readonly replays: number;
  /** The state of each handler. Empty once the event is finished. */
  readonly handlers: Readonly<Record<string, HandlerState>>;
  /**
   * The history, oldest first: attempts that failed, with their errors, and who replayed or discarded the event, and why. At most
   * 50 lines, or 8 shortened ones once the event has ended. Nothing is kept of an event that was done at its first attempt.
   */
  readonly history: readonly HistoryEntry[];
  /** The signed text, while the event is unfinished or held. Once it is finished: null, unless its flow keeps it (`keep`). */
  readonly delivery: StoredDelivery | null;
  /** When it was erased; null if it was not. Nothing personal is left of it. */
  readonly erasedAt: number | null;
}

/** The person who decides about a held entry, and the reason. Both are kept in the entry's history. */
export interface Decision {
  readonly by: string;
  readonly note: string;
  /**
   * The revision of the entry that the person has seen. If it is another one by now, the decision is refused with
   * `ERR_EVENT_CHANGED`. Default: any revision.
   */
  readonly revision?: string | undefined;
}

/** The person who brings attempts forward, and the reason. */
export type RetryDecision = Omit<Decision, "revision">;

/** How to run a held or finished event again. */
export interface ReplayDecision extends Decision {
  /**
   * The handlers to run, even if they have finished. Default: the handlers that have not finished; for a finished event, all
   * handlers that are registered now.
   */
  readonly handlers?: readonly string[] | undefined;
  /**
   * For an entry that never entered the table of deduplication (`ambiguous`, `malformed`, `unexpected`, `unrecognized`)
   * and was signed longer ago than `windowMs`: runs it, although the event may have run before and its record may have
   * expired. The same applies to an entry that arrived longer ago than its `effects` are kept. There is a `double-risk`
   * notice. Default false: such an entry stays held.
   */
  readonly evenIfExpired?: boolean | undefined;
  /**
   * With `handlers`: the effects of these handlers happen again, under a new `effectId`. Default false: a replayed
   * handler skips the effects that it has committed before.
   */
  readonly repeatEffects?: boolean | undefined;
}

/** The person who erases, and the events to erase. */
export interface EraseDecision {
  /** The person who erases. Only the `erased` notice has this name: the inbox does not keep it. */
  readonly by: string;
  /** Also erases events that wait or are held: they are discarded first, and never run. Default false. */
  readonly unfinished?: boolean | undefined;
}
