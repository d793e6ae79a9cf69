/** Canaries, as the engine sends them. */

import type { RecordStore } from "../../inbox/contract/store.ts";
import { canaryKey, endCanary, newCanary } from "../../inbox/record/canary.ts";
import { newToken } from "./records.ts";
import { type PutRecord, swapOf } from "./writes.ts";

/** Writes a canary on each server of the store, and removes it again. Rejects with the reason if the store does not take it. */
export async function sendCanary(store: RecordStore): Promise<void> {
  const name = newToken();
  const keys = (await store.canaryKeys?.(name)) ?? [canaryKey(name)];
  await Promise.all(
    keys.map(async (key) => {
      const canary = await write(store, key, null);
      await store.replicated?.([canary]);
      await write(store, key, canary);
    }),
  );
}

async function write(store: RecordStore, key: string, before: PutRecord | null): Promise<PutRecord> {
  const now = store.now(key);
  const record = before === null ? newCanary(now, false) : endCanary(before.record, now);
  const swap = swapOf(store, key, before, record);
  const [result] = await store.swap([swap]);
  if (result?.kind === "written") return { key, version: swap.version, record };
  throw result !== undefined && "cause" in result ? result.cause : new Error("The canary was not written.");
}
