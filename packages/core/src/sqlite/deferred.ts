import type { Held, HeldFilter, Inbox } from "../inbox/inbox.ts";

/** An inbox that is opened when it is first needed: construction does no I/O. A failure to open is tried again. */
export function deferredInbox(durability: Inbox["durability"], open: () => Promise<Inbox>): Inbox {
  let opening: Promise<Inbox> | null = null;
  function opened(): Promise<Inbox> {
    opening ??= open().catch((error: unknown) => {
      opening = null;
      throw error;
    });
    return opening;
  }
  return {
    durability,
    ready: async () => (await opened()).ready(),
    accept: async (event, options) => (await opened()).accept(event, options),
    run: async (runner, options) => (await opened()).run(runner, options),
    work: async (runner, options) => (await opened()).work(runner, options),
    runJob: async (runner, job) => (await opened()).runJob(runner, job),
    read: async (eventId) => (await opened()).read(eventId),
    held: {
      async *list(filter?: HeldFilter): AsyncGenerator<Held> {
        yield* (await opened()).held.list(filter);
      },
      replay: async (eventId, decision) => (await opened()).held.replay(eventId, decision),
      discard: async (eventId, decision) => (await opened()).held.discard(eventId, decision),
    },
    health: async () => (await opened()).health(),
    async close(options) {
      const inbox = await opening?.catch(() => null);
      return inbox?.close(options) ?? { unfinished: 0 };
    },
  };
}
