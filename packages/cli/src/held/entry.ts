import type { Held } from "@payhooks/core";
import { contentsOf } from "@payhooks/core/inbox";
import { shown } from "../command-line/printer.ts";
import type { Terminal } from "../command-line/terminal.ts";

/** A held entry as JSON. */
export function entryAsJson(entry: Held, withBody: boolean): Readonly<Record<string, unknown>> {
  const { eventId, flow, tenant, id, referenceId, event, status, amount } = entry;
  const { reason, detail, heldAt, replays, steps, others } = entry;
  return {
    eventId,
    flow,
    tenant,
    id,
    referenceId,
    event,
    status,
    amount,
    reason,
    detail,
    heldAt: new Date(heldAt).toISOString(),
    replays,
    handlers: steps,
    others: others.map((other) => ({ ...other, acceptedAt: new Date(other.acceptedAt).toISOString() })),
    ...(withBody && { ...contentsOf(entry.delivery), history: entry.history }),
  };
}

/** A held entry as lines of text. */
export function printEntry(entry: Held, withBody: boolean, { line, paint }: Terminal): void {
  const { eventId, id, event, status, amount, referenceId, reason, detail, heldAt, replays, steps } = entry;
  const reference = referenceId === null ? "" : `reference ${referenceId}`;
  const sum = amount === null ? "" : `amount ${amount}`;
  const what = [event || "?", status, id, reference, sum].filter(Boolean).join(" ");
  line(`${eventId}  ${paint("yellow", reason)}  ${shown(what)}  ${new Date(heldAt).toISOString()}`);
  if (detail !== null) line(`  ${shown(detail)}`);
  for (const [name, { attempts, state, error }] of Object.entries(steps)) {
    line(
      `  ${shown(name)}: ${state}, ${attempts} ${attempts === 1 ? "attempt" : "attempts"}${error === null ? "" : `, ${shown(error)}`}`,
    );
  }
  if (replays > 0) line(`  replayed ${replays} ${replays === 1 ? "time" : "times"}`);
  if (!withBody) return;
  for (const { at, what: happened, by, note } of entry.history) {
    const who = by === undefined ? "" : ` by ${shown(by)}: ${shown(note ?? "")}`;
    line(`  ${new Date(at).toISOString()} ${shown(happened)}${who}`);
  }
  const { fields, signed } = contentsOf(entry.delivery);
  for (const { name, value } of fields)
    line(`  ${shown(name)}: ${value === null ? "not certain" : shown(value, 100_000)}`);
  if (signed.length > 0) line(`  signed: ${shown(signed.map(({ text }) => text).join(""), 100_000)}`);
}

/** The ids that an entry can be found by. They include those that its signed text may have, even if its reading is not certain. */
export function idsOf(entry: Held): readonly string[] {
  const { fields, signed } = contentsOf(entry.delivery);
  const ids = fields.flatMap(({ name, value }) =>
    name === "idempotency_key" && value !== null ? [value] : [],
  );
  const named = signed.filter(({ name }) => name === "payTxnId");
  return [entry.id, ...ids, ...named.map(({ text }) => text.slice(text.indexOf("=") + 1))];
}
