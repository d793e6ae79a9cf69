import { isPayhooksError, PayhooksError } from "../../protocol/errors.ts";
import { describeError } from "../../protocol/foreign-error.ts";
import { emptyContext } from "../../time/async-context.ts";
import type { Inbox } from "../contract/inbox.ts";

const guardedInboxes = new WeakSet<Inbox>();

/**
 * Wraps an inbox, so that it throws only errors of Payhooks. The error of a store may contain the delivery, so only its kind,
 * its code and the place where it was thrown are passed on. Every call runs in the empty asynchronous context. Otherwise the work
 * that a call begins would keep the context of the request that made the call.
 */
export function withPayhooksErrors(inbox: Inbox): Inbox {
  if (guardedInboxes.has(inbox)) return inbox;
  const { events, texts } = inbox;
  let closing: ReturnType<Inbox["close"]> | null = null;
  const guardedInbox: Inbox = {
    durability: inbox.durability,
    observe: (notify) => inbox.observe(notify),
    ready: () => callGuarded(() => inbox.ready()),
    compareHandlers: (handlers) => callGuarded(() => inbox.compareHandlers(handlers)),
    accept: (event, options) => callGuarded(() => inbox.accept(event, options)),
    run: async (runner, options) => {
      const runs = await callGuarded(() => inbox.run(runner, options));
      return {
        pause: () => emptyContext.run(() => runs.pause()),
        resume: () => emptyContext.run(() => runs.resume()),
        stop: () => callGuarded(() => runs.stop()),
      };
    },
    work: (runner, options) => callGuarded(() => inbox.work(runner, options)),
    runEvent: (runner, eventId, options) => callGuarded(() => inbox.runEvent(runner, eventId, options)),
    events: {
      get: (eventId) => callGuarded(() => events.get(eventId)),
      list: (query, flows) => callGuarded(() => events.list(query, flows)),
      referenceHolder: (eventId) => callGuarded(() => events.referenceHolder(eventId)),
      subjectOrder: (eventId) => callGuarded(() => events.subjectOrder(eventId)),
      counts: () => callGuarded(() => events.counts()),
      replay: (which, decision) => callGuarded(() => events.replay(which, decision)),
      retryNow: (which, decision) => callGuarded(() => events.retryNow(which, decision)),
      discard: (which, decision) => callGuarded(() => events.discard(which, decision)),
      erase: (which, decision) => callGuarded(() => events.erase(which, decision)),
    },
    texts: {
      read: (name) => callGuarded(() => texts.read(name)),
      change: (name, compute) => callGuarded(() => texts.change(name, compute)),
    },
    health: () => callGuarded(() => inbox.health()),
    close(options) {
      closing ??= callGuarded(() => inbox.close(options));
      return closing;
    },
  };
  guardedInboxes.add(guardedInbox);
  return guardedInbox;
}

async function callGuarded<T>(action: () => Promise<T>): Promise<T> {
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
