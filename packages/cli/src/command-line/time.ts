/** Times that somebody writes on the command line. */

/** The longest time that a timer of Node.js can wait: some 24 days. */
export const MAX_TIMER_MS = 2_147_483_647;

const TIME_AGO_PATTERN = /^(\d{1,6})([smhdw])$/;
const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;

/** A day, or a day and a time, with its zone or without. Groups: day, hour and minute, second, fraction, zone. */
const DATE_PATTERN = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(?:\.(\d+))?)?(Z|[+-]\d\d:\d\d)?)?$/;
const ZONE_PATTERN = /^Z$|^[+-](?:[01]\d|2[0-3]):[0-5]\d$/;

/**
 * A point in time in milliseconds since the epoch: a day, which begins at midnight in UTC; a day and a time, in the
 * zone of this machine if it names none; or how long ago it was, such as `90s`, `30m`, `1h`, `2d` or `1w`.
 *
 * @returns null if the text is none of these, or if there is no such day or time: `Date.parse` would take the 31st of
 * November for the 1st of December.
 */
export function parseTime(text: string, now: number): number | null {
  const [, count, unit] = TIME_AGO_PATTERN.exec(text) ?? [];
  if (unit !== undefined) return Math.max(0, now - Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS]);
  const match = DATE_PATTERN.exec(text);
  if (match === null) return null;
  const [, day = "", minute = "00:00", second = "00", fraction = "", zone] = match;
  const isoText = `${day}T${minute}:${second}.${fraction.slice(0, 3).padEnd(3, "0")}`;
  const isLocal = zone === undefined && match[2] !== undefined;
  const time = Date.parse(isLocal ? isoText : `${isoText}Z`);
  if (Number.isNaN(time) || (zone !== undefined && !ZONE_PATTERN.test(zone))) return null;
  // A day or a time that does not exist reads back as another one.
  const shownTime = isLocal ? time - new Date(time).getTimezoneOffset() * UNIT_MS.m : time;
  if (new Date(shownTime).toISOString() !== `${isoText}Z`) return null;
  return time - offsetOf(zone);
}

/** How much later it is in a zone than in UTC. */
function offsetOf(zone = "Z"): number {
  if (zone === "Z") return 0;
  const [hours, minutes] = zone.slice(1).split(":").map(Number);
  return (zone.startsWith("-") ? -1 : 1) * ((hours ?? 0) * UNIT_MS.h + (minutes ?? 0) * UNIT_MS.m);
}
