import { readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { ADAPTERS, forAdapters } from "../adapters.ts";
import { packagesIn, root, shown, sourcesOf } from "../package/workspace.ts";
import { readDocument } from "./markdown.ts";

/** Documents, and the files that their code is, in order. */
const examples = forAdapters(({ name, examples: files }) => [`packages/${name}/README.md`, files]);

const textOf = (file: string): string => readFileSync(join(root, file), "utf8");
const codeIn = (path: string): readonly string[] =>
  readDocument(path).blocks.flatMap(({ language, text }) => (language === "ts" ? [text] : []));

describe("the code in the adapters' documentation", () => {
  it.each(Object.entries(examples))("of %s is that of the example, to the letter", (path, files) => {
    expect(codeIn(path)).toEqual(files.map(textOf));
  });

  it("begins with the shortest server, in the README", () => {
    expect(codeIn("README.md")[0]).toBe(textOf("examples/express/src/smallest.ts"));
  });

  it.each(["README.md", "packages/express/README.md"])(
    "of %s is JavaScript: it is saved as app.js",
    (path) => {
      expect(readFileSync(join(root, path), "utf8")).toMatch(/Save (it|this) as `app\.js`/);
      const options = { fileName: "app.js", reportDiagnostics: true, compilerOptions: { allowJs: true } };
      expect(ts.transpileModule(codeIn(path)[0] ?? "", options).diagnostics).toEqual([]);
    },
  );

  it("shows the Worker of the example", () => {
    expect(codeIn("docs/start/workers.md")).toContain(textOf("examples/worker/src/index.ts"));
  });

  it.each(packagesIn("examples"))("the example $manifest.name is short", (example) => {
    const sources = sourcesOf(example).map(shown);
    // Beside Express' quick start is the service that `npm start` plays, and the shortest server there is.
    const files = sources.filter((file) => file.endsWith("/quickstart.ts"));
    const lines = (files.length > 0 ? files : sources).flatMap((file) => textOf(file).split("\n"));
    expect(lines.length).toBeGreaterThan(10);
    // The shop has a database of its own, and hears from three senders.
    expect(lines.length).toBeLessThan(example.manifest.name.endsWith("-shop") ? 160 : 80);
  });

  // Lambda's reads the events of gateways and queues, which no framework does. NestJS' also finds handlers, and has a life of its own.
  const MORE: Readonly<Record<string, number>> = { lambda: 180, nestjs: 400 };
  const architecture = textOf("docs/architecture.md").replace(/\s+/g, " ");

  it.each(ADAPTERS)(
    "the adapter for $name has no more lines of code, in all its files, than the architecture says",
    ({ name, title }) => {
      const adapter = packagesIn("packages").find(({ manifest }) => manifest.name === `@payhooks/${name}`);
      const files = adapter === undefined ? [] : sourcesOf(adapter);
      const lines = files.flatMap((file) => readFileSync(file, "utf8").split("\n"));
      const code = lines.filter((line) => !/^\s*(\/\*|\*|\/\/|$)/.test(line));
      const limit = MORE[name] ?? 90;
      expect(code.length).toBeGreaterThan(25);
      expect(code.length).toBeLessThanOrEqual(limit);
      expect(architecture).toMatch(
        name in MORE ? new RegExp(`for ${title} \\(at most ${limit}\\b`) : `at most ${limit} lines of code`,
      );
    },
  );
});
