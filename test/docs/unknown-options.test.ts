import { payhooksConsole } from "@payhooks/console";
import {
  createReceiver,
  memoryInbox,
  serviceNames,
  verifyConnectWebhook,
  verifyPaymentCallback,
} from "@payhooks/core";
import { durableObjectInbox } from "@payhooks/core/durable-object";
import { mysqlEffects } from "@payhooks/core/effects/mysql";
import {
  drizzleEffects,
  kyselyEffects,
  pgEffects,
  postgresJsEffects,
  prismaEffects,
} from "@payhooks/core/effects/postgres";
import { sqliteEffects } from "@payhooks/core/effects/sqlite";
import { paymentCallbacks as onFetch } from "@payhooks/core/fetch";
import { mysqlInbox } from "@payhooks/core/mysql";
import { otel } from "@payhooks/core/otel";
import { postgresInbox } from "@payhooks/core/postgres";
import { redisInbox } from "@payhooks/core/redis";
import { sqliteInbox } from "@payhooks/core/sqlite";
import { createHarness, createTestKeys } from "@payhooks/core/testing";
import { workRoute } from "@payhooks/next";
import { describe, expect, it } from "vitest";
import { ADAPTERS, packageOf } from "../adapters.ts";
import { silent } from "../support/silent.ts";
import { namesIn, readDocument, sectionOf } from "./markdown.ts";

/** Options as JavaScript may give them. */
// biome-ignore lint/suspicious/noExplicitAny: the compiler would refuse them
type Given = any;

const { publicKey } = createTestKeys();
const receiver = createReceiver({ payments: { publicKey }, inbox: memoryInbox(), logger: silent });
receiver.onDeposit(() => {});

const mounts = await Promise.all(
  ADAPTERS.map(async (adapter) => {
    const { paymentCallbacks, PayhooksModule } = await import(packageOf(adapter));
    const take = (options: Given): unknown =>
      paymentCallbacks?.(receiver, options) ?? PayhooksModule.forRoot({ receiver, ...options });
    return [adapter.title, take] as const;
  }),
);

/** The function that takes the options of each section of options.md. */
const TAKERS: Readonly<Record<string, (options: Given) => unknown>> = {
  createReceiver: (options) => createReceiver({ payments: { publicKey }, ...options }),
  limits: (limits) => createReceiver({ payments: { publicKey }, limits }),
  serviceNames: (options) => serviceNames(options),
  payments: (payments) => createReceiver({ payments }),
  keep: (keep) => createReceiver({ payments: { publicKey, keep: { signedTextMs: 1, ...keep } } }),
  "payments.expect": (expected) => createReceiver({ payments: { publicKey, expect: expected } }),
  connect: (connect) => createReceiver({ connect }),
  otel: (options) => otel(options),
  alerts: (alerts) => createReceiver({ payments: { publicKey }, alerts }),
  Handlers: (options) => createReceiver({ payments: { publicKey } }).onDeposit(() => {}, options),
  memoryInbox: (options) => memoryInbox(options),
  "Every durable inbox": (options) => sqliteInbox("never-opened.db", options),
  sqliteInbox: (options) => sqliteInbox("never-opened.db", options),
  postgresInbox: (options) => postgresInbox("postgres://localhost/never", options),
  mysqlInbox: (options) => mysqlInbox("mysql://localhost/never", options),
  redisInbox: (options) => redisInbox("redis://localhost/never", options),
  durableObjectInbox: (options) => durableObjectInbox({} as Given, options),
  ...Object.fromEntries(mounts),
  workRoute: (options) => workRoute(receiver, options),
  "Lists of events": (options) => receiver.events.list(options),
  Readiness: (options) => receiver.ready(options),
  Fetch: (options) => onFetch(receiver, options),
};

/** Functions whose options are on other pages, or belong to one call. */
const OTHERS: Readonly<Record<string, (options: Given) => unknown>> = {
  verifyPaymentCallback: (options) => verifyPaymentCallback(new Uint8Array(), { publicKey, ...options }),
  verifyConnectWebhook: (options) =>
    verifyConnectWebhook(new Uint8Array(), null, { secret: "whsec_0123456789abcdef", ...options }),
  work: (options) => receiver.work(options),
  close: (options) => receiver.close(options),
  ingest: (options) => receiver.payments.ingest({} as Given, options),
  replay: (options) => receiver.events.replay("0".repeat(48), { by: "a", note: "b", ...options }),
  retryNow: (options) => receiver.events.retryNow("0".repeat(48), { by: "a", note: "b", ...options }),
  discard: (options) => receiver.events.discard("0".repeat(48), { by: "a", note: "b", ...options }),
  erase: (options) => receiver.events.erase("0".repeat(48), { by: "a", ...options }),
  pgEffects: (options) => pgEffects({} as Given, options),
  postgresJsEffects: (options) => postgresJsEffects({} as Given, options),
  drizzleEffects: (options) => drizzleEffects({} as Given, options),
  kyselyEffects: (options) => kyselyEffects({} as Given, options),
  prismaEffects: (options) => prismaEffects({} as Given, options),
  mysqlEffects: (options) => mysqlEffects({} as Given, options),
  sqliteEffects: (options) => sqliteEffects({} as Given, options),
  createHarness: (options) => createHarness({ register: () => {}, ...options }),
  payhooksConsole: (options) => payhooksConsole(receiver, { authorize: () => null, ...options }),
};

async function errorOf(call: () => unknown): Promise<unknown> {
  try {
    await call();
    return null;
  } catch (error) {
    return error;
  }
}

describe("an option that does not exist", () => {
  const page = readDocument("docs/reference/options.md");

  it("is tried for every table of the reference", () => {
    const withTable = page.sections
      .filter(({ title, level }) => level === 2 && namesIn(sectionOf(page, title)).length > 0)
      .map(({ title }) => title);
    expect(Object.keys(TAKERS).sort()).toEqual(withTable.sort());
  });

  it.each(Object.entries({ ...TAKERS, ...OTHERS }))("is refused, and named: %s", async (_, take) => {
    const error = await errorOf(() => take({ mistyped: true }));
    expect(error).toMatchObject({
      code: expect.stringMatching(/^ERR_(?:OPTION|NAMES)_INVALID$/),
      message: expect.stringContaining('"mistyped"'),
    });
  });

  it.each(Object.entries(TAKERS))("does not count when it is undefined: %s", async (_, take) => {
    const error = await errorOf(() => take({ mistyped: undefined }));
    expect(String((error as Error | null)?.message)).not.toContain("mistyped");
  });

  it.each(Object.entries(TAKERS))("is not one that the reference has: %s", async (section, take) => {
    for (const name of namesIn(sectionOf(page, section))) {
      const error = await errorOf(() => take({ [name]: null }));
      expect(String((error as Error | null)?.message)).not.toContain("has no option");
    }
  });
});

describe("a value that no event can have", () => {
  it.each([
    ["Lists of events", { state: "done" }, 'The state of events.list is "done". It can be waiting, retrying'],
    ["Lists of events", { flow: "payment" }, 'The flow of events.list is "payment"'],
    ["Lists of events", { reason: "conflicts" }, 'The reason of events.list is "conflicts"'],
    ["Lists of events", { since: new Date(Number.NaN) }, "since is Invalid Date"],
    ["Lists of events", { until: "yesterday" }, "until is yesterday"],
  ] as const)("is refused by %s, since it would find nothing: %j", async (call, filter, text) => {
    expect(await errorOf(() => TAKERS[call]?.(filter))).toMatchObject({
      code: "ERR_OPTION_INVALID",
      message: expect.stringContaining(text),
    });
  });
});
