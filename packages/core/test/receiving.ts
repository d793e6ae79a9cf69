import {
  type AnyEvent,
  createReceiver,
  type Delivery,
  isPayhooksError,
  type Logger,
  memoryInbox,
  type Notice,
  type PayhooksError,
  type Receiver,
  type ReceiverOptions,
  type Reply,
  type StoredEvent,
} from "@payhooks/core";
import { eachEvent } from "@payhooks/core/events";
import { type FakeClock, fakeClock, type SignedDelivery, signCanonicalString } from "@payhooks/core/testing";
import { openCallback, wireOf } from "../src/flows/callback.ts";
import { SPECIFIED_NAMES } from "../src/names/service-names.ts";

export const SECRET = "whsec_test_0123456789abcdef";

/** A line that went to the logger. */
export type Line = readonly [level: keyof Logger, message: string, facts: unknown];

/** A started receiver in memory, on a clock that stands still, whose handlers write down what they are given. */
export interface Setup {
  readonly receiver: Receiver;
  readonly clock: FakeClock;
  /** Events that handlers were run with, of every name and status. */
  readonly ran: AnyEvent[];
  readonly notices: Notice[];
  readonly lines: Line[];
  /** Sends a delivery and waits until all that it started has come to rest. */
  post(flow: "payments" | "connect", sent: SignedDelivery, more?: Partial<Delivery>): Promise<Reply>;
  held(): Promise<readonly StoredEvent[]>;
}

export function handleEverything(receiver: Receiver, ran: AnyEvent[]): void {
  const write = (event: AnyEvent): void => void ran.push(event);
  receiver
    .onDeposit({ SUCCESS: write, FAILED: write, PENDING: write })
    .onWithdrawal({ SUCCESS: write, FAILED: write, PENDING: write })
    .onConnectedAccountApproved(write)
    .onConnectedAccountDeclined(write)
    .onSettlementApproved(write)
    .onSettlementDeclined(write);
}

export async function setUp(options: ReceiverOptions, clock: FakeClock = fakeClock()): Promise<Setup> {
  const ran: AnyEvent[] = [];
  const notices: Notice[] = [];
  const lines: Line[] = [];
  const logger: Logger = {
    info: (message, facts) => lines.push(["info", message, facts]),
    warn: (message, facts) => lines.push(["warn", message, facts]),
    error: (message, facts) => lines.push(["error", message, facts]),
  };
  const inbox = memoryInbox({ clock, maxRecords: 1_000 });
  const receiver = createReceiver({ clock, inbox, logger, run: "after-response", ...options });
  handleEverything(receiver, ran);
  receiver.observe((notice) => notices.push(notice));
  await receiver.start();
  return {
    receiver,
    clock,
    ran,
    notices,
    lines,
    async post(flow, sent, more = {}) {
      const work: Promise<unknown>[] = [];
      const reply = await receiver[flow].receive({
        ...deliveryOf(sent),
        ...more,
        waitUntil: (w) => work.push(w),
      });
      await Promise.all(work);
      await noticed();
      return reply;
    },
    async held() {
      const entries: StoredEvent[] = [];
      for await (const entry of eachEvent(receiver.events, { state: "held" })) entries.push(entry);
      return entries;
    },
  };
}

export function deliveryOf({ rawBody, headers }: SignedDelivery): Delivery {
  return {
    method: "POST",
    url: "/callbacks",
    headers: { get: (name) => headers[name] ?? null },
    rawBody,
    remoteAddress: "192.0.2.1",
  };
}

/** Notices are handed on in an immediate, so they have arrived in the next one. */
export function noticed(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Milliseconds that an action keeps the processor busy: other processes do not count. */
export function busyMs(action: () => void): number {
  const before = process.cpuUsage();
  action();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** The error code of an answer, or null. */
export function codeOfReply({ body }: Reply): string | null {
  return (JSON.parse(body) as { error?: { code: string } }).error?.code ?? null;
}

/** The error of an action; fails when it throws nothing, or something else. */
export function thrownBy(action: () => unknown): PayhooksError {
  try {
    action();
  } catch (error) {
    if (isPayhooksError(error)) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

/** The error of a promise; fails when it does not reject, or rejects with something else. */
export async function rejectedBy(action: Promise<unknown>): Promise<PayhooksError> {
  const outcome = await action.then(
    () => new Error("nothing was thrown"),
    (error: unknown) => error,
  );
  if (isPayhooksError(outcome)) return outcome;
  throw outcome;
}

/** Signs a body given as JSON text, which may be one that no honest program would write. */
export function signText(text: string, privateKey: string): SignedDelivery {
  const body = openCallback(Buffer.from(text, "utf8"), wireOf(SPECIFIED_NAMES.callback));
  if (body === null) throw new Error(`not a JSON object: ${text}`);
  return withSignature(text, signCanonicalString(body.canonical, privateKey));
}

/** A body given as JSON text with any signature. */
export function withSignature(text: string, signature: string): SignedDelivery {
  const open = text.slice(0, text.lastIndexOf("}"));
  const comma = open.trim() === "{" ? "" : ",";
  return {
    rawBody: Buffer.from(`${open}${comma}"signature":${JSON.stringify(signature)}}`, "utf8"),
    headers: { "content-type": "application/json" },
  };
}

/** The signature that a delivery carries. */
export function signatureOf({ rawBody }: SignedDelivery): string {
  return (JSON.parse(Buffer.from(rawBody).toString("utf8")) as { signature: string }).signature;
}
