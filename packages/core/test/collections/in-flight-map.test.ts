import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { InFlightMap } from "../../src/collections/in-flight-map.ts";

describe("the map of values that are under way", () => {
  it("returns the value that it was given last, until that leaves", () => {
    const inFlight = new InFlightMap<string, { readonly n: number }>();
    inFlight.set("a", { n: 1 });
    inFlight.set("b", { n: 2 });
    inFlight.set("a", { n: 3 });
    expect(inFlight.get("a")).toEqual({ n: 3 });
    expect(inFlight.size).toBe(2);
    inFlight.delete("a");
    inFlight.delete("a");
    expect(inFlight.get("a")).toBeUndefined();
    expect([...inFlight.entries()]).toEqual([["b", { n: 2 }]]);
    expect(inFlight.size).toBe(1);
  });

  it("can be walked while values come and go", () => {
    const inFlight = new InFlightMap<number, { readonly n: number }>();
    for (let n = 0; n < 4; n++) inFlight.set(n, { n });
    const seen: number[] = [];
    for (const [key] of inFlight.entries()) {
      seen.push(key);
      inFlight.delete(key + 1);
      if (key < 10) inFlight.set(key + 10, { n: key });
    }
    expect(seen).toEqual([0, 2, 10, 12]);
  });

  it("holds nothing that has left, where a Map does until the next full collection", () => {
    expect(grownBy(new InFlightMap())).toBeLessThan(grownBy(new Map()) / 4);
  });
});

const PASSING = 4_000;
const AT_ONCE = 64;

interface Holder {
  set(key: number, value: object): unknown;
  delete(key: number): unknown;
}

/** Bytes by which the heap has grown when many values of 4 KB went through, and young ones were collected. */
function grownBy(holder: Holder): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as (options?: { readonly type: "minor" }) => void;
  for (let key = 0; key < AT_ONCE; key++) holder.set(key, new Array(500).fill(0.5));
  collect();
  const before = getHeapStatistics().used_heap_size;
  for (let key = AT_ONCE; key < PASSING; key++) {
    holder.set(key, new Array(500).fill(0.5));
    holder.delete(key - AT_ONCE);
  }
  collect({ type: "minor" });
  collect({ type: "minor" });
  return getHeapStatistics().used_heap_size - before;
}
