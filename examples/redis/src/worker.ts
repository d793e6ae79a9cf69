/** Runs the handlers of everything that the servers have accepted: start as many as the handlers need. */
import { createSharedReceiver } from "./receiver.ts";

const receiver = createSharedReceiver("background");

// ctx.effectId is the same at every retry: store it with the credit, under a unique index.
receiver.onDeposit(async (deposit, ctx) => {
  console.log(`credit ${deposit.amount} for ${deposit.referenceId} once as ${ctx.effectId}`);
});
receiver.onWithdrawal({
  SUCCESS: async (withdrawal) => console.log(`settle ${withdrawal.referenceId}`),
  FAILED: async (withdrawal) => console.log(`refund ${withdrawal.referenceId}: ${withdrawal.message}`),
});

await receiver.start();
console.log("working");

// Begun events may end; the others are left to another worker.
async function stop(): Promise<void> {
  const { unfinished } = await receiver.close({ graceMs: 30_000 });
  process.exitCode = unfinished === 0 ? 0 : 1;
}
// Ctrl-C and PM2 send SIGINT, orchestrators send SIGTERM. npm may pass on the same signal twice.
process.on("SIGTERM", stop).on("SIGINT", stop);
