import type { RecordStore } from "@payhooks/core/inbox";
import { expect, it } from "vitest";
import { newSeed } from "../faults/harness/scope.ts";
import { type InboxFixture, withOverrides } from "./inbox-processes.ts";
import { memoryInboxFixture, sharedMemoryInboxFixture } from "./memory-inbox-fixture.ts";
import { playModel } from "./model.ts";

it("random deliveries by parallel clients on memory are answered as by the model", {
  timeout: 60_000,
}, async () => {
  for (const fixture of [memoryInboxFixture(), sharedMemoryInboxFixture()]) {
    const seed = newSeed("model, memory");
    const { commands, orders } = await playModel(fixture, { seed, transactions: 200, rounds: 8 });
    expect(commands).toBeGreaterThan(2_000);
    expect(orders).toBeGreaterThanOrEqual(1_600);
  }
});

it("a store that overwrites the writes of another process is caught", {
  timeout: 60_000,
}, async () => {
  const fixture = sharedMemoryInboxFixture();
  const mistaken: InboxFixture = {
    ...fixture,
    open() {
      const { store } = fixture.open();
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
