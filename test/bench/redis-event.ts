import { createHash, randomUUID } from "node:crypto";
import { canonicalString } from "@payhooks/core/signature";
import { callbackFields } from "@payhooks/core/testing";
import type { VerifiedEvent } from "../../packages/core/src/inbox/record/event.ts";

const RETENTION_MS = 8 * 86_400_000;
const hash = (text: string, length: number): string =>
  createHash("sha256").update(text).digest("hex").slice(0, length);

/** A verified deposit of a usual size, as the payments flow hands it to the inbox. */
export function benchEvent(): VerifiedEvent {
  const now = Date.now();
  const id = randomUUID();
  const fields = callbackFields({ payTxnId: id });
  return {
    key: hash(id, 32),
    slot: hash("DEPOSIT SUCCESS", 16),
    variantSlot: () => hash(id, 16),
    id,
    name: "DEPOSIT",
    status: "SUCCESS",
    rank: 1,
    fixedFacts: {
      event: "DEPOSIT",
      referenceId: String(fields.referenceId),
      merchantId: String(fields.merchantId),
    },
    amount: "10500000",
    signedAt: now,
    isWithinWindow: true,
    retentionMs: RETENTION_MS,
    verdict: "run",
    detail: null,
    referenceKey: null,
    referenceId: String(fields.referenceId),
    delivery: {
      flow: "payments",
      tenant: "",
      arrivedBy: "callback",
      content: Buffer.from(canonicalString({ ...fields })),
      signature: "A".repeat(344),
      keyId: "0123456789abcdef",
      receivedAt: now,
    },
  };
}
