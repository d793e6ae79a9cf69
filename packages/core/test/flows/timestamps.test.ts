import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseTimestamp } from "../../src/protocol/events.ts";

describe("a timestamp", () => {
  it("has up to nine fractional digits, of which milliseconds count", () => {
    const latest = Date.parse("9999-12-31T23:59:59.999Z");
    fc.assert(
      fc.property(
        fc.integer({ min: Date.parse("0001-01-01T00:00:00Z"), max: latest }),
        fc.stringMatching(/^[0-9]{0,6}$/),
        (ms, finer) => {
          const text = new Date(ms).toISOString();
          expect(parseTimestamp(`${text.slice(0, -1)}${finer}Z`)).toBe(ms);
        },
      ),
    );
  });

  it.each([
    ["2025-11-21T09:15:27.123456789Z", 123],
    ["2025-11-21T09:15:27.999999999Z", 999],
    ["2025-11-21T09:15:27.1Z", 100],
    ["2025-11-21T09:15:27Z", 0],
    ["2025-11-21T09:15:27.5+00:00", 500],
  ])("%s is understood", (text, ms) => {
    expect(parseTimestamp(text)).toBe(Date.UTC(2025, 10, 21, 9, 15, 27, ms));
  });

  it("knows leap days", () => {
    expect(parseTimestamp("2024-02-29T00:00:00Z")).toBe(Date.UTC(2024, 1, 29));
    expect(parseTimestamp("2000-02-29T00:00:00Z")).toBe(Date.UTC(2000, 1, 29));
    expect(parseTimestamp("2025-02-29T00:00:00Z")).toBeNull();
    expect(parseTimestamp("1900-02-29T00:00:00Z")).toBeNull();
  });

  it.each([
    ["2025-02-30T00:00:00Z", "a day that does not exist"],
    ["2025-04-31T00:00:00Z", "a day that does not exist"],
    ["2025-00-10T00:00:00Z", "month 0"],
    ["2025-13-01T00:00:00Z", "month 13"],
    ["2025-01-00T00:00:00Z", "day 0"],
    ["2025-01-01T24:00:00Z", "hour 24"],
    ["2025-01-01T25:00:00Z", "hour 25"],
    ["2025-01-01T00:60:00Z", "minute 60"],
    ["2025-01-01T23:59:60Z", "a leap second"],
    ["2025-01-01T00:00:00+03:00", "another zone"],
    ["2025-01-01T00:00:00-00:00", "an unknown zone"],
    ["2025-01-01T00:00:00", "no zone"],
    ["2025-01-01T00:00:00z", "lower case"],
    ["2025-01-01t00:00:00Z", "lower case"],
    ["2025-01-01 00:00:00Z", "a space for T"],
    ["2025-01-01T00:00Z", "no seconds"],
    ["2025-01-01", "no time"],
    ["2025-01-01T00:00:00.Z", "a point without digits"],
    ["2025-01-01T00:00:00,5Z", "a comma"],
    ["2025-01-01T00:00:00.1234567890Z", "ten digits"],
    ["+002025-01-01T00:00:00Z", "a long year"],
    ["25-01-01T00:00:00Z", "a short year"],
    [" 2025-01-01T00:00:00Z", "white space"],
    ["2025-01-01T00:00:00Z\n", "a line end"],
    ["2025-01-01T00:00:00Z&userId=u", "more behind it"],
    ["1735689600", "seconds since the epoch"],
    ["", "nothing"],
  ])("%j is refused: %s", (text) => {
    expect(parseTimestamp(text)).toBeNull();
  });

  it.each([1735689600000, null, undefined, true, [], {}])("%j is refused, since it is no text", (value) => {
    expect(parseTimestamp(value)).toBeNull();
  });
});
