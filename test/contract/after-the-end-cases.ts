/** Cases about an event after its end (docs/concepts/after-the-end.md): it is kept, run again, and erased. */
import type { BulkReport, Receiver } from "@payhooks/core";
import { expect } from "vitest";
import { type ContractCase, onFreshData, type Rig } from "./inbox-processes.ts";
import { depositOf, type MerchantReceiver, merchantOn } from "./merchant-receiver.ts";
import { heldOf } from "./sample-events.ts";

const KEEP_MS = 30 * 86_400_000;
const WHO = { by: "amina", note: "the handler had a bug" };
const ALL = { state: "finished" } as const;
const SOON = { ...WHO, perSecond: Number.POSITIVE_INFINITY };

/** A merchant that keeps what was signed, and counts the calls of its handler. */
function keeping(
  rig: Rig,
  register?: (receiver: Receiver) => unknown,
): MerchantReceiver & { readonly calls: string[] } {
  const calls: string[] = [];
  const merchant = merchantOn(
    rig.start(),
    register ??
      ((receiver) =>
        receiver.onDeposit((_, { eventId, effectId }) => void calls.push(`${eventId} ${effectId}`))),
    { payments: { publicKey: undefined, keep: { signedTextMs: KEEP_MS } } },
  );
  return { ...merchant, calls };
}

function deposits(rig: Rig, count: number, more: Parameters<typeof depositOf>[1] = {}) {
  return Array.from({ length: count }, () => depositOf(rig, more));
}

async function delivered(
  merchant: MerchantReceiver,
  all: readonly Parameters<MerchantReceiver["deliver"]>[0][],
) {
  const ids: string[] = [];
  for (const fields of all) ids.push(await merchant.deliver(fields));
  await merchant.work();
  return ids;
}

const summary = ({ found, decided, alreadyDecided, byReason, skipped, excluded, complete }: BulkReport) => ({
  found,
  decided,
  alreadyDecided,
  byReason,
  skipped,
  excluded,
  complete,
});

export const afterTheEndCases: readonly ContractCase[] = [
  onFreshData("without keep, an event that has ended cannot run again, and says why", async (rig) => {
    const merchant = merchantOn(rig.start(), (receiver) => receiver.onDeposit(() => {}));
    const [eventId = ""] = await delivered(merchant, deposits(rig, 1));
    expect(await merchant.storedEvent(eventId)).toMatchObject({
      state: "done",
      delivery: null,
      revision: null,
    });
    const refused = { code: "ERR_NOT_DECIDABLE" };
    await expect(merchant.receiver.events.replay(eventId, WHO)).rejects.toMatchObject(refused);
    expect(summary(await merchant.receiver.events.replay(ALL, SOON))).toMatchObject({
      found: 1,
      decided: 0,
      skipped: { "not-kept": 1 },
    });
  }),
  onFreshData(
    "with keep, a finished event runs all of its handlers again, under the same effectId",
    async (rig) => {
      const merchant = keeping(rig);
      const [eventId = ""] = await delivered(merchant, deposits(rig, 1));
      const { events } = merchant.receiver;
      const kept = await merchant.storedEvent(eventId);
      expect(kept).toMatchObject({ state: "done", replays: 0, delivery: { arrivedBy: "callback" } });
      expect(kept?.revision).toMatch(/^[0-9a-f]{16}$/);
      expect(await events.replay(eventId, { ...WHO, revision: kept?.revision ?? undefined })).toMatchObject({
        decided: 1,
        byReason: { done: 1 },
      });
      expect(await merchant.storedEvent(eventId)).toMatchObject({ state: "waiting", replays: 1 });
      await merchant.work();
      expect(merchant.calls).toEqual(Array(2).fill(merchant.calls[0]));
      const after = await merchant.storedEvent(eventId);
      expect(after).toMatchObject({ state: "done", replays: 1, delivery: { arrivedBy: "callback" } });
      expect(after?.history.map(({ what }) => what)).toEqual(["accepted", "replay 1", "done"]);
      expect(after?.history[1]).toMatchObject(WHO);
      // The revision that was seen is that of the event before this run.
      const again = { ...WHO, revision: kept?.revision ?? undefined };
      await expect(events.replay(eventId, again)).rejects.toMatchObject({ code: "ERR_EVENT_CHANGED" });
      expect(await events.counts()).toMatchObject({ waiting: 0, retrying: 0, held: 0 });
    },
  ),
  onFreshData(
    "a finished event that runs again is in the lists, its copies are duplicates, and it may be held",
    async (rig) => {
      let fails = false;
      const merchant = keeping(rig, (receiver) =>
        receiver.onDeposit(
          () => {
            if (fails) throw new Error("still broken");
          },
          { maxAttempts: 1 },
        ),
      );
      const fields = depositOf(rig);
      const [eventId = ""] = await delivered(merchant, [fields]);
      fails = true;
      const { events } = merchant.receiver;
      await events.replay([eventId], WHO);
      expect((await events.list({ state: "waiting" })).events.map((one) => one.eventId)).toEqual([eventId]);
      expect(await merchant.deliver(fields)).toBe(eventId);
      await merchant.work();
      expect(await heldOf({ events })).toMatchObject([{ eventId, reason: "exhausted", replays: 1 }]);
      fails = false;
      await events.replay(eventId, WHO);
      await merchant.work();
      expect(await merchant.storedEvent(eventId)).toMatchObject({ state: "done", replays: 2 });
      expect(await heldOf({ events })).toEqual([]);
    },
  ),
  onFreshData(
    "a bulk covers the events that were there, and its dry run says which would run",
    async (rig) => {
      const merchant = keeping(rig);
      const { events } = merchant.receiver;
      const ids = await delivered(merchant, deposits(rig, 3));
      await rig.advance(2);
      const dry = await events.replay(ALL, { ...SOON, dryRun: true });
      expect(summary(dry)).toEqual({
        found: 3,
        decided: 3,
        alreadyDecided: 0,
        byReason: { done: 3 },
        skipped: {},
        excluded: {},
        complete: true,
      });
      await merchant.work();
      expect(merchant.calls).toHaveLength(3);
      const seen: string[] = [];
      const until = dry.until ?? 0;
      await rig.advance(2);
      const late = await delivered(merchant, deposits(rig, 1));
      await events.replay(
        { ...ALL, until },
        { ...SOON, progress: ({ eventId, outcome }) => seen.push(`${eventId} ${outcome}`) },
      );
      await merchant.work();
      expect(seen.sort()).toEqual(ids.map((id) => `${id} decided`).sort());
      for (const id of ids) expect(await merchant.storedEvent(id)).toMatchObject({ replays: 1 });
      expect(await merchant.storedEvent(late[0] ?? "")).toMatchObject({ replays: 0 });
    },
  ),
  onFreshData(
    "a bulk about the events that were shown leaves alone those that have come or changed since",
    async (rig) => {
      const merchant = keeping(rig);
      const { events } = merchant.receiver;
      const [changed = "", shown = "", unshown = ""] = await delivered(merchant, deposits(rig, 3));
      const eventIds = [changed, shown, "0".repeat(48)];
      await events.replay(changed, WHO);
      const told: string[] = [];
      const report = await events.replay(
        { ...ALL, eventIds },
        { ...SOON, progress: ({ eventId, outcome }) => told.push(`${eventId} ${outcome}`) },
      );
      expect(summary(report)).toEqual({
        found: 3,
        decided: 1,
        alreadyDecided: 0,
        byReason: { done: 1 },
        skipped: { changed: 1, missing: 1 },
        excluded: {},
        complete: true,
      });
      expect(told).toEqual([`${changed} changed`, `${shown} decided`, `${"0".repeat(48)} missing`]);
      const again = { ...ALL, eventIds, until: report.until ?? undefined };
      expect(await events.replay(again, { ...SOON, name: report.name })).toMatchObject({
        decided: 0,
        alreadyDecided: 1,
        skipped: { changed: 1, missing: 1 },
      });
      expect(await merchant.storedEvent(unshown)).toMatchObject({ replays: 0 });
      const other = { ...ALL, eventIds: [unshown], event: "WITHDRAWAL" };
      expect(await events.replay(other, SOON)).toMatchObject({ decided: 0, skipped: { changed: 1 } });
      const erased = await events.erase({ state: "held", eventIds }, { by: "amina", unfinished: true });
      expect(erased).toMatchObject({ decided: 0, skipped: { changed: 2, missing: 1 } });
      const wrong = events.replay({ ...ALL, eventIds: "all" as never }, SOON);
      await expect(wrong).rejects.toMatchObject({ code: "ERR_OPTION_INVALID" });
    },
  ),
  onFreshData("a bulk goes on where it stopped, and decides about no event twice", async (rig) => {
    const merchant = keeping(rig);
    const { events } = merchant.receiver;
    await delivered(merchant, deposits(rig, 6));
    await rig.advance(2);
    const stop = new AbortController();
    const first = await events.replay(ALL, {
      ...SOON,
      signal: stop.signal,
      progress: (_, { decided }) => {
        if (decided === 2) stop.abort();
      },
    });
    expect(first).toMatchObject({ decided: 2, complete: false });
    // The events that it has decided about may have run meanwhile.
    await merchant.work();
    const { name, until } = first;
    const nameless = events.replay(ALL, { ...SOON, name });
    await expect(nameless).rejects.toMatchObject({ code: "ERR_OPTION_MISSING" });
    const filter = { ...ALL, until: until ?? undefined };
    expect(await events.replay(filter, { ...SOON, name })).toMatchObject({
      decided: 4,
      alreadyDecided: 2,
      complete: true,
    });
    await merchant.work();
    expect(await events.replay(filter, { ...SOON, name })).toMatchObject({ decided: 0, alreadyDecided: 6 });
    expect(merchant.calls).toHaveLength(12);
    expect(new Set(merchant.calls).size).toBe(6);
  }),
  onFreshData(
    "a bulk leaves out contradictions and discarded events, unless it names their reason",
    async (rig) => {
      const merchant = keeping(rig, (receiver) =>
        receiver.onDeposit(
          ({ referenceId }) => {
            if (referenceId.startsWith("bad")) throw new Error("no");
          },
          { maxAttempts: 1 },
        ),
      );
      const { events } = merchant.receiver;
      const fields = depositOf(rig, { referenceId: "good", amount: "10.00" });
      await delivered(merchant, [
        fields,
        { ...fields, amount: "9999.00" },
        depositOf(rig, { referenceId: "bad-1" }),
        depositOf(rig, { referenceId: "bad-2" }),
      ]);
      const held = await heldOf({ events });
      expect(held.map(({ reason }) => reason).sort()).toEqual(["exhausted", "exhausted", "mismatch"]);
      const dry = { ...SOON, dryRun: true };
      expect(summary(await events.replay({ state: "held" }, dry))).toMatchObject({
        found: 3,
        byReason: { exhausted: 2 },
        excluded: { mismatch: 1 },
      });
      const named = ["mismatch", "exhausted"] as const;
      expect(await events.replay({ state: "held", reason: named }, dry)).toMatchObject({
        byReason: { exhausted: 2, mismatch: 1 },
        excluded: {},
      });
      expect(await events.discard({ state: "held", reason: "exhausted" }, SOON)).toMatchObject({
        decided: 2,
      });
      await events.replay({ state: "held", reason: "mismatch" }, SOON);
      await merchant.work();
      expect(summary(await events.replay(ALL, dry))).toMatchObject({
        found: 4,
        byReason: { done: 1 },
        excluded: { mismatch: 1, discarded: 2 },
      });
      expect(await events.replay({ ...ALL, reason: "discarded" }, SOON)).toMatchObject({ decided: 2 });
      await expect(events.replay({}, WHO)).rejects.toMatchObject({ code: "ERR_OPTION_INVALID" });
    },
  ),
  onFreshData("a PENDING behind its final status does not run again", async (rig) => {
    const calls: string[] = [];
    const merchant = keeping(rig, (receiver) =>
      receiver.onDeposit({
        PENDING: () => void calls.push("PENDING"),
        SUCCESS: () => void calls.push("SUCCESS"),
      }),
    );
    const pending = depositOf(rig, { status: "PENDING" });
    const [first = ""] = await delivered(merchant, [pending]);
    const { events } = merchant.receiver;
    expect(await events.replay(first, { ...WHO, dryRun: true })).toMatchObject({ decided: 1 });
    await delivered(merchant, [{ ...pending, status: "SUCCESS" }]);
    const refused = { code: "ERR_NOT_DECIDABLE" };
    await expect(events.replay(first, WHO)).rejects.toMatchObject(refused);
    expect(await events.replay(ALL, SOON)).toMatchObject({ decided: 1, skipped: { superseded: 1 } });
    const before = calls.length;
    await merchant.work();
    expect(calls.slice(before)).toEqual(["SUCCESS"]);
  }),
  onFreshData(
    "an erased event keeps nothing of the customer, and its copies are still recognised",
    async (rig) => {
      const merchant = keeping(rig);
      const { events } = merchant.receiver;
      const fields = depositOf(rig, { referenceId: "order-of-amina", message: "for Amina" });
      const [eventId = ""] = await delivered(merchant, [fields, ...deposits(rig, 2)]);
      const dry = { by: "amina", dryRun: true };
      const one = { referenceId: "order-of-amina" };
      expect(await events.erase(one, dry)).toMatchObject({ decided: 1 });
      expect(await merchant.storedEvent(eventId)).toMatchObject({
        erasedAt: null,
        referenceId: "order-of-amina",
      });
      const told: string[] = [];
      const report = await events.erase(one, {
        by: "amina",
        progress: ({ eventId, outcome, event }) => told.push(`${eventId} ${outcome} ${event?.event}`),
      });
      expect(report).toMatchObject({ found: 1, decided: 1, byReason: { done: 1 } });
      expect(told).toEqual([`${eventId} decided DEPOSIT`]);
      const erased = await merchant.storedEvent(eventId);
      expect(erased).toMatchObject({
        state: "done",
        id: "",
        referenceId: null,
        amount: null,
        history: [],
        delivery: null,
        revision: null,
      });
      expect(erased?.erasedAt).toBeGreaterThan(0);
      expect(JSON.stringify(erased)).not.toMatch(/amina/i);
      await merchant.deliver(fields);
      await merchant.work();
      expect(merchant.calls).toHaveLength(3);
      expect(await merchant.storedEvent(eventId)).toEqual(erased);
      await expect(events.replay(eventId, WHO)).rejects.toMatchObject({ code: "ERR_NOT_DECIDABLE" });
      expect(await events.erase(eventId, { by: "amina" })).toMatchObject({ decided: 0, alreadyDecided: 1 });
      expect(await events.erase(one, { by: "amina" })).toMatchObject({ found: 0 });
      await expect(events.erase({}, { by: "amina" })).rejects.toMatchObject({ code: "ERR_OPTION_INVALID" });
    },
  ),
  onFreshData("an erasure by reason takes neither a stale event nor an unfinished one", async (rig) => {
    const merchant = keeping(rig, (receiver) =>
      receiver.onDeposit({ PENDING: () => {}, SUCCESS: () => {} }, { maxAttempts: 1 }),
    );
    const { events } = merchant.receiver;
    const done = depositOf(rig);
    const [first = ""] = await delivered(merchant, [done]);
    const stale = await merchant.deliver({ ...done, status: "PENDING" });
    const overtaken = depositOf(rig, { status: "PENDING" });
    const late = await merchant.deliver(overtaken);
    await delivered(merchant, [{ ...overtaken, status: "SUCCESS" }]);
    const waits = await merchant.deliver(depositOf(rig));
    await rig.advance(2);
    const now = { by: "amina", perSecond: Number.POSITIVE_INFINITY, unfinished: true };
    expect(await events.erase({ state: "waiting", reason: "done" }, now)).toMatchObject({
      decided: 0,
      excluded: { unfinished: 1 },
    });
    expect(await events.erase({ ...ALL, reason: "done" }, now)).toMatchObject({
      decided: 2,
      byReason: { done: 2 },
      excluded: { stale: 1 },
    });
    expect(await merchant.storedEvent(first)).toMatchObject({ erasedAt: expect.any(Number) });
    expect(await merchant.storedEvent(stale)).toBeNull();
    expect(await merchant.storedEvent(late)).toMatchObject({ state: "stale", erasedAt: null });
    expect(await merchant.storedEvent(waits)).toMatchObject({ state: "waiting" });
    expect(await events.erase({ ...ALL, reason: "stale" }, now)).toMatchObject({ byReason: { stale: 1 } });
    expect(await events.erase({ state: "waiting", reason: "unfinished" }, now)).toMatchObject({
      byReason: { unfinished: 1 },
    });
    expect(await merchant.work()).toMatchObject({ ran: 0, remaining: 0 });
  }),
  onFreshData("an event that waits or is held is erased on request, and never runs", async (rig) => {
    const merchant = keeping(rig, (receiver) =>
      receiver.onDeposit(
        () => {
          throw new Error("of Amina");
        },
        { maxAttempts: 1 },
      ),
    );
    const { events } = merchant.receiver;
    const [held = ""] = await delivered(merchant, deposits(rig, 1));
    const waiting = await merchant.deliver(depositOf(rig));
    for (const eventId of [held, waiting]) {
      const refused = { code: "ERR_NOT_DECIDABLE" };
      await expect(events.erase(eventId, { by: "amina" })).rejects.toMatchObject(refused);
    }
    expect(
      await events.erase([held, waiting], {
        by: "amina",
        unfinished: true,
        perSecond: Number.POSITIVE_INFINITY,
      }),
    ).toMatchObject({
      decided: 2,
    });
    expect(await merchant.work()).toMatchObject({ ran: 0, remaining: 0, nextDueAt: null });
    expect(await events.counts()).toMatchObject({ waiting: 0, retrying: 0, held: 0 });
    expect(
      JSON.stringify([await merchant.storedEvent(held), await merchant.storedEvent(waiting)]),
    ).not.toMatch(/Amina/);
  }),
];
