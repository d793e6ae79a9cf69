import { fakeClock } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { Acts } from "../../src/inbox/write/acts.ts";

function setUp() {
  const clock = fakeClock();
  const told: string[] = [];
  const acts = new Acts(clock, ({ type }) => told.push(type));
  const fail = (): void => acts.failed("end", new Error("not now"));
  const pass = (): void => acts.canaryPassed("end");
  /** Five minutes in which events fail and canaries pass, and then an event that ends well. */
  const play = async (): Promise<void> => {
    for (let time = 0; time < 30; time++) {
      fail();
      await clock.advance("10s");
      pass();
    }
    expect(told).toEqual(["stalled"]);
    acts.passed("end");
    expect(told).toEqual(["stalled", "recovered"]);
  };
  return { acts, clock, told, fail, pass, play };
}

describe("a canary that passes although events fail", () => {
  it("ends a failure that was not reported, and is not believed once events fail again", async () => {
    const { acts, clock, fail, pass, play } = setUp();
    fail();
    await clock.advance("4s");
    pass();
    expect(acts.failing).toBeNull();
    await play();
  });

  it("does not end a failure that was reported before the first canary", async () => {
    const { play } = setUp();
    await play();
  });

  it("is believed a minute after the last event that failed", async () => {
    const { acts, clock, told, fail, pass } = setUp();
    fail();
    await clock.advance("10s");
    pass();
    fail();
    for (let second = 0; second < 60; second++) {
      expect(acts.failing).not.toBeNull();
      pass();
      await clock.advance("1s");
    }
    pass();
    expect(acts.failing).toBeNull();
    expect(told).toEqual(["stalled", "recovered"]);
  });

  it("is believed at once after an outage in which canaries failed too", async () => {
    const { acts, clock, told, fail, pass } = setUp();
    fail();
    await clock.advance("10s");
    acts.canaryFailed("end", new Error("not now"));
    pass();
    expect(acts.failing).toBeNull();
    expect(told).toEqual(["stalled", "recovered"]);
  });
});
