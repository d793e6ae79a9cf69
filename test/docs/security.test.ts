import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../package/workspace.ts";
import { readDocument, rowsOf, sectionOf } from "./markdown.ts";

const rows = rowsOf(sectionOf(readDocument("test/security/README.md"), "Attacks, and what stops them"));

describe("the table of attacks", () => {
  it("names a test for each, and the test is there", () => {
    const missing = rows.filter((cells) => {
      const [, file = "", title = ""] = /`(\S+\.test\.ts) › ([^`]+)`/.exec(cells.at(-1) ?? "") ?? [];
      const path = [join(root, "packages", file), join(root, "test", file)].find(existsSync);
      return path === undefined || !readFileSync(path, "utf8").includes(`"${title}`);
    });
    expect(missing).toEqual([]);
    expect(rows.length).toBeGreaterThan(10);
  });
});
