/**
 * A bound to measure ours by: the check as it is written by hand, and the least that must be done for an event so that it
 * has one reading, runs once and is not forgotten while this process lives. It has no other rules, no bound, no retry, no
 * lease and no notices, and keeps every record for ever: nobody could use it.
 */
import type { Scheme, Surroundings } from "../protocol.ts";
import { type Check, inlineCheck } from "./inline.ts";

interface Kept {
  state: "waiting" | "running" | "done";
  event: unknown;
}

const HANDLER_MS = 30_000;

export function leastCheck(
  scheme: Scheme,
  surroundings: Surroundings,
  handle: (event: unknown) => Promise<void>,
): Check {
  const records = new Map<string, Kept>();
  let due: Kept[] = [];

  async function run(record: Kept): Promise<void> {
    record.state = "running";
    let timer: NodeJS.Timeout | undefined;
    try {
      await new Promise<void>((resolve, reject) => {
        timer = setTimeout(() => reject(new Error("timed out")), HANDLER_MS).unref();
        handle(record.event).then(resolve, reject);
      });
      record.state = "done";
      record.event = null;
    } catch {
      record.state = "waiting";
    }
    clearTimeout(timer);
  }

  function runDue(): void {
    const now = due;
    due = [];
    for (const record of now) void run(record);
  }

  async function accept(event: unknown): Promise<void> {
    const { payTxnId, idempotency_key } = event as Record<string, unknown>;
    const id = String(scheme === "rsa" ? payTxnId : idempotency_key);
    if (records.has(id)) return;
    const record: Kept = { state: "waiting", event };
    records.set(id, record);
    if (due.push(record) === 1) setImmediate(runDue);
  }

  return inlineCheck("inline", scheme, surroundings, accept, hasNameTwice);
}

/** `JSON.parse` hides the first of two: there must be as many names in the text as members in the object. */
function hasNameTwice(text: string, object: object): boolean {
  let names = 0;
  for (let at = text.indexOf('"'); at !== -1; at = text.indexOf('"', at + 1)) {
    do at = text.indexOf('"', at + 1);
    while (text[at - 1] === "\\");
    if (text[at + 1] === ":") names++;
  }
  return names !== membersOf(object);
}

function membersOf(object: object): number {
  let members = 0;
  for (const value of Object.values(object)) {
    members++;
    if (typeof value === "object" && value !== null) members += membersOf(value);
  }
  return members;
}
