/** A merchant's application on an inbox in a file, in this process. */
import { join } from "node:path";
import { createReceiver, type Receiver, type ReceiverOptions, type StoredEvent } from "@payhooks/core";
import { eachEvent } from "@payhooks/core/events";
import { sqliteInbox } from "@payhooks/core/sqlite";
import {
  callbackFields,
  createTestKeys,
  type FakeClock,
  type SignedDelivery,
  signPaymentCallback,
  type TestKeys,
} from "@payhooks/core/testing";
import { expect, onTestFinished } from "vitest";
import { silent } from "../../../../test/support/silent.ts";
import { folder } from "./files.ts";

export const keys: TestKeys = createTestKeys();
/** The person who decides, and the reason. */
export const who: readonly string[] = ["--by", "amina", "--note", "bank was down"];
let databases = 0;

type Fields = Parameters<typeof callbackFields>[0];

export interface Application {
  readonly database: string;
  readonly receiver: Receiver;
  /** The references and amounts that a handler has credited. */
  readonly ran: string[];
  deliver(delivery: SignedDelivery): Promise<void>;
  /** Delivers a payment whose handler fails. */
  fails(fields: Fields): Promise<void>;
  /** Delivers a payment whose handler succeeds. */
  succeeds(fields: Fields): Promise<void>;
  held(): Promise<readonly StoredEvent[]>;
}

export interface ApplicationOptions {
  readonly payments?: Partial<ReceiverOptions["payments"]> | undefined;
  /** How often a handler is tried. Default once. */
  readonly maxAttempts?: number | undefined;
  /** How long a failed attempt waits for the next one. Default 1. */
  readonly backoffMs?: number | undefined;
  /** True if an attempt fails, besides those of `fails`. */
  readonly breaks?: ((referenceId: string, attempt: number) => boolean) | undefined;
  readonly clock?: FakeClock | undefined;
  /** The file of the inbox. Default: a new one. */
  readonly database?: string | undefined;
}

/** Delivers a payment's callback, and waits until its handler has ended if it runs in this process. */
export async function deliverTo(
  receiver: Receiver,
  { headers, rawBody }: Pick<SignedDelivery, "headers" | "rawBody">,
): Promise<void> {
  const work: Promise<unknown>[] = [];
  const reply = await receiver.payments.receive({
    method: "POST",
    url: "/callbacks",
    headers: { get: (name) => headers[name] ?? null },
    rawBody,
    waitUntil: (promise) => work.push(promise),
  });
  expect(reply.status).toBe(200);
  await Promise.all(work);
}

export async function application(options: ApplicationOptions = {}): Promise<Application> {
  const {
    payments,
    maxAttempts = 1,
    backoffMs = 1,
    breaks = () => false,
    clock,
    database = join(folder, `inbox ${++databases}.db`),
  } = options;
  const ran: string[] = [];
  let isBroken = false;
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey, ...payments },
    inbox: sqliteInbox(database, { clock }),
    clock,
    run: "after-response",
    logger: silent,
  });
  receiver.onDeposit(
    ({ referenceId, amount }, { attempt }) => {
      if (isBroken || breaks(referenceId, attempt)) throw new Error("the bank is down");
      ran.push(`${referenceId} ${amount}`);
    },
    { maxAttempts, backoffMs: () => backoffMs },
  );
  await receiver.start();
  onTestFinished(async () => void (await receiver.close({ graceMs: 0 })));
  const deliver = (delivery: SignedDelivery): Promise<void> => deliverTo(receiver, delivery);
  const callback = (fields: Fields): Promise<void> =>
    deliver(signPaymentCallback(callbackFields(fields, clock?.now()), keys.privateKey));
  return {
    database,
    receiver,
    ran,
    deliver,
    async fails(fields) {
      isBroken = true;
      await callback(fields);
      isBroken = false;
    },
    succeeds: callback,
    async held() {
      const list: StoredEvent[] = [];
      for await (const event of eachEvent(receiver.events, { state: "held" })) list.push(event);
      return list;
    },
  };
}
