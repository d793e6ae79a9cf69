import { type CallbackRules, type CallbackTexts, findMalformedField, isFieldName } from "./callback.ts";

/** Readings that an ambiguous entry keeps. */
export const MAX_READINGS = 8;
/** Steps of the search; a canonical string with many `&` has exponentially many splits. */
const MAX_STEPS = 200_000;
/** Readings of one rank that are looked at, so that the likely ones are among those that are kept. */
const MAX_CANDIDATES = 128;
/** Fields of a reading, and so the depth of the search; the specification has eleven. */
const MAX_FIELDS = 64;

/**
 * The bodies that a canonical string could have been made from: every way to split it at `&` into fields whose
 * names ascend, where the documented ones are well formed (R1–R3). Which of them was meant, only the service knows.
 *
 * Those with the fewest values that have an `&` in them come first: in what the service sent it is one value, the one
 * that a customer had a say in, and in a forgery one that swallows the rest. Else mixtures of both would crowd them out.
 * Among them, those where it is a field that may well have one.
 */
export function findReadings(canonical: string, rules: CallbackRules): readonly CallbackTexts[] {
  const parts = canonical.split("&");
  const names = parts.map(nameOf);
  let found: CallbackTexts[] = [];
  const starts: number[] = [];
  let steps = 0;

  /** Reads on from a part that begins a field, with so many values left that must swallow parts. */
  function search(start: number, swallowing: number): void {
    starts.push(start);
    for (let end = start + 1; end <= parts.length; end++) {
      const left = end > start + 1 ? swallowing - 1 : swallowing;
      if (left < 0 || found.length === MAX_CANDIDATES || ++steps > MAX_STEPS) break;
      if (end === parts.length) {
        if (left === 0) keep();
      } else if (starts.length < MAX_FIELDS && begins(names[end], names[start])) search(end, left);
    }
    starts.pop();
  }

  function keep(): void {
    const texts = new Map<string, string>();
    starts.forEach((start, i) => {
      const text = parts.slice(start, starts[i + 1]).join("&");
      texts.set(names[start] ?? "", text.slice(text.indexOf("=") + 1));
    });
    if (findMalformedField(texts, rules) === null) found.push(texts);
  }

  const readings: CallbackTexts[] = [];
  if (names[0] === null) return readings;
  const most = Math.min(MAX_FIELDS, parts.length);
  for (let swallowing = 0; swallowing <= most && steps <= MAX_STEPS; swallowing++) {
    search(0, swallowing);
    readings.push(...found.sort((a, b) => unlikely(a) - unlikely(b)));
    if (readings.length >= MAX_READINGS) break;
    found = [];
  }
  return readings.slice(0, MAX_READINGS);
}

/** How many values have an `&` that seldom do. */
function unlikely(texts: CallbackTexts): number {
  let count = 0;
  for (const [name, text] of texts) if (text.includes("&") && !LIKELY.has(name)) count++;
  return count;
}

/** Fields in which R4 tolerates an `&`. */
const LIKELY: ReadonlySet<string> = new Set(["callbackUrl", "message", "referenceId"]);

/** The name that a part begins a field with, or null. */
function nameOf(part: string): string | null {
  const name = part.slice(0, Math.max(0, part.indexOf("=")));
  return isFieldName(name) && name !== "signature" ? name : null;
}

function begins(name: string | null | undefined, last: string | null | undefined): boolean {
  return typeof name === "string" && typeof last === "string" && name > last;
}
