/** A deploy takes a handler away, or renames it, while it is to be tried again. */
import { type Receiver, Reject } from "@payhooks/core";
import { describe, expect, it } from "vitest";
import { testEvent } from "./harness/events.ts";
import { DURABLE, deliver, heldOf, startReceiver } from "./harness/receivers.ts";
import { until, withScope } from "./harness/scope.ts";
import { keys } from "./harness/system.ts";

const EVENTS = 50;
const soon = { backoffMs: () => 300 };
const broken = (): never => {
  throw new Error("the books are closed");
};

describe.each(DURABLE)("a deploy on %s", (_, makeInbox) => {
  /** Delivers events to a first version, and replaces that by a second one once each was tried. */
  function replaced(
    first: (receiver: Receiver) => void,
    second: (receiver: Receiver, ran: string[]) => void,
    check: (receiver: Receiver, ran: readonly string[]) => Promise<void>,
  ): Promise<void> {
    return withScope(async (scope) => {
      const inbox = await makeInbox(scope);
      const old = await startReceiver(scope, inbox, first);
      for (let n = 0; n < EVENTS; n++) {
        expect(await deliver(old.receiver, testEvent(keys.privateKey))).toBe(200);
      }
      // On a busy machine the first has its second attempt before the last has its first one.
      const tried = (): number =>
        new Set(old.notices.flatMap((notice) => (notice.type === "retry" ? [notice.eventId] : []))).size;
      await until("each was tried", () => tried() === EVENTS);
      await old.receiver.close();
      const ran: string[] = [];
      const { receiver } = await startReceiver(scope, inbox, (one) => second(one, ran));
      await until("nothing waits", async () => {
        const { waiting, retrying, running } = await receiver.health();
        return waiting === 0 && retrying === 0 && running === 0;
      });
      await check(receiver, ran);
    });
  }

  it("that renames a handler: the events that it had not finished are held under its old name, and none ends as done without it", () =>
    replaced(
      (receiver) => receiver.onDeposit(broken, { ...soon, name: "books" }),
      (receiver, ran) =>
        receiver.onDeposit(({ payTxnId }) => void ran.push(payTxnId), { name: "ledger", ...soon }),
      async (receiver, ran) => {
        const held = await heldOf(receiver);
        expect(new Set(held.map(({ id }) => id)).size).toBe(EVENTS);
        expect(new Set(held.map(({ reason, detail }) => `${reason}: ${detail}`))).toEqual(
          new Set([
            "unhandled: it waits for a handler that DEPOSIT does not have in the process that ran it: books",
          ]),
        );
        expect(new Set(ran).size).toBe(EVENTS);
        const [first] = held;
        await receiver.events.replay(first?.eventId ?? "", { by: "the test", note: "ledger has it" });
        await until(
          "it is done",
          async () => (await receiver.events.get(first?.eventId ?? ""))?.state === "done",
        );
        // Events that had finished before do not run again.
        expect(ran).toHaveLength(EVENTS);
      },
    ));

  it("that removes a second handler: the events that it had not finished are held under its name", () =>
    replaced(
      (receiver) =>
        receiver.onDeposit(() => {}, { name: "credit" }).onDeposit(broken, { ...soon, name: "mail" }),
      (receiver) => receiver.onDeposit(() => {}, { name: "credit" }),
      async (receiver) => {
        const held = await heldOf(receiver);
        expect(held.map(({ reason }) => reason)).toEqual(held.map(() => "unhandled"));
        expect(held).toHaveLength(EVENTS);
        expect(held[0]?.detail).toContain("mail");
      },
    ));

  it("that removes a handler which was given up while another went on: the event is held for the reason of that handler", () =>
    replaced(
      (receiver) =>
        receiver
          .onDeposit(
            () => {
              throw new Reject("no such order");
            },
            { name: "credit" },
          )
          .onDeposit(broken, { ...soon, name: "mail" }),
      (receiver) => receiver.onDeposit(() => {}, { name: "mail" }),
      async (receiver) => {
        const held = await heldOf(receiver);
        expect(new Set(held.map(({ reason, detail }) => `${reason}: ${detail}`))).toEqual(
          new Set(["rejected: Reject: no such order"]),
        );
        expect(held).toHaveLength(EVENTS);
      },
    ));
});
