import { isPayhooksError, verifyConnectWebhook, verifyPaymentCallback } from "@payhooks/core";
import {
  anyConnectEvent,
  callbackFields,
  createTestKeys,
  fakeClock,
  signConnectWebhook,
} from "@payhooks/core/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseTimestamp } from "../../src/protocol/timestamp.ts";
import { codeOfReply, setUp, signText } from "../receiving.ts";

const AT = Date.UTC(2025, 10, 21, 9, 15, 27);

/** Ways to write a time whose instant is certain. */
const CERTAIN: readonly (readonly [text: string, at: number])[] = [
  ["2025-11-21T09:15:27Z", AT],
  ["2025-11-21T09:15:27.1Z", AT + 100],
  ["2025-11-21T09:15:27.123456789Z", AT + 123],
  ["2025-11-21T09:15:27.999999999Z", AT + 999],
  ["2025-11-21T09:15:27.1234567890123456789012345Z", AT + 123],
  ["2025-11-21T09:15:27,5Z", AT + 500],
  ["2025-11-21T09:15:27+00:00", AT],
  ["2025-11-21T09:15:27-00:00", AT],
  ["2025-11-21T12:15:27+03:00", AT],
  ["2025-11-21T12:15:27.123456789+03:00", AT + 123],
  ["2025-11-21T12:15:27+0300", AT],
  ["2025-11-21T12:15:27+03", AT],
  ["2025-11-21T14:45:27+05:30", AT],
  ["2025-11-21T05:45:27-03:30", AT],
  ["2025-11-21T06:15:27\u221203:00", AT],
  ["2025-11-22T08:15:27+23:00", AT],
  ["2025-11-20T23:15:27-10:00", AT],
  ["2025-11-21T09:15:27z", AT],
  ["2025-11-21t09:15:27Z", AT],
  ["2025-11-21t09:15:27z", AT],
  ["2025-11-21 09:15:27Z", AT],
  ["2025-11-21 12:15:27.5+03", AT + 500],
  ["2025-11-21T09:15Z", AT - 27_000],
  ["20251121T091527Z", AT],
  ["20251121T121527.25+0300", AT + 250],
  ["20251121T0915Z", AT - 27_000],
  ["2025-11-20T24:00:00Z", Date.UTC(2025, 10, 21)],
  ["2025-11-20T24:00:00.000+03:00", Date.UTC(2025, 10, 20, 21)],
  ["2025-12-31T24:00Z", Date.UTC(2026, 0, 1)],
  ["2016-12-31T23:59:60Z", Date.UTC(2017, 0, 1)],
  ["2016-12-31T23:59:60.5Z", Date.UTC(2017, 0, 1) + 500],
  ["2017-01-01T02:59:60+03:00", Date.UTC(2017, 0, 1)],
  ["2024-02-29T00:00:00Z", Date.UTC(2024, 1, 29)],
  ["2000-02-29T00:00:00Z", Date.UTC(2000, 1, 29)],
  ["1970-01-01T00:00:00Z", 0],
  ["1969-12-31T23:59:59.999Z", -1],
  ["0001-01-01T00:00:00Z", Date.parse("0001-01-01T00:00:00Z")],
  ["9999-12-31T23:59:59.999Z", Date.parse("9999-12-31T23:59:59.999Z")],
];

/** Values that are no time, or not certainly one. */
const UNKNOWN: readonly (readonly [value: string | number | boolean | null | undefined, why: string])[] = [
  ["2025-11-21T09:15:27", "no zone"],
  ["20251121T091527", "no zone"],
  ["2025-11-21 09:15:27", "no zone"],
  ["2025-11-21T09:15:27 Z", "a space before the zone"],
  ["2025-11-21 09:15:27 UTC", "the name of a zone"],
  ["2025-11-21T09:15:27EAT", "the name of a zone"],
  ["2025-11-21T09:15:27+03:00[Africa/Addis_Ababa]", "a zone in brackets"],
  ["2025-11-21T09:15:27+3:00", "a zone of one digit"],
  ["2025-11-21T09:15:27+03:", "half a zone"],
  ["2025-11-21T09:15:27+24:00", "a zone of a day"],
  ["2025-11-21T09:15:27+03:60", "a zone of sixty minutes"],
  ["2025-11-21T09:15:27++03:00", "two signs"],
  ["2025-02-29T00:00:00Z", "a day that does not exist"],
  ["1900-02-29T00:00:00Z", "a day that does not exist"],
  ["2025-02-30T00:00:00Z", "a day that does not exist"],
  ["2025-04-31T00:00:00Z", "a day that does not exist"],
  ["2025-00-10T00:00:00Z", "month 0"],
  ["2025-13-01T00:00:00Z", "month 13"],
  ["2025-01-00T00:00:00Z", "day 0"],
  ["2025-01-01T24:00:01Z", "a second after the end of the day"],
  ["2025-01-01T24:00:00.001Z", "a millisecond after the end of the day"],
  ["2025-01-01T25:00:00Z", "hour 25"],
  ["2025-01-01T00:60:00Z", "minute 60"],
  ["2025-01-01T00:00:61Z", "second 61"],
  ["2025-01-01T09:15:60Z", "a leap second within the day"],
  ["2025-01-01T23:59:60+03:00", "a leap second within the day of UTC"],
  ["2025-01-01T09Z", "no minutes"],
  ["2025-01-01T09:15,5Z", "a fraction of a minute"],
  ["2025-01-01", "no time"],
  ["2025-01-01Z", "no time"],
  ["2025-01", "a month"],
  ["2025-W47-5T09:15:27Z", "a week"],
  ["2025-325T09:15:27Z", "the day of the year"],
  ["2025-1121T09:15:27Z", "half of the hyphens"],
  ["2025-11-21T09:1527Z", "half of the colons"],
  ["2025-11-21T09:15:27.Z", "a point without digits"],
  ["2025-11-21T09:15:27:500Z", "a colon before the fraction"],
  ["+002025-01-01T00:00:00Z", "a long year"],
  ["12025-01-01T00:00:00Z", "a year of five digits"],
  ["-0001-01-01T00:00:00Z", "a year before the calendar"],
  ["25-01-01T00:00:00Z", "a short year"],
  ["21/11/2025 09:15:27", "another order"],
  ["Fri, 21 Nov 2025 09:15:27 GMT", "a date of HTTP"],
  ["2025-11-21  09:15:27Z", "two spaces"],
  ["2025-11-21\u00a009:15:27Z", "another space"],
  [" 2025-01-01T00:00:00Z", "white space in front"],
  ["2025-01-01T00:00:00Z ", "white space behind"],
  ["2025-01-01T00:00:00Z\n", "a line end"],
  ["\ufeff2025-01-01T00:00:00Z", "a byte order mark"],
  ["٢٠٢٥-11-21T09:15:27Z", "other digits"],
  ["２０２５-11-21T09:15:27Z", "wide digits"],
  ["2025-11-21T09:15:27Z&", "more behind it"],
  ["yesterday", "a word"],
  ["1763716527", "seconds since the epoch"],
  ["1763716527123", "milliseconds since the epoch"],
  ["", "nothing"],
  [1763716527, "a number"],
  [1763716527123, "a number"],
  [1.5, "a number"],
  [true, "no text"],
  [null, "null"],
  [undefined, "no field"],
];

describe("a timestamp", () => {
  it("has any number of fractional digits, of which milliseconds count", () => {
    const latest = Date.parse("9999-12-31T23:59:59.999Z");
    fc.assert(
      fc.property(
        fc.integer({ min: Date.parse("0001-01-01T00:00:00Z"), max: latest }),
        fc.stringMatching(/^[0-9]{0,12}$/),
        (ms, finer) => {
          const text = new Date(ms).toISOString();
          expect(parseTimestamp(`${text.slice(0, -1)}${finer}Z`)).toBe(ms);
        },
      ),
    );
  });

  it("names one instant in every zone", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: Date.UTC(1000, 0), max: Date.UTC(9000, 0) }),
        fc.integer({ min: -(24 * 60 - 1), max: 24 * 60 - 1 }),
        fc.constantFrom(":", ""),
        (ms, minutes, colon) => {
          const local = new Date(ms + minutes * 60_000).toISOString().slice(0, -1);
          const digits = (value: number): string => String(value).padStart(2, "0");
          const zone = Math.abs(minutes);
          const offset = `${minutes < 0 ? "-" : "+"}${digits(Math.floor(zone / 60))}${colon}${digits(zone % 60)}`;
          expect(parseTimestamp(local + offset)).toBe(ms);
        },
      ),
    );
  });

  it.each(CERTAIN)("%s is understood", (text, at) => {
    expect(parseTimestamp(text)).toBe(at);
  });

  it.each(UNKNOWN)("%j is not known: %s", (value) => {
    expect(parseTimestamp(value)).toBeNull();
  });
});

describe("the signed time of a delivery", () => {
  const { publicKey, privateKey } = createTestKeys();
  const secret = "a secret of the webhook settings";
  const callback = (timestamp: unknown) =>
    signText(JSON.stringify({ ...callbackFields(), timestamp }), privateKey);
  const webhook = (occurred_at: unknown) =>
    signConnectWebhook({ ...anyConnectEvent("settlement.approved"), occurred_at }, secret);
  const verdictOf = (verify: () => { readonly signedAt: Date }): number | string => {
    try {
      return verify().signedAt.getTime();
    } catch (error) {
      return isPayhooksError(error) ? error.code : "another error";
    }
  };
  /** The answer of each flow, with how many events run and are held, and the verdict of its verifier. */
  async function outcomesOf(value: unknown, now: number) {
    const clock = fakeClock(now);
    const t = await setUp({ payments: { publicKey }, connect: { secret } }, clock);
    const outcomes = [];
    for (const flow of ["payments", "connect"] as const) {
      const sent = flow === "payments" ? callback(value) : webhook(value);
      const reply = await t.post(flow, sent);
      const verdict = verdictOf(() =>
        flow === "payments"
          ? verifyPaymentCallback(sent.rawBody, { publicKey })
          : verifyConnectWebhook(sent.rawBody, sent.headers["x-connect-signature"], { secret }),
      );
      outcomes.push({ status: reply.status, code: codeOfReply(reply), verdict });
    }
    const alerts = t.notices.flatMap((notice) =>
      notice.type === "alert" ? [`${notice.kind} ${notice.flow} ${notice.code}`] : [],
    );
    return { outcomes, ran: t.ran.length, held: (await t.held()).map(({ reason }) => reason), alerts };
  }

  const RECENT = CERTAIN.filter(([, at]) => at > 0 && at < Date.UTC(2100, 0));
  it.each(RECENT)("%s lets its event run in both flows, and is as old as its instant", async (text, at) => {
    const running = { status: 200, code: null, verdict: at };
    const current = await outcomesOf(text, at);
    expect(current).toEqual({ outcomes: [running, running], ran: 2, held: [], alerts: [] });
    const refused = { status: 400, code: "ERR_TIMESTAMP_EXPIRED", verdict: at };
    const alerts = ["payments", "connect"].map((flow) => `refused ${flow} ERR_TIMESTAMP_EXPIRED`);
    const late = await outcomesOf(text, at + 8 * 86_400_000);
    expect(late).toEqual({ outcomes: [refused, refused], ran: 0, held: [], alerts });
  });

  it.each(UNKNOWN)(
    "%j lets its event be held in both flows, since nobody knows how old it is: %s",
    async (value) => {
      const holding = { status: 200, code: null, verdict: "ERR_EVENT_MALFORMED" };
      expect(await outcomesOf(value, AT)).toEqual({
        outcomes: [holding, holding],
        ran: 0,
        held: ["malformed", "malformed"],
        alerts: [],
      });
    },
  );

  it("more than 24 h ahead lets the delivery be refused in both flows, and the alert has advice", async () => {
    const clock = fakeClock(AT);
    const t = await setUp({ payments: { publicKey }, connect: { secret } }, clock);
    const ahead = new Date(AT + 25 * 3_600_000).toISOString().replace("Z", "+00:00");
    for (let i = 0; i < 3; i++) {
      expect(codeOfReply(await t.post("payments", callback(ahead)))).toBe("ERR_TIMESTAMP_FUTURE");
      expect(codeOfReply(await t.post("connect", webhook(ahead)))).toBe("ERR_TIMESTAMP_FUTURE");
    }
    const refused = {
      type: "alert",
      kind: "refused",
      code: "ERR_TIMESTAMP_FUTURE",
      failures: 1,
      addresses: 0,
    };
    expect(t.notices.filter(({ type }) => type === "alert")).toMatchObject([
      { ...refused, flow: "payments" },
      { ...refused, flow: "connect" },
    ]);
    const fixes = t.notices.flatMap((notice) => (notice.type === "refused" ? [notice.fix] : []));
    expect(fixes.filter((fix) => fix?.includes("clock of this machine") === true)).toHaveLength(2);
  });

  it("that cannot be read takes one place among the held events, and none beyond maxHeld", async () => {
    const clock = fakeClock(AT);
    const t = await setUp({ payments: { publicKey }, connect: { secret }, limits: { maxHeld: 3 } }, clock);
    const undated = callback("yesterday");
    for (let i = 0; i < 4; i++) await t.post("payments", undated);
    expect(await t.held()).toHaveLength(1);
    for (const text of ["a", "b", "c", "d"]) await t.post("payments", callback(text));
    expect(await t.held()).toHaveLength(3);
    expect(codeOfReply(await t.post("connect", webhook("e")))).toBe("ERR_HELD_FULL");
  });

  it("that cannot be read does not hide one that can, since either may be the true one", async () => {
    const old = "2020-01-01T00:00:00Z";
    const referenceId = `r&timestamp=${old}`;
    const sent = signText(JSON.stringify({ ...callbackFields(), referenceId, timestamp: "now" }), privateKey);
    const t = await setUp({ payments: { publicKey } }, fakeClock(AT));
    expect(await t.post("payments", sent)).toMatchObject({ status: 200 });
    expect(await t.held()).toMatchObject([{ reason: "malformed" }]);
  });
});
