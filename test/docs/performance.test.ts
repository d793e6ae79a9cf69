import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { chart } from "../bench/chart.ts";
import { allResults, chartName, render } from "../bench/report.ts";
import { root } from "../package/workspace.ts";

const written = (path: string): string => readFileSync(join(root, path), "utf8");

describe("docs/performance.md", () => {
  const results = allResults();

  it("is what the bench has written from its results, and nobody has touched since", () => {
    expect(written("docs/performance.md")).toBe(render(results));
  });

  it.each(results)("shows the chart of the run on Node $node", (one) => {
    expect(written(`docs/performance/${chartName(one)}`)).toBe(chart(one));
  });

  it("has a run on each version of Node that there are goals for", () => {
    expect(results.map(({ node }) => node.split(".")[0])).toEqual(["20", "24"]);
  });
});
