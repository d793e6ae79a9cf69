/** Whatever merchant's code throws is a failed attempt like any other. */
import { createReceiver, isPayhooksError, memoryInbox, type Notice } from "@payhooks/core";
import { callbackFields, createTestKeys, fakeClock, signPaymentCallback } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { silent } from "../../../../test/support/silent.ts";
import { isReject, retryAfterOf } from "../../src/handlers/handler.ts";
import { factsOfThrown } from "../../src/notices/thrown.ts";
import { describeError, originOf, withoutData } from "../../src/protocol/foreign-error.ts";
import { deliveryOf } from "../receiving.ts";

const { publicKey, privateKey } = createTestKeys();

const throws = (): never => {
  throw new Error("not to be read");
};

function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

/** An error, all or some of whose properties throw. */
function lazy(...names: readonly string[]): Error {
  const error = new Error("lazy");
  for (const name of names) Object.defineProperty(error, name, { get: throws });
  return error;
}

function circular(): Error {
  const error = new Error("round");
  error.cause = error;
  return error;
}

/** Values that are hard to read, each made anew. */
const HOSTILE: Readonly<Record<string, () => unknown>> = {
  "a revoked proxy": revoked,
  "a proxy that throws at everything": () =>
    new Proxy(new Error("x"), { get: throws, has: throws, getPrototypeOf: throws, ownKeys: throws }),
  "an error of lazy getters": () => lazy("stack", "name", "message", "cause", "code", "errors"),
  "an error whose message is lazy": () => lazy("message"),
  "an error like ours whose message is lazy": () =>
    Object.assign(lazy("message", "cause"), { name: "PayhooksError", code: "ERR_CLOSING" }),
  "an error whose cause is a revoked proxy": () => new Error("x", { cause: revoked() }),
  "an error whose name is a symbol": () => Object.assign(new Error("x"), { name: Symbol("name") }),
  "an error whose message has no text": () => Object.assign(new Error("x"), { message: Object.create(null) }),
  "an error that is its own cause": circular,
  "a frozen error": () => Object.freeze(new Error("cold")),
  "an AggregateError of a revoked proxy": () => new AggregateError([revoked()], "many"),
  "an error without a stack": () => Object.assign(new Error("x"), { stack: undefined }),
  "a message of a megabyte": () => new Error("x".repeat(1_000_000)),
  "an object whose text throws": () => ({ toString: throws, valueOf: throws, [Symbol.toPrimitive]: throws }),
  "an object without a prototype": () => Object.create(null),
  // biome-ignore lint/suspicious/noThenProperty: it is to look like a promise.
  "a thenable": () => ({ then: throws }),
  // biome-ignore lint/suspicious/noThenProperty: it is to look like a promise.
  "an object whose then is lazy": () => Object.defineProperty({}, "then", { get: throws }),
  "a function": () => throws,
  "a symbol": () => Symbol("x"),
  "a bigint": () => 1n,
  undefined: () => undefined,
  null: () => null,
  "a text": () => "text",
};

describe.each(Object.entries(HOSTILE))("%s", (_, make) => {
  it("can be described without harm", () => {
    const thrown = make();
    expect(factsOfThrown(thrown).error.length).toBeLessThanOrEqual(501);
    expect(typeof describeError(thrown)).toBe("string");
    originOf(thrown);
    if (!isPayhooksError(thrown)) expect(withoutData(thrown)).toBeInstanceOf(Error);
    expect(isReject(thrown)).toBe(false);
    expect(retryAfterOf(thrown)).toBeNull();
  });

  it.each(["by throwing", "by rejecting"])("thrown by any call %s is a failed attempt", async (way) => {
    const fail = (): unknown => {
      if (way === "by throwing") throw make();
      return Promise.reject(make());
    };
    const clock = fakeClock();
    const inbox = memoryInbox({ clock });
    const receiver = createReceiver({ payments: { publicKey }, inbox, clock, logger: silent });
    const notices: Notice[] = [];
    let told = 0;
    receiver.observe((notice) => notices.push(notice));
    receiver.observe(fail as () => void);
    receiver
      .ignore("WITHDRAWAL")
      .onDeposit(fail, {
        maxAttempts: 2,
        backoffMs() {
          throw make();
        },
      })
      .onHeld(
        () => {
          told++;
          return fail();
        },
        { maxAttempts: 2, backoffMs: () => 100 },
      );
    await receiver.start();
    const sent = signPaymentCallback(callbackFields({}, clock.now()), privateKey);
    expect((await receiver.payments.receive(deliveryOf(sent))).status).toBe(200);
    for (let turn = 0; turn < 8; turn++) await clock.advance("1s");
    const [held] = (await receiver.events.list({ state: "held" })).events;
    expect(held?.reason).toBe("exhausted");
    expect(told).toBe(2);
    expect(notices.filter(({ type }) => type === "inbox-error")).toEqual([]);
    expect(notices.filter(({ type }) => type === "given-up").length).toBe(2);
    await receiver.close({ graceMs: 0 });
  });

  it("thrown by a resolver and by notifyWorker breaks nothing", async () => {
    const clock = fakeClock();
    const fail = (): never => {
      throw make();
    };
    const sent = signPaymentCallback(callbackFields({}, clock.now()), privateKey);
    const given = { clock, logger: silent, run: "elsewhere" } as const;
    const resolving = createReceiver({
      ...given,
      payments: { publicKey: fail },
      inbox: memoryInbox({ clock }),
    });
    expect((await resolving.payments.receive(deliveryOf(sent))).status).toBe(503);
    const receiver = createReceiver({
      ...given,
      payments: { publicKey },
      inbox: memoryInbox({ clock }),
      notifyWorker: fail,
    });
    receiver.onDeposit(() => {});
    expect((await receiver.payments.receive(deliveryOf(sent))).status).toBe(200);
    expect(await receiver.work()).toMatchObject({ ran: 1, failed: 0 });
  });
});
