/**
 * The answers of docs/questions.md. Each leads to the section that says more, says what the program does, and is one click away
 * from the README and from the index.
 */
import { createReceiver, memoryInbox } from "@payhooks/core";
import { createTestKeys } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { readArguments } from "../../packages/cli/src/command-line/parsed-arguments.ts";
import { loadCommands } from "../../packages/cli/src/commands.ts";
import { linksIn, readDocument, rowsOf, type Section, sectionOf } from "./markdown.ts";

const COMMANDS = await loadCommands();

const page = readDocument("docs/questions.md");
const questions = page.sections.filter(({ level }) => level === 2);
const textOf = ({ lines }: Section): string => lines.join(" ").replace(/\s+/g, " ");
const answerOf = (begin: string): string => {
  const found = questions.find(({ title }) => title.includes(begin));
  return found === undefined ? "" : textOf(found);
};

/** What people ask: words of the question, the section that its answer leads to, and words that this section must have. */
const asked: readonly (readonly [asked: string, page: string, anchor: string, says: RegExp])[] = [
  ["worker process", "guides/handlers.md", "where-handlers-run", /`"elsewhere"`/],
  ["nginx", "operating/deploying.md", "behind-nginx", /Buffering.*non_idempotent|non_idempotent.*Buffering/],
  ["Prisma", "guides/exactly-once.md", "clients", /`prismaEffects\(prisma\)`/],
  ["limits", "reference/options.md", "limits", /`maxBodyBytes`/],
  ["limits", "reference/options.md", "other-limits", /128/],
  ["failed yesterday", "operating/operations.md", "held-entries", /`exhausted`/],
  ["delete what is stored", "concepts/after-the-end.md", "erase", /a copy of an erased event/i],
  [
    "1,000 events a second",
    "performance.md",
    "compared-with-code-written-by-hand",
    /ours, PostgreSQL.*handlers of 50 ms/,
  ],
  ["Which Redis", "guides/redis.md", "settings", /noeviction.*appendonly/],
  ["wake somebody", "operating/observability.md", "prometheus-and-grafana", /`alerts.yml`/],
  ["wake somebody", "operating/operations.md", "alerts", /`all-failing`/],
  ["In which order", "guides/handlers.md", "order", /payments under one reference/],
  ["slow API", "guides/handlers.md", "slow-services", /`concurrency`/],
  ["trace an event", "operating/observability.md", "opentelemetry", /`otel\(\)`/],
  ["a receiver that we wrote", "guides/moving.md", "", /Stage 1: the shadow/],
  ["Docker, Kubernetes or systemd", "operating/deploying.md", "five-things-that-must-agree", /SIGTERM/],
  ["pino or winston", "operating/operations.md", "log", /pino.*bunyan/],
  ["Sentry", "guides/handlers.md", "observe", /`receiver\.observe/],
  ["two applications", "guides/inboxes.md", "choosing-one", /separate inboxes/],
  ["two applications", "guides/exactly-once.md", "options", /`scope`/],
  ["backups", "operating/losses.md", "backup-and-restore", /runs again/],
  ["staging", "reference/options.md", "paymentsexpect", /`unexpected`/],
];

describe("the questions", () => {
  it("are twenty and more, each with a link to the page that says more", () => {
    expect(questions.length).toBeGreaterThanOrEqual(20);
    const without = questions.filter(({ lines }) => !/\]\([^)]+\.md/.test(lines.join("\n")));
    expect(without.map(({ title }) => title)).toEqual([]);
  });

  it("are one click away from the README, and from the index", () => {
    expect(linksIn(readDocument("README.md"))).toContain("docs/questions.md");
    expect(linksIn(readDocument("docs/README.md"))).toContain("questions.md");
  });

  it.each(asked)("%s: the answer is one click further, in %s#%s", (words, target, anchor, says) => {
    expect(answerOf(words)).toContain(anchor === "" ? `](${target})` : `](${target}#${anchor})`);
    const there = readDocument(`docs/${target}`);
    const section = there.sections.find((one) => (anchor === "" ? one.level === 1 : one.anchor === anchor));
    const titles = there.sections.map(({ title }) => title).join(" ");
    expect(section === undefined ? "" : `${textOf(section)} ${anchor === "" ? titles : ""}`).toMatch(says);
  });

  it("show commands that are such, with everything that they need", () => {
    const lines = page.blocks
      .filter(({ language }) => language === "sh")
      .flatMap(({ text }) => text.split("\n"));
    const commands = lines.filter((line) => line.startsWith("payhooks "));
    expect(commands.length).toBeGreaterThan(2);
    for (const line of commands) {
      const [, name, ...given] = line.match(/"[^"]*"|\S+/g) ?? [];
      const command = COMMANDS.find((one) => one.name === name);
      expect(command, line).toBeDefined();
      if (command !== undefined) expect(() => readArguments(command, given), line).not.toThrow();
      if (given[0] === "replay")
        expect(given).toEqual(expect.arrayContaining(["--reason", "--by", "--note"]));
    }
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

  it("tell how many events end in a second by the number of places that a process has", () => {
    const rows = rowsOf(sectionOf(readDocument("docs/reference/options.md"), "createReceiver"));
    const [, places = ""] = rows.find(([name]) => name === "`concurrency`") ?? [];
    const answer = answerOf("1,000 events a second");
    expect(answer).toContain(`A process runs ${places} events at one time`);
    expect(answer).toContain(`handlers of 50 ms it ends at most ${(Number(places) * 1_000) / 50} a second`);
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
