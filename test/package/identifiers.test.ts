import { readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { describe, expect, it } from "vitest";
import { exportsOf, variablesIn } from "./identifiers.ts";
import { packagesIn, root, shown, sourcesOf } from "./workspace.ts";

/** Words that say nothing of what a variable holds, and read like a part of the sentence around them. */
const EMPTY_WORDS: ReadonlySet<string> = new Set(["of", "is", "can", "may"]);

/** Folders without sources of this repository. */
const LEFT_OUT: ReadonlySet<string> = new Set(["node_modules", "dist", "coverage"]);

/** All sources in a folder: of the packages, of the tests, and of the scripts. */
function allSourcesIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory())
      return LEFT_OUT.has(entry.name) || entry.name.startsWith(".") ? [] : allSourcesIn(path);
    return /\.(?:[cm]?tsx?|mjs)$/.test(entry.name) ? [path] : [];
  });
}

describe("variables and parameters", () => {
  it("have no name that is an empty word", () => {
    const files = ["packages", "test", "examples", "scripts", "site"].flatMap((name) =>
      allSourcesIn(join(root, name)),
    );
    expect(files.length).toBeGreaterThan(1_000);
    const found = files.flatMap((path) =>
      variablesIn(readFileSync(path, "utf8"), path)
        .filter(({ name }) => EMPTY_WORDS.has(name))
        .map(({ name, line }) => `${shown(path)}:${line}: ${name}`),
    );
    expect(found).toEqual([]);
  });

  it("are found in patterns and parameters, too", () => {
    const source =
      "const a = 1;\nconst { b, c: d, ...e } = f((g, [h]) => {});\nfunction i(j: number): void {}";
    expect(variablesIn(source).map(({ name }) => name)).toEqual(["a", "b", "d", "e", "g", "h", "j"]);
    expect(variablesIn(source).at(-1)).toEqual({ name: "j", line: 3 });
  });
});

describe("functions that return an error", () => {
  /** A function whose declared result is an error, or null for none. */
  const ERROR_FACTORY_PATTERN =
    /^(?:export )?function (\w+)(?:<[^(]*>)?\([^{]*\): \w*Error(?:<\w+>)?(?: \| null)? \{/gm;
  const factoriesIn = (source: string): string[] =>
    [...source.matchAll(ERROR_FACTORY_PATTERN)].map(([, name = ""]) => name);

  it("say so in their names", () => {
    const factories = packagesIn("packages").flatMap((one) =>
      sourcesOf(one).flatMap((path) =>
        factoriesIn(readFileSync(path, "utf8")).map((name) => ({ name, path: shown(path) })),
      ),
    );
    expect(factories.length).toBeGreaterThan(80);
    expect(factories.filter(({ name }) => !/[eE]rror/.test(name))).toEqual([]);
  });

  it("are found with and without parameters", () => {
    const source = `
function closed(): PayhooksError {
}
export function tooLate<T>(
  value: T,
): ClientError | null {
}
function errorOf(value: unknown): string {
}`;
    expect(factoriesIn(source)).toEqual(["closed", "tooLate"]);
  });
});

/** Each of these folders of core is a store. Two of them may export the same name, because it means the same for another database. */
const STORES: ReadonlySet<string> = new Set(["mysql", "postgres", "redis", "sqlite"]);

/** Names that a package exports from an entry point for each framework. */
const PER_FRAMEWORK: ReadonlySet<string> = new Set(["payhooksConsole"]);

describe.each(packagesIn("packages"))("the exports of $manifest.name", ({ directory, manifest }) => {
  const sources = sourcesOf({ directory, manifest });

  it("have one meaning each: no two modules declare the same name", () => {
    const modules = new Map<string, string[]>();
    for (const path of sources) {
      const file = posix.relative("src", posix.normalize(shown(path).split("/").slice(2).join("/")));
      for (const name of exportsOf(readFileSync(path, "utf8"), path)) {
        modules.set(name, [...(modules.get(name) ?? []), file]);
      }
    }
    const found = [...modules].filter(([name, files]) => !PER_FRAMEWORK.has(name) && !areOnePerStore(files));
    expect(Object.fromEntries(found)).toEqual({});
  });
});

function areOnePerStore(files: readonly string[]): boolean {
  const folders = files.map((file) => file.split("/")[0] ?? "");
  return (
    files.length === 1 || (new Set(folders).size === files.length && folders.every((one) => STORES.has(one)))
  );
}

it("a re-export does not count as a second meaning", () => {
  const source = `
    import first, { second } from "./other.ts";
    export { third } from "./other.ts";
    export type { Fourth as Fifth } from "./other.ts";
    const sixth = 6;
    export { first, second, sixth as seventh };
    export const eighth = 8;
    export interface Ninth {}
    export default function tenth() {}
  `;
  expect([...exportsOf(source)]).toEqual(["seventh", "eighth", "Ninth"]);
});
