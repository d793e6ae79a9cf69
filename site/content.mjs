// Makes the folder `content`, of which VitePress builds the site: the project's own pages, with links between them as
// they are on the site. docs/README.md is the table of contents: its tables say which pages there are, and in what order.
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
export const content = join(root, "site/content");

const CONTENTS = "docs/README.md";
const LINK = /(!?\[(?:[^\]\\]|\\.)*\]\()([^)\s#]*)((?:#[^)\s]*)?\))/g;
const read = (path) => readFileSync(join(root, path), "utf8");

const { repository } = JSON.parse(read("package.json"));

/** Where links of a page lead, from the root of the project; those to other sites are left out. */
function linksIn(path) {
  return [...withoutCode(read(path)).matchAll(LINK)]
    .map(([, , target]) => target)
    .filter((target) => target !== "" && !/^[a-z]+:/.test(target))
    .map((target) => posix.join(posix.dirname(path), target));
}

/** The text with code blanked out, since what looks like a link there is none. */
function withoutCode(text) {
  return text.replace(/^(`{3,})[\s\S]*?^\1$|`[^`\n]*`/gm, (code) => code.replace(/[^\n]/g, " "));
}

/** The address of a page on the site, as a path to its Markdown. */
function placeOf(path) {
  if (path === "README.md") return "index.md";
  if (path === CONTENTS) return "contents.md";
  const [, name] = /^packages\/([^/]+)\/README\.md$/.exec(path) ?? [];
  if (name !== undefined) return `packages/${name}.md`;
  return path
    .replace(/^docs\//, "")
    .replace(/README\.md$/, "index.md")
    .toLowerCase();
}

/** The sections of the table of contents, each with its pages. */
export function sections() {
  const found = [];
  for (const line of read(CONTENTS).split("\n")) {
    const [, heading] = /^## (.*)$/.exec(line) ?? [];
    if (heading !== undefined) found.push({ heading, pages: [] });
    if (!line.startsWith("|")) continue;
    const [first = "", says = ""] = line.slice(1, -1).split("|");
    for (const [, title, target] of first.matchAll(/\[([^\]]*)\]\(([^)#]*)\)/g)) {
      const source = posix.join(posix.dirname(CONTENTS), target);
      found.at(-1)?.pages.push({ title, says: says.trim(), source, place: placeOf(source) });
    }
  }
  return found;
}

/** Every page of the site: those of the table of contents, and those that they lead to. */
export function allPages() {
  const seen = new Set();
  const open = [CONTENTS, ...sections().flatMap(({ pages }) => pages.map(({ source }) => source))];
  for (const path of open) {
    if (seen.has(path)) continue;
    seen.add(path);
    open.push(...linksIn(path).filter((target) => target.endsWith(".md") && existsSync(join(root, target))));
  }
  return [...seen].map((source) => ({ source, place: placeOf(source) }));
}

/**
 * The pages with their links as `linked` writes them: it is given the page, the place that a link leads to or else null, and the
 * file behind it. If it answers null, only the text of the link stays.
 */
export function writtenPages(linked, pages = allPages()) {
  const isPage = new Set(pages.map(({ source }) => source));
  return pages.map((page) => {
    const text = read(page.source);
    const plain = withoutCode(text);
    const written = text.replace(LINK, (whole, before, target, after, at) => {
      if (target === "" || /^[a-z]+:/.test(target) || !plain.startsWith("](", at + before.length - 2))
        return whole;
      const file = posix.join(posix.dirname(page.source), target);
      const address = linked(page, isPage.has(file) ? placeOf(file) : null, file);
      return address === null ? before.replace(/^!?\[/, "").slice(0, -2) : `${before}${address}${after}`;
    });
    // Marks for the programs that write parts of a page are for nobody who reads it.
    return { ...page, text: written.replace(/^<!-- .* -->$/gm, "") };
  });
}

/** Writes everything that VitePress reads. */
export function writeContent() {
  rmSync(content, { recursive: true, force: true });
  const linked = (_page, place, file) => {
    if (place !== null) return `/${place.replace(/(^|\/)index\.md$/, "$1").replace(/\.md$/, "")}`;
    if (/\.(?:svg|png)$/.test(file)) {
      const name = file.replace(/^docs\//, "");
      cpSync(join(root, file), join(content, "public", name));
      return `/${name}`;
    }
    // A file of the project: linked where the project lives, and mentioned while nobody has said where that is.
    return repository === "" ? null : `${repository}/tree/main/${file}`;
  };
  writePages(content, writtenPages(linked));
  mkdirSync(join(content, "public"), { recursive: true });
  cpSync(join(root, "site/favicon.svg"), join(content, "public/favicon.svg"));
  writeFileSync(join(content, "public/llms.txt"), llmsText());
  writeFileSync(
    join(content, "public/llms-full.txt"),
    allPages()
      .map(({ source }) => read(source))
      .join("\n\n"),
  );
}

export function writePages(folder, pages) {
  for (const { place, text } of pages) {
    mkdirSync(dirname(join(folder, place)), { recursive: true });
    writeFileSync(join(folder, place), text);
  }
}

/** An index of the pages for language models, as llmstxt.org describes it. */
function llmsText() {
  const [, title, summary] = /^# (.*)\n\n((?:.+\n)+)/.exec(read("README.md")) ?? [];
  const lists = sections().map(({ heading, pages }) => {
    const lines = pages.map(
      ({ title, says, place }) => `- [${title}](/${place.replace(/\.md$/, ".html")}): ${says}\n`,
    );
    return `## ${heading}\n\n${lines.join("")}`;
  });
  return `# ${title}\n\n> ${summary.trim().replaceAll("\n", " ")}\n\nEverything in one file: [llms-full.txt](/llms-full.txt)\n\n${lists.join("\n")}`;
}
