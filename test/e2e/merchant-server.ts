/** A merchant's server: Express, both flows mounted, on a real socket, with everything that happens on record. */

import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import {
  createReceiver,
  memoryInbox,
  type Notice,
  type Receiver,
  type ReceiverOptions,
  type StoredEvent,
} from "@payhooks/core";
import { eachEvent } from "@payhooks/core/events";
import {
  anyCallbackFields,
  anyConnectEvent,
  type CallbackFields,
  createTestKeys,
  type FakeClock,
  fakeClock,
  type SignedDelivery,
  signConnectWebhook,
  signPaymentCallback,
  type TestKeys,
} from "@payhooks/core/testing";
import { connectWebhooks, paymentCallbacks } from "@payhooks/express";
import express, { type Express } from "express";
import { type Answer, exchange, type HeaderLines, request } from "./wire.ts";

export const SECRET = "whsec_for_tests_0123456789";
export const PATHS = { payments: "/callbacks/pay", connect: "/webhooks/connect" } as const;

let sharedKeys: TestKeys | undefined;

/** One key pair per test file: making one takes a while. */
export function testKeys(): TestKeys {
  sharedKeys ??= createTestKeys();
  return sharedKeys;
}

/** The parts of the merchant that tests may change. */
export interface MerchantOptions {
  /** Over options that are there already: both flows, a memory inbox, a fake clock. */
  readonly receiver?: ((clock: FakeClock) => Partial<ReceiverOptions>) | undefined;
  /** Registers handlers; default: those of all events, which do nothing. */
  readonly register?: ((receiver: Receiver) => unknown) | undefined;
  /** Makes the application; default: both flows under {@link PATHS}. */
  readonly app?: ((receiver: Receiver) => RequestListener) | undefined;
}

export interface MerchantServer {
  readonly port: number;
  readonly receiver: Receiver;
  readonly clock: FakeClock;
  readonly notices: readonly Notice[];
  /** Lines of the log at the levels warn and error. */
  readonly lines: readonly string[];
  /** Resolves once at least `count` notices are such. */
  until(isIt: (notice: Notice) => boolean, count?: number): Promise<void>;
  /** A signed callback: a SUCCESS deposit unless the fields say otherwise. */
  callback(fields?: CallbackFields): SignedDelivery;
  /** A signed webhook. */
  webhook(event?: string, overrides?: Readonly<Record<string, unknown>>): SignedDelivery;
  /** Sends it to the flow's path, on a connection of its own. */
  send(flow: keyof typeof PATHS, delivery: SignedDelivery): Promise<Answer>;
  held(): Promise<readonly StoredEvent[]>;
}

/** The bytes of a delivery's request. */
export function requestOf(path: string, delivery: SignedDelivery, more: HeaderLines = []): Buffer {
  return request("POST", path, [...Object.entries(delivery.headers), ...more], delivery.rawBody);
}

const closers: (() => Promise<void>)[] = [];

/** Ends every merchant that was started since the last call. */
export async function closeMerchants(): Promise<void> {
  for (const close of closers.splice(0).reverse()) await close();
}

export function registerAll(receiver: Receiver): void {
  const nothing = async (): Promise<void> => {};
  receiver.onDeposit({ SUCCESS: nothing, FAILED: nothing, PENDING: nothing });
  receiver.onWithdrawal({ SUCCESS: nothing, FAILED: nothing, PENDING: nothing });
  receiver.onConnectedAccountApproved(nothing).onConnectedAccountDeclined(nothing);
  receiver.onSettlementApproved(nothing).onSettlementDeclined(nothing);
}

function mountBoth(receiver: Receiver): Express {
  const app = express();
  app.use(PATHS.payments, paymentCallbacks(receiver));
  app.use(PATHS.connect, connectWebhooks(receiver));
  return app;
}

/** Serves on a free port, with a backlog that takes all sockets of a test at once. */
export async function listen(
  app: RequestListener,
): Promise<{ readonly port: number; readonly server: Server }> {
  const server = createServer(app);
  await new Promise<void>((resolve) =>
    server.listen({ port: 0, host: "127.0.0.1", backlog: 2_048 }, resolve),
  );
  closers.push(async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  });
  return { port: (server.address() as AddressInfo).port, server };
}

export async function startMerchant({
  receiver: changed = () => ({}),
  register = registerAll,
  app = mountBoth,
}: MerchantOptions = {}): Promise<MerchantServer> {
  const clock = fakeClock();
  const keys = testKeys();
  const notices: Notice[] = [];
  const lines: string[] = [];
  const keep = (message: string): void => void lines.push(message);
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    connect: { secret: SECRET },
    inbox: memoryInbox({ clock }),
    clock,
    logger: { info: () => {}, warn: keep, error: keep },
    ...changed(clock),
  });
  register(receiver);
  const watchers = new Set<() => void>();
  receiver.observe((notice) => {
    notices.push(notice);
    for (const look of watchers) look();
  });
  const { port } = await listen(app(receiver));
  closers.push(async () => {
    // The clock stands still: a grace of nothing, and the moment that passes it.
    const closing = receiver.close({ graceMs: 0 });
    await clock.advance(1);
    await closing;
  });
  return {
    port,
    receiver,
    clock,
    notices,
    lines,
    until: (isIt, count = 1) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (notices.filter(isIt).length < count) return;
          watchers.delete(look);
          resolve();
        };
        watchers.add(look);
        look();
      }),
    callback: (fields = {}) => signPaymentCallback(anyCallbackFields(fields, clock.now()), keys.privateKey),
    webhook: (event = "settlement.approved", overrides = {}) =>
      signConnectWebhook(anyConnectEvent(event, overrides, clock.now()), SECRET),
    send: (flow, delivery) => exchange(port, requestOf(PATHS[flow], delivery)),
    async held() {
      const entries: StoredEvent[] = [];
      for await (const entry of eachEvent(receiver.events, { state: "held" })) entries.push(entry);
      return entries;
    },
  };
}
