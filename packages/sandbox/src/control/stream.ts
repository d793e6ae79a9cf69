import type { Change, Changes } from "../changes.ts";

/** Tells browsers what changed, as server-sent events. */
export interface ChangeStream {
  /** A response that stays open; `data` turns what changed since the last event into the next one's data. */
  open(data: (changes: readonly Change[]) => unknown): Response;
  /** Ends every open response. */
  close(): void;
}

const HEADERS = { "Content-Type": "text/event-stream", "Cache-Control": "no-store" };

export function createChangeStream(changes: Changes): ChangeStream {
  const open = new Set<() => void>();
  return {
    open(data) {
      const encoder = new TextEncoder();
      let end = () => {};
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          /** Changes in a row are told once, in one event. */
          let pending = new Map<string, Change>();
          const flush = () => {
            const told = [...pending.values()];
            pending = new Map();
            if (open.has(end)) controller.enqueue(encoder.encode(`data: ${JSON.stringify(data(told))}\n\n`));
          };
          const unsubscribe = changes.subscribe((change) => {
            if (pending.size === 0) setImmediate(flush);
            pending.set(`${change.topic} ${change.id}`, change);
          });
          end = () => {
            unsubscribe();
            if (open.delete(end)) controller.close();
          };
          open.add(end);
          controller.enqueue(encoder.encode(": open\n\n"));
        },
        cancel() {
          open.delete(end);
          end();
        },
      });
      return new Response(body, { headers: HEADERS });
    },
    close() {
      for (const end of [...open]) end();
    },
  };
}
