/** The table of the engine's times, beside the constants of its source. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root } from "../package/workspace.ts";
import { readDocument, rowsOf, sectionOf } from "./markdown.ts";

const engine = "packages/core/src/inbox";
const readme = readDocument(`${engine}/README.md`);
const TIMES = rowsOf(sectionOf(readme, "Times"));
const DEPENDENT = rowsOf(sectionOf(readme, "Times that depend on each other"));
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

/** The times of the table, in milliseconds, by the name of the constant. A name that occurs twice fails. */
function timesByName(rows: readonly (readonly string[])[]): ReadonlyMap<string, number> {
  const times = new Map<string, number>();
  for (const [name = "", value = ""] of rows) {
    const [number, unit = ""] = value.split(" ");
    expect(times.has(name), `two constants are called ${name}`).toBe(false);
    times.set(name, Number(number) * (UNIT_MS[unit] ?? NaN));
  }
  return times;
}

/** True if a rule holds, such as "`A_MS` < `B_MS` <= `C_MS`". */
function holds(rule: string, times: ReadonlyMap<string, number>): boolean {
  const [first = "", ...rest] = rule.split(/ (<=?) /);
  let before = times.get(first) ?? NaN;
  for (let n = 0; n < rest.length; n += 2) {
    const next = times.get(rest[n + 1] ?? "") ?? NaN;
    if (!(rest[n] === "<" ? before < next : before <= next)) return false;
    before = next;
  }
  return rest.length > 0;
}

it("the table of times has every constant time of the engine, with its file and its value", () => {
  const declared = readdirSync(join(root, engine), { recursive: true, encoding: "utf8" })
    .map((file) => file.replaceAll("\\", "/"))
    .filter((file) => file.endsWith(".ts"))
    .flatMap((file) => constantsOf(file, readFileSync(join(root, engine, file), "utf8")));
  const times = timesByName(TIMES);
  const told = TIMES.map(([name = "", , file = ""]) =>
    constant(file.replaceAll("`", ""), name.replaceAll("`", ""), times.get(name) ?? NaN),
  );
  expect(told.sort()).toEqual(declared.sort());
  expect(declared.length).toBeGreaterThan(40);
  expect(TIMES.filter((cells) => cells.some((cell) => cell === ""))).toEqual([]);
});

it("a constant time is read from its source, also one that is exported or a product", () => {
  const text =
    "const A_MS = 0.05;\nexport const B_MS: number = 30 * 24 * 60 * 60_000;\nconst NOT_A_TIME = 5;";
  expect(constantsOf("a.ts", text)).toEqual(["a.ts A_MS 0.05", "a.ts B_MS 2592000000"]);
});

it("times that depend on each other are as far apart as the table says", () => {
  const times = timesByName(TIMES);
  const rules = DEPENDENT.map(([rule = ""]) => rule);
  expect(rules.filter((rule) => !holds(rule, times))).toEqual([]);
  expect(rules.length).toBeGreaterThan(10);
});

it("a rule does not hold if one of its times is too long, or unknown", () => {
  const times = new Map([
    ["`A_MS`", 5],
    ["`B_MS`", 5],
    ["`C_MS`", 7],
  ]);
  const rules = [
    "`A_MS` <= `B_MS` < `C_MS`",
    "`A_MS` < `B_MS`",
    "`C_MS` <= `B_MS`",
    "`A_MS` < `D_MS`",
    "`A_MS`",
  ];
  expect(rules.map((rule) => holds(rule, times))).toEqual([true, false, false, false, false]);
});
