import { readFileSync } from "node:fs";
import { dirname, join, resolve, sep } from "node:path";
import { describe, expect, it } from "vitest";
import { forAdapters, packageOf } from "../adapters.ts";
import { importsIn } from "./imports.ts";
import { packagesIn, shown, sourcesOf, type WorkspacePackage } from "./workspace.ts";

/** The packages that each package may take from its siblings. A new package is given its place here first. */
const mayUse: Readonly<Record<string, Readonly<Record<string, "values" | "types">> | "everything">> = {
  "@payhooks/core": {},
  ...forAdapters((adapter) => [packageOf(adapter), { "@payhooks/core": "values" }]),
  "@payhooks/client": { "@payhooks/core": "types" },
  "@payhooks/pages": {},
  // It signs with its own code, so that a mistake in core's cannot hide in both.
  "@payhooks/sandbox": { "@payhooks/core": "types", "@payhooks/pages": "values" },
  "@payhooks/console": { "@payhooks/core": "values", "@payhooks/pages": "values" },
  payhooks: "everything",
};

const products = packagesIn("packages");
const examples = packagesIn("examples");
const productNames = new Set(products.map(({ manifest }) => manifest.name));

const found = (owner: WorkspacePackage) =>
  sourcesOf(owner).flatMap((file) =>
    importsIn(readFileSync(file, "utf8"), file).map((one) => ({ ...one, file })),
  );

const packageNameIn = (specifier: string): string =>
  specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");

const isRelative = (specifier: string): boolean => /^\.{1,2}(\/|$)/.test(specifier);

const isInside = (path: string, directory: string): boolean => path.startsWith(directory + sep);

/** Relative imports that reach out of the package's own `src`, for anything but its manifest. */
const escapes = (owner: WorkspacePackage): string[] =>
  found(owner)
    .filter(({ specifier }) => isRelative(specifier))
    .map((one) => ({ ...one, target: resolve(dirname(one.file), one.specifier) }))
    .filter(({ target }) => target !== join(owner.directory, "package.json"))
    .filter(({ target }) => !isInside(target, join(owner.directory, "src")))
    .map(({ specifier, file }) => `${shown(file)} imports ${specifier}`);

/** Packages of the workspace that are not published: the build puts them into those that use them. */
const bundledNames = new Set(
  products.filter(({ manifest }) => manifest.private === true).map(({ manifest }) => manifest.name),
);

/** Those of them that a package uses. */
const bundledIn = ({ manifest }: WorkspacePackage): string[] =>
  Object.keys(manifest.devDependencies ?? {}).filter((name) => bundledNames.has(name));

/** Imports of packages that the manifest does not promise to bring along, and that are not bundled. */
const undeclared = (owner: WorkspacePackage): string[] => {
  const { dependencies, peerDependencies } = owner.manifest;
  const bundled = Object.fromEntries(bundledIn(owner).map((name) => [name, "bundled"]));
  const declared = { ...dependencies, ...peerDependencies, ...bundled };
  return found(owner)
    .filter(({ specifier }) => !isRelative(specifier) && !specifier.startsWith("node:"))
    .filter(({ specifier }) => !Object.hasOwn(declared, packageNameIn(specifier)))
    .map(({ specifier, file }) => `${shown(file)} imports ${specifier}`);
};

describe("the reading of imports, on which the rules below rest", () => {
  it("finds every way of naming a module and tells types from values", () => {
    const source = `
      import "side-effect";
      import type { A } from "type-import";
      import { type B } from "inline-type-import";
      import c, * as d from "value-import";
      export * from "re-export";
      export type { E } from "type-re-export";
      type F = import("import-type").F;
      const g = await import("dynamic-import");
      const h = require("required");
      import i = require("import-equals");
      // import "in-a-comment";
      const text = 'import "in-a-string"';
    `;
    const read = importsIn(source).map(({ specifier, typeOnly }) => [specifier, typeOnly]);
    expect(Object.fromEntries(read)).toEqual({
      "side-effect": false,
      "type-import": true,
      "inline-type-import": false, // verbatimModuleSyntax keeps it as a side-effect import
      "value-import": false,
      "re-export": false,
      "type-re-export": true,
      "import-type": true,
      "dynamic-import": false,
      required: false,
      "import-equals": false,
    });
  });
});

describe.each(products.map((one) => [one.manifest.name, one] as const))("%s", (name, owner) => {
  const allowed = mayUse[name];

  it("has a place in the order of packages", () => {
    expect(allowed, `add ${name} to the table at the top of this test`).toBeDefined();
  });

  it("has sources to look at", () => {
    expect(sourcesOf(owner)).not.toEqual([]);
  });

  it("stays inside its own src folder with relative imports", () => {
    expect(escapes(owner)).toEqual([]);
  });

  it("declares every package that it imports", () => {
    expect(undeclared(owner)).toEqual([]);
  });

  it("depends on no workspace package but those below it", () => {
    const { dependencies, peerDependencies } = owner.manifest;
    const siblings = [
      ...Object.keys({ ...dependencies, ...peerDependencies }).filter((one) => one.startsWith("@payhooks/")),
      ...bundledIn(owner),
    ];
    const permitted = allowed === "everything" ? [...productNames] : Object.keys(allowed ?? {});
    expect(siblings.filter((one) => !permitted.includes(one))).toEqual([]);
  });

  it("imports only types where only types are allowed", () => {
    if (allowed === "everything") return;
    const values = found(owner)
      .filter(({ specifier, typeOnly }) => !typeOnly && allowed?.[packageNameIn(specifier)] === "types")
      .map(({ specifier, file }) => `${shown(file)} imports a value from ${specifier}`);
    expect(values).toEqual([]);
  });
});

describe("@payhooks/core", () => {
  it("does not use its testing folder in what merchants run", () => {
    const core = products.find(({ manifest }) => manifest.name === "@payhooks/core");
    if (!core) throw new Error("packages/core is missing");
    const testing = join(core.directory, "src", "testing");
    const uses = found(core)
      .filter(({ file }) => !isInside(file, testing))
      .filter(({ specifier, file }) => {
        const target = resolve(dirname(file), specifier);
        return isRelative(specifier) && (target === testing || isInside(target, testing));
      })
      .map(({ specifier, file }) => `${shown(file)} imports ${specifier}`);
    expect(uses).toEqual([]);
  });
});

describe.each(examples.map((one) => [one.manifest.name, one] as const))("%s", (_name, example) => {
  it("uses Payhooks as a merchant does: by package name, all of it declared", () => {
    expect(sourcesOf(example)).not.toEqual([]);
    expect([...escapes(example), ...undeclared(example)]).toEqual([]);
  });
});
