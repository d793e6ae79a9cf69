import type { Held, HeldFilter, HeldReason, Inbox } from "@payhooks/core";
import { UsageError } from "../command-line/errors.ts";
import { idsOf } from "./entry.ts";

/** Which held entries a command is about. */
export interface Selection extends Omit<HeldFilter, "limit" | "reason"> {
  /** Why the entries are held. Empty: for any reason. */
  readonly reasons: readonly HeldReason[];
  /** The beginning of a payTxnId or an idempotency_key. */
  readonly id?: string | undefined;
}

/** The held entries that match: reason by reason, and the oldest of each reason first. */
export async function* select(inbox: Inbox, { id = "", reasons, ...filter }: Selection): AsyncIterable<Held> {
  for (const reason of reasons.length === 0 ? [undefined] : reasons) {
    for await (const entry of inbox.held.list({ ...filter, reason })) {
      if (idsOf(entry).some((one) => one.startsWith(id))) yield entry;
    }
  }
}

const WHOLE_ID = /^[0-9a-f]{48}$/;
const LEAST_CHARACTERS = 4;

/**
 * Completes the beginnings of event ids. A beginning that no held entry has is returned as it is. A beginning that
 * several entries have is an error, so that no decision is made about the wrong one.
 */
export async function eventIdsOf(inbox: Inbox, given: readonly string[]): Promise<readonly string[]> {
  // An id that was shortened for display, as in the help, ends with dots.
  const beginnings = given.map((text) => text.replace(/(?:…|\.{3})$/, ""));
  for (const beginning of beginnings) {
    if (beginning.length >= LEAST_CHARACTERS) continue;
    throw new UsageError(`${JSON.stringify(beginning)} is too short: give at least 4 characters of the id.`);
  }
  if (beginnings.every((beginning) => WHOLE_ID.test(beginning))) return beginnings;
  const held: string[] = [];
  for await (const { eventId } of inbox.held.list()) held.push(eventId);
  const found = beginnings.map((beginning) => {
    const fitting = held.filter((eventId) => eventId.startsWith(beginning));
    if (fitting.length < 2) return fitting[0] ?? beginning;
    const list = fitting.slice(0, 5).join("\n");
    throw new UsageError(`${fitting.length} held events begin with ${beginning}: give more of the id.`, list);
  });
  return [...new Set(found)];
}
