import { expect, it } from "vitest";
import { failedRunBackoffMs } from "../../src/handlers/handler.ts";

it("a run that always fails outside of its handlers waits longer each time, and 7.5 minutes at most", () => {
  const first = failedRunBackoffMs(0);
  expect(first).toBeGreaterThanOrEqual(2_000);
  expect(first).toBeLessThanOrEqual(6_000);
  expect(failedRunBackoffMs(20_000)).toBeGreaterThanOrEqual(20_000);
  expect(failedRunBackoffMs(3_600_000)).toBeLessThanOrEqual(450_000);
});
