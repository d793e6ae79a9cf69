import { isPayhooksError, PayhooksError } from "../../protocol/errors.ts";
import { describeError } from "../../protocol/foreign-error.ts";
import { emptyContext } from "../../time/async-context.ts";
import type { Inbox } from "../contract/inbox.ts";

const wrapped = new WeakSet<Inbox>();

/**
 * The same inbox, except that it throws only errors of Payhooks. The error of a store may contain the delivery, so only its kind,
 * its code and the place where it was thrown are passed on. Every call runs in the empty asynchronous context. Otherwise the work
 * that a call begins would keep the context of the request that made the call.
 */
export function withPayhooksErrors(inbox: Inbox): Inbox {
  if (wrapped.has(inbox)) return inbox;
  const { events, texts } = inbox;
  let closing: ReturnType<Inbox["close"]> | null = null;
  const safe: Inbox = {
    durability: inbox.durability,
    observe: (notify) => inbox.observe(notify),
    ready: () => guarded(() => inbox.ready()),
    compareHandlers: (handlers) => guarded(() => inbox.compareHandlers(handlers)),
    accept: (event, options) => guarded(() => inbox.accept(event, options)),
    run: async (runner, options) => {
      const running = await guarded(() => inbox.run(runner, options));
      return {
        pause: () => emptyContext.run(() => running.pause()),
        resume: () => emptyContext.run(() => running.resume()),
        stop: () => guarded(() => running.stop()),
      };
    },
    work: (runner, options) => guarded(() => inbox.work(runner, options)),
    runEvent: (runner, eventId, options) => guarded(() => inbox.runEvent(runner, eventId, options)),
    events: {
      get: (eventId) => guarded(() => events.get(eventId)),
      list: (query) => guarded(() => events.list(query)),
      claimant: (eventId) => guarded(() => events.claimant(eventId)),
      order: (eventId) => guarded(() => events.order(eventId)),
      counts: () => guarded(() => events.counts()),
      replay: (which, decision) => guarded(() => events.replay(which, decision)),
      retryNow: (which, decision) => guarded(() => events.retryNow(which, decision)),
      discard: (which, decision) => guarded(() => events.discard(which, decision)),
      erase: (which, decision) => guarded(() => events.erase(which, decision)),
    },
    texts: {
      read: (name) => guarded(() => texts.read(name)),
      change: (name, compute) => guarded(() => texts.change(name, compute)),
    },
    health: () => guarded(() => inbox.health()),
    close(options) {
      closing ??= guarded(() => inbox.close(options));
      return closing;
    },
  };
  wrapped.add(safe);
  return safe;
}

async function guarded<T>(action: () => Promise<T>): Promise<T> {
  try {
    return await emptyContext.run(action);
  } catch (error) {
    return rethrow(error);
  }
}

function rethrow(error: unknown): never {
  if (isPayhooksError(error)) throw error;
  throw new PayhooksError("ERR_INBOX_UNAVAILABLE", `The inbox failed: ${describeError(error)}.`, {
    fix: "Check that its store is up, within reach and not full. Nothing is acknowledged meanwhile, so the service sends again.",
    cause: error,
  });
}
