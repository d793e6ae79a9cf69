/** A delay that the machine causes does not count against an answer. A delay by the process itself does. */
import { spawn } from "node:child_process";
import { describe, expect, it } from "vitest";
import { lengthWithoutLag, type Span, watchLag } from "./harness/lag.ts";
import { until } from "./harness/scope.ts";

describe("the length of a span without lag", () => {
  it("leaves out what lies within it, once", () => {
    const lags = [
      { from: 150, to: 180 },
      { from: 50, to: 120 },
      { from: 110, to: 130 },
      { from: 195, to: 300 },
      { from: 400, to: 500 },
    ];
    expect(lengthWithoutLag({ from: 100, to: 200 }, lags)).toBe(100 - 30 - 30 - 5);
    expect(lengthWithoutLag({ from: 100, to: 200 }, [])).toBe(100);
    expect(lengthWithoutLag({ from: 100, to: 200 }, [{ from: 0, to: 900 }])).toBe(0);
  });
});

describe("lag", { timeout: 30_000 }, () => {
  it("is the time for which a process was stopped", async () => {
    const lags: Span[] = [];
    const end = watchLag((lag) => lags.push(lag));
    try {
      // Nobody but another process can stop this one and let it go on.
      const stopper = spawn("sh", ["-c", `kill -STOP ${process.pid}; sleep 0.5; kill -CONT ${process.pid}`]);
      await new Promise((resolve) => stopper.once("exit", resolve));
      await until("it is told", () => lags.some(({ from, to }) => to - from >= 400));
    } finally {
      end();
    }
  });

  it("does not include the time for which a process computes", async () => {
    const lags: Span[] = [];
    const end = watchLag((lag) => lags.push(lag));
    try {
      const from = performance.now();
      const before = process.cpuUsage();
      let computedMs = 0;
      while (computedMs < 300) {
        for (let n = 0; n < 1_000_000; n++) Math.sqrt(n);
        const { user, system } = process.cpuUsage(before);
        computedMs = (user + system) / 1000;
      }
      const waitedMs = performance.now() - from - computedMs;
      await new Promise((resolve) => setTimeout(resolve, 30));
      const told = lags.reduce((sum, lag) => sum + lag.to - lag.from, 0);
      expect(told).toBeLessThanOrEqual(waitedMs + 100);
    } finally {
      end();
    }
  });
});
