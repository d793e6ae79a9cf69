import type { RecordStore } from "@payhooks/core/inbox";
import { expect, it } from "vitest";
import { newSeed } from "../faults/harness/scope.ts";
import { memoryGround, sharedMemoryGround } from "./memory-ground.ts";
import { playModel } from "./model.ts";
import { type Ground, withOverrides } from "./rig.ts";

it("random deliveries by parallel clients on memory are answered as by the model", {
  timeout: 60_000,
}, async () => {
  for (const ground of [memoryGround(), sharedMemoryGround()]) {
    const seed = newSeed("model, memory");
    const { commands, orders } = await playModel(ground, { seed, transactions: 200, rounds: 8 });
    expect(commands).toBeGreaterThan(2_000);
    expect(orders).toBeGreaterThanOrEqual(1_600);
  }
});

it("and a store that writes over what another has written meanwhile is found out", {
  timeout: 60_000,
}, async () => {
  const ground = sharedMemoryGround();
  const mistaken: Ground = {
    ...ground,
    open() {
      const { store } = ground.open();
      return {
        store: withOverrides<RecordStore>(store, {
          async swap(items) {
            const found = await store.read(items.map(({ key }) => key));
            return store.swap(items.map((item, at) => ({ ...item, expected: found[at]?.version ?? null })));
          },
        }),
      };
    },
  };
  const playing = playModel(mistaken, { seed: 1, transactions: 200, rounds: 8 });
  await expect(playing).rejects.toThrow("no order");
});
