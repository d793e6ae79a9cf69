import type { Inbox, StoredEvent } from "@payhooks/core";
import { eachEvent } from "@payhooks/core/inbox";
import { EXIT, UsageError } from "../command-line/errors.ts";
import type { Given } from "../command-line/given.ts";
import { shown } from "../command-line/printer.ts";
import type { Terminal } from "../command-line/terminal.ts";
import { whatIs } from "./event.ts";
import { FILTERS, type Selection } from "./selection.ts";

/** How many attempts are brought forward for each second, unless `--rate` says otherwise. */
const DEFAULT_RATE = 20;
/** Everything is due within a day, as the inbox wants it. */
const MAX_DELAY_MS = 86_400_000;

/** Checks a command that brings attempts forward, before its inbox is opened. */
export function checkRetry(given: Given): void {
  const [, ...ids] = given.positionals;
  const isAll = given.flag("all");
  if ((ids.length === 0) === !isAll) {
    throw new UsageError(
      "Name the events, or give --all.",
      "payhooks events --state retrying shows what waits for its next attempt.",
    );
  }
  const other = [
    "count",
    "newest",
    "body",
    "reason",
    "handlers",
    "again",
    "even-if-expired",
    "name",
    "unfinished",
  ].find((name) => given.flag(name));
  if (other !== undefined) throw new UsageError(`--${other} is not for retry.`);
  if (given.flag("state"))
    throw new UsageError("Only an event that waits for its next attempt can be retried: leave --state out.");
  const filter = [...FILTERS, "limit", "rate"].find((name) => given.flag(name));
  if (!isAll && filter !== undefined) throw new UsageError(`--${filter} goes with --all.`);
  if (given.flag("dry-run")) return;
  given.required("by", "who decides");
  given.required("note", "why");
}

/** Brings the next attempts of events forward, so many for each second. Resolves with the exit code. */
export async function retry(
  inbox: Inbox,
  { query }: Selection,
  limit: number | undefined,
  given: Given,
  terminal: Terminal,
): Promise<number> {
  const rate = given.number("rate", { min: 1, max: 10_000 }) ?? DEFAULT_RATE;
  const [by, note] = [given.text("by") ?? "", given.text("note") ?? ""];
  const isDry = given.flag("dry-run");
  let [found, forward] = [0, 0];
  for await (const { eventId, event } of waiting(inbox, query, limit, given)) {
    const inMs = Math.min(MAX_DELAY_MS, Math.floor((found++ * 1_000) / rate));
    const isForward = !isDry && (await inbox.events.retryNow(eventId, { by, note, inMs }));
    if (isForward) forward++;
    const outcome = isDry ? "would-be-brought-forward" : isForward ? "brought-forward" : "not-waiting";
    terminal.json({ eventId, outcome, inMs });
    const what = event === null ? "" : `  ${shown(whatIs(event))}`;
    terminal.line(`${shown(eventId)}${what}  ${WORDS[outcome]}`);
  }
  if (found === 0) terminal.line("Nothing that matches waits for its next attempt.");
  if (forward > 1)
    terminal.line(`\n${forward} attempts are due now, or one after the other: ${rate} a second.`);
  return isDry || forward === found ? EXIT.ok : EXIT.failure;
}

const WORDS = {
  "brought-forward": "is due",
  "would-be-brought-forward": "would be due",
  "not-waiting": "waits for no later attempt",
} as const;

interface Waiting {
  readonly eventId: string;
  readonly event: StoredEvent | null;
}

async function* waiting(
  { events }: Inbox,
  query: Selection["query"],
  limit = Number.POSITIVE_INFINITY,
  given: Given,
): AsyncGenerator<Waiting> {
  const [, ...ids] = given.positionals;
  for (const eventId of ids) yield { eventId, event: await events.get(eventId) };
  if (ids.length > 0) return;
  // All at once, since what is brought forward may run and wait again while this goes on.
  const found: Waiting[] = [];
  for await (const event of eachEvent(events, { ...query, state: "retrying" })) {
    if (found.length >= limit) break;
    found.push({ eventId: event.eventId, event: { ...event, delivery: null } });
  }
  yield* found;
}
