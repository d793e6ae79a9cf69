import type { IdempotencyRecord, Swap } from "@payhooks/core/inbox";

/**
 * Names a write by comparing the record that it makes with the one that it replaces. Steps that are made by one write are
 * joined by `+`: `accept+begin+started` accepts an event, begins it and marks its first handler as started.
 */
export function nameOf({ record }: Pick<Swap, "record">, previous: IdempotencyRecord | null): string {
  if (Object.keys(record.slots).length === 0) return nameWithoutSlots(record, previous);
  const names: string[] = [];
  for (const [key, slot] of Object.entries(record.slots)) {
    const before = previous?.slots[key];
    if (before === undefined) {
      names.push("accept");
      continue;
    }
    if (slot.replays > before.replays) names.push("replay");
    if (slot.state === "discarded" && before.state === "held") names.push("discard");
    if (slot.state === "stale" && before.state !== "stale") names.push("stale");
  }
  names.push(...handlerChangesOf(record, previous), ...endOf(record, previous));
  const [lease, led] = [record.lease, previous?.lease ?? null];
  if (lease !== null && lease.token !== led?.token) names.push("begin");
  else if (lease !== null && lease.until !== led?.until) names.push("renew");
  return names.length === 0 ? "copy" : names.sort(byOrder).join("+");
}

/** A claim of a reference has a token, and a shared text has a text. The other records without slots are those of subjects. */
function nameWithoutSlots(record: IdempotencyRecord, previous: IdempotencyRecord | null): string {
  const { fixedFacts: content, lease } = record;
  if (content.token !== undefined) return "reference";
  if (content.text !== undefined) return "text";
  if (lease === null) return "leave subject";
  return lease.token === previous?.lease?.token ? "renew subject" : "take subject";
}

const ORDER = ["accept", "replay", "discard", "finish", "begin"];

/** The end of a run is named before the begin of the next one. All other steps come behind, in their order. */
function byOrder(a: string, b: string): number {
  const place = (name: string): number => {
    const at = ORDER.findIndex((one) => name.startsWith(one));
    return at < 0 ? ORDER.length : at;
  };
  return place(a) - place(b);
}

function endOf(record: IdempotencyRecord, previous: IdempotencyRecord | null): readonly string[] {
  const led = previous?.lease ?? null;
  const slot = led === null ? undefined : record.slots[led.slot];
  const before = led === null ? undefined : previous?.slots[led.slot];
  if (led === null || slot === undefined || slot.runToken === led.token || record.lease?.token === led.token)
    return [];
  // To take over a lapsed lease does not end a run.
  if (slot.runToken !== `${led.token}.` && record.lease?.slot === led.slot) return [];
  if (slot.state === "waiting") return slot.replays > (before?.replays ?? 0) ? [] : ["finish retry"];
  if (slot.state === "held")
    return [slot.isOnHeldDone && before?.state === "held" ? "finish onHeld" : "finish held"];
  return slot.state === "done" ? ["finish done"] : [];
}

function handlerChangesOf(record: IdempotencyRecord, previous: IdempotencyRecord | null): readonly string[] {
  const changed: string[] = [];
  for (const [key, { work }] of Object.entries(record.slots)) {
    const before = previous?.slots[key]?.work?.handlerStates ?? {};
    for (const [name, handler] of Object.entries(work?.handlerStates ?? {})) {
      const known = before[name];
      if (known?.state === handler.state && known.attempts === handler.attempts) continue;
      changed.push(handler.attempts < (known?.attempts ?? 0) ? "undone" : handler.state);
    }
    for (const name in before)
      if (work !== null && work.handlerStates[name] === undefined) changed.push("undone");
  }
  return changed;
}

/** True if a write does this, among what else it may do. */
export function does(call: string, what: string): boolean {
  return call.split("+").includes(what);
}
