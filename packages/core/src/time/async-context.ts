import { AsyncResource } from "node:async_hooks";

/**
 * A context of `AsyncLocalStorage`: the merchant's tenant, transaction or span that a call finds. Payhooks gathers the
 * work of many requests, so by itself a call would often find what another request has put there. Two rules prevent
 * that:
 *
 * - Everything of Payhooks runs in the empty context: each call of an inbox, each timer, each later turn of the event loop. So a
 *   connection, a timer or a batch that is made during a request does not keep the context of that request.
 * - Merchant's code is called in the empty context too. Only a few calls of a request run in the context of that
 *   request: its resolver's caller, its `notifyWorker`, and the handlers of an event whose run began when the request
 *   accepted it.
 */
export interface AsyncContext {
  /** Calls the function in this context. If the function changes its context by `enterWith`, no other call finds the change. */
  run<T>(call: () => T): T;
}

class CapturedContext extends AsyncResource implements AsyncContext {
  constructor() {
    super("Payhooks");
  }

  run<T>(call: () => T): T {
    // Before Node 24, `enterWith` changes the resource that it is called in, so each call gets one of its own.
    return this.runInAsyncScope(callInNewResource<T>, undefined, call);
  }
}

function callInNewResource<T>(call: () => T): T {
  return new AsyncResource("Payhooks").runInAsyncScope(call);
}

/** The context of the caller. */
export function currentContext(): AsyncContext {
  return new CapturedContext();
}

/**
 * The context in which Payhooks was loaded. It is not the one in which a receiver was made, because some applications
 * make their receiver during their first request.
 */
export const emptyContext: AsyncContext = currentContext();
