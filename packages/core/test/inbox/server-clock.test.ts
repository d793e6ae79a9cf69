import { describe, expect, it } from "vitest";
import { ServerClock } from "../../src/inbox/server-clock.ts";
import type { Clock } from "../../src/time/clock.ts";

/** A process's clocks, and the server's, moved by hand. */
class Times {
  monotonic = 1_000;
  wall = 50_000;
  /** The server's, with its fraction of a millisecond. */
  server = 1_700_000_000_000.9;
  readonly clock: Clock = {
    now: () => this.wall,
    monotonic: () => this.monotonic,
    after: () => () => {},
  };

  pass(ms: number): void {
    this.monotonic += ms;
    this.wall += ms;
    this.server += ms;
  }
}

/** Asks the server; the question takes its way, and so does the answer. */
function ask(clock: ServerClock, times: Times, thereMs: number, backMs: number): void {
  const askedAt = times.monotonic;
  times.pass(thereMs);
  const serverTime = Math.floor(times.server);
  times.pass(backMs);
  clock.recordServerTime(serverTime, askedAt);
}

describe("the estimate of a Redis server's clock", () => {
  it("is the process's own until the server has returned its time", () => {
    const times = new Times();
    const clock = new ServerClock(times.clock);
    expect(clock.now()).toBe(times.wall);
    ask(clock, times, 1, 1);
    expect(Math.abs(clock.now() - times.server)).toBeLessThan(3);
  });

  it("is never ahead of the server's, and behind by no more than the answer took", () => {
    const times = new Times();
    const clock = new ServerClock(times.clock);
    ask(clock, times, 300, 700);
    let worstMs = 1_000;
    for (const [thereMs, backMs] of [
      [5, 100],
      [0, 2],
      [400, 300],
      [1, 1],
      [0, 50],
    ] as const) {
      ask(clock, times, thereMs, backMs);
      worstMs = Math.min(worstMs, backMs);
      for (let passed = 0; passed < 1_000; passed += 100) {
        expect(clock.now()).toBeLessThanOrEqual(times.server);
        expect(times.server - clock.now()).toBeLessThan(worstMs + 4);
        times.pass(100);
      }
    }
  });

  it("stays behind a server whose clock is slowed down while it is set right", () => {
    const times = new Times();
    const clock = new ServerClock(times.clock);
    ask(clock, times, 1, 0);
    for (let second = 0; second < 100; second++) {
      times.pass(1_000);
      times.server -= 0.4;
      expect(clock.now()).toBeLessThanOrEqual(times.server);
    }
  });

  it("follows a server whose clock was set back or forward with the next answer", () => {
    const times = new Times();
    const clock = new ServerClock(times.clock);
    ask(clock, times, 1, 1);
    for (const jump of [-60_000, 3_600_000, -3]) {
      times.server += jump;
      ask(clock, times, 1, 1);
      expect(clock.now()).toBeLessThanOrEqual(times.server);
      expect(times.server - clock.now()).toBeLessThan(4);
    }
  });
});
