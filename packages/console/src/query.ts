import {
  type AnyReceiver,
  type EventCounts,
  type EventQuery,
  type HeldReason,
  PayhooksError,
} from "@payhooks/core";
import { HELD_REASONS } from "@payhooks/core/events";

/** A state to list events of. */
export type EventState = Extract<keyof EventCounts, "held" | "retrying" | "waiting" | "running"> | "finished";
/** The flow of an event. */
export type FlowName = NonNullable<EventQuery["flow"]>;

/** The query of the page's address. Everything is optional. */
export interface ConsoleQuery {
  /** The value that cannot be right; null if there is none. Then no list is asked for: it would leave this value out. */
  readonly wrong: WrongValue | null;
  readonly state: EventState;
  readonly flow: FlowName | null;
  readonly reason: HeldReason | null;
  /** The event's name. */
  readonly name: string | null;
  readonly tenant: string | null;
  /** The ends of a range of amounts. They are the texts from the address. A list refuses a text that is not an amount. */
  readonly min: string | null;
  readonly max: string | null;
  /** The name of a handler that was tried. */
  readonly handler: string | null;
  /** A text to search for: a reference, the id of a transaction, the key of a webhook or an eventId. */
  readonly search: string | null;
  readonly cursor: string | null;
  /** How many hours the chart shows. */
  readonly hours: 1 | 24;
  /** The id of the event that is shown with its history. */
  readonly eventId: string | null;
}

interface WrongValue {
  readonly name: string;
  readonly value: string;
  /** The possible values, in words. */
  readonly fix: string;
}

export const STATES: readonly EventState[] = ["held", "retrying", "waiting", "running", "finished"];

const FLOW_NAME_PATTERN = /^[a-z][a-z0-9-]{0,31}$/;

/** The flows that a receiver can have events of. */
export function flowsOf({ sources }: Pick<AnyReceiver, "sources">): readonly FlowName[] {
  return ["payments", "connect", ...Object.keys(sources)];
}

function isState(text: string): text is EventState {
  return STATES.some((state) => state === text);
}

function isFlow(text: string): text is FlowName {
  return FLOW_NAME_PATTERN.test(text);
}

export function isReason(text: string): text is HeldReason {
  return Object.hasOwn(HELD_REASONS, text);
}

const EVENT_ID_PATTERN = /^[0-9a-f]{48}$/;

export function isEventId(text: string): boolean {
  return EVENT_ID_PATTERN.test(text);
}

export function readQuery(parameters: URLSearchParams): ConsoleQuery {
  const text = (name: string): string | null => {
    const value = parameters.get(name)?.trim().slice(0, 256) ?? "";
    return value === "" ? null : value;
  };
  let wrong: WrongValue | null = null;
  /** A value, if it is one that there can be. */
  const readValid = <Value extends string>(
    name: string,
    isValid: (candidate: string) => candidate is Value,
    fix: string,
  ): Value | null => {
    const value = text(name);
    if (value === null || isValid(value)) return value;
    wrong ??= { name, value, fix };
    return null;
  };
  const query = {
    state: readValid("state", isState, `It can be ${STATES.join(", ")}.`) ?? "held",
    flow: readValid("flow", isFlow, "It is payments, connect, or the name of a source."),
    reason: readValid("reason", isReason, `It can be ${Object.keys(HELD_REASONS).join(", ")}.`),
    name: text("name"),
    tenant: text("tenant"),
    min: text("min"),
    max: text("max"),
    handler: text("handler"),
    search: text("search"),
    cursor: text("cursor"),
    hours: parameters.get("hours") === "24" ? 24 : 1,
    eventId: readValid("event", (id): id is string => isEventId(id), "An event has an id of 48 hex digits."),
  } as const;
  return { ...query, wrong };
}

/** The address of the page for a query, relative to the console's own address. */
export function addressOf(query: ConsoleQuery, changes: Partial<ConsoleQuery> = {}): string {
  const { wrong: _, state, hours, eventId, ...texts } = { ...query, ...changes };
  const address = new URLSearchParams();
  if (eventId !== null) address.set("event", eventId);
  address.set("state", state);
  for (const [key, value] of Object.entries(texts)) {
    if (value !== null) address.set(key, value);
  }
  if (hours !== 1) address.set("hours", String(hours));
  return `?${address}`;
}

/** True if a list leaves out events of its state. */
export function isNarrowed({ flow, reason, name, tenant, min, max, handler }: ConsoleQuery): boolean {
  return [flow, reason, name, tenant, min, max, handler].some((value) => value !== null);
}

/**
 * The filter for the list of events.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID` if a value of the query cannot be right.
 */
export function filterOf(query: ConsoleQuery): EventQuery {
  const { wrong, state, flow, reason, name, tenant, min, max, handler } = query;
  if (wrong !== null) {
    throw new PayhooksError(
      "ERR_OPTION_INVALID",
      `The ${wrong.name} ${JSON.stringify(wrong.value.slice(0, 40))} is unknown.`,
      {
        fix: wrong.fix,
      },
    );
  }
  return {
    state,
    flow: flow ?? undefined,
    reason: state === "held" ? (reason ?? undefined) : undefined,
    event: name ?? undefined,
    tenant: tenant ?? undefined,
    amount: min === null && max === null ? undefined : { min: min ?? undefined, max: max ?? undefined },
    handler: handler ?? undefined,
  };
}
