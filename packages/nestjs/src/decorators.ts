import type { HandlerOptions, HeldEvent, PaymentStatus } from "@payhooks/core";
import type { EventMethod, EventNamed, EventOf } from "@payhooks/core/adapter";
import type { SourceEvent } from "@payhooks/core/sources";

/** Options of a decorated method: those of a handler, and which receiver it is for. */
export interface MethodOptions extends HandlerOptions {
  /** The `name` of the module, if the application has several receivers. Default `"default"`. */
  readonly receiver?: string | undefined;
}

/** Options of a method for payments. */
export interface PaymentMethodOptions<Status extends PaymentStatus> extends MethodOptions {
  /** The statuses that the method is called for. Default `"SUCCESS"`. */
  readonly status?: Status | readonly Status[] | undefined;
}

/** Decorates a method that takes this event, and perhaps the handler's context. */
export type HandlerDecorator<Event> = <Method extends (event: Event, context: never) => unknown>(
  target: object,
  key: string | symbol,
  descriptor: TypedPropertyDescriptor<Method>,
) => void;

/** A decorator of methods for a payment event. */
export type PaymentDecorator<Method extends EventMethod> = <const Status extends PaymentStatus = "SUCCESS">(
  options?: PaymentMethodOptions<Status>,
) => HandlerDecorator<Extract<EventOf<EventNamed<Method>>, { readonly status: Status }>>;

/** A decorator of methods for a webhook of connected accounts. */
export type ConnectDecorator<Method extends EventMethod> = (
  options?: MethodOptions,
) => HandlerDecorator<EventOf<EventNamed<Method>>>;

/** The note of a decorator on a class: the method of the receiver that registers, and its arguments besides the handler. */
export interface DecoratedMethod {
  readonly key: string | symbol;
  readonly registers: EventMethod | "onHeld" | "on";
  /** Of `on`: the source, and the name of its event. */
  readonly names: readonly string[];
  /** Of payments; empty otherwise. */
  readonly statuses: readonly PaymentStatus[];
  readonly options: MethodOptions;
}

/** A symbol that all copies of this package share. */
const DECORATED_METHODS: unique symbol = Symbol.for("payhooks.nestjs.handlers") as never;

interface DecoratedClass {
  [DECORATED_METHODS]?: DecoratedMethod[];
}

/**
 * Everything decorated in a class and in those that it extends. Where a class decorates an inherited method again, this
 * replaces the decorators of the class that it extends.
 */
export function decoratedMethodsIn(instance: object): readonly DecoratedMethod[] {
  const methods: DecoratedMethod[] = [];
  const decoratedKeys = new Set<string | symbol>();
  let proto: DecoratedClass | null = Object.getPrototypeOf(instance);
  for (; proto !== null; proto = Object.getPrototypeOf(proto)) {
    if (!Object.hasOwn(proto, DECORATED_METHODS)) continue;
    const added = (proto[DECORATED_METHODS] ?? []).filter(({ key }) => !decoratedKeys.has(key));
    methods.push(...added);
    for (const { key } of added) decoratedKeys.add(key);
  }
  return methods;
}

function decorate<Event>(row: Omit<DecoratedMethod, "key">): HandlerDecorator<Event> {
  return (target: DecoratedClass, key) => {
    if (!Object.hasOwn(target, DECORATED_METHODS))
      Object.defineProperty(target, DECORATED_METHODS, { value: [] });
    target[DECORATED_METHODS]?.push({ ...row, key });
  };
}

function decoratePayment<Method extends EventMethod>(registers: Method): PaymentDecorator<Method> {
  return ({ status = "SUCCESS" as never, ...options } = {}) =>
    decorate({ registers, names: [], statuses: [status].flat() as PaymentStatus[], options });
}

function decorateConnect<Method extends EventMethod>(registers: Method): ConnectDecorator<Method> {
  return (options = {}) => decorate({ registers, names: [], statuses: [], options });
}

/** Calls the method for deposits that have succeeded, or that have one of the given statuses. */
export const OnDeposit: PaymentDecorator<"onDeposit"> = decoratePayment("onDeposit");
/** Calls the method for withdrawals that have succeeded, or that have one of the given statuses. */
export const OnWithdrawal: PaymentDecorator<"onWithdrawal"> = decoratePayment("onWithdrawal");
/** Calls the method when the service has approved a connected merchant. */
export const OnConnectedAccountApproved: ConnectDecorator<"onConnectedAccountApproved"> = decorateConnect(
  "onConnectedAccountApproved",
);
/** Calls the method when the service has declined a connected merchant. */
export const OnConnectedAccountDeclined: ConnectDecorator<"onConnectedAccountDeclined"> = decorateConnect(
  "onConnectedAccountDeclined",
);
/** Calls the method for settlements that were approved. */
export const OnSettlementApproved: ConnectDecorator<"onSettlementApproved"> =
  decorateConnect("onSettlementApproved");
/** Calls the method for settlements that were declined. */
export const OnSettlementDeclined: ConnectDecorator<"onSettlementDeclined"> =
  decorateConnect("onSettlementDeclined");

/**
 * Calls the method for an event of a source; `"*"` stands for every name. The data is what the source's `read` gives,
 * so the method says its type.
 *
 * @example @OnEvent("billing", "invoice.paid") async paid(event: SourceEvent<"billing", "invoice.paid", Invoice>) { … }
 */
export function OnEvent(
  source: string,
  name: string,
  options: MethodOptions = {},
): HandlerDecorator<SourceEvent<never, never, never>> {
  return decorate({ registers: "on", names: [source, name], statuses: [], options });
}

/** Calls the method about every event that is put on hold. */
export function OnHeld(options: MethodOptions = {}): HandlerDecorator<HeldEvent> {
  return decorate({ registers: "onHeld", names: [], statuses: [], options });
}
