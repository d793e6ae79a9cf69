import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../package/workspace.ts";

const folder = join(root, "docs/decisions");
const index = readFileSync(join(folder, "README.md"), "utf8");
const pages = readdirSync(folder).filter((name) => name !== "README.md");

describe("the index of decisions", () => {
  it("has a row for each page, and no other", () => {
    const rows = [...index.matchAll(/^\| \[\d{4}\]\(([^)]+)\)/gm)].map(([, page]) => page);
    expect(rows.sort()).toEqual(pages.sort());
  });

  it.each(pages)("says of %s what the page itself says: whether it stands", (page) => {
    const [title, , status = ""] = readFileSync(join(folder, page), "utf8").split("\n");
    expect(title).toMatch(new RegExp(`^# ${page.slice(0, 4)}: `));
    const row = index.split("\n").find((line) => line.startsWith(`| [${page.slice(0, 4)}](`));
    const [, , , inIndex = ""] = row?.split("|") ?? [];
    expect(status).toMatch(/^Status: stands/);
    expect(inIndex.trim() === "stands").toBe(status === "Status: stands.");
  });
});
