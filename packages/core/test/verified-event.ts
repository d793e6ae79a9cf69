import type { VerifiedEvent } from "../src/inbox/record/event.ts";

const DAY_MS = 86_400_000;

/** A verified deposit, as a flow hands it to an inbox. Events of different numbers are different transactions. */
export function verifiedEvent(n = 1, changes: Partial<VerifiedEvent> = {}): VerifiedEvent {
  const { signedAt = Date.now() } = changes;
  return {
    key: n.toString(16).padStart(32, "0"),
    slot: "1".repeat(16),
    variantSlot: () => "2".repeat(16),
    id: `tx-${n}`,
    name: "DEPOSIT",
    status: "SUCCESS",
    rank: 1,
    fixedFacts: { event: "DEPOSIT", referenceId: `o-${n}` },
    amount: "10",
    isWithinWindow: true,
    retentionMs: 8 * DAY_MS,
    verdict: "run",
    detail: null,
    referenceKey: null,
    referenceId: `o-${n}`,
    delivery: {
      flow: "payments",
      tenant: "",
      arrivedBy: "callback",
      content: new TextEncoder().encode(`payTxnId=tx-${n}`),
      signature: null,
      keyId: null,
      receivedAt: signedAt ?? 0,
    },
    ...changes,
    signedAt,
  };
}
