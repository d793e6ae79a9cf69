/** The table of the engine's times, beside the constants of its source. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root } from "../package/workspace.ts";
import { readDocument, rowsOf, sectionOf } from "./markdown.ts";

const engine = "packages/core/src/inbox";
const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** A constant, such as `run/places.ts WAIT_MS 50`. */
const constant = (file: string, name: string, ms: number): string => `${file} ${name} ${ms}`;

/** The constants of a source file whose names end in `_MS`. Their values are products of numbers. */
function constantsOf(file: string, text: string): string[] {
  return [...text.matchAll(/^(?:export )?const (\w+_MS)(?:: number)? = ([^;]+);/gm)].map(
    ([, name = "", value = ""]) => {
      const factors = value.split(" * ").map((factor) => Number(factor.replaceAll("_", "")));
      return constant(
        file,
        name,
        factors.reduce((product, factor) => product * factor),
      );
    },
  );
}

it("the table of times has every constant time of the engine, with its file and its value", () => {
  const declared = readdirSync(join(root, engine), { recursive: true, encoding: "utf8" })
    .map((file) => file.replaceAll("\\", "/"))
    .filter((file) => file.endsWith(".ts"))
    .flatMap((file) => constantsOf(file, readFileSync(join(root, engine, file), "utf8")));
  const rows = rowsOf(sectionOf(readDocument(`${engine}/README.md`), "Times"));
  const told = rows.map(([name = "", value = "", file = ""]) => {
    const [number, unit = ""] = value.split(" ");
    return constant(
      file.replaceAll("`", ""),
      name.replaceAll("`", ""),
      Number(number) * (UNIT_MS[unit] ?? NaN),
    );
  });
  expect(told.sort()).toEqual(declared.sort());
  expect(declared.length).toBeGreaterThan(40);
  expect(rows.filter((cells) => cells.some((cell) => cell === ""))).toEqual([]);
});

it("a constant time is read from its source, also one that is exported or a product", () => {
  const text =
    "const A_MS = 0.05;\nexport const B_MS: number = 30 * 24 * 60 * 60_000;\nconst NOT_A_TIME = 5;";
  expect(constantsOf("a.ts", text)).toEqual(["a.ts A_MS 0.05", "a.ts B_MS 2592000000"]);
});
