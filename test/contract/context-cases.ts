/** The asynchronous context that handlers find (docs/guides/handlers.md, Context). */

import { AsyncLocalStorage } from "node:async_hooks";
import { Reject } from "@payhooks/core";
import { eachEvent } from "@payhooks/core/events";
import { signPaymentCallback } from "@payhooks/core/testing";
import { expect } from "vitest";
import { ON_WORKERS } from "../../packages/core/src/time/environment.ts";
import { type ContractCase, onFreshData, type Rig } from "./inbox-processes.ts";
import { depositOf, type MerchantReceiver, merchantOn } from "./merchant-receiver.ts";

/** The context that a merchant's application keeps for each of its requests. */
const requests = new AsyncLocalStorage<string>();
const EMPTY = "none";
const here = (): string => requests.getStore() ?? EMPTY;

/** Enough for a store to gather several of them. */
const REQUESTS = 12;

/** Delivers a deposit in a request of its own, whose context has the name of the deposit. */
function deliver(
  { receiver, privateKey }: MerchantReceiver,
  rig: Rig,
  referenceId: string,
): Promise<unknown> {
  const { rawBody, headers } = signPaymentCallback(depositOf(rig, { referenceId }), privateKey);
  const delivery = {
    method: "POST",
    url: "/callbacks/pay",
    headers: { get: (name: string) => headers[name] ?? null },
    rawBody,
  };
  return requests.run(referenceId, async () => {
    const { status } = await receiver.payments.receive(delivery);
    expect([status, here()]).toEqual([200, referenceId]);
  });
}

/** Changes the context for the caller's callers too. On Workers, nobody can. */
function enter(context: string): void {
  if (!ON_WORKERS) requests.enterWith(context);
}

const names = Array.from({ length: REQUESTS }, (_, at) => `order-${at}`);

/** The context of a call at its beginning, and after it has waited. */
async function twice(): Promise<string> {
  const before = here();
  await new Promise((resolve) => setImmediate(resolve));
  return before === here() ? before : `${before}, then ${here()}`;
}

export const contextCases: readonly ContractCase[] = [
  onFreshData(
    "a handler is called in the context of the request that accepted its event, and later ones in the empty context",
    async (rig) => {
      const seen: string[] = [];
      const others = new Set<string>();
      const merchant = merchantOn(
        rig.start(),
        (receiver) =>
          receiver
            .onDeposit(
              async ({ referenceId }, { attempt }) => {
                seen.push(`${referenceId} ${attempt} in ${await twice()}`);
                // Nobody else finds this.
                enter(`entered by ${referenceId}`);
                if (attempt === 1) throw new Error("once more");
                throw new Reject("held");
              },
              { backoffMs: () => rig.leaseMs / 2 },
            )
            .onHeld(({ referenceId }) => void seen.push(`${referenceId} held in ${here()}`)),
        { run: "background", concurrency: 2 * REQUESTS },
      );
      merchant.receiver.observe(() => {
        others.add(here());
        enter("entered by an observer");
      });
      await requests.run("the start", () => merchant.receiver.start());
      await rig.until(Promise.all(names.map((name) => deliver(merchant, rig, name))));
      for (let turn = 0; turn < 100 && seen.length < 3 * REQUESTS; turn++) await rig.advance(rig.leaseMs / 8);
      expect(seen.sort()).toEqual(
        names
          .flatMap((name) => [`${name} 1 in ${name}`, `${name} 2 in ${EMPTY}`, `${name} held in ${EMPTY}`])
          .sort(),
      );
      expect([...others]).toEqual([EMPTY]);
    },
  ),
  onFreshData(
    "an event that another request takes, runs or replays is handled in the empty context",
    async (rig) => {
      const seen: string[] = [];
      const merchant = merchantOn(rig.start(), (receiver) =>
        receiver.onDeposit(async ({ referenceId }) => {
          seen.push(`${referenceId} in ${await twice()}`);
          if (referenceId === "order-0") throw new Reject("held");
        }),
      );
      const asked = <T>(ask: () => Promise<T>): Promise<T> => rig.until(requests.run("another", ask));
      for (const name of names) await rig.until(deliver(merchant, rig, name));
      await asked(() => merchant.work());
      const expected = names.map((name) => `${name} in ${EMPTY}`).sort();
      expect(seen.splice(0).sort()).toEqual(expected);
      const held: string[] = [];
      await asked(async () => {
        for await (const { eventId } of eachEvent(merchant.receiver.events, { state: "held" }))
          held.push(eventId);
      });
      const [eventId = expect.fail("nothing is held")] = held;
      await asked(() => merchant.receiver.events.replay(eventId, { by: "a person", note: "looked into it" }));
      await asked(() => merchant.receiver.run(eventId));
      expect(seen).toEqual([`order-0 in ${EMPTY}`]);
    },
  ),
];
