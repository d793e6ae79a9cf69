import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { helpOf, labelOf, textOf } from "../../packages/cli/src/command-line/help.ts";
import { loadCommands } from "../../packages/cli/src/commands.ts";
import { INBOX_OPTIONS } from "../../packages/cli/src/events/open-inbox.ts";
import { VARIABLE_NAMES } from "../../packages/cli/src/sandbox/environment.ts";
import { root } from "../package/workspace.ts";
import { namesIn, readDocument, rowsOf, type Section, sectionOf } from "./markdown.ts";

const COMMANDS = await loadCommands();

const page = readDocument("docs/reference/cli.md");
const plain = (cell: string | undefined): string =>
  (cell ?? "").replaceAll("\\|", "|").replace(/^`(.*)`$/, "$1");
const optionsIn = (section: Section): readonly (readonly string[])[] =>
  rowsOf(section).map(([label, text]) => [plain(label), plain(text)]);

describe("the documentation of the command line", () => {
  it("has a section for each command, in the order of the help, and for nothing else", () => {
    const titles = page.sections.map(({ title }) => title).filter((title) => title.startsWith("payhooks "));
    expect(titles).toEqual(COMMANDS.map(({ name }) => `payhooks ${name}`));
    expect(
      rowsOf(readDocument("packages/cli/README.md").sections[0] ?? { lines: [] }).map(([cell]) =>
        plain(cell),
      ),
    ).toEqual(titles);
  });

  it.each(COMMANDS.map((command) => [command.name, command] as const))(
    "has the options of %s as --help shows them",
    (name, command) => {
      const section = sectionOf(page, `payhooks ${name}`);
      // What names an inbox has a table of its own, for all commands that take all of it.
      const naming = Object.keys(INBOX_OPTIONS).every((option) => option in command.options)
        ? optionsIn(sectionOf(page, "Naming an inbox"))
        : [];
      const rows = [...naming, ...optionsIn(section)];
      expect(rows).toEqual(
        Object.entries(command.options).map(([option, spec]) => [labelOf(option, spec), textOf(spec)]),
      );
      const text = section.lines.join("\n");
      for (const note of command.notes) expect(text).toContain(note);
      // The texts of the table are in the help, whose lines are wrapped.
      const help = helpOf(command).replace(/\s+/g, " ");
      for (const [label = "", what = ""] of rows) {
        expect(help).toContain(label);
        expect(help).toContain(what.replace(/\s+/g, " "));
      }
    },
  );

  it.each(COMMANDS.map((command) => [command.name, command] as const))(
    "shows the forms and examples of %s",
    (name, command) => {
      const blocks = page.blocks.map(({ text }) => text);
      expect(blocks).toContain(command.usage.map((form) => `payhooks ${name} ${form}\n`).join(""));
      expect(blocks).toContain(command.examples.map((example) => `${example}\n`).join(""));
    },
  );

  const { lines } = sectionOf(page, "What it reads from the environment");
  const tables = lines.join("\n").split("What `payhooks sandbox --write-env` writes");

  it("lists the variables that are read", () => {
    const sources = join(root, "packages/cli/src");
    const files = readdirSync(sources, { recursive: true, encoding: "utf8" }).filter((file) =>
      file.endsWith(".ts"),
    );
    const read = files
      .flatMap((file) => readFileSync(join(sources, file), "utf8").split("\n"))
      .filter((line) => line.includes("process.env"))
      .flatMap((line) => line.match(/\b(?:PAY|PAYHOOKS|CONNECT|REDIS|DATABASE)_[A-Z_]+\b/g) ?? []);
    const listed = namesIn({ lines: (tables[0] ?? "").split("\n") });
    expect(listed.toSorted()).toEqual([...new Set(read)].sort());
  });

  it("lists the variables that are written", () => {
    expect(
      namesIn({ lines: (tables[1] ?? "").split("\n") }).filter((name) => /^[A-Z_]+$/.test(name)),
    ).toEqual([...VARIABLE_NAMES]);
  });
});
