import { type PaymentsClient, reconcile } from "@payhooks/client";
import type { Receiver } from "@payhooks/core";

/** Asks the service about each ambiguous event, and discards it once every transaction that it may be about is settled. */
export function settleAmbiguous(receiver: Receiver, client: PaymentsClient): void {
  receiver.onHeld(async ({ eventId, reason, tenant, contents: { candidates } }, { signal }) => {
    if (reason !== "ambiguous" || !candidates?.complete) return;
    const { settled } = await reconcile(receiver, { client, ids: candidates.ids, tenant, signal });
    const open = candidates.ids.length - settled.length;
    if (open > 0) throw new Error(`${open} transactions are not settled`);
    await receiver.events.discard(eventId, { by: "settleAmbiguous", note: `settled: ${settled.join(", ")}` });
  });
}
