import { createReceiver, type EffectContext, type Inbox, type Receiver } from "@payhooks/core";
import { pgEffects } from "@payhooks/core/effects/postgres";
import type { Pool, PoolClient } from "pg";

/** Each deposit pays its order once, however often the handler runs. */
export function payingReceiver(pool: Pool, inbox: Inbox): Receiver<EffectContext<PoolClient>> {
  const payments = { publicKey: process.env.PAY_PUBLIC_KEY };
  const receiver = createReceiver({ payments, inbox, effects: pgEffects(pool) });
  return receiver.onDeposit((deposit, ctx) =>
    ctx.transaction(async (tx) => {
      await tx.query("UPDATE orders SET paid = true WHERE reference = $1", [deposit.referenceId]);
    }),
  );
}
