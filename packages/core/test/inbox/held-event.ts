import type { Inbox } from "../../src/inbox/contract/inbox.ts";
import { verifiedEvent } from "../verified-event.ts";

/** Puts an event into an inbox that its handlers reject, and tells its id. */
export async function held(inbox: Inbox): Promise<string> {
  const { eventId } = await inbox.accept(verifiedEvent());
  await inbox.work(
    {
      run: async () => ({
        outcome: { kind: "held", reason: "rejected", detail: null, onHeld: [] },
        changes: [],
        onWritten: () => {},
      }),
      firstHandler: () => null,
      handlersOf: () => [],
      notify: () => {},
    },
    { deadlineMs: 1_000, limit: 1, concurrency: 1 },
  );
  return eventId;
}
