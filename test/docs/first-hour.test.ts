import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../package/workspace.ts";

const source = join(root, "packages/core/src");
const page = readFileSync(join(root, "docs/first-hour.md"), "utf8");
const folders = readdirSync(source, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);
const rows = new Map(
  [...page.matchAll(/^\| `([a-z-]+)` +\|[^|]+\|([^|]+)\|$/gm)].map(([, folder = "", files = ""]) => [
    folder,
    files,
  ]),
);

describe("the first hour", () => {
  it("has a row for each folder of the core", () => {
    expect([...rows.keys()].sort()).toEqual(folders.sort());
  });

  it.each(folders)("names files that %s has", (folder) => {
    const files = [...(rows.get(folder) ?? "").matchAll(/`([\w/-]+\.ts)`/g)].map(([, file = ""]) => file);
    expect(files).not.toEqual([]);
    expect(files.filter((file) => !existsSync(join(source, folder, file)))).toEqual([]);
  });

  it.each([
    ["sqlite/tables.ts", "ORDER BY due_at LIMIT"],
    ["receiver/handler-call.ts", "attempt >= handler.maxAttempts;"],
  ])("asks for a change of %s that can be made", (file, text) => {
    expect(readFileSync(join(source, file), "utf8")).toContain(text);
  });
});
