import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { describe, expect, it } from "vitest";
import { importsIn } from "./imports.ts";
import { packagesIn, readManifest, root } from "./workspace.ts";

/**
 * The folders of `packages/core/src` in layers, the highest first. A file imports from its own folder and from lower layers, never
 * from a higher one, and not from another folder of its layer. A new folder gets its layer here first.
 */
const LAYERS: readonly (readonly string[])[] = [
  ["entry"],
  ["testing", "http", "otel", "alerts", "shadow"],
  ["metrics"],
  ["receiver"],
  ["effects"],
  ["durable-object"],
  ["memory", "sqlite", "redis", "postgres", "mysql", "seal"],
  ["sql"],
  ["sources"],
  ["flows", "handlers"],
  ["inbox"],
  ["inbox/accept", "inbox/decide", "inbox/watch"],
  ["inbox/run", "inbox/search"],
  ["inbox/write"],
  ["inbox/contract"],
  ["inbox/record"],
  ["notices"],
  ["names"],
  ["signature"],
  ["protocol"],
  ["collections"],
  ["time"],
];

const sources = join(root, "packages/core/src");

/** Files that users import from. They may import from every folder, and no file imports them. */
const entries: ReadonlySet<string> = new Set(
  Object.values(readManifest(join(root, "packages/core")).exports ?? {}).flatMap((target) => {
    const { "payhooks-source": source } = target as { readonly "payhooks-source"?: string };
    return source === undefined ? [] : [posix.relative("src", source)];
  }),
);

/** Every file with the files that it imports, types included. Paths are relative to the folder. */
function importsOf(folder: string): ReadonlyMap<string, readonly string[]> {
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

const imports = importsOf(sources);

function folderOf(file: string): string {
  if (entries.has(file)) return "entry";
  const folder = posix.dirname(file);
  return LAYERS.flat().includes(folder) ? folder : (folder.split("/")[0] ?? "");
}

const layerOf = (file: string): number => LAYERS.findIndex((folders) => folders.includes(folderOf(file)));

/** Imports that go up, or across a layer. */
function wrongWays(files: ReadonlyMap<string, readonly string[]>): string[] {
  return [...files].flatMap(([file, imported]) =>
    imported
      .filter((target) => folderOf(target) !== folderOf(file) && layerOf(target) <= layerOf(file))
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
    const files = importsOf(join(directory, "src"));
    expect(files.size).toBeGreaterThan(0);
    expect(circles(files)).toEqual([]);
  });
});

describe("the layers of core", () => {
  it("every file is in a folder that has a layer", () => {
    expect([...imports.keys()].filter((file) => layerOf(file) < 0)).toEqual([]);
  });

  it("imports go down the layers only", () => {
    expect(wrongWays(imports)).toEqual([]);
  });

  it("nothing but the package's users imports an entry point", () => {
    const found = [...imports]
      .filter(([file]) => !entries.has(file))
      .flatMap(([file, imported]) =>
        imported.filter((target) => entries.has(target)).map((target) => `${file} imports ${target}`),
      );
    expect(found).toEqual([]);
  });

  it("only the lowest layer sets timers and later turns, since it does so in the empty asynchronous context", () => {
    const setsTimer = /\b(?:setTimeout|setInterval|setImmediate)\(/;
    // The testing tools of users are no part of their processes.
    const found = [...imports.keys()].filter(
      (file) =>
        !/^(?:time|testing)\//.test(file) && setsTimer.test(readFileSync(join(sources, file), "utf8")),
    );
    expect(found).toEqual([]);
  });

  it("a record knows no status by its name, and reads no body: only the codec parses, and only what it wrote", () => {
    const record = [...imports.keys()].filter((file) => folderOf(file) === "inbox/record");
    const found = (pattern: RegExp): string[] =>
      record.filter((file) => pattern.test(readFileSync(join(sources, file), "utf8")));
    expect(found(/"(?:PENDING|SUCCESS|FAILED)"/)).toEqual([]);
    expect(found(/JSON\.parse|parseJson/)).toEqual(["inbox/record/codec.ts"]);
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
