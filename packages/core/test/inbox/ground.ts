import type { Inbox } from "../../src/inbox/inbox.ts";
import type { VerifiedEvent } from "../../src/inbox/record/event.ts";

/** A verified deposit, as a flow hands it to an inbox. */
export function event(more: Partial<VerifiedEvent> = {}): VerifiedEvent {
  return {
    key: "1".repeat(32),
    slot: "2".repeat(16),
    variantSlot: () => "3".repeat(16),
    id: "tx",
    name: "DEPOSIT",
    status: "SUCCESS",
    rank: 1,
    identity: {},
    amount: null,
    signedAt: Date.now(),
    fresh: true,
    retentionMs: 86_400_000,
    verdict: "run",
    detail: null,
    referenceKey: null,
    delivery: {
      flow: "payments",
      tenant: "",
      source: "callback",
      rawBody: new Uint8Array(),
      headers: {},
      keyId: null,
      receivedAt: 0,
    },
    ...more,
  };
}

/** Puts an event into an inbox that its handlers reject, and tells its id. */
export async function held(inbox: Inbox): Promise<string> {
  const { eventId } = await inbox.accept(event());
  await inbox.work(
    {
      run: async () => ({
        ending: { kind: "held", reason: "rejected", detail: null, tell: false },
        changes: [],
        written: () => {},
      }),
      firstStep: () => null,
      notify: () => {},
    },
    { deadlineMs: 1_000, limit: 1, concurrency: 1 },
  );
  return eventId;
}
