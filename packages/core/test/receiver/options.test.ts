import {
  type ConnectOptions,
  createReceiver,
  memoryInbox,
  type Receiver,
  type ReceiverOptions,
} from "@payhooks/core";
import { mysqlEffects } from "@payhooks/core/effects/mysql";
import {
  drizzleEffects,
  kyselyEffects,
  pgEffects,
  postgresJsEffects,
  prismaEffects,
} from "@payhooks/core/effects/postgres";
import { mysqlInbox } from "@payhooks/core/mysql";
import { otel } from "@payhooks/core/otel";
import { postgresInbox } from "@payhooks/core/postgres";
import { redisInbox } from "@payhooks/core/redis";
import { sqliteInbox } from "@payhooks/core/sqlite";
import { callbackFields, createTestKeys, fakeClock, signPaymentCallback } from "@payhooks/core/testing";
import { afterEach, describe, expect, it, vi } from "vitest";
import { codeOfReply, deliveryOf, rejectedBy, SECRET, thrownBy } from "../receiving.ts";

const { publicKey, privateKey } = createTestKeys();
const payments = { publicKey };
const silent = { info() {}, warn() {}, error() {} };
const make = (options: object = {}): Receiver => {
  const clock = fakeClock();
  const inbox = memoryInbox({ clock, maxRecords: 100 });
  return createReceiver({ payments, logger: silent, clock, inbox, ...options } as ReceiverOptions);
};
/** A client of no database. Options are checked before it is used. */
const noClient = {} as never;
/** Options that are numbers, and what is refused beside what is refused for each. */
const FRACTION = 1.5;
const ENDLESS = Number.POSITIVE_INFINITY;
/** A record with a time that far from now could not be read again. */
const AGES = Number.MAX_SAFE_INTEGER;
const NUMBERS: Readonly<Record<string, readonly number[]>> = {
  handledBudgetMs: [ENDLESS, AGES],
  concurrency: [FRACTION, ENDLESS],
  windowMs: [ENDLESS, AGES],
};
const LIMITS: Readonly<Record<string, readonly number[]>> = {
  maxInFlight: [FRACTION],
  maxResolving: [FRACTION],
  maxHeld: [FRACTION],
  maxBodyBytes: [FRACTION],
  bodyTimeoutMs: [ENDLESS, AGES],
  acceptTimeoutMs: [ENDLESS, AGES],
};

afterEach(() => {
  vi.unstubAllEnvs();
});

/** The properties of every object. */
const INHERITED = Object.getOwnPropertyNames(Object.prototype);

describe("createReceiver", () => {
  const REFUSED: readonly (readonly [string, unknown, RegExp])[] = [
    ["no options", undefined, /no options/],
    ["null", null, /no options/],
    ["no flow", {}, /Every flow is off/],
    ["flows of undefined", { payments: undefined, connect: undefined }, /Every flow is off/],
    [
      "an unknown option",
      { payments, retries: 3 },
      /no option "retries".*payments, connect, sources, names, inbox/,
    ],
    ["a misspelled option", { payments, loglevel: "info" }, /no option "loglevel"/],
    [
      "a limit that is no limit",
      { payments, limits: { maxbodybytes: 3 } },
      /limits has no option "maxbodybytes"/,
    ],
    ["a limit outside of limits", { payments, maxBodyBytes: 3 }, /no option "maxBodyBytes".*limits/],
    [
      "a flag in words",
      { payments: { publicKey, oneSuccessPerReference: "true" } },
      /oneSuccessPerReference is "true".*true or false/,
    ],
    [
      "a flag that is a number",
      { payments: { publicKey, oneSuccessPerReference: 1 } },
      /oneSuccessPerReference is 1/,
    ],
    ["unsigned in words", { connect: { unsafeAllowUnsigned: "true" } }, /unsafeAllowUnsigned is "true"/],
    [
      "a badSignatureStatus that would accept the delivery",
      { connect: { secret: SECRET, badSignatureStatus: 200 } },
      /badSignatureStatus is 200.*400 or 401/,
    ],
    [
      "a status in words",
      { connect: { secret: SECRET, badSignatureStatus: "401" } },
      /badSignatureStatus is "401"/,
    ],
    ["limits that are none", { payments, limits: null }, /options of limits are not an object/],
    ["an unknown ack", { payments, ack: "done" }, /ack is "done".*"enqueued" or "handled"/],
    ["an unknown run", { payments, run: "now" }, /run is "now".*"background"/],
    ["run elsewhere with ack handled", { payments, run: "elsewhere", ack: "handled" }, /is not possible/],
    ...Object.entries(NUMBERS).flatMap(([name, more]) =>
      [0, -1, Number.NaN, "5", null, ...more].map((value): readonly [string, unknown, RegExp] => [
        `${name}: ${String(value)}`,
        { payments, [name]: value },
        new RegExp(name),
      ]),
    ),
    ...Object.entries(LIMITS).flatMap(([name, more]) =>
      [0, -1, Number.NaN, "5", null, ...more].map((value): readonly [string, unknown, RegExp] => [
        `limits.${name}: ${String(value)}`,
        { payments, limits: { [name]: value } },
        new RegExp(`limits\\.${name}`),
      ]),
    ),
  ];
  it.each(REFUSED)("refuses %s", (_, options, message) => {
    const error = thrownBy(() => createReceiver(options as ReceiverOptions));
    expect(error.code).toBe("ERR_OPTION_INVALID");
    expect(error.message).toMatch(message);
    expect(error.fix).not.toBe("");
  });

  it.each([
    { leaseMs: 0 },
    { leaseMs: ENDLESS },
    { leaseMs: AGES },
    { leaseMs: "30000" as never },
    { pollMs: 0 },
    { pollMs: ENDLESS },
  ])("refuses an inbox with %o", (options) => {
    const error = thrownBy(() => sqliteInbox("never-opened.db", options));
    expect(error.code).toBe("ERR_OPTION_INVALID");
    expect(error.message).toContain(Object.keys(options)[0]);
  });

  it.each([
    ["existing", (options: object) => sqliteInbox("never-opened.db", options)],
    ["existing", (options: object) => redisInbox("redis://nowhere.example", options)],
    ["migrate", (options: object) => mysqlInbox("mysql://nowhere.example/shop", options)],
    ["migrate", (options: object) => postgresInbox("postgres://nowhere.example/shop", options)],
    ["pooled", (options: object) => postgresInbox("postgres://nowhere.example/shop", options)],
    ["personal", (options: object) => otel(options)],
    ["createTable", (options: object) => pgEffects(noClient, options)],
    ["createTable", (options: object) => postgresJsEffects(noClient, options)],
    ["createTable", (options: object) => drizzleEffects(noClient, options)],
    ["createTable", (options: object) => kyselyEffects(noClient, options)],
    ["createTable", (options: object) => prismaEffects(noClient, options)],
    ["createTable", (options: object) => mysqlEffects(noClient, options)],
  ])("refuses the flag %s in words", (name, open) => {
    const error = thrownBy(() => open({ [name]: "false" }));
    expect(error.code).toBe("ERR_OPTION_INVALID");
    expect(error.message).toContain(`${name} of`);
    expect(error.message).toContain('"false"');
  });

  it("refuses texts in place of the flags of a decision", async () => {
    const { events, payments: endpoint } = make();
    const id = "0".repeat(64);
    const by = "a test";
    const words = "false" as never;
    const decisions: readonly (readonly [string, Promise<unknown>])[] = [
      ["repeatEffects", events.replay(id, { by, note: "", repeatEffects: words })],
      ["evenIfExpired", events.replay(id, { by, note: "", evenIfExpired: words })],
      ["unfinished", events.erase(id, { by, unfinished: words })],
      ["dryRun", events.discard([id], { by, note: "", dryRun: words })],
      ["certain", endpoint.markHandled({ id: "1", event: "DEPOSIT" }, { certain: words })],
    ];
    for (const [name, deciding] of decisions) {
      const error = await rejectedBy(deciding);
      expect([error.code, error.message]).toEqual(["ERR_OPTION_INVALID", expect.stringContaining(name)]);
    }
  });

  it("accepts undefined for every option", () => {
    const names = [
      ...Object.keys(NUMBERS),
      "limits",
      "connect",
      "inbox",
      "ack",
      "run",
      "alerts",
      "logger",
      "clock",
    ];
    const options = Object.fromEntries(names.map((name) => [name, undefined]));
    expect(() => createReceiver({ ...options, payments: { publicKey: undefined } })).not.toThrow();
  });

  it("does no I/O and starts no timer, even without secrets, with a missing file, or in production", () => {
    vi.stubEnv("NODE_ENV", "production");
    const before = process.getActiveResourcesInfo();
    const keys = vi.fn(() => null);
    const receivers = [
      createReceiver({ payments: { publicKey: undefined }, connect: { secret: undefined } }),
      createReceiver({ payments: { publicKey: { file: "/nowhere/key.pem" } } }),
      createReceiver({ payments: { publicKey: keys }, connect: { secret: keys } }),
      createReceiver({ payments, inbox: memoryInbox() }),
    ];
    for (const receiver of receivers) receiver.onDeposit(() => {}).observe(() => {});
    expect(process.getActiveResourcesInfo()).toEqual(before);
    expect(keys).not.toHaveBeenCalled();
  });

  it("leaves missing environment variables to start(), whose error has a code and names the option", async () => {
    for (const [options, option] of [
      [{ payments: { publicKey: undefined } }, "payments.publicKey"],
      [{ payments: undefined, connect: { secret: undefined } }, "connect.secret"],
      [{ connect: {} as ConnectOptions }, "connect.secret"],
    ] as const) {
      const receiver = make(options).onDeposit(() => {});
      const error = await rejectedBy(receiver.start());
      expect(error.code).toBe("ERR_OPTION_MISSING");
      expect(error.message).toContain(option);
      // And again: the set-up is not half done.
      expect((await rejectedBy(receiver.start())).code).toBe("ERR_OPTION_MISSING");
    }
  });

  it("makes a receiver that answers 500 to deliveries while its set-up is wrong, and says no more than that", async () => {
    const receiver = make({ payments: { publicKey: undefined } }).onDeposit(() => {});
    const reply = await receiver.payments.receive(
      deliveryOf(signPaymentCallback(callbackFields(), privateKey)),
    );
    expect([reply.status, codeOfReply(reply)]).toEqual([500, "ERR_MISCONFIGURED"]);
    expect(reply.body).not.toContain("publicKey");
  });

  it("needs a named inbox in production, and the error names the choices", async () => {
    vi.stubEnv("NODE_ENV", "production");
    const error = await rejectedBy(
      make({ inbox: undefined })
        .onDeposit(() => {})
        .start(),
    );
    expect(error.code).toBe("ERR_INBOX_REQUIRED");
    for (const choice of ["redisInbox", "sqliteInbox", "memoryInbox"]) expect(error.fix).toContain(choice);
    const clock = fakeClock();
    const named = make({ inbox: memoryInbox({ clock }), clock, run: "after-response" }).onDeposit(() => {});
    await expect(named.start()).resolves.toBeUndefined();
    vi.stubEnv("NODE_ENV", "test");
    await expect(
      make({ run: "after-response", inbox: undefined })
        .onDeposit(() => {})
        .start(),
    ).resolves.toBeUndefined();
  });

  it("needs a handler, unless another process runs the handlers", async () => {
    for (const run of ["background", "after-response"]) {
      expect((await rejectedBy(make({ run }).start())).code).toBe("ERR_NO_HANDLERS");
      expect((await rejectedBy(make({ run }).ignore("DEPOSIT").start())).code).toBe("ERR_NO_HANDLERS");
    }
    await expect(make({ run: "elsewhere" }).start()).resolves.toBeUndefined();
  });

  it("makes no endpoint for a flow that is off", () => {
    const error = thrownBy(() => make().connect);
    expect(error.code).toBe("ERR_FLOW_OFF");
    expect(error.fix).toContain("connect: { secret }");
    expect(thrownBy(() => make({ payments: undefined, connect: { secret: SECRET } }).payments).code).toBe(
      "ERR_FLOW_OFF",
    );
    expect(make().payments.flow).toBe("payments");
  });

  it("makes a receiver that answers 503 until it is started, if run is background", async () => {
    const receiver = make().onDeposit(() => {});
    const reply = await receiver.payments.receive(
      deliveryOf(signPaymentCallback(callbackFields(), privateKey)),
    );
    expect([reply.status, codeOfReply(reply)]).toEqual([503, "ERR_NOT_STARTED"]);
    expect(reply.headers["retry-after"]).toBeDefined();
  });
});

describe("registration", () => {
  it("names the first handler after the event, and further handlers need a name of their own", () => {
    const receiver = make().onDeposit(() => {});
    expect(thrownBy(() => receiver.onDeposit(() => {})).code).toBe("ERR_HANDLER_NAME");
    receiver.onDeposit(() => {}, { name: "mail" });
    const twice = thrownBy(() => receiver.onDeposit(() => {}, { name: "mail" }));
    expect(twice.code).toBe("ERR_HANDLER_DUPLICATE");
    expect(twice.message).toContain('"mail"');
    expect(thrownBy(() => receiver.onDeposit(() => {}, { name: "deposit" })).code).toBe(
      "ERR_HANDLER_DUPLICATE",
    );
    expect(() => receiver.onWithdrawal(() => {}, { name: "mail" })).not.toThrow();
    expect(() => receiver.onHeld(() => {}, { name: "mail" })).not.toThrow();
    expect(thrownBy(() => receiver.onHeld(() => {})).code).toBe("ERR_HANDLER_NAME");
  });

  it("refuses a handler that is not a function, of a payment and of held events", () => {
    for (const given of [undefined, null, "credit", {}]) {
      const codes = [
        thrownBy(() => make().onDeposit(given as never)),
        thrownBy(() => make().onHeld(given as never)),
      ].map(({ code }) => code);
      expect(codes, String(given)).toEqual(["ERR_OPTION_INVALID", "ERR_OPTION_INVALID"]);
    }
  });

  it.each(["", " ", "1st", "a b", "a:b", "?confirm", "held:x", "ä", "a".repeat(65), 5, null, ...INHERITED])(
    "refuses the name %j",
    (name) => {
      const error = thrownBy(() => make().onDeposit(() => {}, { name: name as string }));
      expect(error.code).toBe("ERR_HANDLER_NAME");
      expect(error.message).toContain(JSON.stringify(name));
    },
  );

  it.each<readonly [string, unknown]>([
    ["nothing", undefined],
    ["null", null],
    ["text", "credit"],
    ["no status", {}],
    ["a status of undefined only", { SUCCESS: undefined }],
    ["a handler under another word", { handler: () => {} }],
    ["an unlisted status", { CANCELLED: () => {} }],
    ["a status in lower case", { success: () => {} }],
    ["a status that is not a function", { SUCCESS: "credit" }],
    ["a name of every object", { constructor: () => {} }],
  ])("refuses %s for a handler", (_, handlers) => {
    const error = thrownBy(() => make().onDeposit(handlers as () => void));
    expect(error.code).toBe("ERR_OPTION_INVALID");
    expect(error.message).toContain("DEPOSIT");
    expect(thrownBy(() => make().onWithdrawal(handlers as () => void)).code).toBe("ERR_OPTION_INVALID");
  });

  it.each<readonly [string, unknown]>([
    ["nothing", undefined],
    ["null", null],
    ["text", "book"],
    ["an object by status", { SUCCESS: () => {} }],
  ])("refuses %s for a handler of a webhook", (_, handler) => {
    const given = handler as () => void;
    const receiver = make();
    for (const register of [
      () => receiver.onSettlementApproved(given),
      () => receiver.onSettlementDeclined(given),
      () => receiver.onConnectedAccountApproved(given),
      () => receiver.onConnectedAccountDeclined(given),
    ]) {
      expect(thrownBy(register).code).toBe("ERR_OPTION_INVALID");
    }
  });

  it.each(["timeoutMs", "maxAttempts"])("refuses a %s that is not above zero", (option) => {
    for (const value of [0, -1, Number.NaN, "5"]) {
      const error = thrownBy(() => make().onDeposit(() => {}, { [option]: value }));
      expect(error.code).toBe("ERR_OPTION_INVALID");
      expect(error.message).toContain(option);
    }
  });

  it("ends with the start, or with the first delivery", async () => {
    const started = make({ run: "after-response" }).onDeposit(() => {});
    await started.start();
    const delivered = make({ run: "after-response" }).onDeposit(() => {});
    await delivered.payments.receive(deliveryOf(signPaymentCallback(callbackFields(), privateKey)));
    for (const receiver of [started, delivered]) {
      expect(thrownBy(() => receiver.onWithdrawal(() => {})).code).toBe("ERR_REGISTRATION_CLOSED");
      expect(thrownBy(() => receiver.onHeld(() => {})).code).toBe("ERR_REGISTRATION_CLOSED");
      expect(thrownBy(() => receiver.ignore("WITHDRAWAL")).code).toBe("ERR_REGISTRATION_CLOSED");
    }
  });

  it("stays open after a start that failed, so that a missing handler can be registered", async () => {
    const receiver = make({ run: "after-response" });
    expect((await rejectedBy(receiver.start())).code).toBe("ERR_NO_HANDLERS");
    receiver.onDeposit(() => {});
    await expect(receiver.start()).resolves.toBeUndefined();
  });
});
