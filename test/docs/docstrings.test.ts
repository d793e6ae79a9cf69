import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { EVENTS } from "../../packages/core/src/protocol/events.ts";
import { packagesIn, root, shown, sourcesOf } from "../package/workspace.ts";
import { declaredIn, docsOfMember, entries } from "./public-names.ts";

/** The sandbox is left to its own documentation. */
const read = entries.filter(({ specifier }) => specifier !== "@payhooks/sandbox");

describe.each(read)("the docstrings of $specifier", (entry) => {
  const { names, declared } = declaredIn(entry);

  it("are there for every function, method and type", () => {
    const documented = new Set(declared.filter(({ text }) => text !== "").map(({ name }) => name));
    const silent = declared
      .filter(({ kind, name }) => kind !== "other" && !documented.has(name))
      .map(({ name, where }) => `${where}: ${name}`);
    expect(silent).toEqual([]);
    expect(documented.size).toBeGreaterThan(0);
  });

  it("link to names that the same entry point exports", () => {
    const dead = declared.flatMap(({ name, text }) =>
      [...text.matchAll(/\{@link ([\w$]+)/g)]
        .filter(([, target = ""]) => !names.has(target))
        .map(([link]) => `${name}: ${link}}`),
    );
    expect(dead).toEqual([]);
  });
});

describe("a comment in the sources", () => {
  const sources = packagesIn("packages")
    .flatMap(sourcesOf)
    .map((path) => ({ path: shown(path), text: readFileSync(path, "utf8") }));

  /** The names that a file declares or imports, those of members included. `isExported`: only what it exports. */
  function namesIn(text: string, isExported: (statement: ts.Statement) => boolean): readonly string[] {
    const names: string[] = [];
    const visit = (node: ts.Node): void => {
      const { name } = node as { readonly name?: ts.Node };
      if (name !== undefined) names.push((name as ts.Identifier).text);
      ts.forEachChild(node, visit);
    };
    ts.createSourceFile("", text, ts.ScriptTarget.Latest).statements.filter(isExported).forEach(visit);
    return names;
  }

  it("links to names that its file declares or imports, or that another file exports", () => {
    const isExported = (statement: ts.Statement): boolean =>
      (ts.canHaveModifiers(statement) ? ts.getModifiers(statement) : undefined)?.some(
        ({ kind }) => kind === ts.SyntaxKind.ExportKeyword,
      ) === true;
    const exported = new Set(sources.flatMap(({ text }) => namesIn(text, isExported)));
    const dead = sources.flatMap(({ path, text }) => {
      const links = [...text.matchAll(/\{@link ([\w$#.]+)\}/g)].flatMap(([, target = ""]) =>
        target.split("."),
      );
      if (links.length === 0) return [];
      const own = new Set(namesIn(text, () => true));
      return links.filter((link) => !own.has(link) && !exported.has(link)).map((link) => `${path}: ${link}`);
    });
    expect(dead).toEqual([]);
    expect(sources.length).toBeGreaterThan(100);
  });

  it("cites decisions that have a page", () => {
    const pages = new Set(readdirSync(join(root, "docs/decisions")).map((page) => page.slice(0, 4)));
    const dead = sources.flatMap(({ path, text }) => [
      ...[...text.matchAll(/\b[Dd]ecision (\d{4})\b/g)]
        .filter(([, number = ""]) => !pages.has(number))
        .map(([cited]) => `${path}: ${cited}`),
      ...[...text.matchAll(/docs\/decisions\/[\w.-]+\.md/g)]
        .filter(([page]) => !existsSync(join(root, page)))
        .map(([page]) => `${path}: ${page}`),
    ]);
    expect(dead).toEqual([]);
  });
});

describe("the docstrings of a receiver's registration", () => {
  const [core] = entries.filter(({ specifier }) => specifier === "@payhooks/core");
  const docsOf = (method: string): string =>
    core === undefined ? "" : docsOfMember(core, "Receiver", method);

  it.each([...Object.keys(EVENTS), "onHeld"])("name what %s throws", (method) => {
    for (const code of [
      "ERR_OPTION_INVALID",
      "ERR_HANDLER_NAME",
      "ERR_HANDLER_DUPLICATE",
      "ERR_REGISTRATION_CLOSED",
    ])
      expect(docsOf(method)).toContain(`\`${code}\``);
  });

  it("name what ignore throws, and where the text of run comes from", () => {
    expect(docsOf("ignore")).toContain("`ERR_OPTION_INVALID`");
    expect(docsOf("ignore")).toContain("`ERR_REGISTRATION_CLOSED`");
    expect(docsOf("run")).toContain("`notifyWorker` named");
  });

  it("say that a crash is an attempt too, and when an event is held", () => {
    const text = core === undefined ? "" : docsOfMember(core, "HandlerOptions", "maxAttempts");
    expect(text).toContain("crashes included");
    expect(text).toContain("once no other handler has attempts left");
  });
});
