import { createReceiver } from "@payhooks/core";
import { pgEffects } from "@payhooks/core/effects/postgres";
import { postgresInbox } from "@payhooks/core/postgres";
import { standardWebhooks, stripe, typesOnly } from "@payhooks/core/sources";
import { connectWebhooks, paymentCallbacks, webhooks } from "@payhooks/express";
import { createSandbox } from "@payhooks/sandbox";
import express from "express";
import { book, decide, move, openBooks } from "./books.ts";

interface CardEvents {
  "charge.succeeded": { readonly amount: number; readonly metadata: { readonly order: string } };
}
interface CourierEvents {
  "parcel.delivered": { readonly order: string };
}

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
  connect: { secret: process.env.CONNECT_WEBHOOK_SECRET },
  sources: {
    cards: stripe({ secret: process.env.CARDS_SECRET, events: typesOnly<CardEvents>() }),
    courier: standardWebhooks({ secret: process.env.COURIER_SECRET, events: typesOnly<CourierEvents>() }),
  },
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

// The service's decision about an account says if the account may sell.
receiver.onConnectedAccountApproved(({ data }, ctx) =>
  ctx.transaction((tx) => decide(tx, data.id, "approved")),
);
receiver.onConnectedAccountDeclined(({ data }, ctx) =>
  ctx.transaction((tx) => decide(tx, data.id, "declined")),
);
receiver.ignore("settlement.approved").ignore("settlement.declined");
// Two other senders, each with its own signature.
receiver.on("cards", "charge.succeeded", async ({ data }, ctx) => {
  const amount = (data.amount / 100).toFixed(2);
  await ctx.transaction(async (tx) => {
    await move(tx, data.metadata.order, amount, ["open", "paid"]);
    await book(tx, "customers", "cards", amount);
  });
});
receiver.on("courier", "parcel.delivered", async ({ data }, ctx) => {
  await ctx.transaction((tx) =>
    tx.query("UPDATE orders SET delivered = delivered + 1 WHERE reference = $1", [data.order]),
  );
});

const app = express();
app.use("/callbacks/pay", paymentCallbacks(receiver));
app.use("/webhooks/connect", connectWebhooks(receiver));
app.use("/webhooks/cards", webhooks(receiver, "cards"));
app.use("/webhooks/courier", webhooks(receiver, "courier"));
app.use(express.json());
app.post("/orders", async (request, response) => {
  const { reference, amount } = request.body as { reference: string; amount: string };
  await books.query("INSERT INTO orders (reference, amount) VALUES ($1, $2)", [reference, amount]);
  if (request.body.by !== "card") sandbox.deposit({ reference, amount });
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
