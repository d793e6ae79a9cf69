import { describe, expect, it } from "vitest";
import { Registry } from "../../packages/core/src/handlers/registry.ts";
import { LOG_RULES } from "../../packages/core/src/notices/log-lines.ts";
import { ANSWER_STATUS } from "../../packages/core/src/protocol/errors.ts";
import { settingsOf } from "../../packages/core/src/receiver/options.ts";
import { forAdapters } from "../adapters.ts";
import { documents, itemsOf, namesIn, readDocument, rowsOf, sectionOf } from "./markdown.ts";
import { VirtualProgram } from "./program.ts";
import { declaredIn, entries } from "./public-names.ts";

/** The options that every durable inbox has, as a type. They have a table of their own. */
const ofEveryInbox = [
  'import("@payhooks/core/sqlite").SqliteInboxOptions',
  'import("@payhooks/core/postgres").PostgresInboxOptions',
  'import("@payhooks/core/mysql").MysqlInboxOptions',
  'import("@payhooks/core/redis").RedisInboxOptions',
]
  .map((options) => `keyof ${options}`)
  .join(" & ");

/** The section in which each name of a type has its row, and no other name has one. */
const tables: Readonly<Record<string, { page: string; section: string; type: string; column?: number }>> = {
  limits: {
    page: "docs/reference/options.md",
    section: "limits",
    type: 'keyof NonNullable<import("@payhooks/core").ReceiverOptions["limits"]>',
  },
  "options of createReceiver": {
    page: "docs/reference/options.md",
    section: "createReceiver",
    type: 'keyof import("@payhooks/core").ReceiverOptions',
  },
  "options of serviceNames": {
    page: "docs/reference/options.md",
    section: "serviceNames",
    type: 'keyof import("@payhooks/core").ServiceNamesOptions',
  },
  "options of payments": {
    page: "docs/reference/options.md",
    section: "payments",
    type: 'keyof import("@payhooks/core").PaymentsOptions',
  },
  "options of payments.expect": {
    page: "docs/reference/options.md",
    section: "payments.expect",
    type: 'keyof import("@payhooks/core").PaymentExpectations',
  },
  "options of connect": {
    page: "docs/reference/options.md",
    section: "connect",
    type: 'keyof import("@payhooks/core").ConnectOptions',
  },
  "options of the alerts": {
    page: "docs/reference/options.md",
    section: "alerts",
    type: 'keyof import("@payhooks/core").AlertOptions',
  },
  "options of sendAlerts": {
    page: "docs/operating/alerts.md",
    section: "Options of sendAlerts",
    type: 'keyof import("@payhooks/core/alerts").SendAlertsOptions',
  },
  "options of otel": {
    page: "docs/reference/options.md",
    section: "otel",
    type: 'keyof import("@payhooks/core/otel").OtelOptions',
  },
  "options of handlers": {
    page: "docs/reference/options.md",
    section: "Handlers",
    type: 'keyof import("@payhooks/core").HandlerOptions',
  },
  "options of memoryInbox": {
    page: "docs/reference/options.md",
    section: "memoryInbox",
    type: 'keyof import("@payhooks/core").MemoryInboxOptions',
  },
  "options of every durable inbox": {
    page: "docs/reference/options.md",
    section: "Every durable inbox",
    type: ofEveryInbox,
  },
  "options of sqliteInbox": {
    page: "docs/reference/options.md",
    section: "sqliteInbox",
    type: `Exclude<keyof import("@payhooks/core/sqlite").SqliteInboxOptions, ${ofEveryInbox}>`,
  },
  "options of postgresInbox": {
    page: "docs/reference/options.md",
    section: "postgresInbox",
    type: `Exclude<keyof import("@payhooks/core/postgres").PostgresInboxOptions, ${ofEveryInbox}>`,
  },
  "options of mysqlInbox": {
    page: "docs/reference/options.md",
    section: "mysqlInbox",
    type: `Exclude<keyof import("@payhooks/core/mysql").MysqlInboxOptions, ${ofEveryInbox}>`,
  },
  "options of redisInbox": {
    page: "docs/reference/options.md",
    section: "redisInbox",
    type: `Exclude<keyof import("@payhooks/core/redis").RedisInboxOptions, ${ofEveryInbox}>`,
  },
  "options of durableObjectInbox": {
    page: "docs/reference/options.md",
    section: "durableObjectInbox",
    type: 'keyof import("@payhooks/core/durable-object").DurableObjectInboxOptions',
  },
  ...forAdapters(({ name, title, options }) => [
    `options of the ${title} adapter`,
    {
      page: "docs/reference/options.md",
      section: title,
      type: `keyof import("@payhooks/${name}").${options}`,
    },
  ]),
  "options of workRoute": {
    page: "docs/reference/options.md",
    section: "workRoute",
    type: 'keyof import("@payhooks/next").WorkRouteOptions',
  },
  "options of events.list": {
    page: "docs/reference/options.md",
    section: "Lists of events",
    type: 'keyof import("@payhooks/core").EventQuery',
  },
  "options of ready": {
    page: "docs/reference/options.md",
    section: "Readiness",
    type: 'keyof import("@payhooks/core").ReadyOptions',
  },
  "members of a receiver": {
    page: "docs/reference/receiver.md",
    section: "Members",
    type: 'Exclude<keyof import("@payhooks/core").Receiver, keyof typeof import("../../packages/core/src/protocol/events.ts").EVENTS>',
  },
  "fields of the report of work": {
    page: "docs/reference/receiver.md",
    section: "work",
    type: 'keyof import("@payhooks/core").WorkReport',
  },
  "options of a replay": {
    page: "docs/reference/receiver.md",
    section: "Decisions",
    type: 'Exclude<keyof Parameters<import("@payhooks/core").Receiver["events"]["replay"]>[1], "by" | "note" | keyof import("@payhooks/core").BulkOptions>',
  },
  "options of decisions about several events": {
    page: "docs/reference/receiver.md",
    section: "Decisions about several events",
    type: 'keyof import("@payhooks/core").BulkOptions',
  },
  "options of keep": {
    page: "docs/reference/options.md",
    section: "keep",
    type: 'keyof import("@payhooks/core").KeepOptions',
  },
  "outcomes of ingest": {
    page: "docs/reference/receiver.md",
    section: "ingest",
    type: 'import("@payhooks/core").IngestResult["outcome"]',
  },
  "options of the fetch adapter": {
    page: "docs/reference/options.md",
    section: "Fetch",
    type: 'keyof import("@payhooks/core/fetch").FetchOptions',
  },
  "options of the console": {
    page: "docs/operating/console.md",
    section: "Options",
    type: 'keyof import("@payhooks/console").ConsoleOptions',
  },
  "options of createHarness": {
    page: "docs/guides/testing.md",
    section: "createHarness",
    type: 'keyof import("@payhooks/core/testing").HarnessOptions',
  },
  "members of a harness": {
    page: "docs/guides/testing.md",
    section: "The harness",
    type: 'keyof import("@payhooks/core/testing").Harness',
  },
  "fields of a delivery to a harness": {
    page: "docs/guides/testing.md",
    section: "What became of a delivery",
    type: 'keyof import("@payhooks/core/testing").HarnessDelivery',
  },
  "functions for tests": {
    page: "docs/guides/testing.md",
    section: "Signed deliveries",
    type: 'keyof typeof import("@payhooks/core/testing")',
  },
  "fields of ctx": {
    page: "docs/guides/handlers.md",
    section: "The context",
    type: 'keyof import("@payhooks/core").EffectContext<unknown>',
  },
  "options of effects": {
    page: "docs/guides/exactly-once.md",
    section: "Options",
    type: 'keyof import("@payhooks/core/effects/postgres").PrismaEffectsOptions',
  },
  "members of effects": {
    page: "docs/guides/exactly-once.md",
    section: "Any other client",
    type: 'Exclude<keyof import("@payhooks/core/effects").OwnClient<unknown>, "refused">',
  },
  notices: {
    page: "docs/reference/notices.md",
    section: "Notices",
    type: 'import("@payhooks/core").Notice["type"]',
  },
  "calls of inbox-error": {
    page: "docs/reference/notices.md",
    section: "What `during` says",
    type: 'Extract<import("@payhooks/core").Notice, { type: "inbox-error" }>["during"]',
    column: 1,
  },
  "kinds of alert": {
    page: "docs/operating/operations.md",
    section: "Alerts",
    type: 'import("@payhooks/core").Alert["kind"]',
  },
  "fields of health": {
    page: "docs/operating/operations.md",
    section: "Health",
    type: 'keyof import("@payhooks/core").Health',
  },
  "reasons to hold": {
    page: "docs/concepts/deduplication.md",
    section: "Held",
    type: 'import("@payhooks/core").HeldReason',
  },
  "reasons to hold, day to day": {
    page: "docs/operating/operations.md",
    section: "Held entries",
    type: 'import("@payhooks/core").HeldReason',
  },
  "states of a slot": {
    page: "docs/concepts/deduplication.md",
    section: "The life of a slot",
    type: 'import("../../packages/core/src/inbox/record/event.ts").SlotState',
  },
  "error codes of the sandbox": {
    page: "docs/guides/sandbox.md",
    section: "Errors",
    type: 'import("@payhooks/sandbox").SandboxErrorCode',
  },
  "traits of a store": {
    page: "docs/guides/adding-a-store.md",
    section: "The tests",
    type: 'keyof import("@payhooks/core/testing/store").StoreTraits',
  },
};

/** Sections of errors.md, each with its part of the union. */
const errorSections: Readonly<Record<string, string>> = {
  "Answers to deliveries": "DeliveryErrorCode",
  "Verification alone": "VerificationErrorCode",
  "Set-up": "SetupErrorCode",
  Usage: "UsageErrorCode",
};

const types = [
  ...Object.values(tables).map(({ type }, index) => `export type Table${index} = ${type};`),
  ...Object.values(errorSections).map(
    (type) => `export type { ${type} } from "../../packages/core/src/protocol/errors.ts";`,
  ),
];

describe("the reference in the documentation", () => {
  const program = new VirtualProgram({ "types.ts": types.join("\n") });

  it("is compared with types that exist", () => {
    expect(program.errorsOf("types.ts")).toEqual([]);
  });

  it.each(Object.entries(tables).map(([what, place], index) => ({ what, ...place, index })))(
    "has a row for each of the $what, and no other: $page, $section",
    ({ page, section, column = 0, index }) => {
      const names = namesIn(sectionOf(readDocument(page), section), column);
      expect([...names].sort()).toEqual(program.literalsOf("types.ts", `Table${index}`));
    },
  );

  it.each(Object.entries(errorSections))(
    "has a heading for each code, and no other: errors.md, %s",
    (title, type) => {
      const { sections } = readDocument("docs/reference/errors.md");
      const start = sections.findIndex((section) => section.title === title);
      const end = sections.findIndex((section, index) => index > start && section.level <= 2);
      const codes = sections.slice(start + 1, end < 0 ? undefined : end).map((section) => section.title);
      expect([...codes].sort()).toEqual(program.literalsOf("types.ts", type));
    },
  );
});

describe("options that users can give", () => {
  /** Why a type of options has no table. */
  const without: Readonly<Record<string, string>> = {
    InboxOptions: "experimental: the docstrings are the contract",
    MemoryStoreOptions: "experimental: the docstrings are the contract",
    ResealOptions: "the docstrings are the contract; cli.md has those of payhooks reseal",
    MoveOptions: "experimental: the docstrings are the contract",
    SqliteStoreOptions: "experimental: the docstrings are the contract",
    RedisStoreOptions: "experimental: the docstrings are the contract",
    EffectsOptions: "exactly-once.md has them with those of the clients",
    PostgresEffectsOptions: "exactly-once.md has them with those of the clients",
    MysqlEffectsOptions: "exactly-once.md has them with those of the clients",
    SqliteEffectsOptions: "exactly-once.md has them with those of the clients",
    MysqlStoreOptions: "those of mysqlInbox, without what the engine takes",
    PostgresStoreOptions: "those of postgresInbox, without what the engine takes",
    PagerDutyChannelOptions: "alerts.md shows each where it is needed",
    ShadowOptions: "moving.md shows its one option where it is needed",
    WebhookChannelOptions: "alerts.md shows each where it is needed",
    SourceOptions: "any-sender.md shows each where it is needed",
    HmacOptions: "any-sender.md shows each where it is needed",
    PublicKeySignatureOptions: "any-sender.md shows each where it is needed",
    TokenOptions: "any-sender.md shows each where it is needed",
    VerifyOptions: "any-sender.md shows each where it is needed",
    ReadySourceOptions: "any-sender.md shows each where it is needed",
    StandardWebhooksOptions: "any-sender.md shows each where it is needed",
    NodeFlowOptions: "how an adapter reads requests; the docstrings are the contract",
    PayhooksFactoryOptions: "those of PayhooksModule, without the name",
    PayhooksModuleAsyncOptions: "NestJS's own, with the name",
    MethodOptions: "those of handlers, with the name of a receiver",
    PaymentMethodOptions: "those of handlers, with statuses",
    StripeOptions: "any-sender.md shows each where it is needed",
  };
  const compared = Object.values(tables).map(({ type }) => type);
  /** client.md and sandbox.md are compared by tests of their own. */
  const elsewhere: ReadonlySet<string> = new Set(["@payhooks/client", "@payhooks/sandbox"]);

  it("have a table that is compared above", () => {
    const found = entries
      .filter(({ specifier }) => !elsewhere.has(specifier))
      .map((entry) => ({ ...entry, ...declaredIn(entry) }));
    const options = found.flatMap(({ specifier, declared }) =>
      declared.flatMap(({ name, kind, where }) =>
        kind === "type" && name.endsWith("Options") ? [{ specifier, name, where }] : [],
      ),
    );
    // A type that two entry points export needs one table.
    const isCompared = (name: string, where: string): boolean =>
      options.some(
        (one) =>
          one.name === name &&
          one.where === where &&
          compared.some((type) => type.includes(`keyof import("${one.specifier}").${name}`)),
      );
    const missing = options.filter(
      ({ name, where }) => !Object.hasOwn(without, name) && !isCompared(name, where),
    );
    expect(missing.map(({ specifier, name }) => `${specifier}: ${name}`)).toEqual([]);
    expect(Object.keys(without).filter((name) => !options.some((one) => one.name === name))).toEqual([]);
  });
});

describe("the log in the documentation", () => {
  const notices = itemsOf(sectionOf(readDocument("docs/reference/notices.md"), "Notices"));

  it.each(Object.entries(LOG_RULES))("has the level of %s", (type, rule) => {
    expect(notices.get(type)).toBe(rule?.level ?? "");
  });

  it("has the bound of each", () => {
    const bounds = rowsOf(sectionOf(readDocument("docs/operating/operations.md"), "Log")).map(
      ([, bound]) => bound,
    );
    expect(bounds).toEqual(["1", "10", "100", "every one"]);
    const used = Object.values(LOG_RULES).flatMap((rule) => (rule === null ? [] : [rule.perMinute]));
    expect([...new Set(used)].sort((a, b) => a - b)).toEqual([1, 10, 100, Number.POSITIVE_INFINITY]);
  });
});

describe("HTTP statuses in the documentation", () => {
  const statuses: Readonly<Record<string, number>> = ANSWER_STATUS;
  /** Signatures are answered by the flow: 401 in payments, 400 in connect. */
  const expected = (code: string): readonly number[] =>
    code.startsWith("ERR_SIGNATURE_") ? [401, 400] : [statuses[code] ?? 0];

  it.each(Object.keys(ANSWER_STATUS))(
    "errors.md begins %s with the status that it is answered with",
    (code) => {
      const text = sectionOf(readDocument("docs/reference/errors.md"), code).lines.join(" ").trim();
      expect(Number(/^\*\*(\d{3})\*\*/.exec(text)?.[1])).toBe(expected(code)[0]);
    },
  );

  it("are the ones that the codes in the same row of a table are answered with", () => {
    const rows = documents().flatMap((document) => rowsOf({ lines: document.prose }));
    let compared = 0;
    for (const row of rows) {
      const codes = [...row.join(" ").matchAll(/\bERR_\w+/g)].map(([code]) => code);
      const status = row.map((cell) => /^(\d{3})$/.exec(cell)?.[1]).find((found) => found !== undefined);
      if (status === undefined) continue;
      for (const code of codes.filter((one) => Object.hasOwn(statuses, one))) {
        expect(expected(code), row.join(" | ")).toContain(Number(status));
        compared++;
      }
    }
    expect(compared).toBeGreaterThan(20);
  });
});

describe("defaults in options.md", () => {
  const defaultIn = (section: string, option: string): string =>
    rowsOf(sectionOf(readDocument("docs/reference/options.md"), section)).find(
      ([name]) => name === `\`${option}\``,
    )?.[1] ?? "";

  it.each(Object.entries(settingsOf({ payments: { publicKey: undefined } })))(
    "of %s is what a receiver that is not told otherwise uses",
    (option, value) => {
      const given = defaultIn("createReceiver", option) || defaultIn("limits", option);
      expect(defaultOf(given)).toBe(value);
    },
  );

  it.each(["timeoutMs", "maxAttempts", "onCrash", "onTimeout"] as const)(
    "of a handler's %s is what it gets",
    (option) => {
      const registry = new Registry();
      registry.add("DEPOSIT", () => {}, {});
      expect(defaultOf(defaultIn("Handlers", option))).toBe(
        registry.handlersOf("payments", "DEPOSIT")[0]?.[option],
      );
    },
  );

  const UNITS: Readonly<Record<string, number>> = {
    "": 1,
    s: 1_000,
    minutes: 60_000,
    days: 86_400_000,
    KiB: 1024,
  };

  /** `"text"`, or a number with a unit, as the program has it. */
  function defaultOf(text: string): string | number | undefined {
    if (text === "by the platform" || text === "") return undefined;
    const [, quoted] = /^`"(.*)"`$/.exec(text) ?? [];
    if (quoted !== undefined) return quoted;
    const [, digits = "", unit = ""] = /^([\d,]+) ?(\w*)$/.exec(text) ?? [];
    return Number(digits.replaceAll(",", "")) * (UNITS[unit] ?? Number.NaN);
  }
});
