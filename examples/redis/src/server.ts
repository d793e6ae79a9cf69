/** Receives and stores, and runs no handler: start as many as the traffic needs. */
import { paymentCallbacks } from "@payhooks/express";
import express from "express";
import { createSharedReceiver } from "./receiver.ts";

const receiver = createSharedReceiver("elsewhere");
const app = express();
app.use("/callbacks/pay", paymentCallbacks(receiver));
const server = app.listen(process.env.PORT ?? 3000);
server.once("listening", () => console.log("listening", server.address()));

// A rolling restart: deliveries that come too late are answered 503, and the sender brings them to another server.
async function stop(): Promise<void> {
  server.close();
  await receiver.close();
  server.closeAllConnections();
}
// Ctrl-C and PM2 send SIGINT, orchestrators send SIGTERM. npm may pass on the same signal twice.
process.on("SIGTERM", stop).on("SIGINT", stop);
