import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readByHand } from "../bench/by-hand/results.ts";
import { allResults, charts, render, withFigures } from "../bench/report.ts";
import { root } from "../package/workspace.ts";

const written = (path: string): string => readFileSync(join(root, "docs", path), "utf8");

describe("docs/performance.md", () => {
  const [byHand, results] = [readByHand(), allResults()];

  it("is what the bench has written from its results, and nobody has touched since", () => {
    expect(written("performance.md")).toBe(render(byHand, results));
  });

  it("shows the charts of these results, and no others", () => {
    const images = charts(byHand, results);
    expect(readdirSync(join(root, "docs/performance")).sort()).toEqual([...images.keys()].sort());
    for (const [name, image] of images) expect(written(`performance/${name}`)).toBe(image);
  });

  it("has the figures that the README shows", () => {
    const readme = readFileSync(join(root, "README.md"), "utf8");
    const page = written("performance.md");
    expect(withFigures(readme, page)).toBe(readme);
    expect(withFigures(readme, page.replace("| ours, memory ", "| ours, memory! "))).not.toBe(readme);
  });

  it("has a run on each version of Node that there are goals for", () => {
    expect(results.map(({ node }) => node.split(".")[0])).toEqual(["20", "24"]);
  });
});
