import { formatAmount, parseAmount } from "@payhooks/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { normalizeAmount } from "../../src/protocol/amount.ts";
import { thrownBy } from "../receiving.ts";

const MAX = 10n ** 36n - 1n;
const millionths = fc.bigInt({ min: 0n, max: MAX });

describe("an amount", () => {
  it("goes from millionths to text and back without loss", () => {
    fc.assert(
      fc.property(millionths, (value) => {
        expect(parseAmount(formatAmount(value))).toBe(value);
      }),
    );
  });

  it("is written with six decimals, and reads the same with the zeros left out", () => {
    fc.assert(
      fc.property(millionths, (value) => {
        const text = formatAmount(value);
        expect(text).toMatch(/^[0-9]+\.[0-9]{6}$/);
        expect(parseAmount(text.replace(/\.?0+$/, "") || "0")).toBe(value);
      }),
    );
  });

  it.each([
    ["10.500000", 10_500_000n],
    ["10.5", 10_500_000n],
    ["0.000001", 1n],
    ["0", 0n],
    ["007.10", 7_100_000n],
    ["90071992547409.930001", 90_071_992_547_409_930_001n],
    [`${"9".repeat(30)}.999999`, MAX],
  ])("%s is %s millionths", (text, value) => {
    expect(parseAmount(text)).toBe(value);
  });

  it.each([
    ...[
      "",
      " ",
      "-1",
      "+1",
      "1e3",
      "1,5",
      "1.",
      ".5",
      "1.0000001",
      " 1",
      "1 ",
      "1\n",
      "0x10",
      "1_000",
      "NaN",
    ],
    ...["Infinity", "١", "１", "1.5.0", "9".repeat(31)],
  ])("%j is refused", (text) => {
    const error = thrownBy(() => parseAmount(text));
    expect(error.code).toBe("ERR_AMOUNT_INVALID");
    expect(error.message).toContain(JSON.stringify(text).slice(1, 30));
    expect(error.fix).toMatch(/six decimals/);
  });

  it.each([10.5, 10n, null, undefined, {}, ["1"]])("%s is refused, since it is not text", (value) => {
    expect(thrownBy(() => parseAmount(value as unknown as string)).code).toBe("ERR_AMOUNT_INVALID");
  });

  it.each([-1n, MAX + 1n, 10.5, "10", null, undefined])("millionths of %s are refused", (value) => {
    expect(thrownBy(() => formatAmount(value as bigint)).code).toBe("ERR_AMOUNT_INVALID");
  });

  it("is the same fact in every spelling", () => {
    fc.assert(
      fc.property(millionths, fc.nat({ max: 3 }), fc.boolean(), (value, zeros, short) => {
        const text = formatAmount(value);
        const spelled = "0".repeat(zeros) + (short ? text.replace(/\.?0+$/, "") || "0" : text);
        fc.pre(/^[0-9]{1,30}(\.[0-9]{1,6})?$/.test(spelled));
        expect(normalizeAmount(spelled)).toBe(text);
      }),
    );
  });

  it("with different values never have the same normal spelling", () => {
    fc.assert(
      fc.property(millionths, millionths, (a, b) => {
        expect(normalizeAmount(formatAmount(a)) === normalizeAmount(formatAmount(b))).toBe(a === b);
      }),
    );
  });
});
