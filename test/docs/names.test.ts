import { describe, expect, it } from "vitest";
import { readDocument, rowsOf, sectionOf } from "./markdown.ts";
import { declaredIn, entries } from "./public-names.ts";

const page = readDocument("docs/reference/public-names.md");
const namesOf = (cell: string): readonly string[] =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name);

describe("the public names", () => {
  it("are on the page for every entry point, and for no other", () => {
    const titles = page.sections
      .filter(({ level }) => level === 3)
      .map(({ title }) => title.replaceAll("`", ""));
    expect(titles.toSorted()).toEqual(entries.map(({ specifier }) => specifier).toSorted());
  });

  it.each(entries)("of $specifier are those on the page: a new one is a decision", (entry) => {
    const rows = rowsOf(sectionOf(page, `\`${entry.specifier}\``));
    expect(rows.flatMap(([names = ""]) => namesOf(names)).toSorted()).toEqual(
      [...declaredIn(entry).names].toSorted(),
    );
    // Each row says what its names are for.
    expect(rows.filter(([, purpose = ""]) => purpose === "")).toEqual([]);
  });
});
