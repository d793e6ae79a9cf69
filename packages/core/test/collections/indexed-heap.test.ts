import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { IndexedHeap } from "../../src/collections/indexed-heap.ts";

interface Entry {
  readonly at: number;
  position: number;
}

describe("a heap of entries that can leave it", () => {
  const heap = (): IndexedHeap<Entry> => new IndexedHeap((a, b) => a.at < b.at);

  it("has the earliest on top, whatever comes and goes, in whatever order", () => {
    const operation = fc.oneof(
      { weight: 3, arbitrary: fc.record({ add: fc.integer({ min: 0, max: 50 }) }) },
      { weight: 2, arbitrary: fc.record({ remove: fc.nat() }) },
    );
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 200 }), (operations) => {
        const entries = heap();
        const known: Entry[] = [];
        for (const operation of operations) {
          if ("add" in operation) {
            const entry = { at: operation.add, position: -1 };
            entries.add(entry);
            known.push(entry);
          } else {
            const [entry] = known.splice(operation.remove % Math.max(1, known.length), 1);
            if (entry !== undefined) entries.remove(entry);
          }
          expect(entries.size).toBe(known.length);
          expect(entries.peek()?.at).toBe(
            known.length === 0 ? undefined : Math.min(...known.map(({ at }) => at)),
          );
        }
        expect([...entries.values()].toSorted(byTime)).toEqual(known.toSorted(byTime));
      }),
      { numRuns: 300 },
    );
  });

  it("gives out thousands in their order, in a time that grows little faster than their number", () => {
    const entries = heap();
    let places = 0;
    const watched = (at: number): Entry => {
      let position = -1;
      return {
        at,
        get position() {
          return position;
        },
        set position(value) {
          places++;
          position = value;
        },
      };
    };
    const count = 4_096;
    for (let n = 0; n < count; n++) entries.add(watched((n * 2_654_435_761) % 4_294_967_296));
    let before = -1;
    for (let entry = entries.peek(); entry !== undefined; entry = entries.peek()) {
      expect(entry.at).toBeGreaterThanOrEqual(before);
      before = entry.at;
      entries.remove(entry);
    }
    expect(entries.size).toBe(0);
    // Each entry is moved once per level, at most, when it comes and whenever the top leaves.
    expect(places).toBeLessThan(count * 2 * (Math.log2(count) + 1));
  });
});

function byTime(a: Entry, b: Entry): number {
  return a.at - b.at || a.position - b.position;
}
