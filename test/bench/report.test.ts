import { describe, expect, it } from "vitest";
import { costChart } from "./cost-chart.ts";
import { goalTable, groupTable, pages } from "./report.ts";
import type { Results } from "./results.ts";
import { estimate, type Verdict } from "./statistics.ts";

const around = (middle: number, width: number) =>
  estimate([-3, -2, -1, 0, 1, 2, 3].map((step) => middle + (step * width) / 3));

const goal = (what: string, middle: number, verdict: Verdict) => ({
  what,
  goal: "≥ 0.96",
  figure: around(middle, 0.01),
  acceptingAlone: null,
  least: what === "second" ? around(0.95, 0.02) : null,
  verdict,
});

const results: Results = {
  node: "20.20.2",
  cores: 2,
  load: 2.04,
  measuredOn: "2026-11-21",
  goals: [goal("first", 0.98, "met"), goal("second", 0.9, "missed"), goal("third", 0.96, "undecided")],
  groups: [
    {
      framework: "fastify",
      scheme: "hmac",
      reference: "inline",
      modes: [
        { mode: "inline", cpuUs: around(20, 2), perSecond: around(9_000, 100), ratio: around(1, 0) },
        { mode: "memory", cpuUs: around(25, 2), perSecond: around(8_000, 100), ratio: around(0.8, 0.05) },
      ],
    },
  ],
  recordBytes: { memory: 290, redis: 248 },
};

describe("the goal table", () => {
  it("has figure, interval and verdict, and stresses what is not met", () => {
    const [, , ...rows] = goalTable(results.goals)
      .split("\n")
      .map((line) => line.replace(/ +/g, " "));
    expect(rows).toEqual([
      "| first | ≥ 0.96 | 0.98 | 0.97 … 0.99 | met | | |",
      "| second | ≥ 0.96 | 0.90 | 0.89 … 0.91 | **missed** | | 0.95 (0.93 … 0.97) |",
      "| third | ≥ 0.96 | 0.96 | 0.95 … 0.97 | **undecided** | | |",
    ]);
  });
});

describe("the table of a framework", () => {
  it("compares each mode with the reference", () => {
    const text = groupTable(results.groups[0] as Results["groups"][number]).replace(/ +/g, " ");
    expect(text).toContain("| Fastify 5, HMAC, 419 bytes |");
    expect(text).toContain("| inline verification, cached key | 20 | 9000 | 1 |");
    expect(text).toContain("| ours, memory | 25 | 8000 | 0.80 (0.75 … 0.85) |");
  });
});

describe("the page of details", () => {
  it("has a section, its date and its chart for each version of Node", () => {
    const page = pages(null, [results, { ...results, node: "24.21.0" }]).get("../test/bench/results.md");
    expect(page?.match(/^## Node \d+$/gm)).toEqual(["## Node 20", "## Node 24"]);
    expect(page).toContain("Node 24.21.0, 2 cores, 2026-11-21, at a load of 2.0.");
    expect(page).toContain("(../../docs/performance/node-24.svg)");
  });
});

describe("the chart", () => {
  it("has a bar for each mode, as long as its processor time", () => {
    const bars = [...costChart(results).matchAll(/<rect class="(\w+)"[^>]* width="([\d.]+)"/g)];
    expect(bars.map(([, kind]) => kind)).toEqual(["bar", "ours"]);
    const [byHand = 0, ours = 0] = bars.map(([, , width]) => Number(width));
    expect(ours / byHand).toBeCloseTo(25 / 20, 2);
  });
});
