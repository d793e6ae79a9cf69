import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { globSync } from "tinyglobby";
import { describe, expect, it } from "vitest";
import { root, shown } from "../package/workspace.ts";
import { type Document, documents, linksIn, parse, readDocument } from "./markdown.ts";

const isElsewhere = (target: string): boolean => /^[a-z]+:/.test(target);

/** Links of a document that lead nowhere. */
function deadLinks(document: Document): string[] {
  return linksIn(document)
    .filter((target) => !isElsewhere(target))
    .filter((target) => {
      const [file = "", anchor] = target.split("#");
      const path = file === "" ? document.path : posix.join(dirname(document.path), file);
      if (!existsSync(join(root, path))) return true;
      if (anchor === undefined) return false;
      const { sections } = path === document.path ? document : readDocument(path);
      return !sections.some((section) => section.anchor === anchor);
    })
    .map((target) => `${document.path} → ${target}`);
}

/** Pages that lie beside the tests which they describe. */
const besideTests = [
  "contract/README.md",
  "coverage.md",
  "faults/README.md",
  "security/README.md",
  "simulation/README.md",
  "simulation/found.md",
  "simulation/results.md",
];

describe("links in the documentation", () => {
  it("lead to a file that is there, and to a heading in it", () => {
    const pages = [...documents(), ...besideTests.map((page) => readDocument(`test/${page}`))];
    expect(pages.flatMap(deadLinks)).toEqual([]);
    expect(documents().flatMap(linksIn).length).toBeGreaterThan(50);
  });

  it("would be noticed if they did not", () => {
    const text = [
      "# Two words, `code` & more",
      "[good](#two-words-code--more) [good](docs/reference/errors.md#err_held) [elsewhere](https://example.com/#nothing)",
      "[no file](docs/nothing.md) [no heading](#nothing) [no heading there](docs/reference/errors.md#nothing)",
      "```text",
      "[not a link](nowhere)",
      "# not a heading",
      "```",
    ].join("\n");
    expect(deadLinks(parse("README.md", text))).toEqual([
      "README.md → docs/nothing.md",
      "README.md → #nothing",
      "README.md → docs/reference/errors.md#nothing",
    ]);
  });

  it("reach every page: the index leads to each, but for the decisions, which have their own", () => {
    const linked = linksIn(readDocument("docs/README.md")).map((target) => target.split("#")[0]);
    const pages = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
      .map((file) => file.replaceAll("\\", "/"))
      .filter((file) => file.endsWith(".md") && file !== "README.md" && !/^decisions\/\d/.test(file));
    expect(pages.filter((page) => !linked.includes(page))).toEqual([]);
  });
});

describe("commands in the documentation", () => {
  it("are scripts of the workspace", () => {
    const { scripts }: { scripts: Record<string, string> } = JSON.parse(
      readFileSync(join(root, "package.json"), "utf8"),
    );
    const text = documents()
      .map(({ prose }) => prose.join("\n"))
      .join("\n");
    const named = [...text.matchAll(/`npm (?:run )?((?<=run )[\w:]+|start|test)/g)].map(
      ([, name = ""]) => name,
    );
    // Each that there is, and no other; typecheck is turbo's to call.
    const there = Object.keys(scripts).filter((name) => name !== "typecheck");
    expect([...new Set(named)].sort()).toEqual(there.sort());
  });
});

describe("documents that the sources cite", () => {
  const sources = globSync("{packages,examples,test,scripts}/**/*.{ts,tsx,cts,mts,ctsx,mtsx,js,cjs,mjs,sh}", {
    cwd: root,
    absolute: true,
    ignore: ["**/node_modules/**", "**/dist/**", "**/.next/**"],
  });

  /** Comments and names of tests that send the reader to a text that is not there. */
  function deadCitations(text: string): readonly string[] {
    const pages = [...text.matchAll(/\bdocs\/[\w./-]+\.md\b/g)].map(([page]) => page);
    const elsewhere = [...text.matchAll(/§ ?\d|(?:\bthe\W+|\()design\b/g)].map(([cited]) => cited);
    return [...pages.filter((page) => !existsSync(join(root, page))), ...elsewhere];
  }

  it("are in the repository", () => {
    const dead = sources
      .filter((file) => !file.endsWith(join("docs", "links.test.ts")))
      .flatMap((file) =>
        deadCitations(readFileSync(file, "utf8")).map((cited) => `${shown(file)}: ${cited}`),
      );
    expect(dead).toEqual([]);
    expect(sources.length).toBeGreaterThan(300);
  });

  it("would be noticed if they were not", () => {
    expect(
      deadCitations("see docs/reference/errors.md, docs/nothing.md and (design §4), or the\n * design"),
    ).toEqual(["docs/nothing.md", "(design", "§4", "the\n * design"]);
  });
});
