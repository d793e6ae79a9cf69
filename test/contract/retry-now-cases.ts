/** A person makes the next attempts of events due now, after an outage (docs/concepts/after-the-end.md, Try now). */
import { type BulkReport, Reject } from "@payhooks/core";
import { expect } from "vitest";
import { type ContractCase, onFreshData, type Rig } from "./inbox-processes.ts";
import { depositOf, type MerchantReceiver, merchantOn } from "./merchant-receiver.ts";

const WHO = { by: "amina", note: "the bank is back" };
const SOON = { ...WHO, perSecond: Number.POSITIVE_INFINITY };

interface Bank {
  isAway: boolean;
}

/** A merchant whose attempts fail while the bank is away, and then wait for a hundred leases. */
function merchantOf(rig: Rig): MerchantReceiver & { readonly bank: Bank; readonly attempts: string[] } {
  const bank: Bank = { isAway: true };
  const attempts: string[] = [];
  const merchant = merchantOn(rig.start(), (receiver) =>
    receiver.onDeposit(
      ({ referenceId }, { attempt }) => {
        attempts.push(`${referenceId} ${attempt}`);
        if (referenceId.startsWith("bad")) throw new Reject("never");
        if (bank.isAway) throw new Error("the bank is away");
      },
      { backoffMs: () => rig.leaseMs * 100 },
    ),
  );
  return { ...merchant, bank, attempts };
}

async function failed(
  rig: Rig,
  merchant: MerchantReceiver,
  references: readonly string[],
): Promise<readonly string[]> {
  const ids: string[] = [];
  for (const referenceId of references) ids.push(await merchant.deliver(depositOf(rig, { referenceId })));
  await merchant.work();
  return ids;
}

const summary = ({ found, decided, alreadyDecided, byReason, skipped, complete }: BulkReport) => ({
  found,
  decided,
  alreadyDecided,
  byReason,
  skipped,
  complete,
});

export const retryNowCases: readonly ContractCase[] = [
  onFreshData("a person makes the next attempt due, and it counts like any other", async (rig) => {
    const merchant = merchantOf(rig);
    const { events } = merchant.receiver;
    const [eventId = ""] = await failed(rig, merchant, ["order-1"]);
    expect(await merchant.work()).toMatchObject({ ran: 0 });
    expect(await events.retryNow(eventId, WHO)).toMatchObject({ decided: 1, byReason: { unfinished: 1 } });
    const refused = { code: "ERR_NOT_DECIDABLE" };
    await expect(events.retryNow(eventId, WHO)).rejects.toMatchObject(refused);
    expect(await merchant.work()).toMatchObject({ ran: 1, failed: 1 });
    expect(await merchant.work()).toMatchObject({ ran: 0 });
    merchant.bank.isAway = false;
    await events.retryNow([eventId], WHO);
    expect(await merchant.work()).toMatchObject({ ran: 1, failed: 0 });
    expect(merchant.attempts).toEqual(["order-1 1", "order-1 2", "order-1 3"]);
    const history = (await events.get(eventId))?.history ?? [];
    expect(history.filter(({ what }) => what === "attempt brought forward")).toMatchObject([WHO, WHO]);
    await expect(events.retryNow(eventId, WHO)).rejects.toMatchObject(refused);
    const unknown = { code: "ERR_EVENT_NOT_FOUND" };
    await expect(events.retryNow("0".repeat(48), WHO)).rejects.toMatchObject(unknown);
  }),
  onFreshData("of several events, only those that wait for an attempt are due now", async (rig) => {
    const merchant = merchantOf(rig);
    const { events } = merchant.receiver;
    const ids = await failed(rig, merchant, ["order-1", "order-2", "bad-1"]);
    const waiting = await merchant.deliver(depositOf(rig, { referenceId: "order-3" }));
    await rig.advance(2);
    const dry = await events.retryNow([...ids, waiting, "0".repeat(48)], { ...SOON, dryRun: true });
    expect(summary(dry)).toEqual({
      found: 5,
      decided: 2,
      alreadyDecided: 0,
      byReason: { unfinished: 2 },
      skipped: { "not-waiting": 1, due: 1, missing: 1 },
      complete: true,
    });
    expect(await merchant.work()).toMatchObject({ ran: 1 });
    // By a filter: without those that are held.
    expect(await events.retryNow({ event: "DEPOSIT" }, SOON)).toMatchObject({ found: 3, decided: 3 });
    merchant.bank.isAway = false;
    expect(await merchant.work()).toMatchObject({ ran: 3, failed: 0 });
    expect(await events.retryNow({}, SOON)).toMatchObject({ found: 0 });
    const other = events.retryNow({ state: "held" }, SOON);
    await expect(other).rejects.toMatchObject({ code: "ERR_OPTION_INVALID" });
  }),
  onFreshData("attempts come due at the rate that was asked for", async (rig) => {
    const merchant = merchantOf(rig);
    await failed(rig, merchant, ["order-1", "order-2", "order-3"]);
    await rig.advance(2);
    const before = rig.now();
    let isEnded = false;
    const perSecond = 4_000 / rig.leaseMs;
    const retrying = merchant.receiver.events.retryNow({}, { ...WHO, perSecond }).finally(() => {
      isEnded = true;
    });
    while (!isEnded) await rig.advance(rig.leaseMs / 20);
    expect(await retrying).toMatchObject({ decided: 3 });
    // Two waits of a quarter of a lease, less what timers are early by.
    expect(rig.now() - before).toBeGreaterThanOrEqual(rig.leaseMs / 2 - 4);
  }),
  onFreshData("an interruption ends the pause before the next attempt at once", async (rig) => {
    const merchant = merchantOf(rig);
    await failed(rig, merchant, ["order-1", "order-2"]);
    await rig.advance(2);
    const stop = new AbortController();
    const report = await merchant.receiver.events.retryNow(
      {},
      {
        ...WHO,
        perSecond: 0.001,
        signal: stop.signal,
        progress: () => void setTimeout(() => stop.abort(), 20),
      },
    );
    expect(report).toMatchObject({ decided: 1, complete: false });
  }),
  onFreshData("a retry that was interrupted goes on, and makes no attempt due twice", async (rig) => {
    const merchant = merchantOf(rig);
    const { events } = merchant.receiver;
    await failed(rig, merchant, ["order-1", "order-2", "order-3"]);
    await rig.advance(2);
    const stop = new AbortController();
    const first = await events.retryNow({}, { ...SOON, signal: stop.signal, progress: () => stop.abort() });
    expect(first).toMatchObject({ decided: 1, complete: false });
    // It fails once more, and waits again.
    expect(await merchant.work()).toMatchObject({ ran: 1, failed: 1 });
    const { name, until } = first;
    const rest = await events.retryNow({ until: until ?? undefined }, { ...SOON, name });
    expect(rest).toMatchObject({ decided: 2, alreadyDecided: 1, complete: true });
    await merchant.work();
    expect(merchant.attempts).toHaveLength(6);
  }),
];
