/** The begun runs of both lanes, in the order in which they get places. */
import { describe, expect, it } from "vitest";
import type { Lane } from "../../src/inbox/record/lane.ts";
import { LaneQueues } from "../../src/inbox/run/lane-queues.ts";

interface Entry {
  readonly lane: Lane;
  readonly n: number;
}

function filled(): LaneQueues<Entry> {
  const queues = new LaneQueues<Entry>();
  for (const n of [1, 2, 3]) queues.push({ lane: "patient", n });
  for (const n of [4, 5]) queues.push({ lane: "usual", n });
  return queues;
}

/** Takes entries until no lane with an entry has a place left. */
function taken(queues: LaneQueues<Entry>, isFree: (lane: Lane) => boolean = () => true): readonly number[] {
  const numbers: number[] = [];
  for (let next = queues.next(isFree); next !== undefined; next = queues.next(isFree)) numbers.push(next.n);
  return numbers;
}

describe("begun runs that wait for a place", () => {
  it("get one from each lane in turn, each lane in its own order", () => {
    expect(taken(filled())).toEqual([4, 1, 5, 2, 3]);
  });

  it("do not keep the other lane waiting if their lane has no place, and come later", () => {
    const queues = filled();
    expect(taken(queues, (lane) => lane === "usual")).toEqual([4, 5]);
    expect([queues.isEmpty("usual"), queues.isEmpty("patient")]).toEqual([true, false]);
    expect(taken(queues)).toEqual([1, 2, 3]);
  });

  it("are taken from the head of each lane while they match", () => {
    const queues = filled();
    expect([...queues.takeWhile(({ n }) => n === 1 || n === 4)].map(({ n }) => n)).toEqual([4, 1]);
    expect([...queues.takeAll()].map(({ n }) => n)).toEqual([5, 2, 3]);
    expect(taken(queues)).toEqual([]);
  });
});
