import { describe, expect, it } from "vitest";
import { pages } from "../report.ts";
import { estimate } from "../statistics.ts";
import { goalFigures, type Samples } from "./goals.ts";
import { byHandChart, handlerTables } from "./report.ts";
import type { ByHandResults } from "./results.ts";

/** Rounds of a machine that was twice as busy every other time. */
const rounds = (cpuUs: number, serverCpuUs: number, perSecond: number) =>
  Array.from({ length: 8 }, (_, round) => {
    const busy = 1 + (round % 2);
    return { cpuUs: cpuUs * busy, serverCpuUs: serverCpuUs * busy, perSecond: perSecond / busy };
  });

const samples: Samples = {
  check: rounds(400, 0, 3_000),
  queue: rounds(500, 200, 2_000),
  graphile: rounds(900, 1_000, 500),
  boss: rounds(800, 1_200, 400),
  table: rounds(600, 500, 800),
  memory: rounds(430, 0, 3_000),
  sqlite: rounds(600, 0, 2_000),
  redis: rounds(425, 80, 3_000),
  postgres: rounds(440, 120, 1_600),
  mysql: rounds(450, 200, 1_500),
};

const all = (values: readonly number[]) => estimate(values);
const results: ByHandResults = {
  node: "20.20.2",
  cores: 2,
  load: 2.04,
  measuredOn: "2026-11-22",
  handlers: [
    {
      handlerMs: 0,
      ways: [
        { way: "queue", cpuUs: all([500]), serverCpuUs: all([200]), perSecond: all([2_000]) },
        { way: "memory", cpuUs: all([350]), serverCpuUs: null, perSecond: all([3_000]) },
      ],
      goals: goalFigures(0, samples),
    },
  ],
};

describe("the goals", () => {
  it("compare ours with what is written by hand, round by round", () => {
    const found = goalFigures(0, samples).map(({ what, goal, figure, verdict }) => {
      return [what, goal, figure.median.toFixed(2), figure.low === figure.high, verdict];
    });
    expect(found).toEqual([
      ["ours, Redis ÷ by hand: verify, SET NX, BullMQ: process", "≤ 0.85", "0.85", true, "met"],
      ["ours, Redis ÷ by hand: verify, SET NX, BullMQ: server", "≤ 0.35", "0.40", true, "missed"],
      ["ours, Redis ÷ by hand: verify, SET NX, BullMQ: events per second", "≥ 1.3", "1.50", true, "met"],
      ["ours, PostgreSQL ÷ by hand: verify, INSERT, graphile-worker: process", "≤ 0.6", "0.49", true, "met"],
      ["ours, PostgreSQL ÷ by hand: verify, INSERT, graphile-worker: server", "≤ 0.25", "0.12", true, "met"],
      [
        "ours, PostgreSQL ÷ by hand: verify, INSERT, graphile-worker: events per second",
        "≥ 3",
        "3.20",
        true,
        "met",
      ],
      ["ours, PostgreSQL ÷ by hand: verify, INSERT, pg-boss: process", "≤ 0.6", "0.55", true, "met"],
      ["ours, PostgreSQL ÷ by hand: verify, INSERT, pg-boss: server", "≤ 0.25", "0.10", true, "met"],
      ["ours, PostgreSQL ÷ by hand: verify, INSERT, pg-boss: events per second", "≥ 3", "4.00", true, "met"],
      ["ours, memory ÷ by hand: verify, keep nothing: process", "≤ 1.1", "1.07", true, "met"],
      ["ours, SQLite ÷ by hand: verify, keep nothing: process", "≤ 1.35", "1.50", true, "missed"],
      ["ours, Redis ÷ by hand: verify, keep nothing: process", "≤ 1.15", "1.06", true, "met"],
    ]);
  });

  it("with slower handlers are of the process and of Redis", () => {
    expect(goalFigures(50, samples).map(({ goal, verdict }) => [goal, verdict])).toEqual([
      ["≤ 0.9", "met"],
      ["≤ 0.5", "met"],
    ]);
  });

  it("are undecided while the interval has both sides of the bound", () => {
    const shaken = rounds(425, 80, 3_000).map((one, round) => ({
      ...one,
      cpuUs: one.cpuUs * (0.9 + 0.03 * round),
    }));
    const [process] = goalFigures(0, { ...samples, redis: shaken });
    expect(process?.verdict).toBe("undecided");
  });
});

describe("the tables", () => {
  it("have a row for each way, and stress what is not met", () => {
    const text = handlerTables(results.handlers[0] as ByHandResults["handlers"][number]).replace(/ +/g, " ");
    expect(text).toContain("| by hand: verify, SET NX, BullMQ | 500 | 200 | 2000 |");
    expect(text).toContain("| ours, memory | 350 | | 3000 |");
    expect(text).toContain(": server | ≤ 0.35 | 0.40 | 0.40 … 0.40 | **missed** |");
  });
});

describe("the two pages", () => {
  const sections = (found: ByHandResults | null, name: string) =>
    [...(pages(found, [], null).get(name) ?? "").matchAll(/^## (.*)$/gm)].map(([, title]) => title);

  it("open with the comparison, once there is one", () => {
    for (const name of ["performance.md", "../test/bench/results.md"]) {
      expect(sections(results, name)[0]).toBe("Compared with code written by hand");
      expect(sections(null, name)[0]).not.toBe("Compared with code written by hand");
    }
  });

  it("have the costs on the first and the goals on the second", () => {
    const written = pages(results, [], null);
    expect(written.get("performance.md")).toMatch(/^\| ours, memory /m);
    expect(written.get("performance.md")).not.toContain("verdict");
    expect(written.get("../test/bench/results.md")).toMatch(/^\| ours, SQLite ÷ by hand/m);
  });
});

describe("the chart", () => {
  it("continues the bar of a process with that of its Redis", () => {
    const image = byHandChart(results);
    const bars = [...image.matchAll(/<rect class="([\w ]+)" x="([\d.]+)"[^>]* width="([\d.]+)"/g)];
    expect(bars.map(([, kind]) => kind)).toEqual(["bar", "bar beside", "ours"]);
    const [[from, length], [redisFrom, redisLength]] = bars.map(([, , x, width]) => [
      Number(x),
      Number(width),
    ]) as [[number, number], [number, number]];
    expect(redisFrom).toBeCloseTo(from + length, 0);
    expect(redisLength / length).toBeCloseTo(200 / 500, 2);
    expect(image).toContain("500 + 200 µs");
  });
});
