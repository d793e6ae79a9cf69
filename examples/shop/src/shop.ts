import { createReceiver } from "@payhooks/core";
import { pgEffects } from "@payhooks/core/effects/postgres";
import { postgresInbox } from "@payhooks/core/postgres";
import { paymentCallbacks } from "@payhooks/express";
import { createSandbox } from "@payhooks/sandbox";
import express from "express";
import { book, move, openBooks } from "./books.ts";

const port = Number(process.env.PORT ?? 3000);
const books = await openBooks(process.env.DATABASE_URL);
// The service, on this machine. Every callback comes twice.
const sandbox = await createSandbox({
  port: Number(process.env.SANDBOX_PORT ?? 4000),
  callbackUrl: `http://127.0.0.1:${port}/callbacks/pay`,
});
sandbox.faults.add({ kind: "duplicate", rate: 1 });

const receiver = createReceiver({
  payments: { publicKey: sandbox.keys.publicKey },
  // Orders, ledger, inbox and effects: one PostgreSQL, and one backup.
  inbox: postgresInbox(books),
  effects: pgEffects(books),
});

// The order and both sides of the booking are committed together, once, however often this runs.
receiver.onDeposit(async ({ referenceId, amount }, ctx) => {
  const { ran } = await ctx.transaction(async (tx) => {
    await move(tx, referenceId, amount, ["open", "paid"]);
    await book(tx, "customers", "cash", amount);
  });
  if (ran) console.log(`${referenceId} is paid: ${amount}`);
});
// A refund has a reference of its own, which names its order.
receiver.onWithdrawal(async ({ referenceId, amount }, ctx) => {
  const order = referenceId.replace(/^refund-/, "");
  const { ran } = await ctx.transaction(async (tx) => {
    await move(tx, order, amount, ["paid", "refunded"]);
    await book(tx, "cash", "customers", amount);
  });
  if (ran) console.log(`${order} is refunded: ${amount}`);
});

const app = express();
app.use("/callbacks/pay", paymentCallbacks(receiver));
app.use(express.json());
app.post("/orders", async (request, response) => {
  const { reference, amount } = request.body as { reference: string; amount: string };
  await books.query("INSERT INTO orders (reference, amount) VALUES ($1, $2)", [reference, amount]);
  sandbox.deposit({ reference, amount });
  response.status(201).json({ reference });
});
app.post("/orders/:reference/refund", async (request, response) => {
  const { reference } = request.params;
  const { rows } = await books.query("SELECT amount FROM orders WHERE reference = $1", [reference]);
  sandbox.withdraw({ reference: `refund-${reference}`, amount: String(rows[0]?.amount) });
  response.status(202).json({ reference });
});
app.get("/books", async (_, response) => {
  const { rows: orders } = await books.query("SELECT reference, state FROM orders ORDER BY reference");
  const { rows: accounts } = await books.query(
    "SELECT account, sum(amount) AS balance FROM ledger GROUP BY account ORDER BY account",
  );
  response.json({ orders, accounts });
});
const server = app.listen(port, "127.0.0.1", () => console.log(`the shop is open on port ${port}`));

async function stop(): Promise<void> {
  server.close();
  await receiver.close({ graceMs: 10_000 });
  server.closeAllConnections();
  await sandbox.close();
  if (!books.ending) await books.end();
}
// Ctrl-C and PM2 send SIGINT, orchestrators send SIGTERM. npm may pass on the same signal twice.
process.on("SIGTERM", stop).on("SIGINT", stop);
