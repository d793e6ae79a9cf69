import { eventStream } from "@payhooks/pages";
import type { Context } from "hono";
import type { Change, Changes } from "../changes.ts";

/** Tells browsers what changed, as server-sent events. */
export interface ChangeStream {
  /** Opens a response that stays open. `data` turns the changes since the last event into the data of the next one. */
  open(c: Context, data: (changes: readonly Change[]) => unknown): Response;
  /** Ends every open response. */
  close(): void;
}

export function createChangeStream(changes: Changes): ChangeStream {
  const open = new Set<() => void>();
  return {
    open: (c, data) =>
      eventStream(c, ({ send, end }) => {
        /** Changes that happen at once are sent in one event. */
        let pending = new Map<string, Change>();
        const flush = () => {
          const batch = [...pending.values()];
          pending = new Map();
          if (open.has(end)) void send(data(batch));
        };
        const unsubscribe = changes.subscribe((change) => {
          if (pending.size === 0) setImmediate(flush);
          pending.set(`${change.topic} ${change.id}`, change);
        });
        open.add(end);
        return () => {
          open.delete(end);
          unsubscribe();
        };
      }),
    close() {
      for (const end of [...open]) end();
    },
  };
}
