import { describe, expect, it } from "vitest";
import type { CallbackRules } from "../../src/flows/callback.ts";
import { MAX_STEPS } from "../../src/flows/reading-search.ts";
import { knownFields, MAX_READINGS, MAX_SIGNED_PARTS, Readings } from "../../src/flows/readings.ts";
import { canonicalString } from "../../src/signature/canonical.ts";

const RULES: CallbackRules = {
  extraFields: new Map(),
  pinnedUrls: new Set(),
  merchantIdRequired: false,
  pinnedMerchantIds: new Set(),
  callbackUrlRequired: true,
};
const T = "2025-11-21T09:15:27.123456789Z";
const GENUINE = {
  amount: "10.000000",
  callbackUrl: "https://m.example/cb",
  event: "DEPOSIT",
  payTxnId: "tx-1",
  referenceId: "order-1",
  status: "FAILED",
  timestamp: T,
  userId: "u-1",
};
const readOf = (signed: string, rules: CallbackRules = RULES) =>
  new Readings(signed, knownFields(rules, { declared: false }));
const readingsOf = (fields: Record<string, string>, rules: CallbackRules = RULES) =>
  readOf(canonicalString(fields), rules)
    .list()
    .readings.map((texts) => Object.fromEntries(texts));

describe("the readings of a canonical string", () => {
  it("are one where nothing is ambiguous", () => {
    expect(readingsOf(GENUINE)).toEqual([GENUINE]);
  });

  it("are the genuine and the forged one of a re-split referenceId", () => {
    const genuine = { ...GENUINE, referenceId: `V-7&status=SUCCESS&timestamp=${T}&userId=u` };
    const forged = {
      ...GENUINE,
      referenceId: "V-7",
      status: "SUCCESS",
      userId: `u&status=FAILED&timestamp=${T}&userId=u-1`,
    };
    expect(readingsOf(genuine)).toEqual(readingsOf(forged));
    expect(readingsOf(genuine)).toContainEqual(genuine);
    expect(readingsOf(genuine)).toContainEqual(forged);
  });

  it("begin with those that have the fewest values with an & in them", () => {
    const swallowed = Object.entries(GENUINE).map(([name, value]) => `&${name}=${value}`);
    const readings = readingsOf({
      ...GENUINE,
      callbackUrl: `${GENUINE.callbackUrl}?x=1${swallowed.join("")}`,
    });
    const counts = readings.map(
      (fields) => Object.values(fields).filter((text) => text.includes("&")).length,
    );
    expect(counts.length).toBeGreaterThan(2);
    expect(counts).toEqual([...counts].sort());
  });

  it("include the genuine one although mixtures of both are many", () => {
    const tail = canonicalString({
      ...GENUINE,
      merchantId: "m",
      message: "a",
      payTxnId: "tx-v",
      providerTxId: "p",
    });
    const genuine = { ...GENUINE, merchantId: "n", message: "b", providerTxId: "q", zone: "z" };
    for (const name of ["callbackUrl", "message", "referenceId", "userId", "zone"] as const) {
      const body = { ...genuine, [name]: `${genuine[name]}&${tail.slice(tail.indexOf("event="))}` };
      const { zone: _, ...documented } = body;
      expect(readingsOf(body), name).toContainEqual(documented);
    }
  });

  it("differ in documented fields: what an undocumented one could be makes no further reading", () => {
    const readings = readingsOf({ ...GENUINE, userId: "u&a=1&v=2&w-x=3&signature=4&zone=5" });
    const names = new Set(readings.flatMap((fields) => Object.keys(fields)));
    expect([...names].sort()).toEqual(Object.keys(GENUINE).sort());
    expect(readings.map(({ userId }) => userId)).toEqual([
      "u&a=1",
      "u&a=1&v=2",
      "u&a=1&v=2&w-x=3&signature=4",
      "u&a=1&v=2&w-x=3&signature=4&zone=5",
    ]);
  });

  it("have no signature of their own, also where the order of names would allow one", () => {
    const genuine = { ...GENUINE, referenceId: "o-1&signature=x" };
    expect(readingsOf(genuine)).toEqual([genuine]);
  });

  it.each([
    ["referenceId", `V-7&status=SUCCESS&timestamp=${T}&userId=u`],
    ["message", "m&payTxnId=tx-9&providerTxId=p"],
  ])("begin with the one where it is %s that has the &, as may well be", (name, text) => {
    const genuine = { ...GENUINE, [name]: text };
    const readings = readingsOf(genuine);
    expect(readings.length).toBeGreaterThan(1);
    expect(readings[0]).toEqual(genuine);
  });

  it("are well formed, each of them", () => {
    const genuine = { ...GENUINE, referenceId: "V-7&status=success&timestamp=yesterday&userId=u" };
    expect(readingsOf(genuine)).toEqual([genuine]);
  });

  it.each([
    ["", 0],
    ["=", 0],
    ["&", 0],
    ["a=1", 0],
    ["amount", 0],
    ["&amount=10", 0],
  ])("of %j are %i", (text, count) => {
    expect(readOf(text).list().readings).toHaveLength(count);
    expect(readOf(text).any).toBe(false);
  });

  it("are said to be incomplete where there are more than eight", () => {
    const tails = (count: number): string =>
      Array.from({ length: count }, (_, i) => `&v${String(i).padStart(2, "0")}=`).join("");
    const listOf = (userId: string) => readOf(canonicalString({ ...GENUINE, userId })).list();
    expect(listOf(`u${tails(MAX_READINGS - 1)}`)).toMatchObject({ complete: true });
    expect(listOf(`u${tails(MAX_READINGS - 1)}`).readings).toHaveLength(MAX_READINGS);
    expect(listOf(`u${tails(MAX_READINGS)}`)).toMatchObject({ complete: false });
    expect(listOf(`u${tails(46)}`).readings).toHaveLength(MAX_READINGS);
  });

  it("say when the callback may have been signed", () => {
    const early = "2020-01-01T00:00:00Z";
    const genuine = { ...GENUINE, referenceId: `V-7&status=SUCCESS&timestamp=${early}&userId=u` };
    const times = readOf(canonicalString(genuine)).signedTimes();
    expect([...new Set(times)].sort()).toEqual([Date.parse(early), Date.parse("2025-11-21T09:15:27.123Z")]);
    expect(readOf("timestamp=2020-01-01T00:00:00Z").signedTimes()).toEqual([]);
  });

  const KIB64 = 64 * 1024;
  const many = (make: (i: number) => string, parts = Number.POSITIVE_INFINITY): string => {
    let text = "";
    for (let i = 0; i < parts && text.length < KIB64 - 400; i++) text += make(i);
    return text;
  };
  it("of a string of too many parts are not looked for", () => {
    for (const text of ["&a=", "&", "&z=", `&status=SUCCESS&timestamp=${T}&userId=u`]) {
      const signed = canonicalString({ ...GENUINE, userId: `u${many(() => text)}` });
      expect(readOf(signed)).toMatchObject({ any: false, tooLong: true });
      expect(readOf(signed).list()).toEqual({ readings: [], complete: false, steps: 0 });
    }
  });

  const most = MAX_SIGNED_PARTS - 12;
  it.each([
    ["&a=", many(() => "&a=", most)],
    ["&", many(() => "&", most)],
    ["&z=", many(() => "&z=", most)],
    ["ascending names", many((i) => `&v${String(i).padStart(6, "0")}=`, most)],
    ["ascending names behind every field", many((i) => `&d${String(i).padStart(6, "0")}=`, most)],
    ["whole tails", many(() => `&status=SUCCESS&timestamp=${T}&userId=u`, most / 3)],
    [
      "whole tails with ascending names",
      many((i) => `&status=SUCCESS&timestamp=${T}&userId=u&z${i}=1`, most / 4),
    ],
    ["two names in turns", many((i) => (i % 2 === 0 ? "&sa=" : "&sb="), most)],
    ["long values", many(() => `&userId=${"u".repeat(250)}`, most)],
    ["long URLs", many((i) => `&callbackUrl=https://m.example${"/x".repeat(100)}?${i}`, most)],
  ])("are found in a bounded number of steps in the longest string of %s", (_, text) => {
    for (const name of ["callbackUrl", "message", "referenceId", "userId"]) {
      const body: Record<string, string> = { ...GENUINE, message: "m" };
      const readings = readOf(canonicalString({ ...body, [name]: `${body[name]}${text}` }));
      expect(readings.tooLong).toBe(false);
      const { readings: found, steps } = readings.list();
      expect(found.length).toBeLessThanOrEqual(MAX_READINGS);
      expect(steps).toBeLessThanOrEqual(MAX_STEPS);
    }
  });
});
