import { expect, it } from "vitest";
import { newSeed } from "../faults/harness/scope.ts";
import { memoryGround } from "./memory-ground.ts";
import { playModel } from "./model.ts";

it("random deliveries by parallel clients on memory are answered as by the model", {
  timeout: 60_000,
}, async () => {
  const seed = newSeed("model, memory");
  const { commands, orders } = await playModel(memoryGround(), { seed, transactions: 200, rounds: 8 });
  expect(commands).toBeGreaterThan(2_000);
  expect(orders).toBeGreaterThanOrEqual(1_600);
});

it("and one that takes a claimed slot for an acknowledged one is found out", {
  timeout: 60_000,
}, async () => {
  const ground = memoryGround();
  const { store, queue } = ground.open();
  const mistaken = {
    ...store,
    async accept(...given: Parameters<typeof store.accept>) {
      const accepted = await store.accept(...given);
      return accepted.outcome === "resume"
        ? { ...accepted, outcome: "duplicate" as const, pending: false }
        : accepted;
    },
  };
  const playing = playModel(
    { ...ground, open: () => ({ store: mistaken, queue }) },
    { seed: 1, transactions: 200, rounds: 8 },
  );
  await expect(playing).rejects.toThrow("no order");
});
