import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { type ConsoleUser, payhooksConsole } from "@payhooks/console/express";
import { createReceiver, type ReceiverOptions } from "@payhooks/core";
import {
  callbackFields,
  createTestKeys,
  resplitPair,
  type SignedDelivery,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { connectWebhooks, paymentCallbacks } from "@payhooks/express";
import express from "express";
import { silent } from "../support/silent.ts";

const keys = createTestKeys();
const WEBHOOK_SECRET = "whsec_8f14e45fceea167a5a36dedd4bea2543";

/** A merchant's server with a console, and what it receives. */
export interface ConsoleMerchant {
  /** The console's address. */
  readonly url: string;
  /** The address for the service's callbacks, and the keys with which it signs them. */
  readonly callbacksUrl: string;
  readonly sandboxKeys: { readonly privateKey: string };
  /** References of the deposits that were credited, in order. */
  readonly credited: readonly string[];
  /** Makes handlers fail with these words; null: they succeed. */
  fail(words: string | null): void;
  /** Sends a callback; resolves with the answer's status. */
  callback(...fields: Parameters<typeof callbackFields>): Promise<number>;
  post(delivery: SignedDelivery): Promise<number>;
  /** Sends what the service says about an account, and when that was signed. */
  webhook(decision: "approved" | "declined", signedAt: number): Promise<number>;
  /** A signature that fits more than one event. */
  forged(reference: string): SignedDelivery;
  /** A colleague discards one of the held events. */
  discardOne(): Promise<void>;
  /** Takes the right to see the console from the user. */
  lockOut(): void;
  close(): Promise<void>;
}

/** Starts one over an inbox. Its handlers have two attempts, 50 ms apart. */
export async function startConsoleMerchant({
  can: rights = ["view", "replay", "discard"],
  redact,
  keep,
  ...options
}: Pick<ReceiverOptions, "inbox" | "clock"> & {
  /** Keeps what was signed after the end of an event. */
  readonly keep?: { readonly signedTextMs: number };
  readonly can?: ConsoleUser["can"];
  readonly redact?: readonly string[];
}): Promise<ConsoleMerchant> {
  let words: string | null = null;
  let isLockedOut = false;
  const credited: string[] = [];
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey, keep },
    connect: { secret: WEBHOOK_SECRET },
    logger: silent,
    ...options,
  });
  receiver.onDeposit(
    ({ referenceId }) => {
      if (words !== null) throw new Error(words);
      credited.push(referenceId);
    },
    { maxAttempts: 2, backoffMs: () => 50 },
  );
  const decided = (): void => {
    if (words !== null) throw new Error(words);
  };
  const slow = { maxAttempts: 2, backoffMs: () => 600_000 };
  receiver.onConnectedAccountApproved(decided, slow).onConnectedAccountDeclined(decided, slow);
  receiver.ignore("WITHDRAWAL").ignore("settlement.approved").ignore("settlement.declined");
  const app = express();
  app.use("/callbacks/pay", paymentCallbacks(receiver));
  app.use("/webhooks/connect", connectWebhooks(receiver));
  app.use(
    "/payhooks",
    payhooksConsole(receiver, {
      authorize: () => (isLockedOut ? null : { by: "Marta (on duty)", can: rights }),
      redact,
    }),
  );
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const post = async ({ headers, rawBody }: SignedDelivery, path = "/callbacks/pay"): Promise<number> => {
    const response = await fetch(base + path, { method: "POST", headers, body: rawBody });
    await response.arrayBuffer();
    return response.status;
  };
  return {
    url: `${base}/payhooks`,
    callbacksUrl: `${base}/callbacks/pay`,
    sandboxKeys: { privateKey: keys.privateKey },
    credited,
    fail(next) {
      words = next;
    },
    callback: (...fields) => post(signPaymentCallback(callbackFields(...fields), keys.privateKey)),
    forged: (reference) => resplitPair(reference, keys.privateKey).forged,
    post,
    webhook(decision, signedAt) {
      const event = {
        event: `connected_account.${decision}`,
        idempotency_key: `evt_${decision}_${signedAt}`,
        occurred_at: new Date(signedAt).toISOString(),
        data: {
          object: "connected_account",
          id: "cm_4f1e",
          master_merchant_id: "mm_1",
          kyc_status: decision,
        },
      };
      return post(signConnectWebhook(event, WEBHOOK_SECRET), "/webhooks/connect");
    },
    async discardOne() {
      for await (const { eventId } of (await receiver.events.list({ state: "held", limit: 1 })).events) {
        await receiver.events.discard(eventId, { by: "a colleague", note: "Paid by hand." });
      }
    },
    lockOut() {
      isLockedOut = true;
    },
    async close() {
      server.close();
      await receiver.close({ graceMs: 2_000 });
      server.closeAllConnections();
    },
  };
}
