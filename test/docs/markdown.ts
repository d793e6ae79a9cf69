import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../package/workspace.ts";

/** A fenced block of a document. */
export interface CodeBlock {
  /** The first word after the fence. */
  readonly language: string;
  /** The text after the language: `run` marks a program whose output is the next block. */
  readonly mark: string;
  readonly text: string;
  /** Of its first line, counted from 1. */
  readonly line: number;
}

/** A heading and everything up to the next one of its level or above. */
export interface Section {
  readonly title: string;
  readonly anchor: string;
  readonly level: number;
  readonly lines: readonly string[];
}

/** A document as the tests read it. */
export interface Document {
  /** From the workspace root, with forward slashes. */
  readonly path: string;
  readonly blocks: readonly CodeBlock[];
  readonly sections: readonly Section[];
  /** Its lines; those of fenced blocks are empty. */
  readonly prose: readonly string[];
}

/** The README, what contributors read, everything in docs/, and the READMEs of packages. */
export function documents(): readonly Document[] {
  const inDocs = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" }).map(
    (file) => `docs/${file.replaceAll("\\", "/")}`,
  );
  const ofPackages = readdirSync(join(root, "packages")).map((name) => `packages/${name}/README.md`);
  const paths = ["README.md", "CONTRIBUTING.md", "SECURITY.md", ...inDocs, ...ofPackages].filter((path) =>
    path.endsWith(".md"),
  );
  return paths.filter((path) => existsSync(join(root, path))).map(readDocument);
}

export function readDocument(path: string): Document {
  return parse(path, readFileSync(join(root, path), "utf8"));
}

export function parse(path: string, text: string): Document {
  const blocks: CodeBlock[] = [];
  const prose: string[] = [];
  let open: { readonly fence: string; readonly words: string[]; readonly line: number; text: string } | null =
    null;
  text.split("\n").forEach((line, index) => {
    const fence = /^(`{3,})(.*)$/.exec(line);
    if (open === null && fence !== null) {
      open = {
        fence: fence[1] ?? "",
        words: (fence[2] ?? "").trim().split(/\s+/),
        line: index + 2,
        text: "",
      };
    } else if (open !== null && line === open.fence) {
      const [language = "", ...mark] = open.words;
      blocks.push({ language, mark: mark.join(" "), text: open.text, line: open.line });
      open = null;
    } else if (open !== null) {
      open.text += `${line}\n`;
    }
    prose.push(open === null && fence === null ? line : "");
  });
  if (open !== null) throw new Error(`${path} has a code block that is not closed`);
  return { path, blocks, sections: sectionsOf(prose), prose };
}

function sectionsOf(prose: readonly string[]): Section[] {
  const sections: (Section & { lines: string[] })[] = [];
  const used = new Map<string, number>();
  for (const line of prose) {
    const [, hashes, title = ""] = /^(#{1,6}) +(.*?) *$/.exec(line) ?? [];
    if (hashes !== undefined) {
      const plain = anchorOf(title);
      const times = used.get(plain) ?? 0;
      used.set(plain, times + 1);
      const anchor = times === 0 ? plain : `${plain}-${times}`;
      sections.push({ title, anchor, level: hashes.length, lines: [] });
    } else {
      let level = 7;
      for (const section of sections.toReversed()) {
        if (section.level < level) section.lines.push(line);
        level = Math.min(level, section.level);
      }
    }
  }
  return sections;
}

/** The anchor that GitHub gives a heading. */
function anchorOf(title: string): string {
  const text = title.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll("`", "");
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}_ -]/gu, "")
    .replaceAll(" ", "-");
}

/** The section with this title; a test fails with its name when it is gone. */
export function sectionOf(document: Document, title: string): Section {
  const found = document.sections.find((section) => section.title === title);
  if (found === undefined) throw new Error(`${document.path} has no section "${title}"`);
  return found;
}

/** The rows of every table in a section: their cells as they are written, without the head. */
export function rowsOf({ lines }: Pick<Section, "lines">): readonly (readonly string[])[] {
  const isRow = (line: string | undefined): boolean => line?.startsWith("|") === true;
  return lines
    .filter((line, index) => isRow(line) && isRow(lines[index - 1]) && !/^\|[-:| ]+\|$/.test(line))
    .map((line) =>
      line
        .slice(1, -1)
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim()),
    );
}

/** The names in backticks of a column, of the first one by default, and those in bold that begin an item of a list. */
export function namesIn(section: Pick<Section, "lines">, column = 0): readonly string[] {
  const inRows = rowsOf(section).flatMap(({ [column]: cell = "" }) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name),
  );
  return [...inRows, ...itemsOf(section).keys()];
}

/** The items of lists that begin with a name in bold and backticks, each with the word in brackets behind it. */
export function itemsOf({ lines }: Pick<Section, "lines">): ReadonlyMap<string, string> {
  const items = lines.map((line) => /^- \*\*`([^`]+)`\*\*(?: \(([^)]+)\))?/.exec(line));
  return new Map(items.flatMap((item) => (item === null ? [] : [[item[1] ?? "", item[2] ?? ""]])));
}

/** Targets of links, in prose and outside of inline code. */
export function linksIn({ prose }: Document): readonly string[] {
  const text = prose.join("\n").replace(/`[^`\n]*`/g, "");
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target);
}
