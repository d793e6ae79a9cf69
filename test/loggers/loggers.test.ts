/** The loggers that merchants have: each gets every message with its facts, in the order that it takes them. */
import { Writable } from "node:stream";
import {
  createReceiver,
  type Logger,
  memoryInbox,
  PayhooksError,
  type ReceiverOptions,
  Reject,
} from "@payhooks/core";
import { callbackFields, createTestKeys, signPaymentCallback } from "@payhooks/core/testing";
import bunyan from "bunyan";
import { createConsola } from "consola";
import Fastify from "fastify";
import log4js from "log4js";
import pino from "pino";
import { describe, expect, expectTypeOf, it, vi } from "vitest";
import winston from "winston";

const { publicKey, privateKey } = createTestKeys();

type Given = NonNullable<ReceiverOptions["logger"]>;

/** A stream, and everything that was written to it. */
function sink(): { readonly stream: Writable; readonly text: () => string } {
  let text = "";
  const stream = new Writable({
    write(chunk, _encoding, done) {
      text += String(chunk);
      done();
    },
  });
  return { stream, text: () => text };
}

/** Counts the lines that are written by calls. */
function calls(): { readonly write: (...given: readonly unknown[]) => void; readonly text: () => string } {
  const lines: string[] = [];
  return { write: (...given) => void lines.push(JSON.stringify(given)), text: () => lines.join("\n") };
}

/** A logger, and what it has written. */
type Make = () => { readonly logger: Given; readonly written: () => string };

const LOGGERS: Readonly<Record<string, Make>> = {
  pino() {
    const { stream, text } = sink();
    return { logger: pino({}, stream), written: text };
  },
  "a child of pino"() {
    const { stream, text } = sink();
    return { logger: pino({}, stream).child({ module: "payhooks" }), written: text };
  },
  "Fastify's log"() {
    const { stream, text } = sink();
    return { logger: Fastify({ logger: { level: "info", stream } }).log as Given, written: text };
  },
  bunyan() {
    const { stream, text } = sink();
    return { logger: bunyan.createLogger({ name: "shop", stream }), written: text };
  },
  "a child of bunyan"() {
    const { stream, text } = sink();
    return {
      logger: bunyan.createLogger({ name: "shop", stream }).child({ module: "payhooks" }),
      written: text,
    };
  },
  winston() {
    const { stream, text } = sink();
    const transports = [new winston.transports.Stream({ stream })];
    return { logger: winston.createLogger({ transports }), written: text };
  },
  "a child of winston"() {
    const { stream, text } = sink();
    const transports = [new winston.transports.Stream({ stream })];
    return { logger: winston.createLogger({ transports }).child({ module: "payhooks" }), written: text };
  },
  consola() {
    const { write, text } = calls();
    const reporters = [{ log: ({ args }: { readonly args: readonly unknown[] }) => write(...args) }];
    return { logger: createConsola({ reporters, level: 3 }), written: text };
  },
  log4js() {
    const { write, text } = calls();
    const configure = () => (event: { readonly data: readonly unknown[] }) => write(...event.data);
    log4js.configure({
      appenders: { here: { type: { configure } } },
      categories: { default: { appenders: ["here"], level: "info" } },
    });
    return { logger: log4js.getLogger(), written: text };
  },
  console() {
    const { write, text } = calls();
    for (const level of ["info", "warn", "error"] as const)
      vi.spyOn(console, level).mockImplementation(write);
    return { logger: console, written: text };
  },
  "one of the merchant's own"() {
    const { write, text } = calls();
    return { logger: { info: write, warn: write, error: write }, written: text };
  },
};

/** Has an event rejected, whose handler writes a line of its own. */
async function rejectOne(logger: Given): Promise<void> {
  const receiver = createReceiver({ payments: { publicKey }, inbox: memoryInbox(), logger });
  receiver.ignore("WITHDRAWAL").onDeposit(({ referenceId }, { log }) => {
    log.info("a line of the handler", { invoice: `invoice of ${referenceId}` });
    log.warn("a line without facts");
    throw new Reject("no such order");
  });
  const { rawBody, headers } = signPaymentCallback(callbackFields({ referenceId: "order-7" }), privateKey);
  await receiver.payments.receive(
    { method: "POST", url: "/", headers: { get: (name) => headers[name] ?? null }, rawBody },
    { mounted: true },
  );
  await expect.poll(async () => (await receiver.events.counts()).held).toBe(1);
  await receiver.close();
}

describe.each(Object.entries(LOGGERS))("%s", (_, make) => {
  it("writes every message with its facts", async () => {
    const { logger, written } = make();
    await rejectOne(logger);
    await expect
      .poll(written)
      .toSatisfy((text: string) =>
        [
          "a line of the handler",
          "invoice of order-7",
          "a line without facts",
          "given-up: a handler failed and will not run again",
          "no such order",
          "held: the event does not run until a person decides",
          '"referenceId":"order-7"',
        ].every((part) => text.includes(part)),
      );
    vi.restoreAllMocks();
  });
});

describe("a level of the logger", () => {
  it.each(["pino", "winston", "bunyan"] as const)("of %s leaves out what is below it", async (kind) => {
    const { stream, text } = sink();
    const logger = {
      pino: () => pino({ level: "error" }, stream),
      winston: () =>
        winston.createLogger({ level: "error", transports: [new winston.transports.Stream({ stream })] }),
      bunyan: () => bunyan.createLogger({ name: "shop", stream, level: "error" }),
    }[kind]();
    await rejectOne(logger);
    await expect.poll(text).toContain("given-up");
    expect(text()).not.toContain("a line of the handler");
  });
});

describe("a logger that fails", () => {
  const hostile = new Proxy(
    {},
    {
      get() {
        throw new Error("no property");
      },
    },
  );
  it.each<[string, () => unknown]>([
    [
      "by throwing",
      () => {
        throw new Error("the disk is full");
      },
    ],
    ["by rejecting", () => Promise.reject(new Error("the disk is full"))],
    ["by an answer that cannot be read", () => hostile],
  ])("%s does no harm to events or to the process", async (_, write) => {
    const unhandled = vi.fn();
    process.on("unhandledRejection", unhandled);
    const facing = { info: write, warn: write, error: write };
    await rejectOne(facing as Logger);
    await rejectOne({ ...facing, bindings: () => ({}) } as Given);
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  });
});

describe("a value that is not a logger", () => {
  const debug = Object.assign(() => {}, { enabled: true });
  /** Nest's own has no `info`. */
  const nest = { log: () => {}, warn: () => {}, error: () => {} };
  it.each<[string, unknown, string]>([
    ["a function such as debug's", debug, "info, no warn, no error"],
    ["Nest's logger", nest, "info"],
    ["a text", "console", "info, no warn, no error"],
    ["methods that are none", { info: true, warn() {}, error() {} }, "info"],
  ])("is refused at the start: %s", (_, logger, missing) => {
    const make = (): unknown =>
      createReceiver({ payments: { publicKey }, inbox: memoryInbox(), logger: logger as Logger });
    expect(make).toThrow(PayhooksError);
    expect(make).toThrow(`The logger has no ${missing}.`);
  });

  it("is refused by the types, and what fits is not", () => {
    expectTypeOf(debug).not.toExtend<Given>();
    expectTypeOf(nest).not.toExtend<Given>();
    // Nothing tells that this one takes its facts first.
    type FactsFirst = (facts: object, message: string) => void;
    expectTypeOf<{ info: FactsFirst; warn: FactsFirst; error: FactsFirst }>().not.toExtend<Given>();
    expectTypeOf<pino.Logger>().toExtend<Given>();
    expectTypeOf<winston.Logger>().toExtend<Given>();
    expectTypeOf<bunyan>().toExtend<Given>();
    expectTypeOf<Console>().toExtend<Given>();
  });
});
