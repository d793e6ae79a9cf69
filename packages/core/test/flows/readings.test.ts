import { type ServiceNamesOptions, serviceNames } from "@payhooks/core";
import { describe, expect, it } from "vitest";
import { type CallbackRules, wireOf } from "../../src/flows/callback.ts";
import { knownFields, MAX_SIGNED_PARTS, PossibleReadings } from "../../src/flows/readings.ts";
import { CALLBACK_FIELDS, type CallbackField, canonicalString } from "../../src/signature/canonical.ts";
import { SPECIFIED_RULES } from "./specified-rules.ts";

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
const readOf = (signed: string, rules: CallbackRules = SPECIFIED_RULES) =>
  new PossibleReadings(signed, knownFields(rules.wire, rules));
/** The possible values of each documented field. */
const valuesOf = (fields: Record<string, string>): Record<string, readonly string[]> => {
  const readings = readOf(canonicalString(fields));
  const found = CALLBACK_FIELDS.map((name) => [name, readings.valuesOf(name)] as const);
  return Object.fromEntries(found.filter(([, values]) => values.length > 0));
};
const only = (fields: Record<string, string>): Record<string, readonly string[]> =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, [value]]));

describe("the readings of a canonical string", () => {
  it("are one if nothing is ambiguous", () => {
    expect(valuesOf(GENUINE)).toEqual(only(GENUINE));
  });

  it("are the genuine and the forged one of a re-split referenceId", () => {
    const genuine = { ...GENUINE, referenceId: `V-7&status=SUCCESS&timestamp=${T}&userId=u` };
    const swallowed = `u&status=FAILED&timestamp=${T}&userId=u-1`;
    expect(valuesOf(genuine)).toEqual({
      ...only(GENUINE),
      referenceId: ["V-7", genuine.referenceId],
      status: ["SUCCESS", "FAILED"],
      userId: [swallowed, "u-1"],
    });
    expect(valuesOf({ ...GENUINE, referenceId: "V-7", status: "SUCCESS", userId: swallowed })).toEqual(
      valuesOf(genuine),
    );
  });

  it("include the genuine one, although there are many mixtures of both", () => {
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
      const found = valuesOf(body);
      for (const field of CALLBACK_FIELDS) expect(found[field], `${name} ${field}`).toContain(body[field]);
    }
  });

  it("say which undocumented fields may be the end of the field before them", () => {
    expect(valuesOf({ ...GENUINE, userId: "u&a=1&v=2&w-x=3&signature=4&zone=5" })).toEqual({
      ...only(GENUINE),
      userId: ["u&a=1", "u&a=1&v=2", "u&a=1&v=2&w-x=3&signature=4", "u&a=1&v=2&w-x=3&signature=4&zone=5"],
    });
  });

  it("have no field named signature, even if the order of names would allow one", () => {
    const genuine = { ...GENUINE, referenceId: "o-1&signature=x" };
    expect(valuesOf(genuine)).toEqual(only(genuine));
  });

  it("are well formed, each of them", () => {
    const genuine = { ...GENUINE, referenceId: "V-7&status=success&timestamp=yesterday&userId=u" };
    expect(valuesOf(genuine)).toEqual(only(genuine));
  });

  it.each(["", "=", "&", "a=1", "amount", "&amount=10"])("of %j are none", (text) => {
    expect(readOf(text).hasReading).toBe(false);
    expect(CALLBACK_FIELDS.flatMap((name) => readOf(text).valuesOf(name))).toEqual([]);
  });

  it.each([
    ["once", "", true],
    ["in two readings", "&payTxnId=tx-2&providerTxId=p", true],
    ["in no reading as well, since it is in no order", "&zone=1&payTxnId=tx-2", false],
  ])("say whether they have a name each time it occurs: %s", (_, tail, hasEach) => {
    const signed = canonicalString({ ...GENUINE, message: `m${tail}` });
    expect(readOf(signed).hasEach("payTxnId")).toBe(hasEach);
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
      expect(readOf(signed)).toMatchObject({ hasReading: false, isTooLong: true });
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
  ])("are found in the longest string of %s, although they may be too many to be walked", (_, text) => {
    for (const name of ["callbackUrl", "message", "referenceId", "userId"]) {
      const body: Record<string, string> = { ...GENUINE, message: "m" };
      const value = `${body[name]}${text}`;
      const readings = readOf(canonicalString({ ...body, [name]: value }));
      expect(readings.isTooLong).toBe(false);
      expect(readings.valuesOf(name as CallbackField)).toContain(value);
    }
  });
});

/** The rules under these names, with these URLs known completely. */
function rulesOf(callback: NonNullable<ServiceNamesOptions["callback"]>, ...pinned: string[]): CallbackRules {
  return {
    ...SPECIFIED_RULES,
    wire: wireOf(serviceNames({ callback }).callback),
    pinnedUrls: new Set(pinned),
  };
}

describe("names that begin more than one part", () => {
  const HEAD = "amount=1&callbackUrl=https://m.example/cb";
  const TAIL = `event=DEPOSIT&payTxnId=t&referenceId=r&status=FAILED&timestamp=${T}`;
  const repeated = (signed: string, rules?: CallbackRules) => readOf(signed, rules).repeatedFields();

  it.each([
    ["none", `${HEAD}&${TAIL}`, []],
    ["one in a free text", `${HEAD}&${TAIL}&userId=u&status=SUCCESS`, ["status"]],
    ["several, each said once", `${HEAD}&${TAIL}&userId=u&status=A&amount=2&status=B`, ["status", "amount"]],
    ["an unknown one", `${HEAD}?zone=1&${TAIL}&userId=u&zone=1&zone=2`, []],
    ["one in the query of the URL", `${HEAD}?a=1&status=SUCCESS&${TAIL}`, []],
    ["several in the query of the URL", `${HEAD}?a=1&status=A&status=B&amount=3&${TAIL}`, []],
    ["the URL's own name in its query", `${HEAD}?a=1&callbackUrl=x&${TAIL}`, ["callbackUrl"]],
    ["the name after the URL in its query", `${HEAD}?a=1&event=x&${TAIL}`, ["event"]],
    ["a part without a name", `${HEAD}&${TAIL}&userId=u&status&status`, []],
  ])("are found, but for the query of the callback URL: %s", (_, signed, names) => {
    expect(repeated(signed)).toEqual(names);
  });

  it("are called as events call them", () => {
    const rules = rulesOf({ fields: { status: { name: "sState" } } });
    const signed = `${HEAD}&${TAIL}&userId=u&sState=SUCCESS`.replace("status=", "sState=");
    expect(repeated(signed, rules)).toEqual(["status"]);
  });

  it.each([
    ["the URL may be missing", { fields: { callbackUrl: { sent: "sometimes" } } }],
    ["a free text may follow it", { fields: { message: { name: "d" } } }],
    ["nothing that is always sent follows it", { fields: { callbackUrl: { name: "zUrl" } } }],
    ["only a declared field follows it", { fields: { callbackUrl: { name: "y" } }, extra: { z: "always" } }],
  ] as const)("include those in the query where nothing ends it for certain: %s", (_, callback) => {
    const rules = rulesOf(callback);
    const url = rules.wire.byRole.get("callbackUrl")?.name ?? "";
    const fields = {
      amount: "1",
      event: "DEPOSIT",
      payTxnId: "t",
      referenceId: "r",
      status: "FAILED",
      timestamp: T,
    };
    const declared = "extra" in callback ? { z: "1" } : {};
    const query = "https://m.example/cb?a=1&status=SUCCESS";
    expect(repeated(canonicalString({ ...fields, ...declared, [url]: query }), rules)).toEqual(["status"]);
  });

  it("do not count in a URL that is known completely, whatever they are", () => {
    const url = "https://m.example/cb?a=1&event=x&callbackUrl=y&status=SUCCESS";
    const signed = `amount=1&callbackUrl=${url}&${TAIL}`;
    expect(repeated(signed)).toEqual(["callbackUrl", "event"]);
    expect(repeated(signed, rulesOf({}, "https://other.example", url))).toEqual([]);
    expect(repeated(`${signed}&userId=u&callbackUrl=z`, rulesOf({}, url))).toEqual(["callbackUrl"]);
    // As long as the known one, and another.
    expect(repeated(signed, rulesOf({}, url.replace("cb", "bc")))).toEqual(["callbackUrl", "event"]);
  });

  it("count if an optional field may stand between the URL and what ends it", () => {
    const rules = rulesOf({ extra: { currency: "sometimes" } });
    const signed = `amount=1&callbackUrl=https://m.example/cb?a=1&currency=USD&${TAIL}&userId=u&currency=EUR`;
    expect(repeated(signed, rules)).toEqual(["currency"]);
    expect(repeated(signed.replace("&currency=EUR", ""), rules)).toEqual([]);
  });
});

describe("a URL that is known completely", () => {
  const [short, long] = ["https://m.example/cb?a=1", "https://m.example/cb?a=1&d=2"];
  const urls = (...pinned: string[]) =>
    readOf(canonicalString({ ...GENUINE, callbackUrl: long }), rulesOf({}, ...pinned)).valuesOf(
      "callbackUrl",
    );

  it("is neither cut nor continued by any reading", () => {
    expect(urls(long)).toEqual([long]);
    expect(urls(short)).toEqual([short]);
  });

  it("has no effect on other URLs, of whatever length", () => {
    expect(urls()).toEqual([short, long]);
    expect(urls(long.replace("cb", "bc"), `${long}3`)).toEqual([short, long]);
  });
});

describe("a string", () => {
  it("of the most parts is read, and of one more is not", () => {
    const parts = (count: number) => canonicalString({ ...GENUINE, userId: `u${"&x".repeat(count - 8)}` });
    expect(readOf(parts(MAX_SIGNED_PARTS))).toMatchObject({ hasReading: true, isTooLong: false });
    expect(readOf(parts(MAX_SIGNED_PARTS + 1))).toMatchObject({ hasReading: false, isTooLong: true });
  });

  it("has a first name that belongs to no known field, or none", () => {
    const unknown = (text: string) => readOf(`${canonicalString(GENUINE)}${text}`).unknownName();
    expect(unknown("")).toBeUndefined();
    expect(unknown("&x y=1&=&signature=1")).toBeUndefined();
    expect(unknown("&zone=1&zulu=2")).toBe("zone");
  });
});

describe("the value on which all readings agree", () => {
  const agreed = (fields: Record<string, string>, rules = SPECIFIED_RULES) =>
    readOf(canonicalString({ ...GENUINE, ...fields }), rules).agreement();

  it("is the whole message, although a part of it may be an undocumented field", () => {
    expect(agreed({ message: "a&n=1&o=2" }).texts.get("message")).toBe("a&n=1&o=2");
  });

  it("is the whole query of the URL, and of a URL without one the shortest", () => {
    const url = (text: string) =>
      agreed({ callbackUrl: `https://m.example/cb${text}` }).texts.get("callbackUrl");
    expect(url("?a=1&d=2&e=3")).toBe("https://m.example/cb?a=1&d=2&e=3");
    expect(url("&d=2&e=3")).toBe("https://m.example/cb");
  });
});
