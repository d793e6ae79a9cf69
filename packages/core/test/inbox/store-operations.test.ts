import { fakeClock } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { StoreOperations } from "../../src/inbox/write/store-operations.ts";

function setUp() {
  const clock = fakeClock();
  const noticeTypes: string[] = [];
  const operations = new StoreOperations(clock, ({ type }) => noticeTypes.push(type));
  const fail = (): void => operations.recordFailure("end", new Error("not now"));
  const pass = (): void => operations.recordCanarySuccess("end");
  /** Five minutes in which events fail and canaries pass, and then an event that ends well. */
  const play = async (): Promise<void> => {
    for (let time = 0; time < 30; time++) {
      fail();
      await clock.advance("10s");
      pass();
    }
    expect(noticeTypes).toEqual(["stalled"]);
    operations.recordSuccess("end");
    expect(noticeTypes).toEqual(["stalled", "recovered"]);
  };
  return { operations, clock, noticeTypes, fail, pass, play };
}

describe("a canary that passes although events fail", () => {
  it("ends a failure that was not reported, and is not believed once events fail again", async () => {
    const { operations, clock, fail, pass, play } = setUp();
    fail();
    await clock.advance("4s");
    pass();
    expect(operations.failing).toBeNull();
    await play();
  });

  it("does not end a failure that was reported before the first canary", async () => {
    const { play } = setUp();
    await play();
  });

  it("is believed a minute after the last event that failed", async () => {
    const { operations, clock, noticeTypes, fail, pass } = setUp();
    fail();
    await clock.advance("10s");
    pass();
    fail();
    for (let second = 0; second < 60; second++) {
      expect(operations.failing).not.toBeNull();
      pass();
      await clock.advance("1s");
    }
    pass();
    expect(operations.failing).toBeNull();
    expect(noticeTypes).toEqual(["stalled", "recovered"]);
  });

  it("is believed at once after an outage in which canaries failed too", async () => {
    const { operations, clock, noticeTypes, fail, pass } = setUp();
    fail();
    await clock.advance("10s");
    operations.recordCanaryFailure("end", new Error("not now"));
    pass();
    expect(operations.failing).toBeNull();
    expect(noticeTypes).toEqual(["stalled", "recovered"]);
  });
});
