import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { describe, expect, it } from "vitest";
import { importsIn } from "./imports.ts";
import { packagesIn, root } from "./workspace.ts";

/**
 * The rooms of `packages/core/src` as floors of a house: a file imports from its own room and from lower floors, never from a
 * higher one, and not from another room of its floor. A new room gets its floor here first.
 */
const FLOORS: readonly (readonly string[])[] = [
  ["entry"],
  ["testing", "http"],
  ["receiver"],
  ["effects"],
  ["memory", "sqlite", "redis", "postgres"],
  ["flows", "handlers"],
  ["inbox"],
  ["inbox/record"],
  ["notices"],
  ["signature"],
  ["protocol"],
  ["time"],
];

const sources = join(root, "packages/core/src");

/** Files that users import from. They may look into every room, and no file looks at them. */
const entries: ReadonlySet<string> = new Set(
  [...readFileSync(join(root, "packages/core/tsup.config.ts"), "utf8").matchAll(/"src\/([^"]+)"/g)].map(
    ([, file]) => String(file),
  ),
);

/** Every file with the files that it imports, types included. Paths are relative to the folder. */
function houseIn(folder: string): ReadonlyMap<string, readonly string[]> {
  return new Map(
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .map((file) => file.replaceAll("\\", "/"))
      .filter((file) => file.endsWith(".ts"))
      .map((file) => {
        const text = readFileSync(join(folder, file), "utf8");
        const imported = importsIn(text, file)
          .map(({ specifier }) => specifier)
          .filter((specifier) => specifier.startsWith("."))
          .map((specifier) => posix.normalize(posix.join(dirname(file), specifier)))
          .filter((target) => !target.startsWith(".."));
        return [file, imported] as const;
      }),
  );
}

const house = houseIn(sources);

function roomOf(file: string): string {
  if (entries.has(file)) return "entry";
  const folder = posix.dirname(file);
  return FLOORS.flat().includes(folder) ? folder : (folder.split("/")[0] ?? "");
}

const floorOf = (file: string): number => FLOORS.findIndex((rooms) => rooms.includes(roomOf(file)));

/** Imports that go up, or across a floor. */
function wrongWays(files: ReadonlyMap<string, readonly string[]>): string[] {
  return [...files].flatMap(([file, imported]) =>
    imported
      .filter((target) => roomOf(target) !== roomOf(file) && floorOf(target) <= floorOf(file))
      .map((target) => `${file} imports ${target}`),
  );
}

/** Files that import themselves, by way of others. */
function circles(files: ReadonlyMap<string, readonly string[]>): string[] {
  const reached = (from: string): ReadonlySet<string> => {
    const seen = new Set<string>();
    const next = [...(files.get(from) ?? [])];
    for (let file = next.pop(); file !== undefined; file = next.pop()) {
      if (seen.has(file)) continue;
      seen.add(file);
      next.push(...(files.get(file) ?? []));
    }
    return seen;
  };
  return [...files.keys()].filter((file) => reached(file).has(file));
}

describe.each(packagesIn("packages"))("$manifest.name", ({ directory }) => {
  it("has no file that imports itself by way of others", () => {
    const files = houseIn(join(directory, "src"));
    expect(files.size).toBeGreaterThan(0);
    expect(circles(files)).toEqual([]);
  });
});

describe("the rooms of core", () => {
  it("every file is in a room that has a floor", () => {
    expect([...house.keys()].filter((file) => floorOf(file) < 0)).toEqual([]);
  });

  it("imports go down the floors only", () => {
    expect(wrongWays(house)).toEqual([]);
  });

  it("nothing but the package's users imports an entry point", () => {
    const found = [...house]
      .filter(([file]) => !entries.has(file))
      .flatMap(([file, imported]) =>
        imported.filter((target) => entries.has(target)).map((target) => `${file} imports ${target}`),
      );
    expect(found).toEqual([]);
  });

  it("an import up and a circle would be found", () => {
    const bad = new Map([
      ["time/clock.ts", ["receiver/receiver.ts"]],
      ["receiver/receiver.ts", ["time/clock.ts"]],
      ["redis/store.ts", ["sqlite/store.ts"]],
    ]);
    expect(wrongWays(bad)).toEqual([
      "time/clock.ts imports receiver/receiver.ts",
      "redis/store.ts imports sqlite/store.ts",
    ]);
    expect(circles(bad)).toEqual(["time/clock.ts", "receiver/receiver.ts"]);
  });
});
