import { describe, expect, it } from "vitest";
import { type CallbackRules, findMalformedField, wireOf } from "../../src/flows/callback.ts";
import { SPECIFIED_NAMES } from "../../src/names/service-names.ts";

const RULES: CallbackRules = {
  wire: wireOf(SPECIFIED_NAMES.callback),
  pinnedUrls: new Set(),
  isMerchantIdRequired: false,
  pinnedMerchantIds: new Set(),
  isCallbackUrlRequired: true,
};
const WHOLE: Readonly<Record<string, string>> = {
  amount: "10.000000",
  callbackUrl: "https://m.example/cb",
  event: "DEPOSIT",
  payTxnId: "tx-1",
  referenceId: "order-1",
  status: "FAILED",
  timestamp: "2025-11-21T09:15:27.123456789Z",
};

/** The fault of a callback, changed in some fields; undefined takes one away. */
function faultOf(changes: Readonly<Record<string, string | undefined>>, rules = RULES): string | null {
  const texts = new Map<string, string>();
  for (const [name, text] of Object.entries({ ...WHOLE, ...changes })) {
    if (text !== undefined) texts.set(name, text);
  }
  return findMalformedField(texts, rules);
}

describe("the fields that every callback must have", () => {
  it("are enough for a callback to be accepted", () => {
    expect(faultOf({})).toBeNull();
  });

  it.each([
    ["amount", ["", "1e3", "-1", "1.0000000"], "amount is not digits with up to six decimals"],
    ["callbackUrl", ["", "/cb", "m.example/cb"], "callbackUrl is not an absolute URL"],
    ["event", ["", "deposit", "DEPOSIT ", "A".repeat(65)], "event is not an upper-case name"],
    ["status", ["", "failed", "FAILED\n", "A".repeat(65)], "status is not an upper-case name"],
    ["payTxnId", [""], "payTxnId is missing or empty"],
    ["referenceId", [""], "referenceId is missing or empty"],
    [
      "timestamp",
      ["", "yesterday", "2025-11-21"],
      "timestamp is not an ISO 8601 date and time with its zone",
    ],
  ])("%s: missing or malformed, it is named, and its value is not shown", (name, malformed, fault) => {
    for (const text of [undefined, ...malformed]) expect(faultOf({ [name]: text })).toBe(fault);
  });

  it("are checked in the order of their names, and the first wrong one is named", () => {
    expect(faultOf({ amount: "x", status: "x" })).toBe("amount is not digits with up to six decimals");
  });

  it("include merchantId if a resolver chooses keys by it, and only then", () => {
    const resolved = { ...RULES, isMerchantIdRequired: true };
    for (const merchantId of [undefined, ""]) {
      expect(faultOf({ merchantId })).toBeNull();
      expect(faultOf({ merchantId }, resolved)).toBe("merchantId is missing or empty");
    }
    expect(faultOf({ merchantId: "m" }, resolved)).toBeNull();
  });

  it("do not include callbackUrl in a look-up, but a look-up's callbackUrl must be well formed", () => {
    const lookUp = { ...RULES, isCallbackUrlRequired: false };
    expect(faultOf({ callbackUrl: undefined }, lookUp)).toBeNull();
    expect(faultOf({ callbackUrl: "/cb" }, lookUp)).toBe("callbackUrl is not an absolute URL");
    expect(faultOf({}, lookUp)).toBeNull();
  });
});
