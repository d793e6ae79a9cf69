import type { DiscoveryService, ModuleRef } from "@nestjs/core";
import { ContextIdFactory } from "@nestjs/core";
import { type Handler, type HandlerOptions, PayhooksError, type Receiver } from "@payhooks/core";
import { type DecoratedMethod, decoratedMethodsIn } from "./decorators.ts";

type Wrapper = ReturnType<DiscoveryService["getProviders"]>[number];
type Method = Handler<unknown>;

/** A decorated method, ready to be called. */
interface FoundMethod extends DecoratedMethod {
  /** The class and the method, for errors. */
  readonly shown: string;
  readonly call: Method;
}

/** Registers the decorated methods of all providers and controllers that are for the receiver with this name. */
export function registerMethods(
  receiver: Receiver,
  name: string,
  discovery: DiscoveryService,
  moduleRef: ModuleRef,
): void {
  const wrappers = [...discovery.getProviders(), ...discovery.getControllers()];
  const foundMethods = wrappers
    .flatMap((wrapper) => methodsOf(wrapper, moduleRef))
    .filter(({ options }) => (options.receiver ?? "default") === name);
  for (const methods of handlersIn(foundMethods)) register(receiver, methods);
}

function methodsOf(wrapper: Wrapper, moduleRef: ModuleRef): readonly FoundMethod[] {
  const { instance } = wrapper;
  if (wrapper.isAlias || typeof instance !== "object" || instance === null) return [];
  return decoratedMethodsIn(instance).map((decorated) => ({
    ...decorated,
    shown: `${instance.constructor.name}.${String(decorated.key)}`,
    call: callOf(wrapper, decorated.key, moduleRef),
  }));
}

/**
 * Calls a method at its provider's own instance. A provider in the scope of requests has no request here: each call
 * gets an instance of its own, to which `REQUEST` is the event and the handler's context.
 */
function callOf(wrapper: Wrapper, key: string | symbol, moduleRef: ModuleRef): Method {
  const methodAt = (instance: object) => (instance as Readonly<Record<string | symbol, Method>>)[key];
  if (wrapper.isDependencyTreeStatic() && !wrapper.isTransient) {
    return (event, context) => methodAt(wrapper.instance)?.call(wrapper.instance, event, context);
  }
  return async (event, context) => {
    const id = ContextIdFactory.create();
    moduleRef.registerRequestByContextId({ event, context }, id);
    const instance = await moduleRef.resolve<object>(wrapper.token as never, id, { strict: false });
    return methodAt(instance)?.call(instance, event, context);
  };
}

/**
 * The methods of each handler. Methods of one event without names of their own are one handler, with a method for each status, as
 * `receiver.onDeposit({ SUCCESS, FAILED })` is one.
 */
function handlersIn(methods: readonly FoundMethod[]): readonly (readonly FoundMethod[])[] {
  const handlers: FoundMethod[][] = [];
  for (const method of methods) {
    const together = handlers.find((others) => others.every((other) => areOneHandler(method, other)));
    if (together === undefined) handlers.push([method]);
    else together.push(method);
  }
  return handlers;
}

function areOneHandler(a: FoundMethod, b: FoundMethod): boolean {
  const isNamed = a.options.name !== undefined || b.options.name !== undefined;
  const isPayment = a.statuses.length > 0;
  return (
    !isNamed &&
    isPayment &&
    a.registers === b.registers &&
    !a.statuses.some((status) => b.statuses.includes(status))
  );
}

function register(receiver: Receiver, methods: readonly FoundMethod[]): void {
  const [first] = methods;
  if (first === undefined) return;
  const { registers, names, statuses, call } = first;
  const byStatus = methods.flatMap((method) =>
    method.statuses.map((status) => [status, method.call] as const),
  );
  const handler = statuses.length > 0 ? Object.fromEntries(byStatus) : call;
  const add = receiver[registers] as (...given: readonly unknown[]) => unknown;
  add.call(receiver, ...names, handler, optionsOf(methods));
}

/** The options of methods that are one handler. */
function optionsOf(methods: readonly FoundMethod[]): HandlerOptions {
  const mergedOptions: Record<string, unknown> = {};
  for (const { options, shown } of methods) {
    const { receiver: _, ...ownOptions } = options;
    for (const [option, value] of Object.entries(ownOptions)) {
      if (Object.hasOwn(mergedOptions, option) && mergedOptions[option] !== value) {
        const methodNames = methods.map((method) => method.shown).join(" and ");
        throw new PayhooksError(
          "ERR_OPTION_INVALID",
          `${methodNames} are one handler, and have two values of ${option}.`,
          {
            fix: `Give the same to both, or give ${shown} a { name } of its own, which makes it another handler.`,
          },
        );
      }
      mergedOptions[option] = value;
    }
  }
  return mergedOptions;
}
