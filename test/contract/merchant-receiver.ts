import {
  createReceiver,
  type Notice,
  type Receiver,
  type ReceiverOptions,
  type StoredEvent,
  type WorkReport,
} from "@payhooks/core";
import {
  anyCallbackFields,
  type CallbackFields,
  createTestKeys,
  type SignedDelivery,
  signPaymentCallback,
  type TestKeys,
} from "@payhooks/core/testing";
import { expect } from "vitest";
import { silent } from "../support/silent.ts";
import type { Process, Rig } from "./inbox-processes.ts";

let keys: TestKeys | null = null;

/** The keys of every merchant. */
export function merchantKeys(): TestKeys {
  keys ??= createTestKeys();
  return keys;
}

/** A merchant's process: a real receiver with real signatures, which runs nothing before `work`, unless it is told to. */
export interface MerchantReceiver {
  readonly receiver: Receiver;
  readonly process: Process;
  /** The key that signs its callbacks. */
  readonly privateKey: TestKeys["privateKey"];
  /** Everything noticed so far. */
  notices(): Promise<readonly Notice[]>;
  /** Delivers a signed callback that must be answered 200, and returns its eventId. */
  deliver(fields: CallbackFields): Promise<string>;
  /** Delivers a signed webhook of the connect flow in the same way. */
  deliverWebhook(sent: SignedDelivery): Promise<string>;
  work(): Promise<WorkReport>;
  storedEvent(eventId: string): Promise<StoredEvent | null>;
}

/** The fields of a deposit, to be delivered as often as one likes. */
export function depositOf(rig: Rig, fields: CallbackFields = {}): CallbackFields {
  return anyCallbackFields(fields, rig.now());
}

export function merchantOn(
  process: Process,
  register: (receiver: Receiver) => unknown,
  options: Partial<Omit<ReceiverOptions, "inbox" | "clock">> = {},
): MerchantReceiver {
  const { privateKey, publicKey } = merchantKeys();
  const receiver = createReceiver({
    logger: silent,
    run: "elsewhere",
    ...options,
    payments: { ...options.payments, publicKey: options.payments?.publicKey ?? publicKey },
    inbox: process.inbox,
    clock: process.clock,
  });
  register(receiver);
  const noticed: Notice[] = [];
  receiver.observe((notice) => noticed.push(notice));
  /** Notices are handed on off the path, at the end of the turn. */
  async function notices(): Promise<readonly Notice[]> {
    await new Promise((resolve) => setImmediate(resolve));
    return noticed;
  }
  async function deliver(
    flow: "payments" | "connect",
    { rawBody, headers }: SignedDelivery,
  ): Promise<string> {
    await notices();
    const from = noticed.length;
    const { status, body } = await receiver[flow].receive({
      method: "POST",
      url: `/${flow}`,
      headers: { get: (name) => headers[name] ?? null },
      rawBody,
    });
    expect({ status, body }).toEqual({ status: 200, body: '{"received":true}' });
    const told = (await notices()).slice(from);
    const named = told.find((notice) => "eventId" in notice);
    if (named !== undefined && "eventId" in named) return named.eventId;
    return expect.fail(
      `no notice names the event: ${told.map(({ type }) => type).join(", ") || "none at all"}`,
    );
  }
  return {
    receiver,
    process,
    privateKey,
    notices,
    deliver: (fields) => deliver("payments", signPaymentCallback(fields, privateKey)),
    deliverWebhook: (sent) => deliver("connect", sent),
    work: () => receiver.work({ deadlineMs: 3_600_000, limit: 1_000 }),
    storedEvent: (eventId) => receiver.events.get(eventId),
  };
}

/** The notices of one type, in order. */
export async function noticed<Type extends Notice["type"]>(
  { notices }: MerchantReceiver,
  type: Type,
): Promise<readonly Extract<Notice, { readonly type: Type }>[]> {
  return (await notices()).filter(
    (notice): notice is Extract<Notice, { readonly type: Type }> => notice.type === type,
  );
}
