import { describe, expect, it } from "vitest";
import { orderOf } from "./rounds.ts";

describe("the order of a round", () => {
  it("has everybody once, and of two each one first as often as the other", () => {
    for (const count of [2, 3, 5]) {
      const orders = Array.from({ length: 2 * count }, (_, round) => orderOf(round, count));
      for (const order of orders) expect([...order].sort()).toEqual([...Array(count).keys()]);
      for (let one = 0; one < count; one++) expect(orders.filter(([first]) => first === one)).toHaveLength(2);
    }
  });
});
