/** One SUCCESS per reference (docs/concepts/deduplication.md): whose a reference is, from when, and for how long. */
import { Reject } from "@payhooks/core";
import { successesOfReference } from "@payhooks/core/events";
import { expect } from "vitest";
import { type ContractCase, onFreshData, type Process, type Rig } from "./inbox-processes.ts";
import { depositOf, type MerchantReceiver, merchantOn } from "./merchant-receiver.ts";
import {
  heldOf,
  newId,
  outcomes,
  RETENTION_MS,
  type Sample,
  sampleEvent,
  sampleRunner,
  workAll,
} from "./sample-events.ts";
import { does } from "./write-names.ts";

const HOUR_MS = 3_600_000;
const reused = { outcome: "held", reason: "reference-reused" };

let references = 0;
/** A SUCCESS of a new transaction for that reference. */
function claiming(referenceKey: string, now: number, sample: Sample = {}): ReturnType<typeof sampleEvent> {
  return sampleEvent(newId(), now, { referenceKey, ...sample });
}

function newReference(): string {
  return (++references).toString(16).padStart(32, "e");
}

const BY = { by: "an operator", note: "the ledger is open again" };

/** A receiver with `oneSuccessPerReference`, whose handler writes down what it credits. */
function merchantOf(
  process: Process,
  credited: string[],
  isOpen: () => boolean = () => true,
): MerchantReceiver {
  return merchantOn(
    process,
    (receiver) =>
      receiver.onDeposit({
        SUCCESS: ({ payTxnId }) => {
          if (!isOpen()) throw new Reject("the ledger is closed");
          credited.push(payTxnId);
        },
        FAILED: () => {},
      }),
    { payments: { publicKey: undefined, oneSuccessPerReference: true } },
  );
}

async function stateOf({ receiver }: MerchantReceiver, eventId: string): Promise<string> {
  const life = await receiver.events.get(eventId);
  return [life?.state, life?.reason].filter((word) => word != null).join(" ");
}

/**
 * The record of the claim ends now: up to its expiry, another SUCCESS of the reference is held. Delivers one more after that, and
 * returns its eventId.
 */
async function afterItsRetention(
  rig: Rig,
  merchant: MerchantReceiver,
  early: string,
  late: string,
): Promise<string> {
  const deliver = (payTxnId: string): Promise<string> =>
    merchant.deliver(depositOf(rig, { payTxnId, referenceId: "order-17" }));
  await rig.advance(RETENTION_MS - HOUR_MS);
  expect(await stateOf(merchant, await deliver(early))).toBe("held reference-reused");
  await rig.advance(2 * HOUR_MS);
  return deliver(late);
}

/** A SUCCESS that is held as a conflict: FAILED came before. */
async function conflictOf(rig: Rig, merchant: MerchantReceiver, payTxnId: string): Promise<string> {
  const fields = { payTxnId, referenceId: "order-17" };
  await merchant.deliver(depositOf(rig, { ...fields, status: "FAILED" }));
  return merchant.deliver(depositOf(rig, fields));
}

export const referenceCases: readonly ContractCase[] = [
  onFreshData(
    "a reference belongs to its first transaction: copies of that pass, and other transactions are held",
    async (rig) => {
      const { inbox } = rig.start();
      const reference = newReference();
      const [first, second] = [claiming(reference, rig.now()), claiming(reference, rig.now())];
      expect(await outcomes(inbox, [first])).toEqual(["new"]);
      expect(await inbox.accept(second)).toMatchObject(reused);
      expect(await outcomes(inbox, [first, second, claiming(newReference(), rig.now())])).toEqual([
        "duplicate",
        "duplicate",
        "new",
      ]);
      const runner = sampleRunner();
      await workAll(inbox, runner);
      expect(runner.ran.sort()).toEqual(["SUCCESS", "SUCCESS", "onHeld SUCCESS"]);
      expect((await heldOf(inbox)).map(({ id }) => id)).toEqual([second.id]);
    },
  ),
  onFreshData("of many transactions that want one reference at the same time, one has it", async (rig) => {
    const processes = [rig.start(), rig.start()];
    const reference = newReference();
    const events = Array.from({ length: 20 }, () => claiming(reference, rig.now()));
    const answers = await Promise.all(
      events.flatMap((event) => processes.map(({ inbox }) => inbox.accept(event))),
    );
    expect(answers.filter(({ outcome }) => outcome === "new")).toHaveLength(1);
    const runner = sampleRunner();
    await workAll((processes[0] ?? rig.start()).inbox, runner);
    expect(runner.ran.filter((name) => name === "SUCCESS")).toHaveLength(1);
    expect(await heldOf((processes[0] ?? rig.start()).inbox)).toHaveLength(19);
  }),
  onFreshData("a refused delivery claims no reference", async (rig) => {
    const { inbox } = rig.start();
    const reference = newReference();
    const refused = claiming(reference, rig.now());
    await inbox.accept({ ...sampleEvent(0, rig.now(), { status: "FAILED" }), key: refused.key });
    // A conflict for which there is no room, and one that was signed too long ago.
    await expect((async () => inbox.accept(refused, { maxHeld: 0 }))()).rejects.toMatchObject({
      code: "ERR_HELD_FULL",
    });
    expect(await outcomes(inbox, [claiming(reference, rig.now(), { isWithinWindow: false })])).toEqual([
      "expired",
    ]);
    expect(await outcomes(inbox, [claiming(reference, rig.now())])).toEqual(["new"]);
  }),
  onFreshData(
    "a reference is claimed for as long as the record lives that claimed it, by its signed time",
    async (rig) => {
      const { inbox } = rig.start();
      const reference = newReference();
      const first = claiming(reference, rig.now(), { signedAt: rig.now() + 12 * HOUR_MS });
      await inbox.accept(first);
      await workAll(inbox, sampleRunner());
      await rig.advance(RETENTION_MS + 11 * HOUR_MS);
      expect(await inbox.accept(claiming(reference, rig.now()))).toMatchObject(reused);
      await rig.advance(2 * HOUR_MS);
      expect(await outcomes(inbox, [claiming(reference, rig.now())])).toEqual(["new"]);
    },
    { timeTravel: true },
  ),
  onFreshData("a held event claims no reference: a conflict, a mismatch", async (rig) => {
    const { inbox } = rig.start();
    const [one, other] = [newReference(), newReference()];
    const conflict = claiming(one, rig.now());
    await inbox.accept({ ...sampleEvent(0, rig.now(), { status: "FAILED" }), key: conflict.key });
    expect(await inbox.accept(conflict)).toMatchObject({ outcome: "held", reason: "conflict" });
    const success = claiming(newReference(), rig.now());
    await inbox.accept(success);
    const mismatch = {
      ...claiming(other, rig.now(), { fixedFacts: { referenceId: "o-2" } }),
      key: success.key,
    };
    expect(await inbox.accept(mismatch)).toMatchObject({ outcome: "held", reason: "mismatch" });
    const events = [one, other].map((reference) => claiming(reference, rig.now()));
    expect(await outcomes(inbox, events)).toEqual(["new", "new"]);
  }),
  onFreshData(
    "a copy that was signed earlier does not shorten a claim",
    async (rig) => {
      const { inbox } = rig.start();
      const reference = newReference();
      const first = claiming(reference, rig.now(), { signedAt: rig.now() + 12 * HOUR_MS });
      expect(await outcomes(inbox, [first, { ...first, signedAt: rig.now() }])).toEqual(["new", "duplicate"]);
      await rig.advance(RETENTION_MS + 11 * HOUR_MS);
      expect(await inbox.accept(claiming(reference, rig.now()))).toMatchObject(reused);
    },
    { timeTravel: true },
  ),
  onFreshData(
    "a claim stands as long as its event waits or is held, and until its record is forgotten",
    async (rig) => {
      const credited: string[] = [];
      let isOpen = false;
      const merchant = merchantOf(rig.start(), credited, () => isOpen);
      const another = (payTxnId: string): Promise<string> =>
        merchant.deliver(depositOf(rig, { payTxnId, referenceId: "order-17" }));
      const first = await another("tx-1");
      await rig.advance(3 * RETENTION_MS);
      expect(await stateOf(merchant, await another("tx-2"))).toBe("held reference-reused");
      await merchant.work();
      expect(await stateOf(merchant, first)).toBe("held rejected");
      await rig.advance(3 * RETENTION_MS);
      expect(await stateOf(merchant, await another("tx-3"))).toBe("held reference-reused");
      isOpen = true;
      await merchant.receiver.events.replay(first, BY);
      await merchant.work();
      expect(credited).toEqual(["tx-1"]);
      await afterItsRetention(rig, merchant, "tx-4", "tx-5");
      await merchant.work();
      expect(credited).toEqual(["tx-1", "tx-5"]);
    },
    { timeTravel: true },
  ),
  onFreshData(
    "the claim of an event that was discarded stands until its record is forgotten",
    async (rig) => {
      const credited: string[] = [];
      const merchant = merchantOf(rig.start(), credited, () => false);
      const first = await merchant.deliver(depositOf(rig, { payTxnId: "tx-1", referenceId: "order-17" }));
      await merchant.work();
      await rig.advance(3 * RETENTION_MS);
      await merchant.receiver.events.discard(first, BY);
      expect(await stateOf(merchant, await afterItsRetention(rig, merchant, "tx-2", "tx-3"))).toBe("waiting");
    },
    { timeTravel: true },
  ),
  ...["before", "after"].map((when) =>
    onFreshData(
      `a claim stands as long as its record is kept by an event that is held ${when} its own end`,
      async (rig) => {
        const credited: string[] = [];
        const merchant = merchantOf(rig.start(), credited);
        const order = { referenceId: "order-17" };
        const first = { ...order, payTxnId: "tx-1" };
        await merchant.deliver(depositOf(rig, first));
        if (when === "after") await merchant.work();
        const failed = await merchant.deliver(depositOf(rig, { ...first, status: "FAILED" }));
        await merchant.work();
        expect([await stateOf(merchant, failed), credited]).toEqual(["held conflict", ["tx-1"]]);
        await rig.advance(3 * RETENTION_MS);
        const second = await merchant.deliver(depositOf(rig, { ...order, payTxnId: "tx-2" }));
        expect(await stateOf(merchant, second)).toBe("held reference-reused");
        // Once somebody has decided, the claim goes with the record.
        await merchant.receiver.events.discard(failed, BY);
        await afterItsRetention(rig, merchant, "tx-3", "tx-4");
        await merchant.work();
        expect(credited).toEqual(["tx-1", "tx-4"]);
      },
      { timeTravel: true },
    ),
  ),
  onFreshData(
    "a claim lives as long as its record when a later copy of another event prolongs that",
    async (rig) => {
      const { inbox } = rig.start();
      const reference = newReference();
      const first = claiming(reference, rig.now());
      const pending = { ...sampleEvent(0, rig.now(), { status: "PENDING" }), key: first.key };
      await inbox.accept(first);
      await workAll(inbox, sampleRunner());
      expect(await outcomes(inbox, [{ ...pending, signedAt: rig.now() + 12 * HOUR_MS }])).toEqual(["stale"]);
      await rig.advance(RETENTION_MS + 11 * HOUR_MS);
      expect(await inbox.accept(claiming(reference, rig.now()))).toMatchObject(reused);
      await rig.advance(2 * HOUR_MS);
      expect(await outcomes(inbox, [claiming(reference, rig.now())])).toEqual(["new"]);
    },
    { timeTravel: true },
  ),
  onFreshData("an event that a person replays claims its reference", async (rig) => {
    const credited: string[] = [];
    const merchant = merchantOf(rig.start(), credited);
    const conflict = await conflictOf(rig, merchant, "tx-1");
    await merchant.work();
    await merchant.receiver.events.replay(conflict, BY);
    await merchant.work();
    const second = await merchant.deliver(depositOf(rig, { payTxnId: "tx-2", referenceId: "order-17" }));
    expect(await stateOf(merchant, second)).toBe("held reference-reused");
    await merchant.work();
    expect(credited).toEqual(["tx-1"]);
  }),
  // The second reference is one that an event keeps only the digest of.
  ...["order-17", "sha256:order-17"].map((referenceId) =>
    onFreshData(
      `a person who decides about the reused reference ${referenceId} sees who has it`,
      async (rig) => {
        const credited: string[] = [];
        const merchant = merchantOf(rig.start(), credited);
        const { events } = merchant.receiver;
        const [first, second] = ["tx-1", "tx-2"].map((payTxnId) => ({ payTxnId, referenceId }));
        const eventId = await merchant.deliver(depositOf(rig, { ...first, amount: "10.500000" }));
        const held = await events.get(await merchant.deliver(depositOf(rig, { ...second })));
        await merchant.work();
        const shown = { eventId, id: "tx-1", amount: "10.500000", state: "done", status: "SUCCESS" };
        expect(await events.referenceHolder(held?.eventId ?? "")).toMatchObject(shown);
        expect(held && (await successesOfReference(events, held))).toMatchObject([shown]);
        expect(await events.referenceHolder(eventId)).toBeNull();
      },
    ),
  ),
  onFreshData("a replay that finds its reference taken is held again, and the next one runs", async (rig) => {
    const credited: string[] = [];
    const merchant = merchantOf(rig.start(), credited);
    const conflict = await conflictOf(rig, merchant, "tx-1");
    await merchant.deliver(depositOf(rig, { payTxnId: "tx-2", referenceId: "order-17" }));
    await merchant.work();
    await merchant.receiver.events.replay(conflict, BY);
    await merchant.work();
    expect([await stateOf(merchant, conflict), credited]).toEqual(["held reference-reused", ["tx-2"]]);
    expect((await merchant.notices()).at(-1)).toMatchObject({ type: "held", reason: "reference-reused" });
    await merchant.receiver.events.replay(conflict, BY);
    await merchant.work();
    expect([await stateOf(merchant, conflict), credited]).toEqual(["done", ["tx-2", "tx-1"]]);
  }),
  onFreshData(
    "an event that was accepted without the option claims its reference when it runs",
    async (rig) => {
      const credited: string[] = [];
      const before = merchantOn(rig.start(), (receiver) => receiver.onDeposit(() => {}));
      const fields = { referenceId: "order-17" };
      const first = await before.deliver(depositOf(rig, { ...fields, payTxnId: "tx-1" }));
      const merchant = merchantOf(rig.start(), credited);
      await merchant.work();
      expect([await stateOf(merchant, first), credited]).toEqual(["done", ["tx-1"]]);
      const second = await merchant.deliver(depositOf(rig, { ...fields, payTxnId: "tx-2" }));
      expect(await stateOf(merchant, second)).toBe("held reference-reused");
    },
  ),
  ...["reference", "finish done"].map((write) =>
    onFreshData(
      `the claim of a process that died after its write "${write}" is free once nobody knows its owner`,
      async (rig) => {
        const reference = newReference();
        const dying = rig.start((moment, call) =>
          moment === "after" && does(call, write) ? "die" : undefined,
        );
        const first = claiming(reference, rig.now());
        void (async () => {
          await dying.inbox.accept(first);
          await workAll(dying.inbox, sampleRunner());
        })().catch(() => {});
        await rig.until(dying.dead);
        const { inbox } = rig.start();
        expect(await inbox.accept(claiming(reference, rig.now()))).toMatchObject(reused);
        await rig.advance(RETENTION_MS + HOUR_MS);
        expect(await outcomes(inbox, [claiming(reference, rig.now())])).toEqual(["new"]);
      },
      { timeTravel: true, only: "outlives-process" },
    ),
  ),
];
