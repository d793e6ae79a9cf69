import { ON_HELD_PREFIX } from "../inbox/record/handler-state.ts";
import type { RunInput } from "../inbox/record/run-input.ts";
import type { GiveUpReason } from "../protocol/held-reasons.ts";

/** Handlers of an event that this process does not call. */
export interface MissingHandlers {
  /** The names of handlers that have not finished, and that another process has tried or registered, or a replay names. */
  readonly unfinished: readonly string[];
  /** Why one of them was given up; null if none was given up. */
  readonly givenUp: { readonly reason: GiveUpReason; readonly error: string } | null;
}

/**
 * Finds handlers that this process lacks, or that do not handle the event's status here. They were removed or renamed while the
 * event waited, or they are handlers of another process. `registered` are all handlers of the event's name here. `called` are the
 * handlers that this process calls for the event.
 */
export function findMissingHandlers(
  {
    handlerStates,
    untriedHandlers,
    onlyHandlers,
  }: Pick<RunInput, "handlerStates" | "untriedHandlers" | "onlyHandlers">,
  registeredNames: ReadonlySet<string>,
  calledNames: ReadonlySet<string>,
): MissingHandlers {
  const unfinished = new Set((onlyHandlers ?? []).filter((name) => !registeredNames.has(name)));
  for (const name of untriedHandlers) if (!calledNames.has(name) && isHandler(name)) unfinished.add(name);
  let givenUp: MissingHandlers["givenUp"] = null;
  for (const [name, { state, reason, error }] of Object.entries(handlerStates)) {
    if (calledNames.has(name) || !isHandler(name)) continue;
    if (state === "given-up") givenUp ??= { reason: reason ?? "exhausted", error: error ?? "" };
    else if (state !== "done") unfinished.add(name);
  }
  return { unfinished: [...unfinished], givenUp };
}

function isHandler(name: string): boolean {
  return !name.startsWith(ON_HELD_PREFIX);
}

/** The handlers that an entry still needs before its onHeld handlers are done, except those that this process calls. */
export function findMissingOnHeld(
  { handlerStates, untriedHandlers }: Pick<RunInput, "handlerStates" | "untriedHandlers">,
  calledNames: readonly string[],
): readonly string[] {
  const isFinished = (name: string): boolean =>
    handlerStates[name]?.state === "done" || handlerStates[name]?.state === "given-up";
  const knownNames = new Set([...Object.keys(handlerStates), ...untriedHandlers]);
  return [...knownNames].filter(
    (name) => name.startsWith(ON_HELD_PREFIX) && !calledNames.includes(name) && !isFinished(name),
  );
}
