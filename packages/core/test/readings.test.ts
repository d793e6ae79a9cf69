import { describe, expect, it } from "vitest";
import type { CallbackRules } from "../src/flows/callback.ts";
import { findReadings, MAX_READINGS } from "../src/flows/readings.ts";
import { canonicalString } from "../src/signature/canonical.ts";
import { busyMs } from "./receiving.ts";

const RULES: CallbackRules = {
  extraFields: new Set(),
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
const readingsOf = (fields: Record<string, string>, rules: CallbackRules = RULES) =>
  findReadings(canonicalString(fields), rules).map((texts) => Object.fromEntries(texts));

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
    expect(counts.length).toBeGreaterThan(3);
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
      expect(readingsOf(body), name).toContainEqual(body);
    }
  });

  it("have undocumented fields too, but none that R1 forbids and no signature", () => {
    const readings = readingsOf({ ...GENUINE, userId: "u&a=1&v=2&w-x=3&signature=4&zone=5&constructor=6" });
    expect(readings).toContainEqual({
      ...GENUINE,
      userId: "u&a=1",
      v: "2&w-x=3&signature=4",
      zone: "5&constructor=6",
    });
    const names = new Set(readings.flatMap((fields) => Object.keys(fields)));
    expect([...names].sort()).toEqual([...Object.keys(GENUINE), "v", "zone"].sort());
  });

  it("have no signature of their own, also where the order of names would allow one", () => {
    const genuine = { ...GENUINE, referenceId: "o-1&signature=x" };
    expect(readingsOf(genuine)).toEqual([genuine]);
  });

  it.each([
    ["referenceId", `V-7&status=SUCCESS&timestamp=${T}&userId=u`],
    ["message", "m&payTxnId=tx-9&providerTxId=p"],
    ["callbackUrl", "https://m.example/cb?a=1&event=DEPOSIT&merchantId=m"],
  ])("begin with the one where it is %s that has the &, as may well be", (name, text) => {
    const genuine = { ...GENUINE, [name]: text };
    const readings = readingsOf(genuine);
    expect(readings.length).toBeGreaterThan(1);
    expect(readings[0]).toEqual(genuine);
  });

  it("all have the canonical string that was signed", () => {
    const bodies = [
      { ...GENUINE, userId: "u&zz=1&y=2" },
      { ...GENUINE, userId: "u&zz=1&y=2&zz=3&y=4" },
      { ...GENUINE, referenceId: `V-7&status=SUCCESS&timestamp=${T}&userId=u&zz=1&v=2` },
      { ...GENUINE, message: "m&payTxnId=tx-9&providerTxId=p&n=1&o=2&n=3" },
    ];
    for (const body of bodies) {
      const readings = readingsOf(body);
      expect(readings.length).toBeGreaterThan(1);
      for (const fields of readings) expect(canonicalString(fields)).toBe(canonicalString(body));
    }
  });

  it("are well formed, each of them", () => {
    const genuine = { ...GENUINE, referenceId: "V-7&status=success&timestamp=yesterday&userId=u" };
    expect(readingsOf(genuine)).toEqual([genuine]);
  });

  it("have a merchantId where a resolver needs one", () => {
    const rules = { ...RULES, merchantIdRequired: true };
    expect(readingsOf(GENUINE, rules)).toEqual([]);
    expect(readingsOf({ ...GENUINE, merchantId: "m" }, rules)).toHaveLength(1);
  });

  it.each([
    ["", 0],
    ["=", 0],
    ["&", 0],
    ["a=1", 0],
    ["amount", 0],
    ["&amount=10", 0],
  ])("of %j are %i", (text, count) => {
    expect(findReadings(text, RULES)).toHaveLength(count);
  });

  const KIB64 = 64 * 1024;
  const many = (make: (i: number) => string): string => {
    let text = "";
    for (let i = 0; text.length < KIB64 - 400; i++) text += make(i);
    return text;
  };
  it.each([
    ["&a=", many(() => "&a=")],
    ["&", many(() => "&")],
    ["&z=", many(() => "&z=")],
    ["ascending names", many((i) => `&v${String(i).padStart(6, "0")}=`)],
    ["whole tails", many(() => `&status=SUCCESS&timestamp=${T}&userId=u`)],
    ["whole tails with ascending names", many((i) => `&status=SUCCESS&timestamp=${T}&userId=u&z${i}=1`)],
    ["two names in turns", many((i) => (i % 2 === 0 ? "&sa=" : "&sb="))],
  ])("are found in bounded time and number in 64 KiB of %s", (_, text) => {
    for (const name of ["callbackUrl", "message", "referenceId", "userId"]) {
      const body: Record<string, string> = { ...GENUINE, message: "m" };
      const ms = busyMs(() => {
        const readings = readingsOf({ ...body, [name]: `${body[name]}${text}` });
        expect(readings.length).toBeLessThanOrEqual(MAX_READINGS);
      });
      expect(ms).toBeLessThan(1_500);
    }
  });
});
