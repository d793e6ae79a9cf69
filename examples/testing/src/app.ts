import type { Receiver } from "@payhooks/core";
import { paymentCallbacks } from "@payhooks/express";
import express, { type Express } from "express";

export function createApp(receiver: Receiver): Express {
  const app = express();
  app.use("/callbacks/pay", paymentCallbacks(receiver));
  app.use(express.json());
  return app;
}
