/**
 * A history: the calls that two processes make of a store, one after the other. It contains no times, versions or records.
 * These are computed when it is played, so a part of a history is a history too.
 */
import type { EventFilter } from "../../../packages/core/src/inbox/contract/event-query.ts";
import type { HeldReason } from "../../../packages/core/src/protocol/held-reasons.ts";

/** The process that makes a call. */
export type ProcessNumber = 0 | 1;

/** The change that a write makes to its record. If a record does not allow the change, it is written again as it is. */
export type Change =
  | {
      readonly kind: "accept";
      readonly status: string;
      readonly held: HeldReason | null;
      /** Accepted this long before the call. */
      readonly agoMs: number;
      readonly delayMs: number;
      /** The same write also runs the event, if it may run. */
      readonly ended: boolean;
      readonly retentionMs: number;
      /** Labels, body and headers are of this kind. */
      readonly text: TextKind;
    }
  | { readonly kind: "begin"; readonly leaseMs: number }
  | {
      readonly kind: "end";
      readonly how: "done" | "held" | "handed-back" | "retry";
      readonly delayMs: number;
    }
  | { readonly kind: "decide"; readonly decision: "replay" | "discard" }
  /** A record without events. */
  | { readonly kind: "claim"; readonly lifetimeMs: number }
  /** The record gets a due time that is further away than when it was written. */
  | { readonly kind: "wrong-clock"; readonly aheadMs: number }
  | { readonly kind: "same" };

/** The kind of texts in an event: `cut` is longer than a label, and `long` is 20 KB and more. */
export type TextKind = "plain" | "other" | "nul" | "half" | "quotes" | "cut" | "long";

/** The fault of a write, if it has one. */
export interface Fault {
  /**
   * The version from which the write was computed: an earlier one; the last one, even if it has expired; none; or one that
   * never existed.
   */
  readonly expected?: "earlier" | "last" | "none" | "unknown";
  /** Computed this many milliseconds before (or, below 0, after) the store's time. */
  readonly lateMs?: number;
  /** Its labels are invalid: longer than 256 bytes, or with a NUL. A store may take or refuse the write. */
  readonly unfit?: "nul" | "long" | "huge";
}

export interface Item {
  readonly key: number;
  readonly change: Change;
  readonly fault: Fault;
}

/** A filter without times. The times of a list are given as events: `since: 3` is the time when event 3 was accepted. */
export type FilterChoice = Omit<EventFilter, "since" | "until">;

export type Call =
  | { readonly kind: "pass"; readonly ms: number }
  | { readonly kind: "read"; readonly by: ProcessNumber; readonly keys: readonly number[] }
  | { readonly kind: "swap"; readonly by: ProcessNumber; readonly items: readonly Item[] }
  /** Sends the writes of an earlier call again: those of the last call if `ago` is 0. */
  | { readonly kind: "resend"; readonly by: ProcessNumber; readonly ago: number }
  | { readonly kind: "take"; readonly by: ProcessNumber; readonly limit: number; readonly hideMs: number }
  | {
      readonly kind: "list";
      readonly by: ProcessNumber;
      readonly filter: FilterChoice;
      /** The events at whose acceptance the list begins and ends; null for no limit. */
      readonly since: number | null;
      readonly until: number | null;
      /** The event after which the list continues; null for its beginning. */
      readonly after: number | null;
      readonly limit: number;
    }
  | { readonly kind: "counts"; readonly by: ProcessNumber }
  | { readonly kind: "prune"; readonly by: ProcessNumber }
  | { readonly kind: "canary"; readonly by: ProcessNumber }
  | { readonly kind: "now"; readonly by: ProcessNumber; readonly key: number }
  /** Asks whether replicas have these records. For some, it asks for a version that was replaced since. */
  | { readonly kind: "replicated"; readonly by: ProcessNumber; readonly keys: readonly number[] }
  /** The process ends, and another process opens the store. */
  | { readonly kind: "reopen"; readonly by: ProcessNumber };

export interface History {
  /** Clocks are set back, and due times are wrong. Only stores that distrust clocks play such a history. */
  readonly wrongClocks: boolean;
  readonly calls: readonly Call[];
}

/** One line for each call. */
export function describeHistory({ calls }: History): string {
  return calls.map((call, at) => `${String(at + 1).padStart(3)}  ${describeCall(call)}`).join("\n");
}

function describeCall(call: Call): string {
  if (call.kind === "pass") return `${call.ms} ms pass`;
  const { kind, by, ...rest } = call;
  const who = `process ${by === 0 ? "A" : "B"}: ${kind}`;
  if (call.kind !== "swap") return `${who} ${JSON.stringify(rest)}`;
  return [who, ...call.items.map(describeItem)].join("\n       ");
}

function describeItem({ key, change, fault }: Item): string {
  const { kind, ...rest } = change;
  return `record ${key}: ${kind} ${JSON.stringify(rest)}${Object.keys(fault).length === 0 ? "" : `, with ${JSON.stringify(fault)}`}`;
}
