import { checkChoice, checkNames } from "../protocol/check-names.ts";
import { checkLimit, checkTime } from "../protocol/check-number.ts";
import { PayhooksError } from "../protocol/errors.ts";
import {
  type AnyEvent,
  type EventName,
  eventNamesOf,
  FLOWS,
  type FlowName,
  flowOfEvent,
  type SourceEvent,
  STATUS_RANK,
} from "../protocol/events.ts";
import { describeValue } from "../protocol/foreign-value.ts";
import { isHandlerName } from "../protocol/handler-name.ts";
import { CallLimit } from "./call-limit.ts";
import type { Handler, HandlerOptions, HeldEvent } from "./handler.ts";

/** A registered handler, with its options filled in. */
export interface HandlerSettings {
  readonly name: string;
  readonly timeoutMs: number;
  readonly maxAttempts: number;
  /** Null: the default backoff. */
  readonly backoffMs: ((attempt: number) => number) | null;
  readonly onCrash: "rerun" | "hold";
  readonly onTimeout: "wait" | "rerun";
  /** The handler's own limit of calls; null if it has none. */
  readonly callLimit: CallLimit | null;
}

/** An event that a handler can be called with. */
export type HandledEvent = AnyEvent | SourceEvent;

/** A handler of events. */
export interface RegisteredHandler extends HandlerSettings {
  /** The statuses that the handler is for: one empty text in the connect flow, and null for a source: all statuses. */
  readonly statuses: readonly string[] | null;
  /** The function for this event, or null if its status is not wanted. */
  readonly pick: (event: HandledEvent) => Handler<never> | null;
}

/** A handler of held entries. */
export interface RegisteredHeldHandler extends HandlerSettings {
  readonly handle: Handler<HeldEvent>;
}

const STATUSES: ReadonlySet<string> = new Set(Object.keys(STATUS_RANK));
/** Webhooks of the connect flow have no status. */
const ANY_STATUS: ReadonlySet<string> = new Set([""]);
const NO_HANDLERS: readonly RegisteredHandler[] = [];

/** `connected_account.approved` → `connectedAccountApproved`. The first handler of an event has this name. */
function defaultHandlerName(event: string): string {
  if (event === EVERY_EVENT) return "every";
  return event.toLowerCase().replace(/[^a-z0-9]+([a-z0-9]?)/g, (_, letter: string) => letter.toUpperCase());
}

/** Stands for every name of a source. */
const EVERY_EVENT = "*";

/** The key under which an event's handlers are kept. The service's own names are the same in both of its flows. */
function registrationKeyOf(flow: FlowName, event: string): string {
  return Object.hasOwn(FLOWS, flow) ? event : `${flow} ${event}`;
}

/** All handlers of a receiver. Registration closes at the start, or at the first delivery. */
export class Registry {
  readonly #handlers = new Map<string, RegisteredHandler[]>();
  readonly #heldHandlers: RegisteredHeldHandler[] = [];
  readonly #ignoredEvents = new Set<string>();
  #isClosed = false;

  /** Payments: a function is for SUCCESS only. An object has a function for each wanted status. */
  add(event: EventName, handlers: unknown, options: HandlerOptions): void {
    const byStatus = flowOfEvent(event) === "payments";
    const functions = typeof handlers === "function" ? { [byStatus ? "SUCCESS" : ""]: handlers } : handlers;
    const handlerByStatus = checkHandlers(event, functions, byStatus ? STATUSES : ANY_STATUS);
    if (this.#ignoredEvents.has(event)) throw handledAndIgnoredError(event);
    const list = this.#handlers.get(event) ?? [];
    list.push({
      ...this.#check(list, event, defaultHandlerName(event), options),
      statuses: [...handlerByStatus.keys()],
      pick: (handledEvent) =>
        handlerByStatus.get("status" in handledEvent ? handledEvent.status : "") ?? null,
    });
    this.#handlers.set(event, list);
  }

  /** A handler of one name of a source, or of every name. */
  addOfSource(source: FlowName, event: string, handle: unknown, options: HandlerOptions): void {
    const eventKey = registrationKeyOf(source, event);
    checkHandler(eventKey, handle);
    if (this.#ignoredEvents.has(eventKey)) throw handledAndIgnoredError(eventKey);
    const list = this.#handlers.get(eventKey) ?? [];
    // One event may have handlers of both kinds, so their names must differ.
    const beside =
      event === EVERY_EVENT
        ? this.#ofSource(source)
        : this.#handlersAt(registrationKeyOf(source, EVERY_EVENT));
    const registered = this.#check(list, eventKey, defaultHandlerName(event), options, beside);
    list.push({ ...registered, statuses: null, pick: () => handle as Handler<never> });
    this.#handlers.set(eventKey, list);
  }

  #ofSource(source: FlowName): readonly RegisteredHandler[] {
    return [...this.#handlers].flatMap(([key, list]) => (key.startsWith(`${source} `) ? list : []));
  }

  #handlersAt(key: string): readonly RegisteredHandler[] {
    return this.#handlers.get(key) ?? NO_HANDLERS;
  }

  addHeld(handle: Handler<HeldEvent>, options: HandlerOptions): void {
    checkHandler("held entries", handle);
    this.#heldHandlers.push({ ...this.#check(this.#heldHandlers, "held entries", "held", options), handle });
  }

  ignore(event: EventName): void {
    this.#ignore(event);
  }

  ignoreOfSource(source: FlowName, event: string): void {
    this.#ignore(registrationKeyOf(source, event));
  }

  #ignore(event: string): void {
    this.#checkOpen();
    if (this.#handlers.has(event)) throw handledAndIgnoredError(event);
    this.#ignoredEvents.add(event);
  }

  close(): void {
    this.#isClosed = true;
  }

  /** The handlers of an event: none if it is ignored, even beside a handler of every name. */
  handlersOf(flow: FlowName, event: string): readonly RegisteredHandler[] {
    const eventHandlers = this.#handlersAt(registrationKeyOf(flow, event));
    const catchAllHandlers = this.#handlersAt(registrationKeyOf(flow, EVERY_EVENT));
    if (catchAllHandlers.length === 0) return eventHandlers;
    return this.isIgnored(flow, event) ? NO_HANDLERS : [...eventHandlers, ...catchAllHandlers];
  }

  /** The names of the handlers that an event with this name and status runs. Either may be unknown. */
  namesFor(flow: FlowName, event: string, status: string): readonly string[] {
    const handlers = this.handlersOf(flow, event);
    return handlers
      .filter(({ statuses }) => statuses === null || statuses.includes(status))
      .map(({ name }) => name);
  }

  /** How this process treats an event of a source. `unknown`: nothing is registered for the source at all. */
  treatmentOf(source: FlowName, event: string): "handled" | "ignored" | "none" | "unknown" {
    if (this.handlersOf(source, event).length > 0) return "handled";
    if (this.isIgnored(source, event)) return "ignored";
    const isOfSource = (key: string): boolean => key.startsWith(`${source} `);
    return [...this.#handlers.keys(), ...this.#ignoredEvents].some(isOfSource) ? "none" : "unknown";
  }

  /** How often a handler with this name may try an event with this name; 0 if there is no such handler. */
  maxAttemptsOf(flow: FlowName, event: string, handler: string): number {
    return this.handlersOf(flow, event).find(({ name }) => name === handler)?.maxAttempts ?? 0;
  }

  get heldHandlers(): readonly RegisteredHeldHandler[] {
    return this.#heldHandlers;
  }

  isIgnored(flow: FlowName, event: string): boolean {
    return this.#ignoredEvents.has(registrationKeyOf(flow, event));
  }

  /** Everything that is registered, in words and in alphabetical order. */
  get names(): readonly string[] {
    const handlers = [...this.#handlers].flatMap(([event, list]) =>
      list.flatMap(({ name, statuses }) =>
        (statuses ?? [""]).map((status) => `${name} (${`${event} ${status}`.trim()})`),
      ),
    );
    const heldNames = this.#heldHandlers.map(({ name }) => `${name} (onHeld)`);
    return [
      ...handlers,
      ...heldNames,
      ...[...this.#ignoredEvents].map((event) => `ignore (${event})`),
    ].toSorted();
  }

  get isEmpty(): boolean {
    return this.#handlers.size === 0;
  }

  /** The event names of a flow that have no handler and are not ignored. */
  unhandledEvents(flow: FlowName): readonly EventName[] {
    return eventNamesOf(flow).filter(
      (event) => !this.#handlers.has(event) && !this.#ignoredEvents.has(event),
    );
  }

  #checkOpen(): void {
    if (!this.#isClosed) return;
    throw new PayhooksError(
      "ERR_REGISTRATION_CLOSED",
      "The receiver has started: handlers can no longer be registered.",
      {
        fix: "Register every handler right after createReceiver, before the server listens.",
      },
    );
  }

  #check(
    registered: readonly HandlerSettings[],
    owner: string,
    defaultName: string,
    options: HandlerOptions,
    beside: readonly HandlerSettings[] = [],
  ): HandlerSettings {
    this.#checkOpen();
    checkNames(`A handler of ${owner}`, options, {
      name: true,
      timeoutMs: true,
      maxAttempts: true,
      backoffMs: true,
      onCrash: true,
      onTimeout: true,
      concurrency: true,
    });
    const { name = registered.length === 0 ? defaultName : undefined } = options;
    if (!isHandlerName(name)) {
      throw new PayhooksError(
        "ERR_HANDLER_NAME",
        name === undefined
          ? `A further handler of ${owner} has no name.`
          : `A handler of ${owner} has the name ${describeValue(name)}.`,
        {
          fix: 'Give { name } as letters, digits, "_", "." or "-", and keep it: it is part of effectId. Names that every object has, such as "constructor", are not allowed.',
        },
      );
    }
    if ([...registered, ...beside].some((other) => other.name === name)) {
      throw new PayhooksError("ERR_HANDLER_DUPLICATE", `${owner} has a handler named "${name}" already.`, {
        fix: "Give each handler of an event its own { name }, and check that this module is not loaded twice.",
      });
    }
    const { timeoutMs = 60_000, maxAttempts = 25, backoffMs } = options;
    const { onCrash = "rerun", onTimeout = "wait", concurrency } = options;
    checkTime("timeoutMs", timeoutMs);
    checkLimit("maxAttempts", maxAttempts);
    if (concurrency !== undefined) checkLimit("concurrency", concurrency);
    if (backoffMs !== undefined && typeof backoffMs !== "function") {
      throw new PayhooksError("ERR_OPTION_INVALID", `backoffMs of ${owner} is not a function.`, {
        fix: "Give (attempt) => milliseconds, or leave it out for the default.",
      });
    }
    checkChoice(`onCrash of ${owner}`, onCrash, { rerun: true, hold: true });
    checkChoice(`onTimeout of ${owner}`, onTimeout, { wait: true, rerun: true });
    const callLimit = concurrency === undefined ? null : new CallLimit(concurrency);
    return { name, timeoutMs, maxAttempts, backoffMs: backoffMs ?? null, onCrash, onTimeout, callLimit };
  }
}

function checkHandler(owner: string, handle: unknown): void {
  if (typeof handle === "function") return;
  throw new PayhooksError("ERR_OPTION_INVALID", `The handler for ${owner} is not a function.`, {
    fix: "Give (event, context) => …",
  });
}

function handledAndIgnoredError(event: string): PayhooksError {
  return new PayhooksError("ERR_OPTION_INVALID", `${event} has a handler and is ignored.`, {
    fix: "Remove one of the two: an ignored event runs no handler.",
  });
}

/** The functions by status. Handlers of all events are kept as one type. Each is called only with events that it is for. */
function checkHandlers(
  name: EventName,
  handlers: unknown,
  statuses: ReadonlySet<string>,
): ReadonlyMap<string, Handler<AnyEvent>> {
  const entries = Object.entries(Object(handlers) as Readonly<Record<string, unknown>>).filter(
    ([, handler]) => handler !== undefined,
  );
  const wrongEntry = entries.find(
    ([status, handler]) => typeof handler !== "function" || !statuses.has(status),
  );
  if (entries.length > 0 && wrongEntry === undefined)
    return new Map(entries as [string, Handler<AnyEvent>][]);
  throw new PayhooksError(
    "ERR_OPTION_INVALID",
    wrongEntry === undefined
      ? `No handler for ${name} was given.`
      : `The handler for ${name} under ${JSON.stringify(wrongEntry[0])} cannot be used.`,
    {
      fix: "Give a function, or for payments an object of functions under SUCCESS, FAILED and PENDING.",
    },
  );
}
