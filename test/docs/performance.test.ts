import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readByHand } from "../bench/by-hand/results.ts";
import { allResults, charts, pages, withFigures } from "../bench/report.ts";
import { root } from "../package/workspace.ts";

const written = (path: string): string => readFileSync(join(root, "docs", path), "utf8");

describe("the pages about performance", () => {
  const [byHand, results] = [readByHand(), allResults()];

  it.each([...pages(byHand, results)])("%s is as the bench writes it from its results", (name, text) => {
    expect(written(name)).toBe(text);
  });

  it("show the charts of these results, and no others", () => {
    const images = charts(byHand, results);
    expect(readdirSync(join(root, "docs/performance")).sort()).toEqual([...images.keys()].sort());
    for (const [name, image] of images) expect(written(`performance/${name}`)).toBe(image);
  });

  it("have the figures that the README shows", () => {
    const readme = readFileSync(join(root, "README.md"), "utf8");
    const page = written("performance.md");
    expect(withFigures(readme, page)).toBe(readme);
    expect(withFigures(readme, page.replace("| ours, memory ", "| ours, memory! "))).not.toBe(readme);
  });

  it("have a run on each version of Node that there are goals for", () => {
    expect(results.map(({ node }) => node.split(".")[0])).toEqual(["20", "24"]);
  });
});
