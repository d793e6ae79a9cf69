import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { FAULT_KINDS } from "../src/index.ts";
import { MAGIC_OUTCOMES } from "../src/payments/magic.ts";

const text = readFileSync(new URL("../../../docs/guides/sandbox.md", import.meta.url), "utf8").replace(
  / +\|/g,
  " |",
);
const rows = (start: string) => text.split("\n").filter((line) => line.startsWith(start));

describe("docs/guides/sandbox.md", () => {
  it("lists every fault as the dashboard explains it, and no other", () => {
    const section = text.slice(text.indexOf("## Faults"), text.indexOf("## Control API"));
    const listed = section.split("\n").filter((line) => line.startsWith("| `"));
    expect(listed).toEqual(
      Object.entries(FAULT_KINDS).map(([kind, { does }]) => `| \`${kind}\` | ${does} |`),
    );
  });

  it("lists every magic reference and number, and no other", () => {
    const wanted = MAGIC_OUTCOMES.map(
      ({ name, number, does }) => `| \`sbx-${name}\` | \`${number}\` | ${does} |`,
    );
    expect(rows("| `sbx-")).toEqual(wanted);
  });
});
