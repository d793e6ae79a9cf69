import { createClient, reconcile } from "@payhooks/client";
import { createReceiver, type Receiver } from "@payhooks/core";
import { sqliteInbox } from "@payhooks/core/sqlite";

const client = createClient({
  baseUrl: process.env.PAY_BASE_URL,
  publicKey: process.env.PAY_API_PUBLIC_KEY,
  secretKey: process.env.PAY_API_SECRET_KEY,
});

/** The receiver of your server. Results that are looked up run its handlers, like callbacks. */
export const receiver: Receiver = createReceiver({
  payments: { publicKey: process.env.PAY_PUBLIC_KEY },
  inbox: sqliteInbox(process.env.PAYHOOKS_FILE),
}).onDeposit(async (deposit, ctx) => {
  console.log("credit once:", deposit.referenceId, deposit.amount, ctx.effectId);
});

/** Looks up orders that are still open; call it now and then. */
export async function reconcileOrders(openReferences: Iterable<string>): Promise<readonly string[]> {
  const { remaining } = await reconcile(receiver, { client, references: openReferences });
  return remaining; // Failed, for now: pass them to the next run.
}
