import {
  createReceiver,
  type HandlerContext,
  memoryInbox,
  type Notice,
  type Receiver,
  type ReceiverOptions,
  type Reply,
  type StoredEvent,
} from "@payhooks/core";
import { eachEvent } from "@payhooks/core/events";
import type { Source, SourceEvent } from "@payhooks/core/sources";
import { type FakeClock, fakeClock } from "@payhooks/core/testing";
import { onTestFinished } from "vitest";

const silent = { info: () => {}, warn: () => {}, error: () => {} };

/** One request to a source. */
export interface Sent {
  readonly body: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  readonly method?: string;
  readonly url?: string;
  readonly tenant?: string;
}

/** A receiver in memory with one source, `any`, whose handlers write down what they are given. */
export interface Receiving {
  readonly receiver: Receiver<HandlerContext, { readonly any: Source }>;
  readonly clock: FakeClock;
  readonly ran: SourceEvent[];
  readonly notices: Notice[];
  /** Sends a request, and runs what is due. */
  post(sent: Sent, options?: { readonly run?: boolean }): Promise<Reply>;
  held(): Promise<readonly StoredEvent[]>;
}

export function receiving(
  given: Source<never> | Source,
  options: Omit<ReceiverOptions, "sources"> & {
    readonly register?: (
      receiver: Receiver<HandlerContext, { readonly any: Source }>,
      ran: SourceEvent[],
    ) => unknown;
  } = {},
): Receiving {
  const { register, ...others } = options;
  const clock = (options.clock as FakeClock | undefined) ?? fakeClock();
  const ran: SourceEvent[] = [];
  const notices: Notice[] = [];
  const receiver = createReceiver({
    clock,
    inbox: memoryInbox({ clock }),
    logger: silent,
    run: "after-response",
    ...others,
    sources: { any: given as Source },
  }) as unknown as Receiver<HandlerContext, { readonly any: Source }>;
  if (register === undefined) receiver.on("any", "*", (event) => void ran.push(event));
  else register(receiver, ran);
  receiver.observe((notice) => notices.push(notice));
  onTestFinished(async () => void (await receiver.close({ graceMs: 0 })));
  return {
    receiver,
    clock,
    ran,
    notices,
    async post({ body, headers = {}, method = "POST", url = "/webhooks/any", tenant }, { run = true } = {}) {
      const rawBody = typeof body === "string" ? Buffer.from(body) : body;
      const lower = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
      const delivery = {
        method,
        url,
        rawBody,
        tenant,
        headers: { get: (name: string) => lower.get(name) ?? null },
      };
      const work: Promise<unknown>[] = [];
      const reply =
        receiver.sources.any.check(delivery) ??
        (await receiver.sources.any.receive(
          { ...delivery, waitUntil: (one) => work.push(one) },
          { mounted: true },
        ));
      await Promise.all(work);
      if (run) await receiver.work();
      await new Promise((resolve) => setImmediate(resolve));
      return reply;
    },
    async held() {
      const found: StoredEvent[] = [];
      for await (const event of eachEvent(receiver.events, { state: "held" })) found.push(event);
      return found;
    },
  };
}
