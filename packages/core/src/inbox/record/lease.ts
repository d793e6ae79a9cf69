import type { EventFacts } from "../../notices/notice.ts";
import type { GivenUp, HeldReason } from "../../protocol/held-reasons.ts";
import type { StoredDelivery } from "./event.ts";
import { referenceIdOf } from "./reference.ts";

/** How one handler stands with one event. */
export interface Step {
  /** Tries that count: not those that were asked for early and failed, nor those that were taken back unstarted. */
  readonly tries: number;
  /** `started` at the next begin means that the process died, or lost its lease, while it ran. */
  readonly state: "started" | "done" | "failed" | "given-up";
  /** Not to be tried before this time (store's clock); 0: at once. */
  readonly dueAt: number;
  /** How far away that was when it was written: a clock that was wrong then shows by it. */
  readonly dueInMs: number;
  /** The last error, as text. */
  readonly error: string | null;
  /** Why it was given up; null otherwise. */
  readonly reason: GivenUp | null;
}

/** Steps of the onHeld handlers begin with this; they start anew whenever the event is held anew. */
export const TELL_PREFIX = "held:";

/** A line in an event's life. */
export interface HistoryEntry {
  /** The store's clock, in milliseconds since the epoch. */
  readonly at: number;
  /**
   * `accepted`, `held: REASON`, `failed` or `given up: REASON` (a try), `lapsed` (its process died in a run, or was silent for
   * too long), `replay N`, or an end: `done`, `stale` or `discarded`.
   */
  readonly what: string;
  /** The handler of a try. */
  readonly handler?: string;
  /** Which try of this handler it was, from 1 on. */
  readonly attempt?: number;
  /** What it threw, in one line of at most 200 characters. */
  readonly error?: string;
  /** Who decided. */
  readonly by?: string;
  /** Why. */
  readonly note?: string;
}

/** What a run is given: the slot's content under a lease. */
export interface LeaseData {
  /** The record's key. */
  readonly key: string;
  /** The slot's key. */
  readonly slot: string;
  readonly eventId: string;
  /** Names the begin of this run; every write of the run counts only as long as the record has it. */
  readonly token: string;
  /** `run` the event, or `tell` the onHeld handlers about a held one. */
  readonly mode: "run" | "tell";
  readonly verdict: "run" | HeldReason;
  readonly reason: HeldReason | null;
  readonly detail: string | null;
  /** The id, name and status that it was recorded under. */
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly delivery: StoredDelivery;
  /** How the handlers stood before this run. */
  readonly steps: Readonly<Record<string, Step>>;
  /** A replay of these handlers only; null: whatever has not finished. */
  readonly only: readonly string[] | null;
  /** The replay said so: run it although a record of an earlier run may have expired. */
  readonly evenIfExpired: boolean;
  /** How often it was replayed. */
  readonly replays: number;
  /** The last replay is to have effects anew: with an `effectId` of its own. */
  readonly again: boolean;
  readonly previousStatus: string | null;
  readonly previousAmount: string | null;
  /** The store's clock at the begin. */
  readonly now: number;
  /** Steps are tried before their time too. Such a try does not count when it fails. */
  readonly force: boolean;
  /** The step whose start was written together with the begin; null when it has to be written by itself. */
  readonly started: string | null;
}

/** What notices say of the event that is run. */
export function factsOf({ eventId, id, name, status, verdict, delivery }: LeaseData): EventFacts {
  const { flow, tenant } = delivery;
  const referenceId = referenceIdOf(delivery, verdict);
  return { flow, tenant, eventId, id, event: name, status, referenceId };
}

/** How a run ended. */
export type Ending =
  | { readonly kind: "done" }
  /** At least one handler is to be tried again, in `delayMs`. */
  | { readonly kind: "retry"; readonly delayMs: number }
  /** `tell`: there are onHeld handlers to run about it. */
  | {
      readonly kind: "held";
      readonly reason: HeldReason;
      readonly detail: string | null;
      readonly tell: boolean;
    }
  /** The onHeld handlers are through with it; it stays held. */
  | { readonly kind: "told" }
  /** No handler was called: another process may have it at once. */
  | { readonly kind: "released" };

/** How one handler stands from now on. Written twice, it is the same as written once. */
export type StepChange =
  | { readonly name: string; readonly kind: "started" | "done"; readonly attempt: number }
  | {
      readonly name: string;
      readonly kind: "failed";
      readonly attempt: number;
      readonly delayMs: number;
      readonly error: string;
    }
  | {
      readonly name: string;
      readonly kind: "given-up";
      readonly attempt: number;
      readonly reason: GivenUp;
      readonly error: string;
    }
  /** As it was `before` (null: never tried): it was not called, or called early, which does not count. */
  | { readonly name: string; readonly kind: "undone"; readonly before: Step | null };
