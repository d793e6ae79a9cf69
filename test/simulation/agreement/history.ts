/**
 * A history: calls of a store, one after the other, as two processes make them. It is data without times, versions or
 * records: those come of it when it is played, so that a part of it is a history too.
 */
import type { EventFilter } from "../../../packages/core/src/inbox/contract/event-query.ts";
import type { HeldReason } from "../../../packages/core/src/protocol/held-reasons.ts";

/** The process that makes a call. */
export type By = 0 | 1;

/** The change that a write makes to its record. If a record does not allow the change, it is written again as it is. */
export type Change =
  | {
      readonly kind: "accept";
      readonly status: string;
      readonly held: HeldReason | null;
      /** Accepted this long before the call. */
      readonly agoMs: number;
      readonly delayMs: number;
      /** It has been run by the same write, where it may be. */
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
  /** Due at a time that is further away than it was when it was written. */
  | { readonly kind: "wrong-clock"; readonly aheadMs: number }
  | { readonly kind: "same" };

/** The kind of texts in an event: `cut` is longer than a label, and `long` is 20 KB and more. */
export type TextKind = "plain" | "other" | "nul" | "half" | "quotes" | "cut" | "long";

/** The fault of a write, if it has one. */
export interface Fault {
  /**
   * Computed from an earlier version; from the last version, even if it has expired; from none; from a version that never
   * existed.
   */
  readonly expected?: "earlier" | "last" | "none" | "unknown";
  /** Computed this many milliseconds before (or, below 0, after) the store's time. */
  readonly lateMs?: number;
  /** Its labels are none: longer than 256 bytes, or with a NUL. A store may take it or refuse it. */
  readonly unfit?: "nul" | "long" | "huge";
}

export interface Item {
  readonly key: number;
  readonly change: Change;
  readonly fault: Fault;
}

/** A filter, its times in events: `since: 3` is the time at which the third event was accepted. */
export type FilterChoice = Omit<EventFilter, "since" | "until">;

export type Call =
  | { readonly kind: "pass"; readonly ms: number }
  | { readonly kind: "read"; readonly by: By; readonly keys: readonly number[] }
  | { readonly kind: "swap"; readonly by: By; readonly items: readonly Item[] }
  /** The writes of an earlier call, unchanged: of the last call if `ago` is 0. */
  | { readonly kind: "resend"; readonly by: By; readonly ago: number }
  | { readonly kind: "take"; readonly by: By; readonly limit: number; readonly hideMs: number }
  | {
      readonly kind: "list";
      readonly by: By;
      readonly filter: FilterChoice;
      /** From the acceptance of which event on, and until which; null: from the first, or to the last. */
      readonly since: number | null;
      readonly until: number | null;
      /** Behind which event; null: from the beginning. */
      readonly behind: number | null;
      readonly limit: number;
    }
  | { readonly kind: "counts"; readonly by: By }
  | { readonly kind: "prune"; readonly by: By }
  | { readonly kind: "canary"; readonly by: By }
  | { readonly kind: "now"; readonly by: By; readonly key: number }
  /** True if replicas have records at these versions or later; of some, a version that was replaced since. */
  | { readonly kind: "replicated"; readonly by: By; readonly keys: readonly number[] }
  /** The process ends, and another process opens the store. */
  | { readonly kind: "reopen"; readonly by: By };

export interface History {
  /** Clocks may be set back in it, and times be further away than they were: only for stores that distrust clocks. */
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
