import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { PROGRAMS } from "../package/apps.ts";
import { root } from "../package/workspace.ts";
import { documents, readDocument } from "./markdown.ts";
import { toJavaScript, VirtualProgram } from "./program.ts";

/** The names that a snippet may use without an import. */
const AT_HAND = `
import type { Receiver } from "@payhooks/core";
import type { Express } from "express";

declare global {
  const receiver: Receiver;
  const app: Express;
  function credit(reference: string, amount: string, effectId: string): Promise<void>;
  function page(text: string): Promise<void>;
  function findMerchant(
    id: string,
    signal: AbortSignal,
  ): Promise<{ readonly id: string; readonly publicKeys: string[] } | null>;
  function lookUp(payTxnId: string): Promise<{ readonly status: string; readonly reference: string } | null>;
}
export {};
`;

const inProjects = new Set(PROGRAMS.map(({ document }) => document));

const snippets = documents().flatMap(({ path, blocks }) =>
  blocks.flatMap((block, index) => {
    const name = `${path.replace(/[^A-Za-z0-9]+/g, "-")}-${index}.ts`;
    // A snippet that imports a file of its own project, or a package that the workspace does not have, is compiled in a project
    // (test/package/starters.ts and apps.ts).
    const isInProject = inProjects.has(path) || /(?:from |import\()"\.\.?\//.test(block.text);
    return block.language === "ts" && !isInProject
      ? [{ where: `${path}:${block.line}`, name, block, next: blocks[index + 1] }]
      : [];
  }),
);

const programs = snippets.filter(({ block }) => block.mark === "run");

describe("the code in the documentation", () => {
  it("is TypeScript in blocks that are marked ts, and in no others", () => {
    const languages = documents().flatMap(({ blocks }) => blocks.map(({ language }) => language));
    const known = new Set(["ts", "sh", "sql", "text", "mermaid"]);
    expect(languages.filter((language) => !known.has(language))).toEqual([]);
    expect(snippets.map(({ block }) => block.mark).filter((mark) => mark !== "" && mark !== "run")).toEqual(
      [],
    );
  });

  it("compiles as strictly as the packages do", () => {
    const files = Object.fromEntries(snippets.map(({ name, block }) => [name, block.text]));
    const program = new VirtualProgram({ ...files, "at-hand.ts": AT_HAND, "wrong.ts": WRONG });
    expect(program.errorsOf("at-hand.ts")).toEqual([]);
    const errors = snippets.flatMap(({ where, name }) =>
      program.errorsOf(name).map((error) => `${where} + ${error}`),
    );
    expect(errors).toEqual([]);
    // The check itself: one wrong snippet, one error.
    expect(program.errorsOf("wrong.ts")).toEqual([expect.stringContaining("'number' is not assignable")]);
  });

  it("in any-sender.md has a source of one's own in at most 15 lines", () => {
    const { blocks } = readDocument("docs/guides/any-sender.md");
    const own = blocks.find(({ text }) => text.includes("const bank = source({"))?.text ?? "";
    const [definition = ""] = /^const bank = source\(\{\n[\s\S]*?^\}\);$/m.exec(own) ?? [];
    expect(definition).toContain("read: ");
    expect(definition.split("\n").length).toBeLessThanOrEqual(15);
  });

  it("in exactly-once.md begins with the example for PostgreSQL, to the letter", () => {
    const [shown] = readDocument("docs/guides/exactly-once.md").blocks;
    expect(shown?.text).toBe(readFileSync(join(root, "examples/postgres/src/exactly-once.ts"), "utf8"));
  });

  it("in exactly-once.md is the client that is tested on MariaDB, to the letter", () => {
    const shown = readDocument("docs/guides/exactly-once.md").blocks.filter(({ text }) =>
      text.includes("mysql2"),
    );
    expect(shown.map(({ text }) => text)).toEqual([
      readFileSync(join(root, "test/effects/mysql-effects.ts"), "utf8"),
    ]);
  });

  it("in handlers.md is the recipe for ambiguous events that is tested on their forgeries, to the letter", () => {
    const shown = readDocument("docs/guides/handlers.md").blocks.filter(({ text }) =>
      text.includes("candidates"),
    );
    expect(shown.map(({ text }) => text)).toEqual([
      readFileSync(join(root, "test/e2e/settle-ambiguous.ts"), "utf8"),
    ]);
  });

  it("in adding-a-store.md is the store that the contract is run on, and its test, to the letter", () => {
    const shown = readDocument("docs/guides/adding-a-store.md").blocks.filter(
      ({ language }) => language === "ts",
    );
    expect(shown.map(({ text }) => text)).toEqual(
      ["table-store.ts", "table-store.test.ts"].map((file) =>
        readFileSync(join(root, "test/contract", file), "utf8"),
      ),
    );
  });

  it("asks a database and the service through clients that exist: none is made up for the reader", () => {
    expect(AT_HAND).not.toMatch(/\b(?:db|database|sql|pool|client)\b/i);
  });

  it("is run where the document shows its output", () => {
    expect(programs.map(({ where }) => where.replace(/:\d+$/, ""))).toEqual([
      "docs/concepts/security.md",
      "docs/guides/testing.md",
      "docs/guides/testing.md",
    ]);
  });

  it.each(programs)("at $where prints what the document says", async ({ block, next }) => {
    expect(await run(toJavaScript(block.text))).toBe(next?.text);
  });
});

const WRONG = "receiver.onDeposit(async () => {}, { name: 42 }); export {};";

/** Runs a program that may import what the tests may import. */
async function run(program: string): Promise<string> {
  const flags = ["--conditions=payhooks-source", "--import=tsx", "--input-type=module", "--eval", program];
  const { stdout } = await promisify(execFile)(process.execPath, flags, { cwd: join(root, "test") });
  return stdout;
}
