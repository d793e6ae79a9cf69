import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { Shards } from "../../src/redis/shards.ts";

const SLOTS = 16_384;

/** The slot of a key, as a Redis Cluster computes it: CRC-16 (XMODEM) of what stands in braces. */
function slotOf(key: string): number {
  let crc = 0;
  for (const byte of Buffer.from(/\{(.+?)\}/.exec(key)?.[1] ?? key)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = ((crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff;
  }
  return crc % SLOTS;
}

describe("the shards of a Redis inbox", () => {
  const { all } = new Shards("payhooks");

  it("lie in the slots that they say, and all keys of one in the same", () => {
    // The example of the cluster's specification.
    expect(slotOf("123456789")).toBe(0x31c3 % SLOTS);
    for (const shard of all) {
      for (const key of [
        shard.due.usual,
        shard.due.patient,
        shard.keyOf("waiting"),
        shard.keyOf("0".repeat(32)),
      ]) {
        expect(slotOf(key), key).toBe(shard.slot);
      }
    }
    expect(new Set(all.map(({ slot }) => slot)).size).toBe(64);
  });

  it.each(Array.from({ length: 16 }, (_, n) => n + 1))("fall evenly on %i nodes", (nodes) => {
    const shares = Array.from({ length: nodes }, () => 0);
    for (const { slot } of all) {
      const node = Math.floor((slot * nodes) / SLOTS);
      shares[node] = (shares[node] ?? 0) + 1;
    }
    expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1);
  });

  it("share the records evenly, and always in the same way", () => {
    const shards = new Shards("another");
    const counts = new Map(shards.all.map((shard) => [shard, 0]));
    for (let n = 0; n < 64_000; n++) {
      const key = randomBytes(16).toString("hex");
      const shard = shards.shardOf(key);
      expect(shards.shardOf(key)).toBe(shard);
      counts.set(shard, (counts.get(shard) ?? 0) + 1);
    }
    // 1000 each, six standard deviations around it.
    for (const count of counts.values()) expect(Math.abs(count - 1_000)).toBeLessThan(190);
    // These two must never change: the records that are there would not be found any more.
    expect(shards.all.indexOf(shards.shardOf("00112233445566778899aabbccddeeff"))).toBe(17);
    expect(shards.all.indexOf(shards.shardOf("f".repeat(32)))).toBe(19);
  });

  it("refuse a prefix with braces, by which a cluster would choose another node", () => {
    expect(() => new Shards("{payhooks}")).toThrow(expect.objectContaining({ code: "ERR_OPTION_INVALID" }));
  });
});
