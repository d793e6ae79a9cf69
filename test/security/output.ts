import { createReceiver, type Inbox, type LookupTransaction, type Receiver } from "@payhooks/core";
import { eachEvent } from "@payhooks/core/events";
import {
  anyConnectEvent,
  callbackFields,
  type SignedDelivery,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { expect } from "vitest";
import { CANARY, keys } from "./canaries.ts";

/** An inbox whose store can be made to fail. */
export interface FailingFixture {
  readonly inbox: Inbox;
  /** True where what runs in the background fails too. */
  readonly failsInside: boolean;
  fail(): unknown;
}

type Called = Exclude<keyof Receiver, `on${string}` | "ignore" | "observe" | "close" | "effects">;
type Calls = Readonly<Record<string, () => unknown>>;

const callback = (fields: Record<string, string> = {}): SignedDelivery => {
  const { personal } = CANARY;
  const all = callbackFields({ message: personal, userId: personal, providerTxId: personal, ...fields });
  return signPaymentCallback(all, keys.privateKey);
};

const webhook = (): SignedDelivery =>
  signConnectWebhook(anyConnectEvent("settlement.approved", { note: CANARY.personal }), CANARY.webhookSecret);

const lookUp = (): LookupTransaction => ({
  id: crypto.randomUUID(),
  reference: "order-1",
  type: "DEPOSIT",
  status: "SUCCESS",
  base_amount: "10.50",
  callback_url: "https://merchant.example/cb",
  updated_at: new Date().toISOString(),
  message: CANARY.personal,
});

/** Each public method, and each of what its members have: one more must be listed here to compile. */
function callsOf(receiver: Receiver, eventId: string): Readonly<Record<Called, Calls>> {
  const delivered = (flow: "payments" | "connect", { rawBody, headers }: SignedDelivery) =>
    receiver[flow].receive({
      method: "POST",
      url: "/",
      headers: { get: (name) => headers[name] ?? null },
      rawBody,
    });
  const decision = { by: "ada", note: "a test" };
  const head = { method: "GET", headers: { get: () => null } };
  const payments: Record<keyof Receiver["payments"], () => unknown> = {
    flow: () => receiver.payments.flow,
    maxBodyBytes: () => receiver.payments.maxBodyBytes,
    bodyTimeoutMs: () => receiver.payments.bodyTimeoutMs,
    ack: () => receiver.payments.ack,
    run: () => receiver.payments.run,
    check: () => receiver.payments.check(head),
    receive: () => delivered("payments", callback()),
    refuse: () => receiver.payments.refuse("ERR_BODY_INCOMPLETE", "a test"),
    markHandled: () => receiver.payments.markHandled({ id: "pay-1", event: "DEPOSIT", status: "SUCCESS" }),
    ingest: () => receiver.payments.ingest(lookUp()),
  };
  const connect: Record<keyof Receiver["connect"], () => unknown> = {
    flow: () => receiver.connect.flow,
    maxBodyBytes: () => receiver.connect.maxBodyBytes,
    bodyTimeoutMs: () => receiver.connect.bodyTimeoutMs,
    ack: () => receiver.connect.ack,
    run: () => receiver.connect.run,
    check: () => receiver.connect.check(head),
    receive: () => delivered("connect", webhook()),
    refuse: () => receiver.connect.refuse("ERR_BODY_INCOMPLETE", "a test"),
    markHandled: () => receiver.connect.markHandled({ id: "evt_1", event: "settlement.approved" }),
  };
  const events: Record<keyof Receiver["events"], () => unknown> = {
    get: async () => ({ ...(await receiver.events.get(eventId)), delivery: null }),
    list: async () => {
      const { events } = await receiver.events.list({ referenceId: "order-1" });
      return events.map((event) => ({ ...event, delivery: null }));
    },
    referenceHolder: () => receiver.events.referenceHolder(eventId),
    subjectOrder: () => receiver.events.subjectOrder(eventId),
    counts: () => receiver.events.counts(),
    replay: () => receiver.events.replay(eventId, decision),
    retryNow: () => receiver.events.retryNow(eventId, decision),
    discard: () => receiver.events.discard(eventId, decision),
    erase: () => receiver.events.erase(eventId, { by: decision.by, unfinished: true }),
  };
  return {
    payments,
    connect,
    events,
    sources: {},
    start: { start: () => receiver.start() },
    work: { work: () => receiver.work({ deadlineMs: 100 }) },
    run: { run: () => receiver.run(eventId) },
    lease: { lease: () => receiver.lease("sweep", 1_000) },
    viewLease: { viewLease: () => receiver.viewLease("sweep") },
    pause: { pause: () => receiver.pause() },
    resume: { resume: () => receiver.resume() },
    handlersOf: {
      handlersOf: () => receiver.handlersOf({ flow: "payments", event: "DEPOSIT", status: "SUCCESS" }),
    },
    contents: {
      contents: async () => {
        const event = await receiver.events.get(eventId);
        return event?.delivery == null ? null : Object.keys(receiver.contents(event.delivery));
      },
    },
    health: { health: () => receiver.health() },
    live: { live: () => receiver.live() },
    ready: { ready: () => receiver.ready({ maxDueAgeMs: 1 }) },
  };
}

/** Collects the words of a receiver while its store works, and then fails: answers, errors, notices and log lines. */
export async function collectOutput({
  inbox,
  failsInside,
  fail,
}: FailingFixture): Promise<readonly unknown[]> {
  const output: unknown[] = [];
  const failed = new Set<string>();
  const write = (...parts: unknown[]): void => void output.push(...parts);
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    connect: { secret: CANARY.webhookSecret },
    inbox,
    logger: { info: write, warn: write, error: write },
    logLevel: "info",
    limits: { acceptTimeoutMs: 1_000 },
  });
  receiver.observe((notice) => {
    output.push(notice);
    if (notice.type === "inbox-error") failed.add(notice.during);
  });
  const released: (() => void)[] = [];
  receiver.onDeposit(() => new Promise<void>((resolve) => released.push(resolve)));
  receiver
    .onSettlementApproved(() => {})
    .ignore("WITHDRAWAL")
    .ignore("settlement.declined");
  receiver.ignore("connected_account.approved").ignore("connected_account.declined");
  await receiver.start();

  const send = callsOf(receiver, "0".repeat(48)).payments.receive;
  output.push(await send?.());
  await expect.poll(() => released.length).toBe(1);
  const malformed = callback({ status: "success" });
  const { rawBody } = malformed;
  const headers = { get: (name: string) => malformed.headers[name] ?? null };
  output.push(await receiver.payments.receive({ method: "POST", url: "/", headers, rawBody }));
  let entry = "";
  for await (const { eventId } of eachEvent(receiver.events, { state: "held" })) entry = eventId;
  expect(entry).not.toBe("");

  await fail();
  // A run whose end cannot be written, and jobs that cannot be taken.
  for (const release of released) release();
  if (failsInside) await expect.poll(() => failed.size).toBeGreaterThan(0);
  const calls = Object.values(callsOf(receiver, entry)).flatMap((group) => Object.values(group));
  // Together, since a write whose fate is unknown is sent again until its caller's time is over.
  const outcomes = await Promise.allSettled(calls.map(async (call) => call()));
  for (const outcome of outcomes)
    output.push(outcome.status === "fulfilled" ? outcome.value : outcome.reason);
  expect(outcomes.filter(({ status }) => status === "rejected").length).toBeGreaterThan(1);
  output.push(await receiver.close({ graceMs: 0 }).catch((error: unknown) => error));
  return output;
}
