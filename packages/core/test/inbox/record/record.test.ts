import { createHarness, createTestKeys, fakeClock, type Harness } from "@payhooks/core/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { accept } from "../../../src/inbox/record/accept-into-record.ts";
import { decodeRecord, encodeRecord, isUnreadable } from "../../../src/inbox/record/codec.ts";
import type { VerifiedEvent } from "../../../src/inbox/record/event.ts";
import { indexOf } from "../../../src/inbox/record/index-of.ts";
import { labelOf } from "../../../src/inbox/record/label.ts";
import type { IdempotencyRecord, OpenWork, Slot } from "../../../src/inbox/record/record.ts";
import { memoryInbox } from "../../../src/memory/index.ts";
import type { HeldReason } from "../../../src/protocol/held-reasons.ts";
import { verifiedEvent } from "../../verified-event.ts";

const keys = createTestKeys();
/** An event that claims its reference. */
const claiming = verifiedEvent(1, { signedAt: 0, referenceKey: "f".repeat(32) });

describe("oneSuccessPerReference", () => {
  async function harness(): Promise<Harness & { readonly ran: string[] }> {
    const ran: string[] = [];
    const t = await createHarness({
      keys,
      register: (receiver) =>
        receiver
          .onDeposit({
            PENDING: ({ payTxnId }) => void ran.push(`PENDING ${payTxnId}`),
            SUCCESS: ({ payTxnId }) => void ran.push(`SUCCESS ${payTxnId}`),
            FAILED: ({ payTxnId }) => void ran.push(`FAILED ${payTxnId}`),
          })
          .onWithdrawal(({ payTxnId }) => void ran.push(`withdrawn ${payTxnId}`)),
      receiver: { payments: { publicKey: keys.publicKey, oneSuccessPerReference: true } },
    });
    return { ...t, ran };
  }

  it("holds a second SUCCESS of a reference under another payTxnId; copies of the first are duplicates", async () => {
    const t = await harness();
    await t.deposit({ referenceId: "o-1", payTxnId: "tx-1" });
    expect(await t.deposit({ referenceId: "o-1", payTxnId: "tx-2" })).toMatchObject({
      status: 200,
      outcome: "held",
    });
    expect(await t.deposit({ referenceId: "o-1", payTxnId: "tx-1" })).toMatchObject({
      status: 200,
      outcome: "done",
    });
    expect(await t.deposit({ referenceId: "o-2", payTxnId: "tx-3" })).toMatchObject({ outcome: "done" });
    expect(t.ran).toEqual(["SUCCESS tx-1", "SUCCESS tx-3"]);
    expect((await t.held()).map(({ reason, id }) => [reason, id])).toEqual([["reference-reused", "tx-2"]]);
  });

  it("does not concern other statuses, nor withdrawals with the reference of a deposit", async () => {
    const t = await harness();
    await t.deposit({ referenceId: "o-1", payTxnId: "tx-1" });
    await t.deposit({ referenceId: "o-1", payTxnId: "tx-2", status: "PENDING" });
    await t.deposit({ referenceId: "o-1", payTxnId: "tx-3", status: "FAILED" });
    await t.withdrawal({ referenceId: "o-1", payTxnId: "tx-4" });
    expect(t.ran).toEqual(["SUCCESS tx-1", "PENDING tx-2", "FAILED tx-3", "withdrawn tx-4"]);
  });

  it("does not let a SUCCESS that it holds set a rank: the FAILED of that transaction runs", async () => {
    const t = await harness();
    await t.deposit({ referenceId: "o-1", payTxnId: "tx-1" });
    await t.deposit({ referenceId: "o-1", payTxnId: "tx-2" });
    expect(await t.deposit({ referenceId: "o-1", payTxnId: "tx-2", status: "FAILED" })).toMatchObject({
      outcome: "done",
    });
    expect(t.ran).toEqual(["SUCCESS tx-1", "FAILED tx-2"]);
  });

  it("does not keep a person's replay from running the SUCCESS", async () => {
    const t = await harness();
    await t.deposit({ referenceId: "o-1", payTxnId: "tx-1" });
    const { eventId } = await t.deposit({ referenceId: "o-1", payTxnId: "tx-2" });
    await t.receiver.events.replay(eventId ?? "", { by: "an operator", note: "paid twice on purpose" });
    await t.advance("1s");
    expect(t.ran).toEqual(["SUCCESS tx-1", "SUCCESS tx-2"]);
  });

  it("forgets a reference together with the record", async () => {
    const t = await harness();
    await t.deposit({ referenceId: "o-1", payTxnId: "tx-1" });
    await t.advance("7d");
    expect(await t.deposit({ referenceId: "o-1", payTxnId: "tx-2" })).toMatchObject({ outcome: "held" });
    await t.advance("2d");
    expect(await t.deposit({ referenceId: "o-1", payTxnId: "tx-3" })).toMatchObject({ outcome: "done" });
    expect(t.ran).toEqual(["SUCCESS tx-1", "SUCCESS tx-3"]);
  });

  it("refuses a SUCCESS that it cannot hold because of maxHeld, and no copies of the first", async () => {
    const clock = fakeClock();
    const inbox = memoryInbox({ clock, maxRecords: 10, maxUnfinished: 10 });
    const success = (id: string): VerifiedEvent => ({
      ...claiming,
      key: id.padStart(32, "0"),
      id,
      signedAt: clock.now(),
    });
    const accepting = async (id: string) => (await inbox.accept(success(id), { maxHeld: 0 })).outcome;
    expect(await accepting("1")).toBe("new");
    await expect(accepting("2")).rejects.toMatchObject({ code: "ERR_HELD_FULL" });
    expect(await accepting("1")).toBe("duplicate");
  });
});

describe("a record as text", () => {
  const text = fc.oneof(
    fc.string({ maxLength: 12 }),
    fc.string({ unit: fc.constantFrom("~", "\\", "\n", "u", "s", "D", "{", "0"), maxLength: 6 }),
    fc.constantFrom("event", "SUCCESS", "0123456789abcdef", "\0", "\ud800x", "x\udfff"),
    fc.uuid(),
  );
  const hex = fc.stringMatching(/^[0-9a-f]{16}$/);
  const reasons: readonly HeldReason[] = [
    "conflict",
    "mismatch",
    "reference-reused",
    "unrecognized",
    "malformed",
  ];
  const slot: fc.Arbitrary<Slot> = fc.record({
    name: fc.constantFrom("DEPOSIT", "WITHDRAWAL", "settlement.approved", ""),
    status: fc.constantFrom("PENDING", "SUCCESS", "FAILED", "CANCELLED", ""),
    rank: fc.constantFrom(0 as const, 1 as const, null),
    referenceId: fc.option(text),
    amounts: fc.dictionary(
      fc.constantFrom("callback", "lookup", "webhook"),
      fc.constantFrom("10", "10.5", "0"),
    ),
    verdict: fc.constantFrom("run" as const, ...reasons),
    state: fc.constantFrom("done" as const, "stale" as const, "discarded" as const),
    isOnHeldDone: fc.constant(false),
    replays: fc.nat(5),
    acceptedAt: fc.nat(),
    runToken: fc.option(fc.constantFrom("1oueFVzsvQ000", "1oueFVzsvQ000.")),
    work: fc.constant(null),
  });
  const record: fc.Arbitrary<IdempotencyRecord> = fc
    .record({
      flow: fc.constantFrom("payments" as const, "connect" as const),
      tenant: text,
      id: text,
      fixedFacts: fc.dictionary(fc.constantFrom("event", "referenceId", "merchantId", "object"), text, {
        noNullPrototype: true,
      }),
      lease: fc.constant(null),
      slots: fc.dictionary(hex, slot, { minKeys: 1, maxKeys: 4, noNullPrototype: true }),
      signedAt: fc.nat(),
      expiresAt: fc.nat(),
      isClosed: fc.boolean(),
      claimed: fc.boolean(),
      which: fc.nat(3),
    })
    .map(({ claimed, which, ...facts }) => {
      const names = Object.keys(facts.slots);
      const statusSlot = claimed ? (names[which % names.length] ?? null) : null;
      return { ...facts, statusSlot, isClosed: claimed && facts.isClosed };
    });

  it("is the same after it was stored, to the millisecond", () => {
    const time = fc.oneof(fc.nat(), fc.constantFrom(0, -1, 0.5, 1_795_000_000_000, 8.64e15));
    fc.assert(
      fc.property(record, time, time, (facts, signedAt, expiresAt) => {
        const given = { ...facts, signedAt, expiresAt };
        expect(plain(readable(encodeRecord(given)))).toEqual(plain(given));
      }),
      { numRuns: 500 },
    );
  });

  it("is the same after it was stored as text while there is work in it", () => {
    const any = fc.string({
      unit: fc.constantFrom("a", "\n", "\r", '"', "\\", "\u2028", "\0", "\ud800", "\udc00", "é", "😀"),
      maxLength: 8,
    });
    const delivery = fc.record({
      flow: fc.constant("connect" as const),
      tenant: text,
      arrivedBy: fc.constant("webhook" as const),
      content: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
      signature: fc.option(any),
      keyId: fc.option(fc.constant("k1")),
      receivedAt: fc.nat(),
    });
    const nothing = { now: 1, delayMs: 0, lane: "usual" as const, isReferenceReused: false, admit: () => {} };
    const { record: claimed } = accept(null, claiming, nothing);
    const newWork = Object.values(claimed?.slots ?? {})[0]?.work as OpenWork;
    const working = fc.tuple(slot, delivery, any).map(
      ([one, arrived, detail]): Slot => ({
        ...one,
        state: "waiting",
        work: { ...newWork, delivery: arrived, detail },
      }),
    );
    const slots = fc.array(fc.tuple(hex, fc.oneof(slot, working)), { minLength: 1, maxLength: 4 });
    const kept = (given: IdempotencyRecord): IdempotencyRecord => {
      const text = encodeRecord(given);
      expect(text).not.toMatch(UNFIT);
      return readable(text);
    };
    fc.assert(
      fc.property(record, slots, hex, working, (given, others, key, work) => {
        const open = { ...given, slots: { ...given.slots, ...Object.fromEntries(others), [key]: work } };
        expect(plain(kept(open))).toEqual(plain(open));
        expect(encodeRecord(kept(open))).toEqual(encodeRecord(open));
      }),
      { numRuns: 500 },
    );
  });

  it("of another format is unreadable, and says which format it has", () => {
    expect(decodeRecord(`1${encodeRecord(sample)}`)).toEqual({
      unreadable: 'its format is "1": another version of Payhooks wrote it',
    });
    expect(decodeRecord("")).toMatchObject({ unreadable: expect.stringContaining("format") });
  });

  it.each<readonly [what: string, change: (text: string) => string, why: string]>([
    ["is cut off", (text) => text.slice(0, text.length / 2), "SyntaxError"],
    [
      "has a time that no date has",
      (text) => text.replace("1700700000000", "1e300"),
      "expiresAt is not a time",
    ],
    [
      "has a text in place of a time",
      (text) => text.replace("1700700000000", '"later"'),
      "expiresAt is not a time",
    ],
    ["has a fact that is none", (text) => text.replace('"order-1234"', "null"), "fixedFacts is not a text"],
    [
      "has a flow without a name",
      (text) => text.replace('"payments"', '"Payments!"'),
      "flow is not the name of a flow",
    ],
    ["has an unknown state", (text) => text.replace('"done"', '"asleep"'), "slots state is not one that"],
    [
      "has nothing to run with",
      (text) => text.replace('"done"', '"waiting"'),
      "work does not fit the state waiting",
    ],
    [
      "has a slot that no event can have",
      (text) => text.replace('0123456789abcdef":', '__proto__":'),
      "slots has a name",
    ],
    [
      "has a status of no slot",
      (text) => text.replace('"0123456789abcdef",', '"__proto__",'),
      "statusSlot names no slot",
    ],
    ["has a part too many", (text) => text.replace(/\]$/, ",null,null,null]"), "is not a list of its fields"],
  ])("that %s is unreadable, and says why", (_, change, why) => {
    const text = encodeRecord(sample);
    const changed = change(text);
    expect(changed).not.toBe(text);
    expect(decodeRecord(changed)).toEqual({
      unreadable: expect.stringContaining(`its text is damaged: ${why}`),
    });
  });

  it("is listed under labels that every database can store", () => {
    const slots = openSlots(labelOf(`r\0\ud800${"é".repeat(20_000)}`));
    const [given] = fc.sample(record, 1);
    if (given === undefined) throw new Error("no record");
    const { events } = indexOf("0".repeat(32), { ...given, tenant: "t\0", id: "\udc00", slots });
    for (const { referenceId, tenant, id } of events) {
      for (const text of [referenceId ?? "", tenant, id]) {
        expect(text).not.toMatch(UNFIT);
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(512);
        expect(Buffer.from(text).toString()).toBe(text);
      }
      expect(referenceId).toMatch(/^sha256:[0-9a-f]{64}$/);
    }
  });

  it("is short if it has one done event", () => {
    expect(encodeRecord(sample).length).toBeLessThan(323);
  });
});

const doneSlot: Slot = {
  name: "DEPOSIT",
  status: "SUCCESS",
  rank: 1,
  referenceId: null,
  amounts: {},
  verdict: "run",
  state: "done",
  isOnHeldDone: false,
  replays: 0,
  acceptedAt: 1_700_000_000_000,
  runToken: "1oueFVzsvQ000.",
  work: null,
};

/** A payment that is done. */
const sample: IdempotencyRecord = {
  flow: "payments",
  tenant: "",
  id: "0b6f6e0c-6b0e-4f0e-9d7e-3f2f6a1c0001",
  statusSlot: "0123456789abcdef",
  isClosed: true,
  fixedFacts: {
    event: "DEPOSIT",
    referenceId: "order-1234",
    merchantId: "0b6f6e0c-6b0e-4f0e-9d7e-3f2f6a1c0001",
  },
  lease: null,
  slots: { "0123456789abcdef": { ...doneSlot, amounts: { callback: "10.5" } } },
  signedAt: 1_700_000_000_000,
  expiresAt: 1_700_700_000_000,
};

/** Without prototypes, which differ between what was parsed and what was made. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

/** The characters that a database refuses in a text: a NUL, and half of a surrogate pair. */
const UNFIT = /\0|\p{Surrogate}/u;

/** The slots of a payment that waits, with this reference. */
function openSlots(referenceId = "o-1"): Record<string, Slot> {
  const given = { ...claiming, referenceId };
  const nothing = { now: 1, delayMs: 0, lane: "usual" as const, isReferenceReused: false, admit: () => {} };
  return accept(null, given, nothing).record?.slots ?? {};
}

function readable(text: string): IdempotencyRecord {
  const record = decodeRecord(text);
  if (isUnreadable(record)) throw new Error(record.unreadable);
  return record;
}
