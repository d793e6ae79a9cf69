import { createReceiver, type Inbox, memoryInbox, type PaymentsOptions, type Receiver } from "@payhooks/core";
import {
  callbackFields,
  createTestKeys,
  type SignedDelivery,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { expect, onTestFinished } from "vitest";
import { silent } from "../../../../test/support/silent.ts";
import type { ConsoleUser } from "../../src/index.ts";
import { MOUNTS, type MountOptions } from "./mounts.ts";

export const keys: ReturnType<typeof createTestKeys> & { readonly webhookSecret: string } = {
  ...createTestKeys(),
  webhookSecret: "whsec_8f14e45fceea167a5a36dedd4bea2543",
};

/** A receiver that ends with its test. Its handler throws what `words` says, once, and the event is then held. */
export interface ConsoleFixture {
  readonly receiver: Receiver;
  words: string | null;
  readonly credited: string[];
  /** Sends a callback; resolves when nothing runs or waits for its first run any longer. */
  deliver(delivery: SignedDelivery): Promise<number>;
  webhook(delivery: SignedDelivery): Promise<number>;
  /** Sends a genuine callback. */
  callback(fields?: Parameters<typeof callbackFields>[0]): Promise<void>;
  /** The console over it, on a real server. */
  open(
    options?: Partial<MountOptions> & { readonly can?: ConsoleUser["can"]; readonly on?: string },
  ): Promise<Page>;
}

/** The requests that a browser would send to a console. */
export interface Page {
  readonly url: string;
  get(query?: string): Promise<Answer>;
  /** As the page's script sends something. */
  decide(body: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer>;
  /** Asks which events a decision about these, or about a whole list, would be about. */
  preview(
    which: { readonly eventIds: readonly string[] } | { readonly query: string },
    decision?: string,
  ): Promise<Previewed>;
}

export interface Previewed {
  readonly html: string;
  readonly events: readonly {
    readonly eventId: string;
    readonly reason: string;
    readonly revision: string;
    readonly handlers?: readonly string[];
  }[];
  readonly gone: number;
  readonly more: boolean;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

const EVERYTHING: ConsoleUser["can"] = ["view", "replay", "discard"];

export async function consoleFixture(
  payments: Partial<PaymentsOptions> = {},
  maxAttempts = 1,
  register: (receiver: Receiver) => unknown = () => {},
  inbox: Inbox = memoryInbox(),
): Promise<ConsoleFixture> {
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey, ...payments },
    connect: { secret: keys.webhookSecret },
    inbox,
    logger: silent,
  });
  onTestFinished(async () => void (await receiver.close({ graceMs: 0 })));
  const deliveredTo = async (
    flow: "payments" | "connect",
    { headers, rawBody }: SignedDelivery,
  ): Promise<number> => {
    const delivery = { method: "POST", url: "/", headers: new Headers(headers), rawBody };
    const { status } = await receiver[flow].receive(delivery);
    await atRest(receiver);
    return status;
  };
  const one: ConsoleFixture = {
    receiver,
    words: null,
    credited: [],
    deliver: (delivery) => deliveredTo("payments", delivery),
    webhook: (delivery) => deliveredTo("connect", delivery),
    async callback(fields) {
      expect(await one.deliver(signPaymentCallback(callbackFields(fields), keys.privateKey))).toBe(200);
    },
    async open({ on = "fetch", can: rights = EVERYTHING, ...options } = {}) {
      const mount = MOUNTS[on];
      if (mount === undefined) throw new Error(`no mount is named ${on}`);
      const { url, close } = await mount(receiver, {
        authorize: () => ({ by: "marta", can: rights }),
        ...options,
      });
      onTestFinished(close);
      return pageAt(url);
    },
  };
  receiver.onDeposit(
    ({ referenceId }) => {
      if (one.words !== null) throw new Error(one.words);
      one.credited.push(referenceId);
    },
    { maxAttempts, backoffMs: () => 3_600_000 },
  );
  register(receiver);
  receiver.ignore("WITHDRAWAL").ignore("settlement.approved").ignore("settlement.declined");
  receiver.ignore("connected_account.approved").ignore("connected_account.declined");
  await receiver.start();
  return one;
}

function pageAt(url: string): Page {
  const answered = async (response: Response): Promise<Answer> => ({
    status: response.status,
    headers: response.headers,
    text: await response.text(),
  });
  const page: Page = {
    url,
    get: async (query = "") => answered(await fetch(url + query)),
    async preview(which, decision = "replay") {
      const { status, text } = await page.decide({ action: "preview", decision, ...which });
      expect(status).toBe(200);
      return JSON.parse(text) as Previewed;
    },
    decide: async (body, headers = {}) =>
      answered(
        await fetch(url, {
          method: "POST",
          headers: {
            "content-type": "application/json",
            "x-payhooks-console": "1",
            "sec-fetch-site": "same-origin",
            ...headers,
          },
          body: typeof body === "string" || body instanceof ReadableStream ? body : JSON.stringify(body),
          duplex: "half",
        }),
      ),
  };
  return page;
}

async function atRest(receiver: Receiver): Promise<void> {
  await expect
    .poll(async () => {
      const { waiting, running } = await receiver.events.counts();
      return waiting + running;
    })
    .toBe(0);
}

/** The eventId of the one held event. */
export async function heldId(receiver: Receiver): Promise<string> {
  const { events } = await receiver.events.list({ state: "held" });
  expect(events).toHaveLength(1);
  return events[0]?.eventId ?? "";
}
