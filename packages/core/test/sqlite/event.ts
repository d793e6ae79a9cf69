import type { VerifiedEvent } from "../../src/inbox/record/event.ts";

/** A callback as the flow hands it to the inbox; where there is no test runner too. */
export function eventOf(n: number): VerifiedEvent {
  const now = Date.now();
  return {
    key: n.toString(16).padStart(32, "0"),
    slot: "1".repeat(16),
    variantSlot: () => "2".repeat(16),
    id: `tx-${n}`,
    name: "DEPOSIT",
    status: "SUCCESS",
    rank: 1,
    identity: { referenceId: `o-${n}` },
    amount: "10",
    signedAt: now,
    fresh: true,
    retentionMs: 8 * 86_400_000,
    verdict: "run",
    detail: null,
    referenceKey: null,
    delivery: {
      flow: "payments",
      tenant: "",
      source: "callback",
      rawBody: new TextEncoder().encode(`{"payTxnId":"tx-${n}"}`),
      headers: {},
      keyId: null,
      receivedAt: now,
    },
  };
}
