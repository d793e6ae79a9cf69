import { type Html, html } from "@payhooks/pages";
import type { Redaction } from "../redaction/redaction.ts";

/** Invisible characters, which could reverse a text or hide in it. The joiner within an emoji is not one of them. */
const SHAPELESS_PATTERN =
  /(?<!\p{Extended_Pictographic}\ufe0f?\p{Emoji_Modifier}?)\u200d|\u200d(?!\p{Extended_Pictographic})|(?!\u200d)[\p{Cf}\p{Cc}\p{Zl}\p{Zp}\p{Surrogate}]/gu;

/** How many characters are shown of a text from outside, at most. */
const MAX_TEXT_LENGTH = 4_000;

/** A text from outside. It cannot reverse the text beside it, and its invisible characters are shown as codes. */
export function untrustedText(text: string): Html {
  const cut = truncate(text);
  const parts: Html[] = [];
  let start = 0;
  for (const { 0: character, index } of cut.matchAll(SHAPELESS_PATTERN)) {
    if (character === "\n" || character === "\t") continue;
    parts.push(html`${cut.slice(start, index)}<span class="shapeless">${codeOf(character)}</span>`);
    start = index + character.length;
  }
  return html`<bdi>${parts}${cut.slice(start)}</bdi>`;
}

/** A text about an event, after redaction. */
export function redactedText(redaction: Redaction, text: string): Html {
  const redacted = redaction.redactText(text);
  return redacted === null
    ? html`<span class="hint">not shown: without its fields, nobody knows what must be redacted</span>`
    : untrustedText(redacted);
}

/** A text from outside, for places that take only text, such as an attribute. */
export function escapeInvisible(text: string): string {
  return truncate(text).replace(SHAPELESS_PATTERN, codeOf);
}

function truncate(text: string): string {
  return text.length > MAX_TEXT_LENGTH ? `${text.slice(0, MAX_TEXT_LENGTH)}…` : text;
}

function codeOf(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** A time as the day and the time of day in UTC. The page's script adds the local time. */
export function moment(at: number): Html {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return html`an unknown time`;
  const iso = date.toISOString();
  const day = `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
  return html`<time datetime="${iso}" title="${iso}"><span class="day">${day}</span> ${iso.slice(11, 19)}</time>`;
}

const DURATION_UNITS: readonly (readonly [number, string])[] = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1_000, "s"],
];

/** A duration in its largest unit, such as `3 min`. */
export function duration(ms: number): string {
  for (const [length, unit] of DURATION_UNITS) if (ms >= length) return `${Math.floor(ms / length)} ${unit}`;
  return "less than 1 s";
}

/** A count with separated thousands. */
export function count(value: number): string {
  return String(value).replace(/\B(?=(?:\d{3})+$)/g, ",");
}
