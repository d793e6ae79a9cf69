import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { CALLBACK_FIELDS } from "@payhooks/core/signature";
import { describe, expect, it } from "vitest";
import { root } from "../package/workspace.ts";
import { readDocument, rowsOf, sectionOf } from "./markdown.ts";
import { VirtualProgram } from "./program.ts";

const page = readDocument("test/coverage.md");
const rows = page.sections.filter(({ level }) => level === 2).flatMap(rowsOf);

const inBackticks = (cell: string): readonly string[] =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, text = ""]) => text);
const isPath = (text: string): boolean => /^[a-z]+\/\S+\.ts( |$)/.test(text);
const pathOf = (text: string): string => join(root, text.startsWith("test/") ? text : join("packages", text));

/** Text of a test file, with its escapes as a reader sees them. */
const readTest = (path: string): string =>
  readFileSync(path, "utf8").replaceAll('\\"', '"').replaceAll("\\'", "'");

/** The first name in a cell that does not exist. */
function missing(text: string): string | null {
  const [path = "", title] = text.split(" › ");
  if (!existsSync(pathOf(path))) return `${path} is not there`;
  if (title === undefined) return null;
  const isTitle = [`"${title}`, ` ${title}`, `\`${title}`].some((start) =>
    readTest(pathOf(path)).includes(start),
  );
  return isTitle ? null : `${path} has no test "${title}"`;
}

describe("the table of what the specification has", () => {
  it("names files that are there, and tests that are in them", () => {
    const named = rows.flatMap((cells) => cells.flatMap(inBackticks)).filter(isPath);
    expect(named.map(missing).filter((problem) => problem !== null)).toEqual([]);
    expect(named.length).toBeGreaterThan(200);
    expect(missing("client/src/nowhere.ts")).toBe("client/src/nowhere.ts is not there");
    expect(missing("client/test/answers.test.ts › no such title")).toBe(
      'client/test/answers.test.ts has no test "no such title"',
    );
  });

  it("has a test in every row, and a place in a package in every row but those of what is not shown", () => {
    const without = rows.filter(
      (cells) => !inBackticks(cells.at(-1) ?? "").some((text) => text.includes(".test.ts › ")),
    );
    expect(without.map(([first]) => first)).toEqual([]);
    const open = rowsOf(sectionOf(page, "Not shown")).map(([first]) => first);
    const nowhere = rows
      .filter((cells) => !cells.slice(1, -1).flatMap(inBackticks).some(isPath))
      .map(([first]) => first);
    expect(nowhere).toEqual(open);
  });

  const program = new VirtualProgram({
    "wire.ts": [
      'import type { ConnectWebhook, ConnectedAccount, Settlement, Transaction, TransactionStatus, WebhookSettings, ConnectEventName } from "../../packages/sandbox/src/wire.ts";',
      'import type { Checkout, DirectPayment } from "@payhooks/client";',
      "export type Transactions = keyof Transaction;",
      "export type Statuses = TransactionStatus;",
      "export type Events = ConnectEventName;",
      "export type Envelope = keyof ConnectWebhook;",
      "export type Data = keyof ConnectedAccount | keyof Settlement;",
      "export type Settings = keyof WebhookSettings;",
      'export type Parameters = Exclude<keyof DirectPayment | keyof Checkout, "extra">;',
    ].join("\n"),
  });
  const named = (title: string): readonly string[] =>
    rowsOf(sectionOf(page, title)).flatMap(([first = ""]) => inBackticks(first));

  it.each([
    ["Fields of a transaction", "Transactions", ""],
    ["Statuses", "Statuses", ""],
    ["Parameters of requests", "Parameters", ""],
    ["Connected-account webhooks", "Events", ""],
    ["Connected-account webhooks", "Envelope", ""],
    ["Connected-account webhooks", "Data", "data."],
    ["Connected-account webhooks", "Settings", ""],
  ])("has in %s everything that the programs know: %s", (title, type, before) => {
    expect(program.errorsOf("wire.ts")).toEqual([]);
    const names = named(title);
    expect(program.literalsOf("wire.ts", type).filter((name) => !names.includes(before + name))).toEqual([]);
  });

  it("has every field of a callback", () => {
    const fields = named("Fields of a payment callback");
    expect([...CALLBACK_FIELDS, "signature"].filter((name) => !fields.includes(name))).toEqual([]);
  });

  it("has the endpoints of the client's documentation", () => {
    const inClient = rowsOf(sectionOf(readDocument("docs/reference/client.md"), "Calls")).map(
      ([, endpoint]) => endpoint,
    );
    expect(inClient).toHaveLength(7);
    const here = rowsOf(sectionOf(page, "Endpoints")).map(([endpoint]) => endpoint);
    expect(inClient.filter((endpoint) => !here.includes(endpoint ?? ""))).toEqual([]);
  });
});
