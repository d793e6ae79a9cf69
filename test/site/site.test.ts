/** The documentation as a site: what `npm run docs` builds. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { processTerm } from "../../site/search.mjs";
import { documents } from "../docs/markdown.ts";
import { run } from "../package/pack.ts";
import { root } from "../package/workspace.ts";

const site = join(root, "site/dist");

interface Page {
  /** From the site's root, such as `guides/handlers.html`. */
  readonly address: string;
  readonly anchors: ReadonlySet<string>;
  readonly links: readonly string[];
}

const decoded = (text: string): string => decodeURIComponent(text.replaceAll("&amp;", "&"));

function readPage(address: string, html: string): Page {
  return {
    address,
    anchors: new Set([...html.matchAll(/ id="([^"]+)"/g)].map(([, id = ""]) => decoded(id))),
    links: [...html.matchAll(/<a\b[^>]* href="([^"]+)"/g)].map(([, href = ""]) => decoded(href)),
  };
}

function pages(): readonly Page[] {
  return readdirSync(site, { recursive: true, encoding: "utf8" })
    .map((file) => file.replaceAll("\\", "/"))
    .filter((file) => file.endsWith(".html") && file !== "404.html")
    .map((file) => readPage(file, readFileSync(join(site, file), "utf8")));
}

/** Links that lead to no page, no file, or no heading of the site. */
function deadLinks(all: readonly Page[], hasFile: (path: string) => boolean): readonly string[] {
  const byAddress = new Map(all.map((page) => [page.address, page]));
  return all.flatMap(({ address, links }) =>
    links
      .filter((link) => !/^[a-z]+:/.test(link))
      .filter((link) => {
        const [path = "", anchor] = new URL(link, `https://site/${address}`).href.slice(13).split("#");
        const file = decoded(path === "" || path.endsWith("/") ? `${path}index.html` : path);
        const target = byAddress.get(file);
        if (target === undefined) return !hasFile(file);
        return anchor !== undefined && anchor !== "" && !target.anchors.has(decoded(anchor));
      })
      .map((link) => `${address} → ${link}`),
  );
}

/** Addresses that the site's own index finds, the best first, as its page searches. */
async function search(words: string): Promise<readonly string[]> {
  const chunks = join(site, "assets/chunks");
  const index = readdirSync(chunks).find((file) => file.startsWith("@localSearchIndex")) ?? "";
  const { default: json } = (await import(pathToFileURL(join(chunks, index)).href)) as {
    readonly default: string;
  };
  // The package that VitePress brings with it.
  const path = createRequire(
    createRequire(join(root, "site/package.json")).resolve("vitepress/package.json"),
  ).resolve("minisearch");
  const { default: MiniSearch } = (await import(pathToFileURL(path).href)) as {
    readonly default: IndexReader;
  };
  const fields = ["title", "titles", "text"];
  const boost = { title: 4, text: 2, titles: 1 };
  const searchOptions = { fuzzy: 0.2, prefix: true, boost };
  const reader = MiniSearch.loadJSON(json, {
    fields,
    storeFields: ["title", "titles"],
    searchOptions,
    processTerm,
  });
  return reader.search(words).map(({ id }) => id);
}

interface IndexReader {
  loadJSON(json: string, options: object): { search(words: string): readonly { readonly id: string }[] };
}

describe("the site of the documentation", () => {
  let built: readonly Page[] = [];

  beforeAll(async () => {
    await run("npm", ["run", "docs"], root);
    built = pages();
  });

  it("has a page for each document, with everything that the document has headings for", () => {
    expect(built.length).toBeGreaterThanOrEqual(documents().length);
    const anchors = new Set(built.flatMap((page) => [...page.anchors]));
    const missing = documents().flatMap(({ path, sections }) =>
      sections.filter(({ anchor }) => !anchors.has(anchor)).map(({ anchor }) => `${path}#${anchor}`),
    );
    expect(missing).toEqual([]);
  });

  it("has no link that leads nowhere", () => {
    expect(deadLinks(built, (path) => existsSync(join(site, path)))).toEqual([]);
    expect(built.flatMap(({ links }) => links).length).toBeGreaterThan(1_000);
  });

  it("would tell of a link that leads nowhere", () => {
    const one = readPage(
      "guides/one.html",
      '<h2 id="here"></h2><a href="#here"><a href="#gone"><a href="/gone.html"><a class="x" href="../two.html">',
    );
    const two = readPage("two.html", '<a href="/guides/one.html#here"><a href="/guides/one.html#gone">');
    expect(deadLinks([one, two], () => false)).toEqual([
      "guides/one.html → #gone",
      "guides/one.html → /gone.html",
      "two.html → /guides/one.html#gone",
    ]);
  });

  it.each([
    ["upgrade", "operations.html#upgrading"],
    ["upgraded", "operations.html#upgrading"],
    ["gdpr", "after-the-end.html#erase"],
    ["opentelemetry", "operating/observability"],
    ["nginx", "operating/deploying"],
    ["kubernetes", "operating/"],
    ["duplicates", "concepts/deduplication"],
    ["retry", "guides/handlers"],
    ["retries", "guides/handlers"],
    ["postgres", "guides/postgresql"],
    ["mysql", "guides/mysql"],
    ["backup", "operating/losses"],
    ["ERR_SIGNATURE_INVALID", "reference/errors"],
  ])("can be searched by the words that people use: %s", async (words, page) => {
    const found = (await search(words)).slice(0, 12);
    expect(found.filter((address) => address.includes(page))).not.toEqual([]);
  });

  it("has an icon that its pages name", () => {
    const [, icon = ""] =
      /rel="icon"[^>]*href="\/([^"]+)"/.exec(readFileSync(join(site, "index.html"), "utf8")) ?? [];
    expect(readFileSync(join(site, icon), "utf8")).toMatch(/^<svg /);
  });

  it("has an index for language models, of every page in the table of contents", () => {
    const text = readFileSync(join(site, "llms.txt"), "utf8");
    expect(text).toMatch(/^# Payhooks\n\n> Payhooks receives /);
    const listed = [...text.matchAll(/\]\(\/([^)]+\.html)\)/g)].map(([, address = ""]) => address);
    expect(listed.filter((address) => !existsSync(join(site, address)))).toEqual([]);
    expect(listed.length).toBeGreaterThan(40);
  });
});
