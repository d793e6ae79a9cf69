/** A decision about an event that is held, that waits for another attempt, or that has ended and is to run again. */
export type DecisionKind = "replay" | "discard" | "retry";

/** An event that a preview has shown: what a decision about it has to name. */
export interface DecidableEvent {
  readonly eventId: string;
  readonly reason: string;
  /** Empty for an event that waits for another attempt. */
  readonly revision: string;
  /** Of an event that has ended: the handlers that this process has for it now. */
  readonly handlers?: readonly string[] | undefined;
}

/** The events that a decision would be about. */
export interface Preview {
  /** The events, by reason, with the events that they contradict and the handlers that would run. */
  readonly html: string;
  /** In the order in which the decisions are to be made. */
  readonly events: readonly DecidableEvent[];
  /** How many of the events that were asked for are no longer in a state for this decision. */
  readonly gone: number;
  /** True if more events match than one decision can be about. */
  readonly more: boolean;
}

/** The states of replayed events, by their ids. */
export interface Outcomes {
  readonly states: Readonly<Record<string, string>>;
}

/** The answer to what the page's script has sent. `message` says why it was refused. */
export interface ScriptAnswer extends Partial<Preview>, Partial<Outcomes> {
  readonly ok: boolean;
  /** The code of the error, such as `ERR_OPTION_INVALID`. */
  readonly code?: string;
  readonly message?: string;
}
