import {
  type ConnectEvent,
  EVENTS,
  type EventName,
  type EventOf,
  type PaymentEvent,
} from "../protocol/events.ts";
import type { Handler, HandlerContext, HandlerOptions, HeldEvent, PaymentHandlers } from "./handler.ts";
import type { Registry } from "./registry.ts";

/** The arguments of a receiver's method, by the name of its event. */
type HandlersOf<Name extends EventName, Context extends HandlerContext> =
  EventOf<Name> extends PaymentEvent
    ? PaymentHandlers<EventOf<Name>, Context>
    : Handler<Extract<EventOf<Name>, ConnectEvent>, Context>;

/** A method for each event. */
type EventMethods<Self, Context extends HandlerContext> = {
  readonly [Method in keyof typeof EVENTS]: (
    handler: HandlersOf<(typeof EVENTS)[Method]["name"], Context>,
    options?: HandlerOptions,
  ) => Self;
};

/** How handlers are registered. Each method returns the receiver. */
export interface Registration<Self, Context extends HandlerContext> extends EventMethods<Self, Context> {
  /**
   * Registers a handler that is called about every event that is put on hold. It runs durably and with retries.
   * @throws PayhooksError `ERR_OPTION_INVALID`, `ERR_HANDLER_NAME`, `ERR_HANDLER_DUPLICATE`, `ERR_REGISTRATION_CLOSED`.
   */
  onHeld(handler: Handler<HeldEvent, Context>, options?: HandlerOptions): Self;
}

/** The methods of a receiver that register handlers: one for each row of {@link EVENTS}, and `onHeld`. */
export function registrationIn<Self>(
  registry: Registry,
  receiver: () => Self,
): Registration<Self, HandlerContext> {
  const events = Object.entries(EVENTS).map(([method, { name }]) => [
    method,
    (handler: unknown, options: HandlerOptions = {}): Self => {
      registry.add(name, handler, options);
      return receiver();
    },
  ]);
  return {
    ...(Object.fromEntries(events) as EventMethods<Self, HandlerContext>),
    onHeld(handler, options = {}) {
      registry.addHeld(handler, options);
      return receiver();
    },
  };
}
