import { createReceiver, memoryInbox, type Receiver } from "@payhooks/core";
import { answerRequest, mountFlow, sharedReceiver } from "@payhooks/core/adapter";
import { callbackFields, createTestKeys, signPaymentCallback } from "@payhooks/core/testing";
import { afterEach, describe, expect, it, vi } from "vitest";

const keys = createTestKeys();
afterEach(() => vi.unstubAllEnvs());

/** The top level of a module, which runs each time that a bundler evaluates it: in a copy of it, or after an edit. */
class Evaluations {
  readonly ran: string[] = [];
  readonly made: string[] = [];
  readonly closed: string[] = [];
  readonly #shelf: string;

  constructor(environment: "development" | "production") {
    vi.stubEnv("NODE_ENV", environment);
    // Shelves live as long as the process: each test has one of its own.
    this.#shelf = crypto.randomUUID();
  }

  evaluate(text: string): () => Receiver {
    return sharedReceiver(() => {
      this.made.push(text);
      const receiver = createReceiver({
        payments: { publicKey: keys.publicKey },
        inbox: memoryInbox(),
        ack: "handled",
      });
      receiver.onDeposit(() => void this.ran.push(text)).ignore("WITHDRAWAL");
      const close = receiver.close.bind(receiver);
      return Object.assign(receiver, {
        close: (options?: Parameters<typeof close>[0]) => {
          this.closed.push(text);
          return close(options);
        },
      });
    }, this.#shelf);
  }
}

/** A route that keeps what it was mounted with, and a delivery to it. */
function routeOf(receiver: () => Receiver): () => Promise<number> {
  const mounted = mountFlow(receiver, "payments");
  return async () => {
    const { headers, rawBody } = signPaymentCallback(callbackFields(), keys.privateKey);
    const body = Buffer.from(rawBody);
    const request = new Request("https://merchant.example/callbacks/pay", { method: "POST", headers, body });
    return (await answerRequest(mounted, request, { fix: "" }, undefined)).status;
  };
}

describe("the receiver that a process shares", () => {
  it("is made when it is first asked for, and once for all copies of its module in production", async () => {
    const t = new Evaluations("production");
    const first = routeOf(t.evaluate("first"));
    const copy = routeOf(t.evaluate("copy"));
    expect(t.made).toEqual([]);
    expect([await copy(), await first(), await copy()]).toEqual([200, 200, 200]);
    expect(t).toMatchObject({ made: ["first"], ran: ["first", "first", "first"], closed: [] });
  });

  it("is replaced by an edited module in development, also for routes that were not edited", async () => {
    const t = new Evaluations("development");
    const before = routeOf(t.evaluate("first"));
    expect(await before()).toBe(200);
    const after = routeOf(t.evaluate("edited"));
    expect(t.closed).toEqual(["first"]);
    expect([await before(), await after()]).toEqual([200, 200]);
    expect(t).toMatchObject({
      made: ["first", "edited"],
      ran: ["first", "edited", "edited"],
      closed: ["first"],
    });
  });

  it("is not made for an edit if no request came after it", async () => {
    const t = new Evaluations("development");
    t.evaluate("first");
    t.evaluate("second");
    expect(await routeOf(t.evaluate("third"))()).toBe(200);
    expect(t).toMatchObject({ made: ["third"], ran: ["third"], closed: [] });
  });

  it("is made again after a factory that threw", () => {
    let secrets = false;
    const shared = sharedReceiver(() => {
      if (!secrets) throw new Error("no secrets yet");
      return createReceiver({ payments: { publicKey: keys.publicKey } });
    }, crypto.randomUUID());
    expect(shared).toThrow("no secrets yet");
    secrets = true;
    expect(shared()).toBe(shared());
  });

  it("is another one under another name", () => {
    const make = (): Receiver => createReceiver({ payments: { publicKey: keys.publicKey } });
    const [one, other] = [crypto.randomUUID(), crypto.randomUUID()];
    expect(sharedReceiver(make, one)()).not.toBe(sharedReceiver(make, other)());
  });
});
