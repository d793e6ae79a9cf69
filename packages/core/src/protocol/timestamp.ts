import type { JsonValue } from "./json.ts";

/**
 * A date and a time with their zone, as ISO 8601 and RFC 3339 have them: `2025-11-21T09:15:27.123Z`, `2025-11-21
 * 12:15:27,5+03:00`, `20251121T091527Z`. Groups: year, hyphen, month, day, hour, colon, minute, second, fraction, sign,
 * and hour and minute of the zone.
 */
const ISO_8601_PATTERN =
  /^(\d{4})(-?)(\d\d)\2(\d\d)[Tt ](\d\d)(:?)(\d\d)(?:\6(\d\d)(?:[.,](\d+))?)?(?:[Zz]|([+\-\u2212])(\d\d)(?::?(\d\d))?)$/;

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/**
 * The calendar repeats after 400 years. The years are shifted by this much, because `Date.UTC` reads the years 0 to 99
 * as 1900 to 1999.
 */
const CYCLE_YEARS = 400;
const CYCLE_MS = 146_097 * DAY_MS;

/**
 * The instant that a timestamp certainly names, in milliseconds since the epoch. Finer digits are dropped. Null for
 * every other text or value: one without a zone, a number of unknown unit, a day or time that does not exist. **Null
 * means unknown, not old.**
 *
 * `-00:00` is UTC (RFC 3339, 4.3). `24:00` is the beginning of the next day. A leap second, `23:59:60` in UTC, is the
 * second after it, as on every clock that counts from the epoch.
 */
export function parseTimestamp(text: JsonValue | undefined): number | null {
  const match = typeof text === "string" ? ISO_8601_PATTERN.exec(text) : null;
  if (match === null) return null;
  const number = (group: number): number => Number(match[group] ?? 0);
  const [month, day, hour, minute, second] = [number(3), number(4), number(5), number(7), number(8)];
  const [zoneHour, zoneMinute] = [number(11), number(12)];
  const fraction = match[9] ?? "";
  const milliseconds = Number(fraction.slice(0, 3).padEnd(3, "0"));
  const isEndOfDay = hour === 24 && minute === 0 && second === 0 && /^0*$/.test(fraction);
  if (month < 1 || month > 12 || day < 1 || (hour > 23 && !isEndOfDay) || minute > 59 || second > 60)
    return null;
  if (zoneHour > 23 || zoneMinute > 59) return null;
  const year = number(1) + CYCLE_YEARS;
  if (day > 28 && day > new Date(Date.UTC(year, month, 0)).getUTCDate()) return null;
  const zoneMs = (zoneHour * 60 + zoneMinute) * MINUTE_MS * (match[10] === "+" ? 1 : -1);
  const time = Date.UTC(year, month - 1, day, hour, minute, second, milliseconds) - CYCLE_MS - zoneMs;
  if (second === 60 && (((time - milliseconds) % DAY_MS) + DAY_MS) % DAY_MS !== 0) return null;
  return time;
}
