import { describe, expect, it } from "vitest";
import { HOSTILE } from "../../../../test/support/hostile-values.ts";
import { checkChoice, checkFlag } from "../../src/protocol/check-names.ts";
import { checkCount, checkTime } from "../../src/protocol/check-number.ts";

/** Values that are wrong for each of these checks, and of which no JSON or no text can be had. */
const WRONG: readonly unknown[] = [
  ...Object.values(HOSTILE)
    .map((make) => make())
    .filter((value) => value !== undefined),
  ["json"],
  { toString: () => "json" },
];

function checks(value: unknown): Readonly<Record<string, () => void>> {
  return {
    checkFlag: () => checkFlag("certain", value as never),
    checkChoice: () => checkChoice("body", value as never, { json: true }),
    checkCount: () => checkCount("concurrency", value as never),
    checkTime: () => checkTime("leaseMs", value as never),
  };
}

describe("a check of an option", () => {
  it.each(Object.keys(checks(null)))("%s refuses by its code what cannot be shown", (name) => {
    for (const value of WRONG) {
      expect(checks(value)[name]).toThrow(expect.objectContaining({ code: "ERR_OPTION_INVALID" }));
    }
  });

  it.each([
    ["false", '"false"'],
    [0, "0"],
    [1n, "1"],
    [null, "null"],
    [[true], "an object"],
    [() => true, "a function"],
    [Symbol("yes"), "Symbol(yes)"],
    ["x".repeat(1_000), JSON.stringify("x".repeat(80))],
  ])("shows the value %#", (value, shown) => {
    expect(() => checkFlag("certain", value as never)).toThrow(`certain is ${shown}.`);
    expect(() => checkChoice("body", value as never, { json: true })).toThrow(`body is ${shown}.`);
  });
});
