/** Sentences of the documentation, each beside what the program does. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createReceiver, memoryInbox, type Receiver, type ReceiverOptions, Reject } from "@payhooks/core";
import { createInbox, memoryStore, type RecordStore } from "@payhooks/core/inbox";
import { callbackFields, createTestKeys, signPaymentCallback } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import type { AcceptOutcome } from "../../packages/core/src/inbox/record/event.ts";
import { LOG_RULES } from "../../packages/core/src/notices/log-lines.ts";
import { EVENTS } from "../../packages/core/src/protocol/events.ts";
import { HELD_REASONS } from "../../packages/core/src/protocol/held-reasons.ts";
import { ADAPTERS } from "../adapters.ts";
import { packagesIn, root, sourcesOf } from "../package/workspace.ts";
import { documents, readDocument, rowsOf, sectionOf } from "./markdown.ts";

/** The words of a section, without its lines' ends. */
const wordsOf = (page: string, section: string): string =>
  sectionOf(readDocument(page), section).lines.join(" ").replace(/\s+/g, " ");
const textOf = (file: string): string => readFileSync(join(root, file), "utf8");

const { publicKey, privateKey } = createTestKeys();
const newReceiver = () => createReceiver({ payments: { publicKey }, inbox: memoryInbox() });

describe("handlers.md", () => {
  it("says that an event has handlers or is ignored: the second of the two throws", () => {
    expect(wordsOf("docs/guides/handlers.md", "Registration")).toContain(
      "You cannot both handle and ignore an event: the second call throws `ERR_OPTION_INVALID`.",
    );
    const contradiction = expect.objectContaining({ code: "ERR_OPTION_INVALID" });
    const handled = newReceiver().onDeposit(() => {});
    expect(() => handled.ignore("DEPOSIT")).toThrow(contradiction);
    const ignoring = newReceiver().ignore("DEPOSIT");
    expect(() => ignoring.onDeposit(() => {})).toThrow(contradiction);
  });

  it("names every adapter that starts its receiver, where it says what starts it", () => {
    const adapters = packagesIn("packages")
      .map((one) => ({ one, name: one.manifest.name.replace("@payhooks/", "") }))
      .filter(({ name }) => ADAPTERS.some((adapter) => adapter.name === name));
    const whoCalls = (pattern: RegExp): string[] =>
      adapters
        .filter(({ one }) => sourcesOf(one).some((file) => pattern.test(readFileSync(file, "utf8"))))
        .map(({ name }) => name)
        .sort();
    expect(whoCalls(/\.startSoon\(/)).toEqual(ADAPTERS.flatMap(({ name, starts }) => (starts ? [name] : [])));
    const names = whoCalls(/\.startSoon\(|receiver\.start\(/);
    expect(names).toContain("nestjs");
    const [background] = rowsOf(sectionOf(readDocument("docs/guides/handlers.md"), "Where handlers run"));
    const startedBy = background?.at(-1)?.toLowerCase() ?? "";
    expect(names.filter((name) => !startedBy.includes(name))).toEqual([]);
  });
});

describe("operations.md", () => {
  it("says that held entries in memory are lost at close, and counted", async () => {
    const [memory] = rowsOf(sectionOf(readDocument("docs/operating/operations.md"), "Shutdown"));
    expect(memory?.at(-1)).toMatch(/^what is lost: .*, and every held entry$/);
    const receiver = newReceiver().ignore("WITHDRAWAL");
    receiver.onDeposit(() => {
      throw new Reject("not ours");
    });
    const held = new Promise((resolve) => {
      receiver.observe(({ type }) => type === "held" && resolve(type));
    });
    await receiver.start();
    const { rawBody, headers } = signPaymentCallback(callbackFields(), privateKey);
    const delivery = { method: "POST", url: "/", headers: new Headers(headers), rawBody };
    expect((await receiver.payments.receive(delivery)).status).toBe(200);
    await held;
    expect(await receiver.close({ graceMs: 1_000 })).toEqual({ unfinished: 1 });
  });
});

describe("the tables of what operators go by", () => {
  const inBackticks = (text: string): string[] =>
    [...text.matchAll(/`([^`]+)`/g)].map(([, word = ""]) => word);

  it("limit the lines of the log as the program does", () => {
    const rows = rowsOf(sectionOf(readDocument("docs/operating/operations.md"), "Log"));
    const named = new Map(
      rows.flatMap(([lines = "", limit]) => inBackticks(lines).map((line) => [line, limit] as const)),
    );
    const limits = Object.entries(LOG_RULES).flatMap(([type, rule]) =>
      rule === null ? [] : [{ type, ...rule }],
    );
    expect(limits.length).toBeGreaterThan(20);
    for (const { type, level, perMinute } of limits) {
      const unnamed = level === "info" ? "every one" : "100";
      expect(named.get(type) ?? unnamed, type).toBe(perMinute === Infinity ? "every one" : `${perMinute}`);
    }
  });

  it.each([
    ["docs/operating/operations.md", "Held entries", /those held as ([^.]+)\./],
    ["docs/operating/console.md", "Deciding", /Only ([^.]+) are\./],
  ])("%s names the reasons that a bulk replays without a second look", (page, section, sentence) => {
    const repaired = Object.entries(HELD_REASONS).flatMap(([reason, work]) =>
      work === "fix" ? [reason] : [],
    );
    const [, reasons = ""] = sentence.exec(wordsOf(page, section)) ?? [];
    expect(inBackticks(reasons).sort()).toEqual(repaired.sort());
  });

  it("list every outcome of ingest", () => {
    const outcomes: Readonly<Record<AcceptOutcome, true>> = {
      new: true,
      progress: true,
      duplicate: true,
      stale: true,
      held: true,
      expired: true,
    };
    const rows = rowsOf(sectionOf(readDocument("docs/reference/receiver.md"), "ingest"));
    expect(rows.map(([outcome = ""]) => outcome.replaceAll("`", "")).sort()).toEqual(
      Object.keys(outcomes).sort(),
    );
  });
});

describe("handlers.md", () => {
  it("lists the method of every event", () => {
    const methods = rowsOf(sectionOf(readDocument("docs/guides/handlers.md"), "Registration")).flatMap(
      ([cell = ""]) => [...cell.matchAll(/`(on\w+)\(/g)].map(([, method]) => method),
    );
    expect(new Set(methods)).toEqual(new Set([...Object.keys(EVENTS), "onHeld"]));
  });
});

describe("deduplication.md", () => {
  it("has the rows of the table that the program decides by, under the same numbers", () => {
    const numbers = rowsOf(sectionOf(readDocument("docs/concepts/deduplication.md"), "The table")).map(
      ([row]) => row,
    );
    const table = textOf("packages/core/src/inbox/record/table.ts");
    const [, declared = ""] = /readonly row: "own-slot"((?: \| \d)+);/.exec(table) ?? [];
    expect(numbers).toEqual(declared.split(" | ").slice(1));
    expect(numbers.length).toBeGreaterThan(5);
  });
});

describe("adding-a-store.md", () => {
  it("says that the inboxes are all made of a store by createInbox", () => {
    expect(wordsOf("docs/guides/adding-a-store.md", "Adding a store")).toContain("are all made this way");
    for (const inbox of ["memory", "sqlite", "postgres", "redis"])
      expect(textOf(`packages/core/src/${inbox}/index.ts`)).toContain("return createInbox(");
  });
});

/** A case of the table "Writes per event", as a merchant would bring it about. */
interface WriteCase {
  /** Begins the case's cell. */
  readonly row: string;
  readonly writes: number;
  readonly copies?: number;
  readonly options?: Partial<ReceiverOptions>;
  readonly payments?: ReceiverOptions["payments"];
  register(receiver: Receiver): void;
}

const nothing = (): void => {};
const writeCases: readonly WriteCase[] = [
  { row: "one handler, and a free place", writes: 2, register: (receiver) => receiver.onDeposit(nothing) },
  {
    row: "n handlers",
    writes: 4,
    register: (receiver) =>
      receiver.onDeposit(nothing).onDeposit(nothing, { name: "b" }).onDeposit(nothing, { name: "c" }),
  },
  {
    row: "a retry",
    writes: 4,
    register: (receiver) =>
      receiver.onDeposit(
        (_, { attempt }) => {
          if (attempt === 1) throw new Error("not yet");
        },
        { backoffMs: () => 1 },
      ),
  },
  {
    row: '`onCrash: "hold"`',
    writes: 3,
    register: (receiver) => receiver.onDeposit(nothing, { onCrash: "hold" }),
  },
  {
    row: '`onCrash: "hold"`, `maxAttempts: 1`',
    writes: 3,
    register: (receiver) => receiver.onDeposit(nothing, { maxAttempts: 1 }),
  },
  {
    row: '`onCrash: "hold"`, `maxAttempts: 1` or a `concurrency`',
    writes: 3,
    register: (receiver) => receiver.onDeposit(nothing, { concurrency: 1 }),
  },
  {
    row: "`oneSuccessPerReference`",
    writes: 4,
    payments: { publicKey, oneSuccessPerReference: true },
    register: (receiver) => receiver.onDeposit(nothing),
  },
  { row: "a copy", writes: 2, copies: 2, register: (receiver) => receiver.onDeposit(nothing) },
];

describe("concepts/inbox.md, writes per event", () => {
  const rows = rowsOf(sectionOf(readDocument("docs/concepts/inbox.md"), "Writes per event"));

  it.each(writeCases)(
    "$row: $writes in all",
    async ({ row, writes, copies = 0, options, payments, register }) => {
      expect(rows.filter(([name]) => name?.startsWith(row))).toHaveLength(1);
      const store = memoryStore();
      let written = 0;
      const counting: RecordStore = {
        ...store,
        swap(items) {
          const results = store.swap(items);
          written += results.filter(({ kind }) => kind === "written").length;
          return results;
        },
      };
      const inbox = createInbox(counting);
      const receiver = createReceiver({ payments: payments ?? { publicKey }, inbox, ...options });
      receiver.ignore("WITHDRAWAL");
      register(receiver);
      const finished = new Promise((resolve) => {
        receiver.observe(({ type }) => type === "finished" && resolve(type));
      });
      await receiver.start();
      const { rawBody, headers } = signPaymentCallback(callbackFields(), privateKey);
      const delivery = { method: "POST", url: "/", headers: new Headers(headers), rawBody };
      for (let sent = 0; sent <= copies; sent++) {
        expect((await receiver.payments.receive(delivery)).status).toBe(200);
      }
      await finished;
      expect(await receiver.close()).toEqual({ unfinished: 0 });
      expect(written).toBe(writes);
    },
  );
});

describe("the tables of the documentation", () => {
  it("say what something does, not that it has been built", () => {
    const cells = documents().flatMap(({ path, prose }) =>
      rowsOf({ lines: prose }).flatMap((row) => row.map((cell) => `${path}: ${cell}`)),
    );
    expect(cells.filter((cell) => /: (?:not )?built\b/i.test(cell))).toEqual([]);
    expect(cells.length).toBeGreaterThan(1_000);
  });
});
