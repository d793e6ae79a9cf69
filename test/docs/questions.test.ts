/** The answers of docs/questions.md: each leads to the page that has the long one, and says what the program does. */
import { createReceiver, memoryInbox } from "@payhooks/core";
import { createTestKeys } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { readDocument, rowsOf, sectionOf } from "./markdown.ts";

const page = readDocument("docs/questions.md");
const questions = page.sections.filter(({ level }) => level === 2);
const answerOf = (begin: string): string => {
  const found = questions.find(({ title }) => title.includes(begin));
  return found?.lines.join(" ").replace(/\s+/g, " ") ?? "";
};

describe("the questions", () => {
  it("are twenty and more, each with a link to the page that says more", () => {
    expect(questions.length).toBeGreaterThanOrEqual(20);
    const without = questions.filter(({ lines }) => !/\]\([^)]+\.md/.test(lines.join("\n")));
    expect(without.map(({ title }) => title)).toEqual([]);
  });

  it("tell the limits that the options have", () => {
    const rows = rowsOf(sectionOf(readDocument("docs/reference/options.md"), "limits"));
    const limits = new Map(rows.map(([name = "", value = ""]) => [name.replaceAll("`", ""), value]));
    const answer = answerOf("Which limits");
    for (const [name, words] of [
      ["maxBodyBytes", "per body"],
      ["maxInFlight", "deliveries at one time"],
      ["acceptTimeoutMs", "to accept one"],
      ["maxHeld", "held events"],
    ] as const) {
      expect(answer).toContain(`${limits.get(name)} ${words}`);
    }
  });

  it("name loggers of both orders that are taken", () => {
    const pino = {
      info: (_facts: object, _text?: string) => {},
      warn: () => {},
      error: () => {},
      bindings: () => ({}),
    };
    const { publicKey } = createTestKeys();
    const options = { payments: { publicKey }, inbox: memoryInbox() };
    for (const logger of [console, pino]) expect(() => createReceiver({ ...options, logger })).not.toThrow();
    expect(answerOf("pino or winston")).toContain("both orders");
  });
});
