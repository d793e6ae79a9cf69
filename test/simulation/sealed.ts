import { type IdempotencyRecord, isUnreadable } from "@payhooks/core/inbox";
import type { SealKey, SealKeys } from "@payhooks/core/seal";
import { SealKeyring } from "../../packages/core/src/seal/keys.ts";
import { openRecord } from "../../packages/core/src/seal/sealed-store.ts";
import type { SimulatedStore } from "./store.ts";

const keyOf = (id: string, byte: number): SealKey => ({ id, key: Buffer.alloc(32, byte) });
const first = keyOf("k1", 1);
const second = keyOf("k2", 2);
const known = new SealKeyring([first, second]);

/** The keys of a process in the middle of a change: every other one seals with the other key. */
export function sealKeysOf(process: number): SealKeys {
  return process % 2 === 0 ? [first, second] : [second, first];
}

/** A record as the store has it, sealed or not; null if it is not there, or cannot be read. */
export function recordIn(store: SimulatedStore, key: string): IdempotencyRecord | null {
  const record = store.read([key])[0]?.record;
  if (record === undefined) return null;
  if (!isUnreadable(record)) return record;
  const opened = record.sealed === undefined ? record : openRecord(record.sealed, key, known);
  return isUnreadable(opened) ? null : opened;
}
