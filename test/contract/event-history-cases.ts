/** Cases about an inbox's view of one event afterwards, and of all events together. */
import type { EventQuery } from "@payhooks/core";
import { eachEvent } from "@payhooks/core/events";
import { resplitPair } from "@payhooks/core/testing";
import { expect } from "vitest";
import { type ContractCase, onFreshData } from "./inbox-processes.ts";
import { depositOf, merchantOn } from "./merchant-receiver.ts";
import { does } from "./write-names.ts";

const isWrite = (call: string): boolean =>
  !["open", "read", "takeDue", "list", "counts", "conflict"].includes(call);

/** Copies that come within it count as one. */
const APART_MS = 1_100;

export const eventHistoryCases: readonly ContractCase[] = [
  onFreshData(
    "an event that was done at its first attempt keeps nothing of its life, and its copies are no write",
    async (rig) => {
      const process = rig.start();
      const merchant = merchantOn(process, (receiver) => receiver.onDeposit(() => {}).ignore("WITHDRAWAL"));
      const fields = depositOf(rig);
      const eventId = await merchant.deliver(fields);
      await merchant.work();
      const before = process.calls.length;
      await rig.advance(APART_MS);
      expect(await merchant.deliver(fields)).toBe(eventId);
      expect(process.calls.slice(before).filter(isWrite)).toEqual([]);
      expect(await merchant.storedEvent(eventId)).toMatchObject({
        state: "done",
        copies: 0,
        history: [],
        delivery: null,
      });
    },
  ),
  onFreshData(
    "an event's life has its copies and its attempts with their errors, also once it is done",
    async (rig) => {
      const process = rig.start();
      let attempts = 0;
      const merchant = merchantOn(process, (receiver) =>
        receiver
          .onDeposit(
            () => {
              if (++attempts === 1) throw new Error("the order service is away");
            },
            { backoffMs: () => 1 },
          )
          .ignore("WITHDRAWAL"),
      );
      const fields = depositOf(rig);
      const eventId = await merchant.deliver(fields);
      const first = await merchant.storedEvent(eventId);
      expect(first).toMatchObject({ state: "waiting", copies: 0, delivery: { arrivedBy: "callback" } });
      expect(first?.lastDeliveryAt).toBe(first?.acceptedAt);
      await rig.advance(APART_MS);
      // Those that come together are one.
      for (let copy = 0; copy < 3; copy++) await merchant.deliver(fields);
      await rig.advance(APART_MS);
      await merchant.deliver(fields);
      const copied = await merchant.storedEvent(eventId);
      expect(copied).toMatchObject({ copies: 2, acceptedAt: first?.acceptedAt });
      expect((copied?.lastDeliveryAt ?? 0) - (first?.acceptedAt ?? 0)).toBeGreaterThanOrEqual(2_000);
      for (let runs = 0; runs < 100 && (await merchant.storedEvent(eventId))?.state !== "done"; runs++) {
        await merchant.work();
        await rig.advance(10);
      }
      const life = await merchant.storedEvent(eventId);
      expect(life).toMatchObject({ copies: 2, lastDeliveryAt: copied?.lastDeliveryAt, delivery: null });
      expect(life?.history).toMatchObject([
        { what: "accepted", at: first?.acceptedAt },
        { what: "failed", handler: "deposit", attempt: 1, error: "Error: the order service is away" },
        { what: "done" },
      ]);
      const times = life?.history.map(({ at }) => at) ?? [];
      expect(times).toEqual(times.toSorted((a, b) => a - b));
    },
  ),
  onFreshData(
    "a run whose process died is in the event's life",
    async (rig) => {
      const dying = rig.start((moment, call) =>
        moment === "after" && does(call, "begin") ? "die" : undefined,
      );
      const first = merchantOn(dying, (receiver) => receiver.onDeposit(() => {}).ignore("WITHDRAWAL"));
      const eventId = await first.deliver(depositOf(rig));
      void first.work().catch(() => {});
      await rig.until(dying.dead);
      await rig.advance(rig.leaseMs + 100);
      const second = merchantOn(rig.start(), (receiver) => receiver.onDeposit(() => {}).ignore("WITHDRAWAL"));
      await second.work();
      const { history = [], state } = (await second.storedEvent(eventId)) ?? {};
      expect([state, history.map(({ what }) => what)]).toEqual(["done", ["accepted", "lapsed", "done"]]);
    },
    { only: "outlives-process" },
  ),
  onFreshData("an event is found by its id, listed by its reference, and counted", async (rig) => {
    const merchant = merchantOn(rig.start(), (receiver) => receiver.onDeposit(() => {}).ignore("WITHDRAWAL"));
    const { receiver } = merchant;
    const eventId = await merchant.deliver(depositOf(rig, { payTxnId: "tx-17", referenceId: "order-17" }));
    const facts = {
      eventId,
      flow: "payments",
      id: "tx-17",
      event: "DEPOSIT",
      status: "SUCCESS",
      reason: null,
    };
    const waiting = { ...facts, state: "waiting", referenceId: "order-17" };
    const found = async (id: string, flow?: "payments" | "connect") =>
      (await receiver.events.list({ id, flow })).events;
    expect(await found("tx-17")).toMatchObject([waiting]);
    expect(await found("tx-18")).toEqual([]);
    expect(await found("tx-17", "connect")).toEqual([]);
    const state = "unfinished";
    const listed = await receiver.events.list({ referenceId: "order-17", flow: "payments", state });
    expect(listed).toMatchObject({ events: [waiting], next: null });
    expect(await receiver.events.list({ referenceId: "order-17", flow: "connect", state })).toMatchObject({
      events: [],
    });
    await rig.advance(200);
    const counts = await receiver.events.counts();
    expect(counts).toMatchObject({ waiting: 1, retrying: 0, running: 0, held: 0, heldBy: {} });
    expect(counts.oldestDueMs ?? 0).toBeGreaterThanOrEqual(200);
    expect(counts.oldestDueMs ?? 0).toBeLessThan(120_000);
    await merchant.work();
    expect(await found("tx-17")).toMatchObject([{ ...facts, state: "done" }]);
    expect(await receiver.events.counts()).toMatchObject({ waiting: 0, oldestDueMs: null });
  }),
  onFreshData("an entry with several readings is listed by the reference of any of them", async (rig) => {
    const merchant = merchantOn(rig.start(), (receiver) => receiver.onDeposit(() => {}).ignore("WITHDRAWAL"));
    const pair = resplitPair("victim", merchant.privateKey, depositOf(rig, { payTxnId: "tx-1" }));
    for (const { rawBody, headers } of [pair.genuine, pair.forged]) {
      await merchant.receiver.payments.receive({
        method: "POST",
        url: "/callbacks/pay",
        headers: { get: (name) => headers[name] ?? null },
        rawBody,
      });
    }
    const held = { state: "held", reason: "ambiguous", referenceId: null };
    const { referenceId } = JSON.parse(Buffer.from(pair.genuine.rawBody).toString()) as {
      referenceId: string;
    };
    for (const filter of [{ referenceId: "victim" }, { referenceId }, { id: "tx-1" }]) {
      expect((await merchant.receiver.events.list({ ...filter, state: "held" })).events).toMatchObject([
        held,
      ]);
    }
    expect((await merchant.receiver.events.list({ referenceId: "another", state: "held" })).events).toEqual(
      [],
    );
  }),
  onFreshData("a list is given page by page, from either end", async (rig) => {
    const merchant = merchantOn(rig.start(), (receiver) => receiver.onDeposit(() => {}).ignore("WITHDRAWAL"));
    const { events } = merchant.receiver;
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) {
      ids.push(await merchant.deliver(depositOf(rig, { payTxnId: `tx-${n}` })));
      await rig.advance(5);
    }
    for (const first of ["oldest", "newest"] as const) {
      const found: string[] = [];
      let cursor: string | null = null;
      do {
        const page: Awaited<ReturnType<typeof events.list>> = await events.list({ limit: 2, cursor, first });
        found.push(...page.events.map(({ eventId }) => eventId));
        expect(found.length, "events of all pages").toBeLessThanOrEqual(ids.length);
        cursor = page.next;
      } while (cursor !== null);
      expect(found).toEqual(first === "oldest" ? ids : ids.toReversed());
    }
    await expect(events.list({ cursor: "elsewhere" })).rejects.toMatchObject({
      code: "ERR_OPTION_INVALID",
    });
    await expect(events.list({ limit: 0 })).rejects.toMatchObject({ code: "ERR_OPTION_INVALID" });
  }),
  onFreshData("lists and decisions are narrowed by amount and by handler", async (rig) => {
    const merchant = merchantOn(rig.start(), (receiver) =>
      receiver
        .onDeposit(
          () => {
            throw new Error("no");
          },
          { name: "credit", maxAttempts: 1 },
        )
        .onWithdrawal(
          () => {
            throw new Error("no");
          },
          { name: "ship", maxAttempts: 1 },
        ),
    );
    const { events } = merchant.receiver;
    // As numbers, the first two would be equal, and the third would be less than the fourth.
    const amounts = ["9007199254740992.400001", "9007199254740992.40", "9.5", "10", "10.000001"];
    const deposits: string[] = [];
    for (const amount of amounts) deposits.push(await merchant.deliver(depositOf(rig, { amount })));
    const withdrawal = await merchant.deliver(depositOf(rig, { event: "WITHDRAWAL", amount: "10.00" }));
    await merchant.work();
    await rig.advance(2);
    const [huge, almost, small, ten] = deposits;
    const found = async (query: EventQuery): Promise<readonly (string | undefined)[]> => {
      const ids: string[] = [];
      for await (const { eventId } of eachEvent(events, query)) ids.push(eventId);
      return ids.sort();
    };
    const these = (...ids: readonly (string | undefined)[]) => [...ids].sort();
    for (const limit of [1, 2, 50]) {
      expect(await found({ limit, amount: { min: "9007199254740992.400001" } })).toEqual(these(huge));
      expect(await found({ limit, amount: { min: "010.000001" } })).toEqual(these(huge, almost, deposits[4]));
      expect(await found({ limit, amount: { min: "9.5", max: "10" } })).toEqual(
        these(small, ten, withdrawal),
      );
      expect(await found({ limit, handler: "credit", first: "newest" })).toEqual(these(...deposits));
      expect(await found({ limit, handler: "ship", amount: { max: "10" } })).toEqual(these(withdrawal));
      expect(await found({ limit, handler: "other" })).toEqual([]);
    }
    const soon = { by: "amina", note: "small ones", perSecond: Number.POSITIVE_INFINITY };
    const some = { state: "held", amount: { max: "10" } } as const;
    expect(await events.replay({ ...some, handler: "credit" }, { ...soon, dryRun: true })).toMatchObject({
      found: 2,
      decided: 2,
    });
    expect(await events.discard(some, soon)).toMatchObject({ found: 3, decided: 3 });
    expect(await found({ state: "held" })).toEqual(these(huge, almost, deposits[4]));
    // An event that has ended keeps the handlers whose attempts failed.
    const ended = { state: "finished", handler: "ship" } as const;
    expect(await events.erase(ended, { by: "amina", dryRun: true })).toMatchObject({ found: 1, decided: 1 });
    const wrong = [{ min: "1e3" }, { min: "-1" }, { min: "2", max: "1" }, {}, { least: "1" }, "10", null];
    for (const amount of wrong as never[]) {
      await expect(events.list({ amount })).rejects.toMatchObject({ code: "ERR_OPTION_INVALID" });
      const decision = events.discard({ amount }, soon);
      await expect(decision).rejects.toMatchObject({ code: "ERR_OPTION_INVALID" });
    }
    await expect(events.list({ handler: "" })).rejects.toMatchObject({ code: "ERR_OPTION_INVALID" });
  }),
];
