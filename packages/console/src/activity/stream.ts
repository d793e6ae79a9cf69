import type { Receiver } from "@payhooks/core";
import { eventStream } from "@payhooks/pages";
import type { Context } from "hono";
import type { Activity } from "./activity.ts";

/** However much happens, a page is brought up to date no more often than this. */
const AT_MOST_EVERY_MS = 500;
/** What other processes do is seen by looking. */
const LOOK_EVERY_MS = 5_000;

/**
 * Tells an open page that something may have changed, and never what: that it asks for, as somebody who may. The stream
 * ends when the receiver closes, so that it holds up no server.
 */
export function changeStream(c: Context, receiver: Receiver, activity: Activity): Response {
  // 204 tells the browser not to connect again; the page's script does, later.
  if (!receiver.live().ok) return new Response(null, { status: 204 });
  return eventStream(c, ({ send, end }) => {
    let waiting: NodeJS.Timeout | null = null;
    const soon = (): void => {
      waiting ??= setTimeout(async () => {
        await send("changed");
        waiting = null;
      }, AT_MOST_EVERY_MS);
    };
    const unsubscribe = activity.subscribe(soon);
    const looking = setInterval(() => (receiver.live().ok ? soon() : end()), LOOK_EVERY_MS);
    return () => {
      unsubscribe();
      clearInterval(looking);
      if (waiting !== null) clearTimeout(waiting);
    };
  });
}
