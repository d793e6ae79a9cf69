/**
 * A shop in a process of its own: it takes callbacks, and watches for those that never come. Several of them share one file.
 *
 * Arguments: the inbox's file, the sandbox's address, the payments' references. The environment has the keys.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createClient, watch } from "@payhooks/client";
import { createReceiver } from "@payhooks/core";
import { sqliteInbox } from "@payhooks/core/sqlite";
import { paymentCallbacks } from "@payhooks/express";
import express from "express";

const [file = "", baseUrl, reference = ""] = process.argv.slice(2);
const [publicKey, secretKey] = (process.env.SHOP_API_KEY ?? "").split(":");

const receiver = createReceiver({
  payments: { publicKey: process.env.SHOP_PUBLIC_KEY },
  inbox: sqliteInbox(file),
  logLevel: "error",
});
receiver
  .onDeposit((deposit) => console.log(`handled ${deposit.referenceId} by ${deposit.arrivedBy}`))
  .ignore("WITHDRAWAL");

const server = createServer(express().use("/callbacks/pay", paymentCallbacks(receiver)));
await receiver.start();
server.listen(0, "127.0.0.1", () => console.log(`listens on ${(server.address() as AddressInfo).port}`));

const watching = watch(receiver, {
  client: createClient({ baseUrl, publicKey, secretKey }),
  open: () => [{ reference, since: Date.now() - 60_000 }],
  onGivenUp: () => {},
  onResult: ({ outcome }) => console.log(`looked up: ${outcome}`),
  everyMs: 300,
  minAgeMs: 1_000,
});

process.on("SIGTERM", async () => {
  await watching.stop();
  server.close();
  await receiver.close();
  console.log("closed");
});
