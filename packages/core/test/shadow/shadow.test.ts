import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  createReceiver,
  type Inbox,
  memoryInbox,
  type Notice,
  type PaymentEvent,
  type Receiver,
  type ReceiverOptions,
} from "@payhooks/core";
import { type OldAnswer, type Shadow, type ShadowLine, shadow } from "@payhooks/core/shadow";
import { hmac, source } from "@payhooks/core/sources";
import { sqliteInbox } from "@payhooks/core/sqlite";
import {
  callbackFields,
  connectEvent,
  createTestKeys,
  forgedCallback,
  resplitPair,
  type SignedDelivery,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { afterAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { silent } from "../../../../test/support/silent.ts";

const keys = createTestKeys();
const secret = "whsec_0123456789abcdef";
const folder = mkdtempSync(join(tmpdir(), "payhooks-shadow-"));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;

/** The rejections from now to the end of the test that nobody has handled. */
function unhandledRejections(): readonly unknown[] {
  const unhandled: unknown[] = [];
  const note = (error: unknown): void => void unhandled.push(error);
  process.on("unhandledRejection", note);
  onTestFinished(() => void process.off("unhandledRejection", note));
  return unhandled;
}

/** A receiver in the shadow, and after the switch, on the same file. */
interface InShadow {
  readonly receiver: Receiver;
  readonly beside: Shadow;
  readonly lines: ShadowLine[];
  readonly notices: Notice[];
  /** Closes the shadow, and opens a receiver with handlers on the same data. Resolves once nothing waits any more. */
  switched(): Promise<{ readonly receiver: Receiver; readonly ran: string[] }>;
}

function inTheShadow(options: Partial<ReceiverOptions> = {}): InShadow {
  const file = join(folder, `${++files}.db`);
  const open = (more: Partial<ReceiverOptions>): Receiver =>
    createReceiver({
      payments: { publicKey: keys.publicKey },
      connect: { secret },
      inbox: sqliteInbox(file),
      logger: silent,
      ...options,
      ...more,
    }) as Receiver;
  const receiver = open({ run: "elsewhere" });
  const lines: ShadowLine[] = [];
  const notices: Notice[] = [];
  receiver.observe((notice) => notices.push(notice));
  onTestFinished(() => void receiver.close());
  const journal = (line: string): void => void lines.push(JSON.parse(line));
  return {
    receiver,
    beside: shadow(receiver, { journal }) as Shadow,
    lines,
    notices,
    async switched() {
      await receiver.close();
      const ran: string[] = [];
      const next = open({});
      const run = (event: PaymentEvent): void => void ran.push(`${event.payTxnId} ${event.status}`);
      next.onDeposit({ SUCCESS: run, FAILED: run, PENDING: run });
      next.onWithdrawal(run);
      next.onConnectedAccountApproved((event) => void ran.push(event.idempotency_key));
      next.onConnectedAccountDeclined((event) => void ran.push(event.idempotency_key));
      onTestFinished(() => void next.close());
      await next.start();
      await expect.poll(async () => (await next.health()).waiting).toBe(0);
      await expect.poll(async () => (await next.health()).running).toBe(0);
      return { receiver: next, ran };
    },
  };
}

function callback(
  payTxnId: string,
  status: "SUCCESS" | "FAILED" | "PENDING" = "SUCCESS",
  more: object = {},
): SignedDelivery {
  return signPaymentCallback(
    callbackFields({ payTxnId, referenceId: `order-${payTxnId}`, status, ...more }),
    keys.privateKey,
  );
}

const handled = (id: string, status = "SUCCESS") => ({ id, event: "DEPOSIT", status });

async function send(receiver: Receiver, { headers, rawBody }: SignedDelivery): Promise<number> {
  const delivery = { method: "POST", url: "/", headers: new Headers(headers), rawBody };
  return (await receiver.payments.receive(delivery, { mounted: true })).status;
}

describe("the switch", () => {
  it("runs events that the old receiver has not handled, and no copy of handled ones", async () => {
    const { beside, switched } = inTheShadow();
    const [paid, open, refused] = [callback("paid"), callback("open"), callback("refused")];
    await beside.delivered("payments", paid, "accepted");
    await beside.delivered("payments", open, "accepted");
    // A copy of what both know is no doubt.
    await beside.delivered("payments", open, "duplicate");
    await beside.delivered("payments", refused, "refused");
    expect(await beside.handled(handled("paid"))).toBe(true);
    const { receiver, ran } = await switched();
    expect(ran.sort()).toEqual(["open SUCCESS", "refused SUCCESS"]);
    for (const sent of [paid, open, refused]) expect(await send(receiver, sent)).toBe(200);
    await expect.poll(async () => (await receiver.health()).waiting).toBe(0);
    expect(ran).toHaveLength(2);
  });

  it("does not run what the old receiver handled although no delivery of it came here", async () => {
    const { beside, switched } = inTheShadow();
    expect(await beside.handled(handled("early"))).toBe(true);
    expect(await beside.handled(handled("early"))).toBe(true);
    const { receiver, ran } = await switched();
    expect(await send(receiver, callback("early"))).toBe(200);
    expect(await send(receiver, callback("early", "FAILED"))).toBe(200);
    const { events } = await receiver.events.list({ state: "held" });
    expect(events.map(({ status, reason }) => [status, reason])).toEqual([["FAILED", "conflict"]]);
    expect(ran).toEqual([]);
  });

  it("runs the SUCCESS of a payment whose PENDING the old receiver has handled", async () => {
    const { beside, switched } = inTheShadow();
    await beside.delivered("payments", callback("slow", "PENDING"), "accepted");
    await beside.handled(handled("slow", "PENDING"));
    await beside.handled(handled("slower", "PENDING"));
    const { receiver, ran } = await switched();
    expect(ran).toEqual([]);
    for (const id of ["slow", "slower"]) expect(await send(receiver, callback(id))).toBe(200);
    await expect.poll(() => [...ran].sort()).toEqual(["slow SUCCESS", "slower SUCCESS"]);
  });

  it("ends a PENDING that waits once the old receiver has handled the SUCCESS", async () => {
    const { beside, switched } = inTheShadow();
    await beside.delivered("payments", callback("both", "PENDING"), "accepted");
    await beside.handled(handled("both"));
    expect((await switched()).ran).toEqual([]);
  });

  it("marks an event once, however many calls name it and its other status at one time", async () => {
    const { beside, switched, receiver } = inTheShadow();
    await beside.delivered("payments", callback("busy", "PENDING"), "accepted");
    const calls = ["PENDING", "SUCCESS", "SUCCESS", "PENDING"].map((s) => beside.handled(handled("busy", s)));
    expect(await Promise.all(calls)).toEqual([true, true, true, true]);
    expect((await receiver.health()).waiting).toBe(0);
    expect((await switched()).ran).toEqual([]);
  });

  it("orders webhooks about one account after those that the old receiver has handled", async () => {
    const { beside, switched } = inTheShadow();
    const at = (minutes: number): string => new Date(Date.now() - minutes * 60_000).toISOString();
    const webhook = (name: "approved" | "declined", key: string, minutes: number): SignedDelivery =>
      signConnectWebhook(
        connectEvent(`connected_account.${name}`, {
          idempotency_key: key,
          occurred_at: at(minutes),
          data: { id: "cm_7" },
        }),
        secret,
      );
    await beside.delivered("connect", webhook("declined", "evt_later", 1), "accepted");
    const event = { flow: "connect", id: "evt_later", event: "connected_account.declined" };
    expect(await beside.handled(event)).toBe(true);
    const { receiver, ran } = await switched();
    const { headers, rawBody } = webhook("approved", "evt_sooner", 5);
    await receiver.connect.receive(
      { method: "POST", url: "/", headers: new Headers(headers), rawBody },
      { mounted: true },
    );
    await expect.poll(async () => (await receiver.health()).waiting).toBe(0);
    await expect
      .poll(async () => (await receiver.events.list({ id: "evt_sooner" })).events[0]?.state)
      .toBe("stale");
    expect(ran).toEqual([]);
  });
});

describe("an event that the old receiver has handled without a word", () => {
  it("is erased by a person who has seen it in the books, and does not run after the switch", async () => {
    const { beside, lines, receiver, switched } = inTheShadow();
    await beside.delivered("payments", callback("paid"), "accepted");
    const [line] = lines;
    const eventId = line?.type === "delivery" ? (line.eventId ?? "") : "";
    await receiver.events.erase(eventId, { by: "amina", unfinished: true });
    const { receiver: next, ran } = await switched();
    expect(await send(next, callback("paid"))).toBe(200);
    await expect.poll(async () => (await next.health()).waiting).toBe(0);
    expect(ran).toEqual([]);
  });
});

describe("a delivery that the old receiver takes for a copy, and that is new here", () => {
  it("is held for a person, who finds out whether it was handled", async () => {
    const { beside, receiver, switched } = inTheShadow();
    for (const id of ["lost", "paid"]) await beside.delivered("payments", callback(id), "duplicate");
    const { events } = await receiver.events.list({ state: "held" });
    expect(events.map(({ id, reason }) => [id, reason]).sort()).toEqual([
      ["lost", "rejected"],
      ["paid", "rejected"],
    ]);
    expect(events[0]?.detail).toContain("look into its books");
    const { receiver: next, ran } = await switched();
    expect(ran).toEqual([]);
    const idOf = (name: string): string => events.find(({ id }) => id === name)?.eventId ?? "";
    await next.events.replay(idOf("lost"), { by: "amina", note: "not in the books" });
    await next.events.discard(idOf("paid"), { by: "amina", note: "in the books" });
    await expect.poll(() => ran).toEqual(["lost SUCCESS"]);
    expect(await send(next, callback("paid"))).toBe(200);
    expect(ran).toEqual(["lost SUCCESS"]);
  });

  it("is settled by the old receiver itself if it handles the event later", async () => {
    const { beside, receiver, notices, switched } = inTheShadow();
    await beside.delivered("payments", callback("queued"), "duplicate");
    await expect.poll(() => notices.filter(({ type }) => type === "held")).toHaveLength(1);
    expect(await beside.handled(handled("queued"))).toBe(true);
    expect((await receiver.health()).held).toBe(0);
    expect((await switched()).ran).toEqual([]);
  });

  it("is left alone if the old receiver has said already that it handled the event", async () => {
    const { beside, receiver, switched } = inTheShadow();
    await beside.handled(handled("before"));
    await beside.delivered("payments", callback("before"), "duplicate");
    expect((await receiver.health()).held).toBe(0);
    expect((await switched()).ran).toEqual([]);
  });

  it("is held too if it is the SUCCESS after a PENDING, as in receivers that only look at the id", async () => {
    const { beside, receiver, switched } = inTheShadow();
    await beside.delivered("payments", callback("slow", "PENDING"), "accepted");
    await beside.delivered("payments", callback("slow"), "duplicate");
    expect((await receiver.health()).held).toBe(1);
    expect((await switched()).ran).toEqual([]);
  });
});

describe("the old receiver", () => {
  it.each([
    [
      "throws",
      (): never => {
        throw new Error("ENOSPC");
      },
    ],
    ["is async and rejects", () => Promise.reject(new Error("ENOSPC"))],
  ])(
    "gets nothing of a broken shadow, whose journal %s: no error, and no journal either",
    async (_, journal) => {
      const { receiver } = inTheShadow();
      const unhandled = unhandledRejections();
      const logged: unknown[] = [];
      const { error } = console;
      console.error = (...given) => void logged.push(given);
      onTestFinished(() => {
        console.error = error;
      });
      const broken = shadow(receiver, { journal });
      await broken.delivered("payments", callback("a"), "accepted");
      await broken.delivered("payments", callback("a"), Promise.reject(new Error("it died")));
      await broken.delivered("payments", { headers: {}, rawBody: {} as Uint8Array }, "accepted");
      await broken.delivered("payments", null as never, "accepted");
      await broken.delivered("other" as "payments", callback("a"), "accepted");
      expect(await broken.handled(handled("a"))).toBe(true);
      expect(await broken.handled(null as never)).toBe(false);
      expect(await broken.handled({ id: "a", event: "NONE" })).toBe(false);
      expect(await broken.handled({ flow: "other", id: "a", event: "DEPOSIT" })).toBe(false);
      await new Promise((resolve) => setImmediate(resolve));
      expect(logged).toEqual([[expect.anything(), expect.objectContaining({ error: "Error: ENOSPC" })]]);
      expect(unhandled).toEqual([]);
    },
  );

  it("is not waited for, and is not kept waiting", async () => {
    const { beside, receiver } = inTheShadow();
    let answer: (old: OldAnswer) => void = () => {};
    const given = beside.delivered(
      "payments",
      callback("late"),
      new Promise((resolve) => (answer = resolve)),
    );
    await expect.poll(async () => (await receiver.health()).waiting).toBe(1);
    answer("accepted");
    await given;
  });

  it("is told that a mark could not be recorded, and the mark is made later", async () => {
    let isDown = true;
    const whole = memoryInbox({ maxRecords: 100 });
    const inbox: Inbox = Object.create(whole, {
      accept: {
        value: (...given: Parameters<Inbox["accept"]>) => {
          if (isDown) return Promise.reject(new Error("the database is away"));
          return whole.accept(...given);
        },
      },
    });
    const { beside, receiver, lines } = inTheShadow({ inbox });
    expect(await beside.handled(handled("paid"))).toBe(false);
    isDown = false;
    await expect.poll(async () => (await receiver.events.list({ id: "paid" })).events[0]?.state).toBe("done");
    const states = () => lines.flatMap((line) => (line.type === "marked" ? [line.state] : []));
    await expect.poll(() => states().at(-1)).toBe("done");
    expect(states()[0]).toBeNull();
  });
});

describe("the journal", () => {
  it("has the ids of events, and nothing else of them", async () => {
    const { beside, lines } = inTheShadow();
    const fields = { referenceId: "order-17", userId: "user-99", message: "for Abebe", amount: "77.310000" };
    await beside.delivered("payments", callback("paid", "SUCCESS", fields), "accepted");
    await beside.handled(handled("paid"));
    const forged = forgedCallback(callbackFields({ ...fields }), { amount: "90071.250000" }, keys.privateKey);
    await beside.delivered("payments", forged, "accepted");
    await beside.delivered("payments", resplitPair("victim", keys.privateKey).forged, "accepted");
    const text = JSON.stringify(lines);
    for (const value of [...Object.values(fields), "victim", "90071.25", "signature"])
      expect(text).not.toContain(value);
    expect(lines).toMatchObject([
      {
        type: "delivery",
        old: "accepted",
        outcome: "new",
        status: 200,
        code: null,
        event: { flow: "payments", tenant: null, id: "paid", event: "DEPOSIT", status: "SUCCESS" },
      },
      { type: "handled", event: { id: "paid" } },
      { type: "marked", as: "handled", state: "done" },
      { type: "delivery", outcome: "refused", code: "ERR_SIGNATURE_INVALID", event: null, eventId: null },
      { type: "delivery", outcome: "held", reason: "ambiguous", event: null },
    ]);
    const eventIds = lines.flatMap((line) =>
      "eventId" in line && line.eventId !== null ? [line.eventId] : [],
    );
    expect(new Set(eventIds).size).toBe(2);
  });

  it("takes headers as Node has them, and other senders", async () => {
    const sources = {
      billing: source({
        verify: hmac({ secret, header: "x-signature", encoding: "hex" }),
        read: ({ body }) => ({ id: body.id, name: body.name, data: body }),
      }),
    };
    const { beside, lines, receiver } = inTheShadow({ sources });
    const { createHmac } = await import("node:crypto");
    const rawBody = Buffer.from(JSON.stringify({ id: "inv_1", name: "invoice.paid" }));
    const digest = createHmac("sha256", secret).update(rawBody).digest("hex");
    const delivery = { headers: { "X-Signature": digest, accept: ["a", "b"], none: undefined }, rawBody };
    await (beside as Shadow<never>).delivered("billing" as never, delivery, "accepted");
    expect(await beside.handled({ flow: "billing", id: "inv_1", event: "invoice.paid" })).toBe(true);
    expect(lines).toMatchObject([
      { outcome: "new", event: { flow: "billing", id: "inv_1" } },
      { type: "handled" },
      { type: "marked", state: "done" },
    ]);
    expect((await receiver.health()).waiting).toBe(0);
  });
});

describe("the set-up", () => {
  it("is refused for a receiver that runs its handlers, and without a journal", () => {
    const running = createReceiver({ payments: { publicKey: keys.publicKey }, logger: silent });
    expect(() => shadow(running, { journal: () => {} })).toThrow(/run: "elsewhere"/);
    const { receiver } = inTheShadow();
    expect(() => shadow(receiver, {} as never)).toThrow(/journal/);
    expect(() => shadow(receiver, { journal: () => {}, jornal: 1 } as never)).toThrow(/no option "jornal"/);
  });

  it("takes a receiver of any one flow", () => {
    for (const flow of [{ payments: { publicKey: keys.publicKey } }, { connect: { secret } }]) {
      const receiver = createReceiver({ ...flow, run: "elsewhere", logger: silent });
      expect(() => shadow(receiver, { journal: () => {} })).not.toThrow();
    }
  });
});

it("an old receiver that fails beside a flow that is off causes no unhandled rejection", async () => {
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    run: "elsewhere",
    logger: silent,
  });
  const beside = shadow(receiver, { journal: () => {} }) as Shadow;
  const unhandled = unhandledRejections();
  const { rawBody, headers } = callback("x");
  const delivery = { rawBody, headers: { get: (name: string) => headers[name] ?? null } };
  await beside.delivered("connect", delivery as never, Promise.reject(new Error("the old one is away")));
  await new Promise((resolve) => setTimeout(resolve, 5));
  expect(unhandled).toEqual([]);
});

describe("markHandled", () => {
  it("refuses a name that is not an event of its flow, and a tenant that cannot be right", async () => {
    const { receiver } = inTheShadow();
    const { payments, connect } = receiver;
    for (const event of [
      handled(""),
      handled("x", "PAID"),
      { id: "x", event: "DEPOSIT" },
      { id: "x", event: "settlement.approved" },
    ]) {
      await expect(payments.markHandled(event)).rejects.toMatchObject({ code: "ERR_OPTION_INVALID" });
    }
    await expect(connect.markHandled(handled("x"))).rejects.toMatchObject({ code: "ERR_OPTION_INVALID" });
    await expect(payments.markHandled({ ...handled("x"), tenant: "a" })).rejects.toThrow(/fixed keys/);
    const many = inTheShadow({ payments: { publicKey: () => null } }).receiver;
    await expect(many.payments.markHandled(handled("x"))).rejects.toMatchObject({
      code: "ERR_OPTION_MISSING",
    });
    const { state } = await many.payments.markHandled({ ...handled("x"), tenant: "a" });
    expect(state).toBe("done");
    expect((await many.events.list({ id: "x", tenant: "a" })).events).toHaveLength(1);
  });

  it("imports the past into a receiver that runs", async () => {
    const { receiver, ran } = await inTheShadow().switched();
    expect((await receiver.payments.markHandled(handled("old"))).state).toBe("done");
    await send(receiver, callback("old"));
    await send(receiver, callback("new"));
    await expect.poll(() => ran).toEqual(["new SUCCESS"]);
  });
});

it("an outage of the inbox makes it try 10,000 events again, and name the others", async () => {
  const { receiver, beside, lines } = inTheShadow();
  const logged = vi.spyOn(console, "error").mockImplementation(() => {});
  onTestFinished(() => void logged.mockRestore());
  const marking = vi
    .spyOn(receiver.payments, "markHandled")
    .mockRejectedValue(new Error("the inbox is away"));
  for (let n = 0; n < 10_003; n++) expect(await beside.handled(handled(`pay-${n}`))).toBe(false);
  const marked = lines.filter((line) => line.type === "marked");
  const dropped = marked.filter((line) => line.dropped === true);
  expect(marked.every(({ state }) => state === null)).toBe(true);
  expect(dropped.map(({ event }) => event.id)).toEqual(["pay-10000", "pay-10001", "pay-10002"]);
  expect(logged).toHaveBeenCalledTimes(1);
  // One line for each event, and one more once it is marked.
  expect(marked).toHaveLength(10_003);
  marking.mockResolvedValue({ eventId: "e", state: "done" });
  await expect
    .poll(() => lines.filter((line) => line.type === "marked" && line.state === "done").length, {
      timeout: 20_000,
    })
    .toBe(10_000);
  expect(await beside.handled(handled("pay-10000"))).toBe(true);
});
