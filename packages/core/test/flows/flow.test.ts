/** The inbox's form of a reading: every field of it, since the table of deduplication goes by them. */
import { describe, expect, it } from "vitest";
import {
  type CertainReading,
  cachedReading,
  cacheReading,
  eventOf,
  eventWithoutDelivery,
  MAX_FUTURE_MS,
  ReadDelivery,
  readingOutsideTable,
  unsetEntryWarnings,
  withFreshness,
} from "../../src/flows/flow.ts";
import type { StoredDelivery } from "../../src/inbox/record/event.ts";
import { claimKeyFor, hashOf, recordKeyFor, subjectKeyFor } from "../../src/inbox/record/keys.ts";
import type { AnyEvent } from "../../src/protocol/events.ts";

const NOW = Date.parse("2025-11-21T09:15:27Z");
const DAY_MS = 86_400_000;
const delivery: StoredDelivery = {
  flow: "payments",
  tenant: "shop",
  arrivedBy: "callback",
  content: Buffer.from("signed"),
  signature: "c2ln",
  keyId: "key",
  receivedAt: NOW,
};
const LIFETIMES = { windowMs: 10 * DAY_MS, keepMs: undefined };
const facts: CertainReading = {
  id: "tx-1",
  name: "DEPOSIT",
  status: "SUCCESS",
  rank: 1,
  fixedFacts: { event: "DEPOSIT", referenceId: "r".repeat(600) },
  amount: "10.5",
  signedAt: NOW,
  hold: null,
  reference: null,
  referenceId: "order-1",
};
const eventWith = (
  changes: Partial<CertainReading> = {},
  lifetimes: Parameters<typeof eventOf>[2] = LIFETIMES,
) => eventOf({ ...facts, ...changes }, delivery, lifetimes);
/** A stand-in for an event. The tests ask only whether this one is handed on. */
const anEvent = { id: "tx-1" } as unknown as AnyEvent;

describe("an event whose reading is certain", () => {
  it("has these fields", () => {
    const { variantSlot, ...event } = eventWith();
    expect(event).toEqual({
      key: recordKeyFor("shop", "payments", "tx-1"),
      slot: hashOf(["DEPOSIT", "SUCCESS", ""], 16),
      id: "tx-1",
      name: "DEPOSIT",
      status: "SUCCESS",
      rank: 1,
      fixedFacts: { event: "DEPOSIT", referenceId: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) },
      amount: "10.5",
      signedAt: NOW,
      isWithinWindow: true,
      retentionMs: 11 * DAY_MS,
      verdict: "run",
      detail: null,
      referenceKey: null,
      referenceId: "order-1",
      delivery,
    });
    expect(variantSlot()).toMatch(/^[0-9a-f]{16}$/);
  });

  it("has a claim of its reference, a time to be kept, a last rank and a subject, if these are given", () => {
    const changes = { reference: "order-1", lastRank: 3, subject: { name: "account-1", at: NOW } };
    expect(eventWith(changes, { windowMs: DAY_MS, keepMs: 5 })).toMatchObject({
      retentionMs: 2 * DAY_MS,
      keepMs: 5,
      lastRank: 3,
      referenceKey: claimKeyFor("shop", "payments", "DEPOSIT", "order-1"),
      subject: { key: subjectKeyFor("shop", "payments", "account-1"), at: NOW },
    });
  });

  it("has no reference if the event has none", () => {
    expect(eventWith({ referenceId: null })).toMatchObject({ referenceId: null });
  });

  it("has no rank and no subject if it is held", () => {
    const hold = { reason: "unexpected", detail: "merchantId is another" } as const;
    const held = eventWith({ hold, subject: { name: "account-1", at: NOW } });
    expect(held).toMatchObject({ rank: null, verdict: "unexpected", detail: "merchantId is another" });
    expect(held.slot).toBe(eventWith().slot);
    expect(held.subject).toBeUndefined();
  });

  it("has a slot for each name and status, also if they contain blanks", () => {
    const names = [
      ["order paid", "now"],
      ["order", "paid now"],
      ["order ", "paid now"],
      ["", "order paid now"],
    ] as const;
    const slots = names.map(([name, status]) => eventWith({ name, status }).slot);
    expect(slots).toEqual(names.map(([name, status]) => hashOf([name, status, ""], 16)));
  });

  it("has the same slot again after more names than the memory holds", () => {
    const before = eventWith().slot;
    for (let i = 0; i < 2_500; i++) {
      expect(eventWith({ status: `s${i}` }).slot).toBe(hashOf(["DEPOSIT", `s${i}`, ""], 16));
    }
    expect(eventWith().slot).toBe(before);
  });

  it("has a further slot for each contradiction: another amount, or other fixed facts", () => {
    const variants = [
      eventWith(),
      eventWith({ amount: "11" }),
      eventWith({ amount: null }),
      eventWith({ fixedFacts: { event: "X" } }),
    ];
    expect(new Set(variants.map(({ variantSlot }) => variantSlot())).size).toBe(4);
    expect(eventWith().variantSlot()).toBe(eventWith().variantSlot());
    expect(eventWith().variantSlot()).not.toBe(eventWith().slot);
  });
});

describe("an event that another receiver names", () => {
  it("has no fixed facts, no amount, no signature and no bytes, so that it contradicts nothing", () => {
    const { flow, tenant, arrivedBy, receivedAt } = delivery;
    const named = eventWithoutDelivery(
      { id: "tx-1", event: "DEPOSIT" },
      { status: "SUCCESS", rank: 1, lastRank: 2 },
      { flow, tenant, arrivedBy, receivedAt },
      LIFETIMES,
    );
    expect(named).toMatchObject({
      key: eventWith().key,
      slot: eventWith().slot,
      rank: 1,
      lastRank: 2,
      fixedFacts: {},
      amount: null,
      signedAt: null,
      verdict: "run",
      referenceKey: null,
      referenceId: null,
      delivery: { flow, tenant, arrivedBy, receivedAt, signature: null, keyId: null },
    });
    expect(named.delivery.content).toHaveLength(0);
  });
});

describe("an entry, whose reading is not certain", () => {
  const entry = (reason: "malformed" | "ambiguous", signed = "signed", given = delivery) =>
    readingOutsideTable(reason, "as said", signed, NOW, given, { windowMs: DAY_MS, keepMs: 5 }, ["order-1"]);

  it("has these fields, and no event", () => {
    const { verified, event, leftOut } = entry("ambiguous");
    const { variantSlot, ...rest } = verified;
    expect(rest).toEqual({
      key: hashOf(["shop", "payments", "entry", rest.id], 32),
      slot: hashOf(["ambiguous"], 16),
      id: expect.stringMatching(/^[0-9a-f]{32}$/),
      name: "",
      status: "",
      rank: null,
      fixedFacts: {},
      amount: null,
      signedAt: NOW,
      isWithinWindow: true,
      retentionMs: 2 * DAY_MS,
      keepMs: 5,
      verdict: "ambiguous",
      detail: "as said",
      referenceKey: null,
      referenceId: null,
      foundBy: ["order-1"],
      delivery,
    });
    expect(variantSlot()).toBe(rest.slot);
    expect([event, leftOut]).toEqual([null, []]);
  });

  it("can be found by no labels unless the flow gives them", () => {
    expect(
      readingOutsideTable("malformed", "as said", "signed", null, delivery, LIFETIMES).verified,
    ).toMatchObject({
      foundBy: [],
      signedAt: null,
    });
  });

  it("differs by its tenant, its flow and its signed text, and by nothing else", () => {
    const key = (signed?: string, given?: StoredDelivery) => entry("malformed", signed, given).verified.key;
    const others = [
      key("other"),
      key("signed", { ...delivery, tenant: "other" }),
      key("signed", { ...delivery, flow: "connect" }),
    ];
    expect(new Set([key(), ...others]).size).toBe(4);
    expect(key("signed", { ...delivery, signature: "b3RoZXI=", receivedAt: 1 })).toBe(key());
    expect(entry("malformed").verified.slot).not.toBe(entry("ambiguous").verified.slot);
  });
});

describe("the window of the signed time", () => {
  const at = (signedAt: number | null) =>
    withFreshness(new ReadDelivery(eventWith({ signedAt }), () => anEvent, ["userId"]), NOW, DAY_MS);

  it.each([
    ["none", null, null],
    ["now", NOW, null],
    ["the oldest", NOW - DAY_MS, null],
    ["older", NOW - DAY_MS - 1, "ERR_TIMESTAMP_EXPIRED"],
    ["the latest", NOW + MAX_FUTURE_MS, null],
    ["later", NOW + MAX_FUTURE_MS + 1, "ERR_TIMESTAMP_FUTURE"],
  ] as const)("%s", (_, signedAt, outside) => {
    const { ok, reading, outsideWindow: found } = at(signedAt);
    expect({ ok, found, isWithinWindow: reading.verified.isWithinWindow }).toEqual({
      ok: true,
      found: outside,
      isWithinWindow: outside === null,
    });
    expect(reading.event).toBe(anEvent);
    expect(reading.leftOut).toEqual(["userId"]);
  });

  it("is a day in the future", () => {
    expect(MAX_FUTURE_MS).toBe(DAY_MS);
  });
});

describe("a reading", () => {
  it("makes its event once, when it is asked for", () => {
    let made = 0;
    const reading = new ReadDelivery(eventWith(), () => {
      made++;
      return anEvent;
    });
    expect(made).toBe(0);
    expect([reading.event, reading.event]).toEqual([anEvent, anEvent]);
    expect(made).toBe(1);
  });

  it("is remembered with its delivery for the same rules, and not with a copy of the delivery", () => {
    const [rules, mine] = [{}, { ...delivery }];
    const reading = new ReadDelivery(eventOf(facts, mine, LIFETIMES), null);
    expect(cachedReading(mine, rules)).toBeUndefined();
    cacheReading(mine, rules, reading);
    expect(cachedReading(mine, rules)).toBe(reading);
    expect(cachedReading(mine, {})).toBeUndefined();
    expect(cachedReading({ ...mine }, rules)).toBeUndefined();
  });
});

describe("entries of a list of keys that are not set", () => {
  it("cause no warning if there are none", () => {
    expect(unsetEntryWarnings("payments.publicKey", 0)).toEqual([]);
  });

  it.each([
    [1, "payments.publicKey lists 1 entry that is not set."],
    [2, "payments.publicKey lists 2 entries that are not set."],
  ])("cause a warning that counts them (%i) and says where to look", (count, what) => {
    expect(unsetEntryWarnings("payments.publicKey", count)).toEqual([
      { what, fix: expect.stringContaining("environment variable") },
    ]);
  });
});
