import type { Effects } from "../effects/effects.ts";
import type { HandlerContext } from "../handlers/handler.ts";
import { eachEvent } from "../inbox/contract/events.ts";
import type { RecordStore, VersionedRecord } from "../inbox/contract/store.ts";
import { createInbox } from "../inbox/engine.ts";
import { recordKeyOf } from "../inbox/record/event.ts";
import type { StoredEvent } from "../inbox/record/stored-event.ts";
import { memoryStore } from "../memory/store.ts";
import type { Logger } from "../notices/logger.ts";
import type { Notice } from "../notices/notice.ts";
import { checkNames } from "../protocol/check-names.ts";
import type { Reply } from "../protocol/delivery.ts";
import type { ConnectEvent, FlowName, ServiceFlow } from "../protocol/events.ts";
import { createReceiver } from "../receiver/create-receiver.ts";
import type { ReceiverOptions } from "../receiver/options.ts";
import { endpointOf, type NoSources, type Receiver } from "../receiver/receiver.ts";
import type { Sources } from "../sources/source.ts";
import {
  callbackFields,
  connectEvent,
  type DocumentedFields,
  type SomeMembers,
  type WebhookChanges,
} from "./builders.ts";
import { type Duration, type FakeClock, settle, steppedClock } from "./clock.ts";
import {
  createTestKeys,
  type SignedDelivery,
  signConnectWebhook,
  signPaymentCallback,
  type TestKeys,
} from "./signers.ts";

/** Options of {@link createHarness}. */
export interface HarnessOptions<
  Context extends HandlerContext = HandlerContext,
  S extends Sources = NoSources,
> {
  /** Registers the handlers under test, as the program does when it starts. */
  readonly register: (receiver: Receiver<Context, S>) => unknown;
  /** Further options of the receiver. The harness sets `inbox`, `clock` and `run`. */
  readonly receiver?: Omit<ReceiverOptions<S>, "inbox" | "clock" | "run"> | undefined;
  /** Keys to use. Making them takes time, so you may use the same ones again. */
  readonly keys?: TestKeys | undefined;
  /** When the clock starts, in milliseconds since the epoch. Default: the time of the call. */
  readonly now?: number | undefined;
}

/** The result of a delivery, once everything that it started has come to rest. */
export interface HarnessDelivery {
  /** The HTTP status of the answer. */
  readonly status: number;
  /** The error code of the answer, or null. */
  readonly code: string | null;
  /** The event's state afterwards: `retrying` if a retry is due later, `refused` if it was not accepted. */
  readonly outcome: StoredEvent["state"] | "refused";
  /** Handlers that were started by this call, in order. */
  readonly ran: readonly string[];
  /** Null when it was refused. */
  readonly eventId: string | null;
  readonly flow: FlowName;
  /** The sent request, so that you can send it again. */
  readonly sent: SignedDelivery;
}

/** Fields of a payment callback whose event is known. */
type PaymentFields = SomeMembers<Omit<DocumentedFields, "event">>;

/** A receiver with real keys, in memory, on a fake clock. */
export interface Harness<S extends Sources = NoSources> {
  readonly receiver: Receiver<HandlerContext, S>;
  /** The receiver's clock, for your own code. Its `advance` is that of the harness. */
  readonly clock: FakeClock;
  readonly keys: TestKeys;
  /** The secret that webhooks are signed with. */
  readonly secret: string;
  /** All notices so far. */
  readonly notices: readonly Notice[];
  /** Delivers a signed DEPOSIT; SUCCESS unless `status` says otherwise. */
  deposit(fields?: PaymentFields): Promise<HarnessDelivery>;
  /** Delivers a signed WITHDRAWAL; SUCCESS unless `status` says otherwise. */
  withdrawal(fields?: PaymentFields): Promise<HarnessDelivery>;
  /** Delivers a signed connected-account webhook. */
  webhook<Name extends ConnectEvent["event"]>(
    event: Name,
    changes?: WebhookChanges<Name>,
  ): Promise<HarnessDelivery>;
  /** Delivers any bytes to a flow or a source. */
  deliver(flow: ServiceFlow | (keyof S & string), delivery: SignedDelivery): Promise<HarnessDelivery>;
  /** Delivers the same bytes again, as the service does if it gets no 2xx. */
  redeliver(delivery: HarnessDelivery): Promise<HarnessDelivery>;
  /**
   * Moves the clock forward, and runs every retry that falls due on the way, in order and at its time. The clock stands still
   * while a handler runs. Returns the handlers that were started.
   */
  advance(duration: Duration): Promise<readonly string[]>;
  /**
   * Goes back to the moment after `handler` returned and before that was stored, kills the process there, and lets another
   * process take over. This is the window in which a handler does run twice. The second run has the same `effectId`.
   */
  crashAfter(handler: string, delivery: HarnessDelivery): Promise<HarnessDelivery>;
  /** The held events. */
  held(): Promise<readonly StoredEvent[]>;
  /** Closes the receiver at once, without a grace period. */
  close(): Promise<void>;
}

function codeIn({ body }: Reply): string | null {
  return (JSON.parse(body) as { error?: { code: string } }).error?.code ?? null;
}

const LEASE_MS = 30_000;
const TEST_SECRET = "whsec_test_0123456789abcdef";
const silentLogger: Logger = { info: () => {}, warn: () => {}, error: () => {} };

/**
 * Makes a harness for tests of a merchant's own handlers, with real keys and signatures, the real receiver, and time that is
 * moved by hand.
 *
 * @example
 * ```ts
 * const t = await createHarness({ register: (receiver) => receiver.onDeposit(credit) });
 * const delivery = await t.deposit({ referenceId: "o-1" });
 * await t.redeliver(delivery);
 * ```
 */
export async function createHarness<Context extends HandlerContext, const S extends Sources = NoSources>(
  options: HarnessOptions<Context, S> & { readonly receiver: { readonly effects: Effects<Context> } },
): Promise<Harness<S>>;
export async function createHarness<const S extends Sources = NoSources>(
  options: HarnessOptions<HandlerContext, S>,
): Promise<Harness<S>>;
export async function createHarness(
  harnessOptions: HarnessOptions<HandlerContext, Sources>,
): Promise<Harness<Sources>> {
  checkNames("createHarness", harnessOptions, { register: true, receiver: true, keys: true, now: true });
  const { register, receiver: options = {}, keys = createTestKeys(), now = Date.now() } = harnessOptions;
  const { names } = options;
  const clock = steppedClock(now, runDueEvents);
  const memory = memoryStore({ clock, maxRecords: 10_000, maxUnfinished: 10_000 });
  /** Records as they were while a handler ran, by event and handler. */
  const startedRecords = new Map<string, VersionedRecord>();
  const store: RecordStore = {
    ...memory,
    swap(items) {
      for (const { key, version, record } of items) {
        for (const [slotKey, { work }] of Object.entries(record.slots)) {
          for (const [name, { state }] of Object.entries(work?.handlerStates ?? {})) {
            if (state === "started") startedRecords.set(`${key}${slotKey} ${name}`, { version, record });
          }
        }
      }
      return memory.swap(items);
    },
  };
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    connect: { secret: TEST_SECRET },
    logger: silentLogger,
    ...options,
    inbox: createInbox(store, { leaseMs: LEASE_MS, clock }),
    clock,
    run: "after-response",
  });
  register(receiver);
  const notices: Notice[] = [];
  receiver.observe((notice) => notices.push(notice));
  await receiver.start();

  let forgetNextDue = (): void => {};
  let isClosing = false;

  /** Runs what is due, and makes the clock stop when the next event falls due. */
  async function runDueEvents(): Promise<void> {
    await settle();
    if (isClosing) return;
    const { nextDueAt } = await receiver.work();
    await settle();
    forgetNextDue();
    if (nextDueAt !== null) forgetNextDue = clock.after(nextDueAt - clock.now(), () => {});
  }

  /** Runs an action, and reports which handlers it started, for one event or for all. */
  async function recordRuns<T>(
    action: () => Promise<T>,
    eventId?: string,
  ): Promise<{ readonly result: T; readonly ran: readonly string[] }> {
    await settle();
    const firstNotice = notices.length;
    const result = await action();
    await settle();
    const started = notices.slice(firstNotice).filter((notice) => notice.type === "started");
    const ran = started.filter((notice) => eventId === undefined || notice.eventId === eventId);
    return { result, ran: ran.map(({ handler }) => handler) };
  }

  async function deliver(flow: FlowName, sent: SignedDelivery): Promise<HarnessDelivery> {
    await settle();
    const firstNotice = notices.length;
    const headers = new Headers(sent.headers);
    const work: Promise<unknown>[] = [];
    const { result: reply, ran } = await recordRuns(async () => {
      const answer: Reply = await endpointOf(receiver, flow).receive({
        method: "POST",
        url: `/${flow}`,
        headers,
        rawBody: sent.rawBody,
        remoteAddress: "192.0.2.1",
        waitUntil: (promise) => work.push(promise),
      });
      await Promise.all(work);
      return answer;
    });
    const eventId =
      notices.slice(firstNotice).flatMap((notice) => ("eventId" in notice ? [notice.eventId] : []))[0] ??
      null;
    const isAccepted = reply.status < 300;
    const acceptedEventId = isAccepted ? eventId : null;
    const state = acceptedEventId === null ? undefined : (await receiver.events.get(acceptedEventId))?.state;
    return {
      status: reply.status,
      code: isAccepted ? null : codeIn(reply),
      outcome: isAccepted ? (state ?? "stale") : "refused",
      ran,
      eventId: acceptedEventId,
      flow,
      sent,
    };
  }

  function payment(event: DocumentedFields["event"], fields: PaymentFields): Promise<HarnessDelivery> {
    const allFields = callbackFields({ ...fields, event }, clock.now());
    return deliver("payments", signPaymentCallback(allFields, keys.privateKey, { names }));
  }

  return {
    receiver,
    clock,
    keys,
    secret: TEST_SECRET,
    notices,
    deposit: (fields = {}) => payment("DEPOSIT", fields),
    withdrawal: (fields = {}) => payment("WITHDRAWAL", fields),
    webhook: (event, changes = {}) =>
      deliver(
        "connect",
        signConnectWebhook(connectEvent(event, changes, clock.now()), TEST_SECRET, { names }),
      ),
    deliver,
    redeliver: ({ flow, sent }) => deliver(flow, sent),
    async advance(duration) {
      const { ran } = await recordRuns(() => clock.advance(duration));
      return ran;
    },
    async crashAfter(handler, delivery) {
      const { eventId } = delivery;
      const startedRecord = startedRecords.get(`${eventId} ${handler}`);
      const isDone = notices.some(
        (notice) => notice.type === "done" && notice.eventId === eventId && notice.handler === handler,
      );
      if (eventId === null || startedRecord === undefined || !isDone) {
        throw new Error(
          `The handler "${handler}" has not finished on this delivery. crashAfter needs one that has.`,
        );
      }
      const { ran } = await recordRuns(async () => {
        memory.restore(recordKeyOf(eventId), startedRecord);
        await clock.advance(LEASE_MS + 1);
        await receiver.run(eventId);
      }, eventId);
      return { ...delivery, ran, outcome: (await receiver.events.get(eventId))?.state ?? "stale" };
    },
    async held() {
      const events: StoredEvent[] = [];
      for await (const event of eachEvent(receiver.events, { state: "held" })) events.push(event);
      return events;
    },
    async close() {
      isClosing = true;
      const closing = receiver.close({ graceMs: 0 });
      await clock.advance(1);
      await closing;
    },
  };
}
