import { createReceiver, type Inbox, memoryInbox, type PaymentsOptions } from "@payhooks/core";
import { createInbox, memoryStore, type RecordStore } from "@payhooks/core/inbox";
import { createTestKeys, type FakeClock, fakeClock } from "@payhooks/core/testing";
import { expect, it, onTestFinished } from "vitest";
import {
  type OpenPayment,
  type ReconcileResult,
  type Transaction,
  type Watch,
  type WatchOptions,
  watch,
} from "../src/index.ts";
import { errorOf } from "./service.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const { publicKey } = createTestKeys();

interface WatchFixture {
  readonly clock: FakeClock;
  /** The events that the handlers got. */
  readonly handled: string[];
  /** Each look-up: the reference, and the minute since the start. */
  readonly lookUps: string[];
  readonly givenUp: string[];
  readonly errors: unknown[];
  /** The status of each payment at the service; one that is left out is not known there. */
  readonly service: Record<string, "SUCCESS" | "FAILED" | "PENDING" | "CANCELLED" | Error>;
  readonly open: OpenPayment[];
  watch(options?: Partial<WatchOptions>): Watch;
  /** The note of the watch. */
  note(): Promise<Record<string, unknown>>;
}

/** A real receiver. The client is whatever looks payments up, so here it is one that knows the service's mind. */
async function startFixture(
  payments: PaymentsOptions = { publicKey },
  clock: FakeClock = fakeClock(),
  inbox: Inbox = memoryInbox({ clock }),
): Promise<WatchFixture> {
  const began = clock.now();
  const handled: string[] = [];
  const receiver = createReceiver({ payments, inbox, clock });
  const note = (e: { status: string; referenceId: string }): void =>
    void handled.push(`${e.status} ${e.referenceId}`);
  receiver.onDeposit({ SUCCESS: note, FAILED: note, PENDING: note }).ignore("WITHDRAWAL");
  await receiver.start();
  const fixture: WatchFixture = {
    clock,
    handled,
    lookUps: [],
    givenUp: [],
    errors: [],
    service: {},
    open: [],
    watch(options = {}) {
      const watching = watch(receiver, {
        client: {
          async transactionByReference(reference) {
            fixture.lookUps.push(`${reference} ${(clock.now() - began) / MINUTE}`);
            const status = fixture.service[reference];
            if (status instanceof Error) throw status;
            return status === undefined ? null : transaction(reference, status, clock.now());
          },
        },
        open: () => fixture.open,
        onGivenUp: ({ reference }, { outcome }) => void fixture.givenUp.push(`${reference} ${outcome}`),
        onError: (error) => fixture.errors.push(error),
        clock,
        ...options,
      });
      onTestFinished(() => watching.stop());
      return watching;
    },
    async note() {
      return JSON.parse((await receiver.viewLease("payhooks-missed-callbacks"))?.note ?? "null");
    },
  };
  return fixture;
}

function transaction(reference: string, status: Transaction["status"], now: number): Transaction {
  return {
    id: `t-${reference}`,
    merchant_id: "m-1",
    phone_number: "251911000000",
    reference,
    type: "DEPOSIT",
    medium: "TELEBIRR",
    message: "",
    details: { RawMessage: null, Valid: true },
    status,
    base_amount: "10.5",
    callback_url: "",
    success_url: "",
    failed_url: "",
    webhook_received: false,
    created_at: new Date(now).toISOString(),
    updated_at: new Date(now).toISOString(),
    extra: {},
  };
}

function linesOnStderr(): readonly string[] {
  const lines: string[] = [];
  const { error } = console;
  console.error = (line: string) => void lines.push(line);
  onTestFinished(() => {
    console.error = error;
  });
  return lines;
}

it("looks up payments that are old enough, in one of two watches, and runs their handlers once", async () => {
  const fixture = await startFixture();
  const { clock, service, open } = fixture;
  open.push({ reference: "old", since: clock.now() - 10 * MINUTE }, { reference: "new", since: clock.now() });
  Object.assign(service, { old: "SUCCESS", new: "FAILED" });
  fixture.watch();
  fixture.watch();
  await clock.advance(0);
  expect(fixture.lookUps).toEqual([]);
  await clock.advance(14 * MINUTE);
  expect(fixture.lookUps).toEqual(["old 5", "old 10"]);
  expect(fixture.handled).toEqual(["SUCCESS old"]);
  open.shift();
  await clock.advance(10 * MINUTE);
  expect(fixture.lookUps.slice(2)).toEqual(["new 15", "new 20"]);
  expect(fixture.handled).toEqual(["SUCCESS old", "FAILED new"]);
  expect(await fixture.note()).toMatchObject({ open: 1, due: 1, counts: { duplicate: 1 }, trouble: null });
});

it("watch makes no more look-ups in a minute than it may", async () => {
  const fixture = await startFixture();
  for (let n = 0; n < 25; n++) fixture.open.push({ reference: `order-${n}`, since: 0 });
  fixture.watch({ perMinute: 10, giveUpAfterMs: Number.MAX_SAFE_INTEGER });
  fixture.watch({ perMinute: 10, giveUpAfterMs: Number.MAX_SAFE_INTEGER });
  await fixture.clock.advance(MINUTE - 1);
  expect(fixture.lookUps).toHaveLength(10);
  await fixture.clock.advance(2 * MINUTE);
  expect(fixture.lookUps).toHaveLength(25);
  expect(new Set(fixture.lookUps.map((line) => line.split(" ")[0])).size).toBe(25);
});

it("watch gives a payment up once, after a last look-up that succeeded, and then leaves it alone", async () => {
  const fixture = await startFixture();
  const { clock, service, open } = fixture;
  for (const reference of ["gone", "slow", "broken"]) open.push({ reference, since: clock.now() });
  Object.assign(service, { slow: "PENDING", broken: new Error("no route") });
  const first = fixture.watch({ giveUpAfterMs: HOUR, everyMs: 30 * MINUTE });
  await clock.advance(59 * MINUTE);
  expect(fixture.givenUp).toEqual([]);
  await clock.advance(2 * MINUTE);
  expect(fixture.givenUp).toEqual(["gone not-found", "slow duplicate"]);
  // Another process knows it too.
  await first.stop();
  fixture.lookUps.length = 0;
  fixture.watch({ giveUpAfterMs: HOUR, everyMs: 30 * MINUTE });
  await clock.advance(HOUR);
  expect(fixture.givenUp).toHaveLength(2);
  expect(new Set(fixture.lookUps.map((line) => line.split(" ")[0]))).toEqual(new Set(["broken"]));
  // Its result comes after all.
  service.broken = "SUCCESS";
  await clock.advance(HOUR);
  expect(fixture.givenUp).toHaveLength(2);
  expect(fixture.handled).toEqual(["PENDING slow", "SUCCESS broken"]);
});

it("watch gives a payment up again if onGivenUp threw, and notes the error", async () => {
  const fixture = await startFixture();
  fixture.open.push({ reference: "gone", since: 0 });
  let calls = 0;
  fixture.watch({
    onGivenUp: () => {
      if (++calls === 1) throw Object.assign(new Error("about Abebe"), { code: "E_SHOP" });
    },
  });
  await fixture.clock.advance(0);
  expect(fixture.errors).toMatchObject([{ code: "E_SHOP" }]);
  const { trouble } = await fixture.note();
  expect(trouble).toBe("Error E_SHOP");
  await fixture.clock.advance(20 * MINUTE);
  expect(calls).toBe(2);
  expect(await fixture.note()).toMatchObject({ trouble: null });
});

it.each(["headers", "onResult", "onGivenUp"] as const)(
  "watch goes on with the other payments, round by round, while %s throws for one",
  async (callback) => {
    const fixture = await startFixture();
    const { clock, service, open } = fixture;
    for (const reference of ["stuck", "paid", "gone"])
      open.push({ reference, since: clock.now() - 2 * HOUR });
    service.paid = "PENDING";
    const secret = "Abebe, 251911000000";
    const fail = ({ reference }: OpenPayment): void => {
      if (reference === "stuck") throw Object.assign(new Error(secret), { code: "E_SHOP" });
    };
    const options: Partial<WatchOptions> = {
      giveUpAfterMs: HOUR,
      onGivenUp: (payment, { outcome }) => {
        if (callback === "onGivenUp") fail(payment);
        fixture.givenUp.push(`${payment.reference} ${outcome}`);
      },
      ...(callback === "headers" && { headers: (payment) => void fail(payment) }),
      ...(callback === "onResult" && { onResult: (_, payment) => fail(payment) }),
    };
    const first = fixture.watch(options);
    await clock.advance(4 * MINUTE);
    expect(fixture.givenUp).toEqual(["paid new", "gone not-found"]);
    expect(fixture.errors).toMatchObject([{ code: "E_SHOP" }]);
    expect(await fixture.note()).toMatchObject({
      due: 3,
      trouble: "Error E_SHOP",
      endedAt: expect.any(Number),
    });
    await clock.advance(5 * MINUTE);
    expect(fixture.errors).toHaveLength(2);
    // Another process tries it again too, and looks up what is new.
    const stopped = first.stop();
    await clock.advance(0);
    await stopped;
    open.push({ reference: "late", since: clock.now() - 2 * HOUR });
    service.late = "SUCCESS";
    fixture.watch(options);
    await clock.advance(10 * MINUTE);
    expect(fixture.errors).toHaveLength(4);
    expect(fixture.handled).toEqual(["PENDING paid", "SUCCESS late"]);
    expect(fixture.givenUp).toEqual(["paid new", "gone not-found"]);
    expect(JSON.stringify(await fixture.note())).not.toContain("Abebe");
  },
);

it("watch names the error of a callback on stderr, without its message", async () => {
  const fixture = await startFixture();
  fixture.open.push({ reference: "order-17", since: 0 });
  const lines = linesOnStderr();
  fixture.watch({
    onError: undefined,
    onGivenUp: () => {
      throw Object.assign(new Error("about Abebe"), { code: "E_SHOP" });
    },
  });
  await fixture.clock.advance(0);
  expect(lines).toEqual(["payhooks: watch: Error E_SHOP. The next round comes as usual."]);
});

it("notes an error whose name is longer than the note may be", async () => {
  const fixture = await startFixture();
  fixture.open.push({ reference: "a", since: 0 });
  fixture.watch({
    onGivenUp: () => {
      throw Object.assign(new Error("x"), { name: "N".repeat(20_000) });
    },
  });
  await fixture.clock.advance(MINUTE);
  expect(await fixture.note()).toMatchObject({ trouble: "N".repeat(200) });
});

it("watch begins a round at once after everyMs was lowered, and then every everyMs", async () => {
  const fixture = await startFixture();
  fixture.open.push({ reference: "a", since: fixture.clock.now() - HOUR });
  const first = fixture.watch({ everyMs: 24 * HOUR });
  await fixture.clock.advance(MINUTE);
  const stopped = first.stop();
  await fixture.clock.advance(0);
  await stopped;
  expect(fixture.lookUps).toEqual(["a 0"]);
  fixture.watch({ everyMs: 10 * MINUTE });
  fixture.watch({ everyMs: 10 * MINUTE });
  await fixture.clock.advance(25 * MINUTE);
  expect(fixture.lookUps).toEqual(["a 0", "a 1", "a 11", "a 21"]);
});

it("watch is not put off by a process whose clock was ahead, and that is gone", async () => {
  const fixture = await startFixture();
  const { clock } = fixture;
  fixture.open.push({ reference: "a", since: clock.now() - HOUR });
  const first = fixture.watch({ clock: { after: clock.after, now: () => clock.now() + 24 * HOUR } });
  await clock.advance(MINUTE);
  const stopped = first.stop();
  await clock.advance(0);
  await stopped;
  fixture.lookUps.length = 0;
  fixture.watch();
  await clock.advance(8 * MINUTE);
  expect(fixture.lookUps).toEqual(["a 1", "a 6"]);
});

it("looks up a payment that a clock far ahead has dated, and does not give it up", async () => {
  const fixture = await startFixture();
  const { clock, open, service } = fixture;
  open.push({ reference: "far", since: clock.now() + 365 * 24 * HOUR });
  open.push({ reference: "near", since: clock.now() + 5 * MINUTE });
  service.far = "SUCCESS";
  fixture.watch({ giveUpAfterMs: HOUR });
  await clock.advance(MINUTE);
  expect(fixture.lookUps).toEqual(["far 0"]);
  expect(fixture.handled).toEqual(["SUCCESS far"]);
  open.shift();
  await clock.advance(30 * MINUTE);
  expect(fixture.lookUps.filter((line) => line.startsWith("near"))).toEqual([
    "near 20",
    "near 25",
    "near 30",
  ]);
  expect(fixture.givenUp).toEqual([]);
});

it("watch makes one round after another beside a process whose clock is ahead", async () => {
  const fixture = await startFixture();
  const { clock } = fixture;
  fixture.open.push({ reference: "a", since: clock.now() - HOUR });
  fixture.watch({ clock: { after: clock.after, now: () => clock.now() + 24 * HOUR } });
  fixture.watch();
  await clock.advance(21 * MINUTE);
  // Each of the two makes a round every five minutes.
  expect(fixture.lookUps.length).toBeGreaterThanOrEqual(5);
  expect(fixture.lookUps.length).toBeLessThanOrEqual(10);
});

it("watch says once in a round that look-ups fail, and with what", async () => {
  const fixture = await startFixture();
  const { clock, service, open } = fixture;
  for (const reference of ["a", "b", "c"]) open.push({ reference, since: clock.now() - HOUR });
  const refused = Object.assign(new Error("about Abebe"), { code: "ERR_UNAUTHORIZED" });
  Object.assign(service, { a: "PENDING", b: refused, c: new TypeError("about Abebe") });
  fixture.watch();
  await clock.advance(4 * MINUTE);
  expect(fixture.errors).toMatchObject([
    {
      code: "ERR_LOOKUP_FAILED",
      message: expect.stringMatching(
        /^2 of 3 look-ups failed, the first of them with Error ERR_UNAUTHORIZED\./,
      ),
      cause: refused,
    },
  ]);
  expect(await fixture.note()).toMatchObject({ counts: { new: 1, error: 2 }, trouble: "TypeError" });
  await clock.advance(6 * MINUTE);
  expect(fixture.errors).toHaveLength(2);
  Object.assign(service, { b: "SUCCESS", c: "SUCCESS" });
  await clock.advance(10 * MINUTE);
  expect(fixture.errors).toHaveLength(2);
  expect(fixture.givenUp).toEqual([]);
});

it("watch says on stderr that look-ups fail, without a message of others", async () => {
  const fixture = await startFixture();
  fixture.open.push({ reference: "order-17", since: fixture.clock.now() - HOUR });
  fixture.service["order-17"] = Object.assign(new Error("about Abebe"), { code: "ERR_UNAUTHORIZED" });
  const lines = linesOnStderr();
  fixture.watch({ onError: undefined });
  await fixture.clock.advance(6 * MINUTE);
  const line =
    "payhooks: watch: ClientError ERR_LOOKUP_FAILED, because of Error ERR_UNAUTHORIZED. The next round comes as usual.";
  expect(lines).toEqual([line, line]);
});

it("watch says that a receiver of many merchants takes no payment without a tenant", async () => {
  const fixture = await startFixture({ publicKey: async () => ({ tenant: "shop-1", keys: publicKey }) });
  fixture.open.push({ reference: "a", since: fixture.clock.now() - HOUR });
  fixture.service.a = "SUCCESS";
  fixture.watch();
  await fixture.clock.advance(MINUTE);
  expect(fixture.errors).toMatchObject([
    { code: "ERR_LOOKUP_FAILED", cause: { code: "ERR_OPTION_MISSING" } },
  ]);
});

it("watch goes on if onError rejects", async () => {
  const fixture = await startFixture();
  fixture.open.push({ reference: "order-17", since: 0 });
  const lines = linesOnStderr();
  fixture.watch({
    open: () => Promise.reject(new Error("no database")),
    onError: async () => {
      throw new TypeError("no logger");
    },
  });
  await fixture.clock.advance(6 * MINUTE);
  expect(lines).toEqual(Array(2).fill("payhooks: watch: TypeError. The next round comes as usual."));
});

it("watch goes on after a stop with those that the round did not reach", async () => {
  const fixture = await startFixture();
  for (const reference of ["a", "b", "c"])
    fixture.open.push({ reference, since: fixture.clock.now() - HOUR });
  const first = fixture.watch({ perMinute: 1 });
  await fixture.clock.advance(1.5 * MINUTE);
  const stopped = first.stop();
  await fixture.clock.advance(0);
  await stopped;
  expect(fixture.lookUps.map((line) => line[0])).toEqual(["a", "b"]);
  fixture.watch({ perMinute: 1 });
  await fixture.clock.advance(0);
  expect(fixture.lookUps.map((line) => line[0])).toEqual(["a", "b", "c"]);
});

/** Never settles. */
const hang = (): Promise<never> => new Promise(() => {});
async function* hangingSource(payment: OpenPayment) {
  yield payment;
  await hang();
}

it.each<[what: string, hanging: (payment: OpenPayment) => Partial<WatchOptions>]>([
  ["open does not settle", () => ({ open: hang })],
  ["open waits for its next payment", (payment) => ({ open: () => hangingSource(payment) })],
  ["onResult does not settle", () => ({ onResult: hang })],
  ["onGivenUp does not settle", () => ({ onGivenUp: hang, giveUpAfterMs: HOUR })],
])("watch stops although %s, and another process goes on", async (_what, hanging) => {
  const fixture = await startFixture();
  const payment = { reference: "a", since: fixture.clock.now() - HOUR };
  fixture.open.push(payment);
  const first = fixture.watch(hanging(payment));
  await fixture.clock.advance(MINUTE);
  const stopped = first.stop();
  await fixture.clock.advance(5_000);
  await stopped;
  expect(fixture.errors).toEqual([]);
  const lookUps = fixture.lookUps.length;
  fixture.watch();
  await fixture.clock.advance(0);
  expect(fixture.lookUps).toHaveLength(lookUps + 1);
});

it.each<[what: string, hanging: (payment: OpenPayment) => Partial<WatchOptions>]>([
  ["open that does not settle", () => ({ open: hang })],
  ["open that waits for its next payment", (payment) => ({ open: () => hangingSource(payment) })],
])("watch reports an %s after 10 minutes, and makes the next round", async (_what, hanging) => {
  const fixture = await startFixture();
  fixture.open.push({ reference: "a", since: fixture.clock.now() - HOUR });
  let opened = 0;
  const { open } = hanging({ reference: "b", since: fixture.clock.now() - HOUR });
  fixture.watch({ open: () => (opened++ === 0 && open !== undefined ? open() : fixture.open) });
  await fixture.clock.advance(9 * MINUTE);
  expect(fixture.errors).toEqual([]);
  await fixture.clock.advance(6 * MINUTE);
  expect(fixture.errors).toMatchObject([
    {
      code: "ERR_TIMEOUT",
      message: expect.stringContaining("open of watch has not settled within 10 minutes."),
    },
  ]);
  expect(fixture.lookUps).toEqual(["a 15"]);
});

it.each<[name: string, options: Partial<WatchOptions>]>([
  ["onResult", { onResult: ({ reference }) => (reference === "a" ? hang() : undefined) }],
  [
    "onGivenUp",
    { onGivenUp: ({ reference }) => (reference === "a" ? hang() : undefined), giveUpAfterMs: HOUR },
  ],
])(
  "watch reports an %s that does not settle after 10 minutes, and looks the next payment up",
  async (name, options) => {
    const fixture = await startFixture();
    for (const reference of ["a", "b"]) fixture.open.push({ reference, since: fixture.clock.now() - HOUR });
    fixture.watch(options);
    await fixture.clock.advance(10 * MINUTE);
    expect(fixture.errors).toMatchObject([
      { code: "ERR_TIMEOUT", message: expect.stringContaining(`${name} of watch has not settled`) },
    ]);
    await fixture.clock.advance(MINUTE);
    expect(fixture.lookUps.map((line) => line[0])).toEqual(["a", "b"]);
  },
);

it("watch notes that onGivenUp has ended soon after a stop, and does not call it again", async () => {
  const fixture = await startFixture();
  fixture.open.push({ reference: "a", since: fixture.clock.now() - HOUR });
  const calls: string[] = [];
  const onGivenUp = ({ reference }: OpenPayment): Promise<void> => {
    calls.push(reference);
    return new Promise((resolve) => fixture.clock.after(MINUTE + 2_000, resolve));
  };
  const first = fixture.watch({ onGivenUp, giveUpAfterMs: HOUR });
  await fixture.clock.advance(MINUTE);
  const stopped = first.stop();
  await fixture.clock.advance(2_000);
  await stopped;
  fixture.watch({ onGivenUp, giveUpAfterMs: HOUR });
  await fixture.clock.advance(10 * MINUTE);
  expect(calls).toEqual(["a"]);
});

it("watch reports each result, also of a cancelled payment", async () => {
  const fixture = await startFixture();
  fixture.open.push({ reference: "left", since: fixture.clock.now() - HOUR });
  fixture.service.left = "CANCELLED";
  const results: [string, ReconcileResult["outcome"]][] = [];
  fixture.watch({ onResult: ({ outcome }, { reference }) => void results.push([reference, outcome]) });
  await fixture.clock.advance(0);
  expect(results).toEqual([["left", "cancelled"]]);
  expect(fixture.handled).toEqual([]);
});

it.each<[field: string, what: string, wrong: unknown]>([
  ["since", "a string", { since: "2026-03-01T12:00:00Z" }],
  ["since", "a string", { since: "0" }],
  ["since", "undefined", { since: undefined }],
  ["since", "null", { since: null }],
  ["since", "NaN", { since: Number.NaN }],
  ["since", "-Infinity", { since: Number.NEGATIVE_INFINITY }],
  ["since", "NaN", { since: new Date("yesterday") }],
  ["since", "an array", { since: [0] }],
  ["since", "a bigint", { since: 0n }],
  ["since", "an object", { since: Object.create(null) }],
  ["reference", "undefined", { reference: undefined }],
  ["reference", "a number", { reference: 17 }],
  ["tenant", "a bigint", { tenant: 17n }],
  ["open", "null", null],
  ["open", "a string", "order-17"],
])("leaves out a payment whose %s is %s, and looks the others up", async (field, what, wrong) => {
  const fixture = await startFixture();
  const right = { reference: "right", since: fixture.clock.now() - HOUR };
  const dated = { reference: "dated", since: new Date(fixture.clock.now() - HOUR) };
  const mixed = typeof wrong === "object" && wrong !== null ? { ...right, ...wrong } : wrong;
  fixture.open.push(dated, mixed as OpenPayment, right);
  Object.assign(fixture.service, { dated: "SUCCESS", right: "SUCCESS" });
  fixture.watch();
  await fixture.clock.advance(MINUTE);
  expect(fixture.lookUps.map((line) => line.split(" ")[0])).toEqual(["dated", "right"]);
  expect(fixture.givenUp).toEqual([]);
  const message = expect.stringContaining(` is ${what}`);
  expect(fixture.errors).toMatchObject([{ code: "ERR_OPTION_INVALID", field, message }]);
  expect(await fixture.note()).toMatchObject({ due: 2, trouble: null });
});

it("watch refuses options that cannot work", async () => {
  const fixture = await startFixture();
  for (const wrong of [{ everyMs: 0 }, { perMinute: Number.NaN }, { open: undefined }, { every: 5 }]) {
    const error = await errorOf((async () => fixture.watch(wrong as never))());
    expect(error).toMatchObject({ code: "ERR_OPTION_INVALID", field: Object.keys(wrong)[0] });
  }
});

/** A fixture whose inbox takes no writes from a moment on. */
async function startFixtureWithFailingInbox() {
  const clock = fakeClock();
  const memory = memoryStore();
  let isAway = false;
  const store: RecordStore = {
    ...memory,
    swap: (items) => (isAway ? Promise.reject(new Error("away")) : memory.swap(items)),
  };
  const fixture = await startFixture({ publicKey }, clock, createInbox(store, { clock }));
  const failInbox = (): void => {
    isAway = true;
  };
  return { ...fixture, failInbox };
}

it("tells onError that look-ups failed, although the inbox fails at the end of the round", async () => {
  const fixture = await startFixtureWithFailingInbox();
  fixture.open.push({ reference: "a", since: fixture.clock.now() - HOUR });
  fixture.service.a = new TypeError("about Abebe");
  fixture.watch({ onResult: fixture.failInbox });
  await fixture.clock.advance(4 * MINUTE);
  expect(fixture.errors).toMatchObject([{ code: "ERR_LOOKUP_FAILED" }, { code: "ERR_INBOX_UNAVAILABLE" }]);
});

it("tells onError why a round failed, although the inbox fails at its end", async () => {
  const fixture = await startFixtureWithFailingInbox();
  fixture.watch({
    open: () => {
      fixture.failInbox();
      throw new Error("no orders");
    },
  });
  await fixture.clock.advance(4 * MINUTE);
  expect(fixture.errors).toMatchObject([{ message: "no orders" }]);
});
