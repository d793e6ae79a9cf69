import type { AnyReceiver } from "@payhooks/core";
import { eventStream } from "@payhooks/pages";
import type { Context } from "hono";
import type { Activity } from "./activity.ts";

/** A page is updated no more often than this, however much happens. */
const MIN_UPDATE_INTERVAL_MS = 500;
/** Other processes send no notices, so the page is also told to look at regular intervals. */
const REFRESH_INTERVAL_MS = 5_000;

/**
 * Tells an open page that something may have changed, but never what. The page asks for that in a request of its own,
 * which `authorize` checks. The stream ends when the receiver closes, so that it does not keep a server from closing.
 */
export function changeStream(c: Context, receiver: AnyReceiver, activity: Activity): Response {
  // After 204, the browser does not connect again. The page's script connects again later.
  if (!receiver.live().ok) return new Response(null, { status: 204 });
  return eventStream(c, ({ send, end }) => {
    let timer: NodeJS.Timeout | null = null;
    let hasChanged = false;
    let isEnded = false;
    const sendSoon = (): void => {
      hasChanged = true;
      timer ??= setTimeout(sendChange, MIN_UPDATE_INTERVAL_MS);
    };
    const sendChange = async (): Promise<void> => {
      hasChanged = false;
      // This takes long if the page reads slowly. Meanwhile more may change.
      await send("changed");
      timer = null;
      if (hasChanged && !isEnded) sendSoon();
    };
    const unsubscribe = activity.subscribe(sendSoon);
    const refreshTimer = setInterval(() => (receiver.live().ok ? sendSoon() : end()), REFRESH_INTERVAL_MS);
    return () => {
      isEnded = true;
      unsubscribe();
      clearInterval(refreshTimer);
      if (timer !== null) clearTimeout(timer);
    };
  });
}
