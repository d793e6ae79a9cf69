import type { IdempotencyRecord } from "@payhooks/core/inbox";
import { referenceOf } from "../../packages/core/src/inbox/record/record.ts";
import { type ModelDelivery, ReferenceModel } from "../contract/reference-model.ts";
import type { Chronicle, Write } from "./chronicle.ts";
import { deliveryOf, type SimulatedDelivery } from "./deliveries.ts";

/**
 * Compares the records with the table of deduplication, which is written a second time here. The new slots are asked about in the
 * order in which the store wrote them. Records that the store has lost are left out.
 */
export function tableDisagrees({ plan, writes, losses }: Chronicle): string | null {
  const lost = new Set(losses.flatMap(({ keys }) => [...keys]));
  const deliveries = plan.events.map(deliveryOf);
  const models = new Map<string, ReferenceModel>();
  for (const write of writes) {
    const { key, before, after } = write;
    if (lost.has(key)) continue;
    for (const slot of newSlots(write)) {
      const delivery = deliveries.find((one) => isOf(one, key, slot, after));
      if (delivery === undefined) return `${key.slice(0, 6)} has the slot ${slot} of no event that was sent`;
      // A new record replaces an expired one.
      const model = (before === null ? undefined : models.get(key)) ?? new ReferenceModel();
      models.set(key, model);
      const slotAfter = after.slots[slot];
      // Another invariant checks whether another transaction has the reference.
      const isReused = slotAfter?.verdict === "reference-reused";
      const said = model.deliver({ ...modelled(delivery), isReused });
      const verdict = slotAfter?.verdict ?? "missing";
      const expected =
        said.reason ?? (said.outcome === "new" || said.outcome === "progress" ? "run" : said.outcome);
      if (verdict !== expected) {
        return `${key.slice(0, 6)} ${slotAfter?.status ?? ""}: recorded as ${verdict}, the table says ${expected}`;
      }
    }
  }
  return null;
}

function newSlots({ before, after }: Write): string[] {
  return Object.keys(after.slots).filter((slot) => before?.slots[slot] === undefined);
}

function isOf(
  { verified, eventId, variantId }: SimulatedDelivery,
  key: string,
  slot: string,
  record: IdempotencyRecord,
): boolean {
  if (verified.key !== key) return false;
  const { slots, fixedFacts: facts } = record;
  const found = slots[slot];
  if (found !== undefined && referenceOf(record, found) !== verified.referenceId) return false;
  if (variantId === key + slot) return true;
  const { fixedFacts, amount, delivery } = verified;
  const hasItsFacts = Object.entries(fixedFacts).every(([name, value]) => {
    const fact = facts[name];
    return fact === undefined || fact === value;
  });
  return (
    eventId === key + slot &&
    hasItsFacts &&
    slots[slot]?.amounts[delivery.arrivedBy] === (amount ?? undefined)
  );
}

function modelled({ verified }: SimulatedDelivery): ModelDelivery {
  const { status, fixedFacts, amount, delivery, verdict, rank } = verified;
  return {
    status,
    listed: rank !== null && verdict === "run",
    fixedFacts,
    amount: amount ?? "",
    arrivedBy: delivery.arrivedBy,
  };
}
