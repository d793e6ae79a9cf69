import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { type AnyReceiver, createReceiver, type Receiver, Reject } from "@payhooks/core";
import { type AlertChannel, type AlertSender, sendAlerts } from "@payhooks/core/alerts";
import { createInbox } from "@payhooks/core/inbox";
import {
  callbackFields,
  createTestKeys,
  type FakeClock,
  signPaymentCallback,
  type TestKeys,
} from "@payhooks/core/testing";
import { expect, onTestFinished } from "vitest";
import { silent } from "../../../../test/support/silent.ts";
import type { RecordStore } from "../../src/inbox/contract/store.ts";
import { type MemoryStore, memoryStore } from "../../src/memory/store.ts";
import { hmac, source } from "../../src/sources/index.ts";
import { settle, steppedClock } from "../../src/testing/clock.ts";

const keys: TestKeys = createTestKeys();
const BANK_SECRET = "bank-secret-4711";

/** A request that a server got. */
export interface Got {
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
  json(): Record<string, unknown>;
}

/** A real server of somebody who is told. `answer` is what it answers from now on. */
export interface RecordingChannel {
  readonly url: string;
  readonly got: Got[];
  answer: { readonly status: number; readonly headers?: Readonly<Record<string, string>> };
}

export async function startChannel(): Promise<RecordingChannel> {
  const got: Got[] = [];
  const server = createServer(async (request, response) => {
    const body = await text(request);
    got.push({ path: request.url ?? "", headers: request.headers, body, json: () => JSON.parse(body) });
    response.writeHead(one.answer.status, one.answer.headers).end("the answer");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  server.unref();
  const { port } = server.address() as AddressInfo;
  const one: RecordingChannel = { url: `http://127.0.0.1:${port}/secret-path`, got, answer: { status: 200 } };
  return one;
}

/** One process of an application. */
export interface Process {
  readonly receiver: Receiver;
  readonly alerts: AlertSender;
  readonly problems: string[];
  /** True while this process does not reach the inbox's server. */
  isCutOff: boolean;
}

/**
 * Processes on one inbox, whose server can go away, and on one clock, which waits for messages on their way, but not for those of a
 * channel named `hangs`.
 */
export interface Fleet {
  readonly clock: FakeClock;
  isAway: boolean;
  /** True while the server answers everything but counts. */
  cannotCount: boolean;
  /** True if the handler of deposits rejects them. */
  rejects: boolean;
  /** The names of the sources of every receiver that starts. */
  sources: readonly string[];
  /** `aheadMs` is by how much the clock that the process sends alerts by is ahead. */
  start(
    channels: () => readonly AlertChannel[],
    onProblem?: (problem: string) => never,
    aheadMs?: number,
  ): Promise<Process>;
}

export function fleet(): Fleet {
  let underWay = 0;
  const clock = steppedClock(Date.UTC(2026, 10, 27), async () => {
    // The work after a message takes some turns as well.
    let wasUnderWay = false;
    do {
      wasUnderWay = underWay > 0;
      await settle();
    } while (wasUnderWay || underWay > 0);
  });
  const store = memoryStore({ clock });
  const counted = ({ name, send }: AlertChannel): AlertChannel => ({
    name,
    async send(message, signal) {
      if (name === "hangs") return send(message, signal);
      underWay++;
      try {
        await send(message, signal);
      } finally {
        underWay--;
      }
    },
  });
  const one: Fleet = {
    clock,
    isAway: false,
    cannotCount: false,
    rejects: false,
    sources: [],
    async start(channels, onProblem, aheadMs = 0) {
      const problems: string[] = [];
      const process = { isCutOff: false };
      const bank = source({
        verify: hmac({ header: "x-signature", secret: BANK_SECRET }),
        read: ({ body }) => ({ id: body.id, name: "paid", data: null }),
      });
      const receiver: Receiver = createReceiver({
        payments: { publicKey: keys.publicKey },
        sources: Object.fromEntries(one.sources.map((name) => [name, bank])),
        inbox: createInbox(
          remote(
            store,
            () => one.isAway || process.isCutOff,
            () => one.cannotCount,
          ),
          { clock },
        ),
        clock,
        logger: silent,
      });
      receiver.onDeposit(() => {
        if (one.rejects) throw new Reject("no such order");
      });
      receiver.ignore("WITHDRAWAL");
      await receiver.start();
      const alerts = sendAlerts(receiver, {
        to: channels().map(counted),
        from: "shop <test>",
        clock: { ...clock, now: () => clock.now() + aheadMs },
        onProblem(problem) {
          problems.push(problem);
          onProblem?.(problem);
        },
      });
      onTestFinished(async () => {
        await alerts.stop();
        await receiver.close({ graceMs: 0 });
      });
      return Object.assign(process, { receiver, alerts, problems });
    },
  };
  return one;
}

/** The store as it is on a server, which may be away. */
function remote(store: MemoryStore, isAway: () => boolean, cannotCount: () => boolean): RecordStore {
  const asked = async <T>(ask: () => T): Promise<Awaited<T>> => {
    if (isAway()) throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
    return await ask();
  };
  return {
    ...store,
    immediate: false,
    endsWithProcess: false,
    read: (given) => asked(() => store.read(given)),
    swap: (items) => asked(() => store.swap(items)),
    takeDue: (limit, hideMs) => asked(() => store.takeDue(limit, hideMs)),
    counts: () =>
      asked(() => {
        if (cannotCount()) throw new Error("permission denied");
        return store.counts();
      }),
  };
}

export async function deliver(
  { receiver }: Process,
  clock: FakeClock,
  privateKey: string = keys.privateKey,
): Promise<void> {
  const { headers, rawBody } = signPaymentCallback(callbackFields({}, clock.now()), privateKey);
  const delivery = { method: "POST", url: "/", headers: new Headers(headers), rawBody };
  const reply = await receiver.payments.receive(delivery);
  expect(reply.status).toBe(privateKey === keys.privateKey ? 200 : 401);
}

/** Sends a source what its secret has not signed, until that is an incident. */
export async function forge({ receiver }: { readonly receiver: AnyReceiver }, source: string): Promise<void> {
  for (let n = 0; n < 10; n++) {
    const delivery = { method: "POST", url: "/", headers: new Headers(), rawBody: new Uint8Array() };
    const reply = await receiver.sources[source]?.receive(delivery);
    expect(reply?.status).toBe(401);
  }
}
