import { type Handler, type PaymentEvent, Reject, RetryAfter } from "@payhooks/core";
import { createInbox, memoryStore } from "@payhooks/core/inbox";
import type { FakeClock } from "@payhooks/core/testing";
import { afterEach, describe, expect, it } from "vitest";
import { closeMerchants, type MerchantServer, startMerchant } from "./merchant-server.ts";
import type { Answer } from "./wire.ts";

afterEach(closeMerchants);

const short = ({ status, body, headers }: Answer): string =>
  [status, body.replace(/^\{"error":\{"code":"(.*)"\}\}$/, "$1"), headers.get("retry-after") ?? "-"].join(
    " ",
  );

const RECEIVED = '200 {"received":true} -';
const NOT_HANDLED = "503 ERR_NOT_HANDLED 5";
const HELD = "503 ERR_HELD 5";

/** A memory inbox, said to be as durable as the test wants. */
function inbox(clock: FakeClock, durability: "process" | "host") {
  const store = memoryStore({ clock, maxRecords: 1_000, maxUnfinished: 1_000 });
  return createInbox({ ...store, durability }, { clock });
}

/** A merchant who answers once the handlers are done. */
function startHandled(
  handler: Handler<PaymentEvent>,
  {
    durability = "process",
    register,
  }: { durability?: "process" | "host"; register?: (merchant: MerchantServer["receiver"]) => unknown } = {},
): Promise<MerchantServer> {
  return startMerchant({
    receiver: (clock) => ({ ack: "handled", inbox: inbox(clock, durability) }),
    register: (receiver) => {
      receiver.onDeposit({ SUCCESS: handler, PENDING: handler });
      register?.(receiver);
    },
  });
}

/** A promise that is settled from outside. */
function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

describe('ack: "handled"', () => {
  it("answers 200 once the handlers are done, and to copies, which run nothing", async () => {
    const events: string[] = [];
    const t = await startHandled(async (event) => void events.push(event.payTxnId));
    const delivery = t.callback({ payTxnId: "t-1" });
    expect(short(await t.send("payments", delivery))).toBe(RECEIVED);
    expect(events).toEqual(["t-1"]);
    expect(short(await t.send("payments", delivery))).toBe(RECEIVED);
    expect(events).toEqual(["t-1"]);
  });

  it("answers 200 to a PENDING that is stale", async () => {
    const events: string[] = [];
    const t = await startHandled(async (event) => void events.push(event.status));
    expect(short(await t.send("payments", t.callback({ payTxnId: "t-1", referenceId: "o-1" })))).toBe(
      RECEIVED,
    );
    const pending = t.callback({ payTxnId: "t-1", referenceId: "o-1", status: "PENDING" });
    expect(short(await t.send("payments", pending))).toBe(RECEIVED);
    expect(events).toEqual(["SUCCESS"]);
  });

  it.each([
    ["throws", () => new Error("database is down")],
    ["asks for a later time", () => new RetryAfter(3_600_000)],
  ])(
    "answers 503 when a handler %s, and the redelivery runs it at once, only what is unfinished",
    async (_how, error) => {
      const ran: string[] = [];
      let down = true;
      const t = await startHandled(
        async (_event, { attempt }) => {
          ran.push(`deposit ${attempt}`);
          if (down) throw error();
        },
        {
          register: (receiver) =>
            receiver.onDeposit(async (_event, { attempt }) => void ran.push(`mail ${attempt}`), {
              name: "mail",
            }),
        },
      );
      const delivery = t.callback();
      expect(short(await t.send("payments", delivery))).toBe(NOT_HANDLED);
      expect(ran).toEqual(["deposit 1", "mail 1"]);
      down = false;
      expect(short(await t.send("payments", delivery))).toBe(RECEIVED);
      expect(ran).toEqual(["deposit 1", "mail 1", "deposit 2"]);
    },
  );

  it.each(
    (["process", "host"] as const).flatMap((durability) => [
      { durability, how: "throws", error: () => new Error("database is down") },
      { durability, how: "asks for a later time", error: () => new RetryAfter(3_600_000) },
    ]),
  )(
    "copies use up no attempts, in an inbox that survives the $durability, while a handler $how: it runs once the outage is over",
    async ({ durability, error }) => {
      const attempts: number[] = [];
      let down = true;
      const t = await startHandled(
        async (_event, { attempt }) => {
          attempts.push(attempt);
          if (down) throw error();
        },
        { durability },
      );
      const delivery = t.callback();
      const answers = new Set<string>();
      for (let copy = 0; copy < 60; copy++) answers.add(short(await t.send("payments", delivery)));
      // Neither 200 nor held: the service goes on sending.
      expect(answers).toEqual(new Set([NOT_HANDLED]));
      expect(attempts).toEqual([1, 2]);
      for (let second = 0; second < 60; second++) {
        await t.clock.advance(1_000);
        answers.add(short(await t.send("payments", delivery)));
      }
      expect(answers).toEqual(new Set([NOT_HANDLED]));
      expect(await t.held()).toEqual([]);
      down = false;
      await t.clock.advance(1_000);
      expect(short(await t.send("payments", delivery))).toBe(RECEIVED);
      expect(await t.held()).toEqual([]);
      // As many as the backoff allows in a minute, and no more.
      expect(Math.max(...attempts)).toBeLessThanOrEqual(8);
    },
  );

  it("answers 503 when handledBudgetMs runs out, not before, and 200 to a copy after the handler ended", async () => {
    const started = gate();
    const done = gate();
    let runs = 0;
    const t = await startHandled(async () => {
      runs++;
      started.open();
      await done.opened;
    });
    const delivery = t.callback();
    let answered = false;
    const first = t.send("payments", delivery).finally(() => {
      answered = true;
    });
    await started.opened;
    await t.clock.advance(7_999);
    // A copy while it runs is not kept waiting, and by the time it is answered the first would be, too.
    expect(short(await t.send("payments", delivery))).toBe(NOT_HANDLED);
    expect(answered).toBe(false);
    await t.clock.advance(1);
    expect(short(await first)).toBe(NOT_HANDLED);
    done.open();
    await t.until(({ type }) => type === "finished");
    expect(short(await t.send("payments", delivery))).toBe(RECEIVED);
    expect(runs).toBe(1);
  });

  it.each([
    ["process", HELD],
    ["host", RECEIVED],
  ] as const)(
    "held by a handler, in an inbox that survives the %s: %s, each time",
    async (durability, answer) => {
      let runs = 0;
      const t = await startHandled(
        async () => {
          runs++;
          throw new Reject("no such order");
        },
        { durability },
      );
      const delivery = t.callback();
      expect(short(await t.send("payments", delivery))).toBe(answer);
      expect(short(await t.send("payments", delivery))).toBe(answer);
      expect(runs).toBe(1);
      expect(await t.held()).toMatchObject([{ reason: "rejected", detail: "Reject: no such order" }]);
    },
  );

  it.each([
    ["process", HELD],
    ["host", RECEIVED],
  ] as const)(
    "held by the table, in an inbox that survives the %s: %s, each time",
    async (durability, answer) => {
      const events: string[] = [];
      const t = await startHandled(async (event) => void events.push(event.amount), { durability });
      const known = { payTxnId: "t-1", referenceId: "o-1" };
      expect(short(await t.send("payments", t.callback(known)))).toBe(RECEIVED);
      const mismatch = t.callback({ ...known, amount: "99.000000" });
      expect(short(await t.send("payments", mismatch))).toBe(answer);
      expect(short(await t.send("payments", mismatch))).toBe(answer);
      const odd = t.callback({ event: "REFUND" });
      expect(short(await t.send("payments", odd))).toBe(answer);
      expect(events).toEqual(["10.500000"]);
      // In no order: both may have been accepted in the same millisecond.
      expect((await t.held()).map(({ reason }) => reason).sort()).toEqual(["mismatch", "unrecognized"]);
    },
  );
});
