import { isPayhooksError, PayhooksError } from "../../protocol/errors.ts";
import { describeError } from "../../protocol/foreign-error.ts";
import { emptyContext } from "../../time/async-context.ts";
import type { Inbox } from "../contract/inbox.ts";

const guarded = new WeakSet<Inbox>();

/**
 * The same inbox, except that it throws only errors of Payhooks. The error of a store may contain the delivery, so only its kind,
 * its code and the place where it was thrown are passed on. Every call runs in the empty asynchronous context. Otherwise the work
 * that a call begins would keep the context of the request that made the call.
 */
export function withOwnErrors(inbox: Inbox): Inbox {
  if (guarded.has(inbox)) return inbox;
  const { events, texts } = inbox;
  let closing: ReturnType<Inbox["close"]> | null = null;
  const safe: Inbox = {
    durability: inbox.durability,
    observe: (notify) => inbox.observe(notify),
    ready: () => owned(() => inbox.ready()),
    compareHandlers: (handlers) => owned(() => inbox.compareHandlers(handlers)),
    accept: (event, options) => owned(() => inbox.accept(event, options)),
    run: async (runner, options) => {
      const running = await owned(() => inbox.run(runner, options));
      return {
        pause: () => emptyContext.run(() => running.pause()),
        resume: () => emptyContext.run(() => running.resume()),
        stop: () => owned(() => running.stop()),
      };
    },
    work: (runner, options) => owned(() => inbox.work(runner, options)),
    runEvent: (runner, eventId, options) => owned(() => inbox.runEvent(runner, eventId, options)),
    events: {
      get: (eventId) => owned(() => events.get(eventId)),
      list: (query) => owned(() => events.list(query)),
      claimant: (eventId) => owned(() => events.claimant(eventId)),
      order: (eventId) => owned(() => events.order(eventId)),
      counts: () => owned(() => events.counts()),
      replay: (which, decision) => owned(() => events.replay(which, decision)),
      retryNow: (which, decision) => owned(() => events.retryNow(which, decision)),
      discard: (which, decision) => owned(() => events.discard(which, decision)),
      erase: (which, decision) => owned(() => events.erase(which, decision)),
    },
    texts: {
      read: (name) => owned(() => texts.read(name)),
      change: (name, compute) => owned(() => texts.change(name, compute)),
    },
    health: () => owned(() => inbox.health()),
    close(options) {
      closing ??= owned(() => inbox.close(options));
      return closing;
    },
  };
  guarded.add(safe);
  return safe;
}

async function owned<T>(action: () => Promise<T>): Promise<T> {
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
