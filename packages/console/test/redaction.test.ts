import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { type Contents, createReceiver, memoryInbox } from "@payhooks/core";
import { contentsOf } from "@payhooks/core/events";
import { webhooks } from "@payhooks/core/fetch";
import { hmac, source } from "@payhooks/core/sources";
import { asDelivery, callbackFields, signConnectWebhook, signPaymentCallback } from "@payhooks/core/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { silent } from "../../../test/support/silent.ts";
import { REDACTION_MARK, type Redaction, redactionOf } from "../src/redaction/redaction.ts";
import { consoleFixture, heldId, keys } from "./support/console-fixture.ts";
import { MOUNTS } from "./support/mounts.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const contentsIn = (flow: "payments" | "connect", text: string): Contents =>
  contentsOf({
    flow,
    arrivedBy: flow === "payments" ? "callback" : "webhook",
    content: bytes(text),
    signature: null,
    keyId: null,
    tenant: "",
    receivedAt: 0,
  });
/** A webhook. */
const webhook = (body: unknown, ...names: readonly string[]) =>
  redactionOf(names, contentsIn("connect", typeof body === "string" ? body : JSON.stringify(body)));
/** The signed text of a callback. */
const callback = (text: string, ...names: readonly string[]) =>
  redactionOf(names, contentsIn("payments", text));
const members = (count: number): Readonly<Record<string, number>> =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`m${n}`, n]));
const textIn = ({ contents }: Redaction): string => JSON.stringify(contents);

describe("the contents", () => {
  it("are what handlers get, above what was signed, if nothing is redacted", () => {
    const text = '{"amount":10.500000,"big":12345678901234567890,"in":{"a":[1,2]}}';
    expect(webhook(text).contents).toEqual({
      fields: [
        { name: "amount", value: "10.5" },
        { name: "big", value: "12345678901234567000" },
        { name: "in.a", value: "[1,2]" },
      ],
      signed: [{ name: null, text }],
    });
  });

  it("have no value of a redacted field, at any depth and of any kind", () => {
    const redacted = webhook(
      {
        userId: "alice-42",
        data: { userId: { first: "Alice", card: [4111, 5500] } },
        list: [{ userId: true, "also-secret": { userId: { a: "deep-1", b: "deep-2" } } }],
        cards: "4111 and 5500",
        kept: "yes",
      },
      "userId",
    );
    expect(redacted.contents?.fields).toContainEqual({ name: "kept", value: "yes" });
    for (const secret of ["alice-42", "Alice", "4111", "5500", "true", "deep"]) {
      expect(textIn(redacted)).not.toContain(secret);
    }
  });

  it.each([
    ["in another field", '{"userId":"alice-42","message":"for alice-42 and ALICE-42"}'],
    ["in a name", '{"userId":"alice-42","of alice-42":1}'],
    ["in JSON within a string", '{"message":"{\\"userId\\": \\"alice-42\\"}"}'],
    ["in JSON within a string, with escapes", '{"message":"{\\"\\\\u0075serId\\": \\"alice-42\\"}"}'],
    ["in an address", '{"userId":"alice 42/x","callbackUrl":"https://a.example/?u=alice%2042%2Fx"}'],
    ["written with escapes", '{"\\u0075serId":"alice-42","x":"for alice-42"}'],
  ])("of a webhook have none that is %s", (_where, text) => {
    expect(textIn(webhook(text))).toMatch(/alice/i);
    expect(textIn(webhook(text, "userId"))).not.toMatch(/alice/i);
  });

  it.each([
    ["in an object of a list", { list: [{ userId: "alice-42" }], other: "for alice-42" }],
    [
      "in a list of a list",
      { list: [[1, { deep: [{ userId: { of: "alice-42" } }] }]], other: "for alice-42" },
    ],
    [
      "in JSON within a string",
      { text: JSON.stringify({ in: [{ userId: "alice-42" }] }), other: "for alice-42" },
    ],
    ["after two hundred members", { ...members(250), userId: "alice-42", "of alice-42": 1 }],
    ["in a field after two hundred members", { userId: "alice-42", ...members(250), other: "for alice-42" }],
    ["in an object of a list after two hundred members", { ...members(250), list: [{ userId: "alice-42" }] }],
    ["beside a text that only begins as a list does", { text: "[alice-42", list: "{", userId: "alice-42" }],
  ])("of a webhook, what was signed and the errors have none that is %s", (_where, body) => {
    const redacted = webhook(body, "userId");
    expect(textIn(webhook(body))).toContain("alice");
    expect(textIn(redacted)).not.toContain("alice");
    expect(redacted.contents?.signed).toEqual([{ name: null, text: REDACTION_MARK }]);
    expect(redacted.redactText("cannot mail alice-42")).toBe(`cannot mail ${REDACTION_MARK}`);
  });

  it("have no number that was signed with other digits than handlers get", () => {
    const text = '{"card":41111111111111111111,"fee":10.500,"note":"41111111111111111111 costs 10.500"}';
    const redacted = webhook(text, "card", "fee");
    expect(textIn(redacted)).not.toMatch(/4111|10[.]5/);
    expect(redacted.redactText("no 41111111111111111111 for 10.500")).toBe(
      `no ${REDACTION_MARK} for ${REDACTION_MARK}`,
    );
  });

  it("have none of a member that is named by its path, or whose name has a dot", () => {
    for (const body of [{ data: { customer: { mail: "alice-42" } } }, { "customer.mail": "alice-42" }]) {
      const redacted = webhook({ ...body, list: [{ customer: { mail: "alice-43" } }] }, "customer.mail");
      expect(textIn(redacted)).not.toContain("alice");
      expect(redacted.redactText("no alice-42, no alice-43")).toBe(
        `no ${REDACTION_MARK}, no ${REDACTION_MARK}`,
      );
    }
  });

  it("are shown beside a text that begins as a list does", () => {
    expect(webhook({ text: "[draft] hello", kept: "{yes" }, "userId").contents?.fields).toEqual([
      { name: "text", value: "[draft] hello" },
      { name: "kept", value: "{yes" },
    ]);
  });

  it("show a person the first two hundred fields", () => {
    expect(webhook(members(250)).contents?.fields).toHaveLength(200);
  });

  it("are not shown when JSON within a string is too deep to be looked through", () => {
    const redacted = webhook({ text: `${"[".repeat(50_000)}${"]".repeat(50_000)}` }, "userId");
    expect(redacted.contents).toBeNull();
    expect(redacted.redactText("user-7")).toBeNull();
  });

  it("are shown when JSON within a string is deeper than a body may be, as far as 64 levels", () => {
    const list = (depth: number): string => `${"[".repeat(depth)}{"userId":"alice-42"}${"]".repeat(depth)}`;
    const redacted = (depth: number) =>
      webhook({ text: list(depth), other: "for alice-42", kept: "yes" }, "userId");
    expect(redacted(62).contents?.fields).toContainEqual({ name: "kept", value: "yes" });
    expect(textIn(redacted(62))).not.toContain("alice");
    expect(redacted(63).contents).toBeNull();
  });

  it.each([
    '{"userId":"alice-42","userId":"x"}',
    '{"userId":"alice-42","\\u0075serId":"x"}',
    '{"customer":{"userId":"alice-42"},"customer":1}',
    '[{"a":"{\\"userId\\":\\"alice-42\\",\\"userId\\":7}"}]',
  ])("are not shown when JSON within a string has a name twice: %s", (text) => {
    const body = { text, other: "for alice-42" };
    expect(textIn(webhook(body))).toContain("for alice-42");
    const redacted = webhook(body, "userId");
    expect(redacted.contents).toBeNull();
    expect(redacted.redactText("cannot mail alice-42")).toBeNull();
  });

  it("are shown when several objects of JSON within a string have the same names", () => {
    const text = '[{"userId":"alice-42","a":{"userId":"bob-7"}},{"userId":"userId", "b":"a\\"b:{"}]';
    const redacted = webhook({ text, other: "for alice-42", kept: "yes" }, "userId");
    expect(redacted.contents?.fields).toContainEqual({ name: "kept", value: "yes" });
    expect(textIn(redacted)).not.toMatch(/alice|bob/);
  });

  it.each([
    ["in its own field", "amount=1&userId=alice-42"],
    ["in another field", "message=for alice-42&userId=alice-42"],
    ["there twice", "userId=alice-42&userId=alice-43"],
    ["before an &", "message=of alice&b&userId=alice&b"],
  ])("of a callback have none that is %s", (_where, text) => {
    expect(textIn(callback(text))).toMatch(/alice/i);
    expect(textIn(callback(text, "userId"))).not.toMatch(/alice/i);
  });

  it("leave no part of a value that reaches over several pieces", () => {
    const text = "message=alice&status=4242&userId=alice&status=4242";
    expect(textIn(callback(text, "userId"))).not.toMatch(/alice/i);
  });

  it("are not shown when the redacted fields have more values than can be looked for", () => {
    const userId = Array.from({ length: 201 }, (_, n) => `user-${n}`);
    expect(webhook({ userId }, "userId").contents).toBeNull();
    expect(webhook({ userId }, "userId").redactText("user-7")).toBeNull();
  });
});

describe("a text about an event", () => {
  it.each([
    ["plain", "no account of alice-42 was found"],
    ["in another case", "ALICE-42 is not known"],
    ["within a word", "idalice-42x"],
    ["by its name", 'userId: "alice-42", userId=other-7'],
    ["cut off", `${"x".repeat(40)} alice…`],
    ["cut off without a sign of it", `${"x".repeat(194)} alice`],
  ])("has no value that is redacted: %s", (_how, text) => {
    const left = webhook({ userId: "alice-42" }, "userId").redactText(text);
    expect(left).toContain(REDACTION_MARK);
    expect(left).not.toMatch(/alice|other-7/i);
  });

  it("has not even a short one", () => {
    expect(webhook({ userId: 7 }, "userId").redactText("user 7 is blocked")).toBe(
      `user ${REDACTION_MARK} is blocked`,
    );
  });

  it("keeps other words", () => {
    expect(webhook({ userId: "alice-42" }, "userId").redactText("connect ECONNREFUSED")).toBe(
      "connect ECONNREFUSED",
    );
  });

  it("is not shown while the values that have to be left out are unknown", () => {
    expect(redactionOf(["userId"], null).redactText("no account of alice-42")).toBeNull();
    expect(webhook("not JSON", "userId").redactText("no account of alice-42")).toBeNull();
    expect(redactionOf([], null).redactText("no account of alice-42")).toBe("no account of alice-42");
  });
});

describe("a redacted field", () => {
  const SECRET = "alice-4711";
  const everyPart = (eventId: string) => [
    "",
    `?event=${eventId}`,
    "?part=regions",
    `?event=${eventId}&part=regions`,
    "?state=finished",
  ];

  it("never leaves the server: bodies, errors, history, notes, log", async () => {
    const fixture = await consoleFixture();
    fixture.words = `no account of ${SECRET}`;
    await fixture.callback({ referenceId: "order-7", userId: SECRET, message: `for ${SECRET}` });
    const eventId = await heldId(fixture.receiver);
    const page = await fixture.open({ redact: ["userId"] });
    const seen = async () => {
      for (const query of everyPart(eventId)) expect((await page.get(query)).text).not.toContain(SECRET);
      expect((await page.preview({ eventIds: [eventId] })).html).not.toContain(SECRET);
    };
    await seen();
    expect((await page.get(`?event=${eventId}`)).text).toContain(`no account of ${REDACTION_MARK}`);
    const decided = async (action: string, note: string) => {
      const { events } = await page.preview({ eventIds: [eventId] }, action);
      expect((await page.decide({ action, ...events[0], note })).status).toBe(200);
    };
    await decided("replay", `${SECRET} called`);
    await expect.poll(async () => (await fixture.receiver.events.get(eventId))?.replays).toBe(1);
    await expect.poll(async () => (await fixture.receiver.events.get(eventId))?.state).toBe("held");
    await seen();
    expect((await page.get(`?event=${eventId}`)).text).toContain(`“<bdi>${REDACTION_MARK} called</bdi>”`);
    await decided("discard", `${SECRET} paid`);
    await seen();
    const shown = await page.get(`?event=${eventId}`);
    expect(shown.text).toContain("discarded");
    // Without redact the same page shows it: what is asserted above could fail.
    const open = await fixture.open();
    expect((await open.get(`?event=${eventId}`)).text).toContain(SECRET);
  });

  it.each([
    ["referenceId", "order-4711"],
    ["payTxnId", "7e0c7a52-9f3e-4f59-9b5c-0c2f6a1c4711"],
  ])("is not a label either: %s", async (name, value) => {
    const fixture = await consoleFixture();
    fixture.words = "the bank is away";
    await fixture.callback({ [name]: value });
    const eventId = await heldId(fixture.receiver);
    const page = await fixture.open({ redact: [name] });
    for (const query of everyPart(eventId)) expect((await page.get(query)).text).not.toContain(value);
  });

  it.each([[["data.id", "data.amount"]], [["data"]], [["id", "amount"]]])(
    "is no label of a webhook either, in a list, on a page or in a download, before its end and after it: %j",
    async (redact) => {
      const fixture = await consoleFixture();
      const body = {
        event: "account.renamed",
        idempotency_key: "evt-1",
        occurred_at: new Date().toISOString(),
        data: { object: "account", id: SECRET, amount: 98_765 },
      };
      expect(await fixture.webhook(signConnectWebhook(body, keys.webhookSecret))).toBe(200);
      const eventId = await heldId(fixture.receiver);
      const [page, open] = [await fixture.open({ redact }), await fixture.open()];
      for (const state of ["held", "finished"]) {
        const everywhere = [
          ...everyPart(eventId),
          `?state=${state}`,
          `?state=${state}&download=csv`,
          `?state=${state}&download=jsonl`,
        ];
        for (const query of everywhere) expect((await page.get(query)).text).not.toMatch(/alice|98765/);
        expect((await open.get(`?state=${state}&download=csv`)).text).toMatch(/98765.*alice|alice.*98765/);
        if (state === "held")
          await fixture.receiver.events.discard(eventId, { by: "marta", note: "not ours" });
      }
    },
  );

  it("is no label of an event either that has its value in another field", async () => {
    const fixture = await consoleFixture();
    fixture.words = "the bank is away";
    await fixture.callback({ referenceId: SECRET, userId: SECRET });
    const eventId = await heldId(fixture.receiver);
    const page = await fixture.open({ redact: ["userId"] });
    for (const query of everyPart(eventId)) expect((await page.get(query)).text).not.toContain(SECRET);
    expect((await page.get("?state=held&download=csv")).text).not.toContain(SECRET);
    expect((await (await fixture.open()).get("?state=held&download=csv")).text).toContain(SECRET);
  });

  describe("that a source reads a label from", () => {
    const secret = "bank-secret-4711";
    const sign = (body: string): string => createHmac("sha256", secret).update(body).digest("hex");

    async function bank() {
      let isAway = true;
      const receiver = createReceiver({
        sources: {
          bank: source({
            verify: hmac({ header: "x-signature", secret }),
            read: ({ body }) => ({
              id: body.customer.email,
              name: body.type,
              data: body,
              reference: `customer:${body.list[0].phone}`,
            }),
          }),
        },
        inbox: memoryInbox(),
        logger: silent,
      });
      onTestFinished(async () => void (await receiver.close({ graceMs: 0 })));
      receiver.on(
        "bank",
        "paid",
        () => {
          if (isAway) throw new Error(`cannot mail ann@example.com at 251911000000`);
        },
        { maxAttempts: 1 },
      );
      await receiver.start();
      const app = createServer(
        getRequestListener(webhooks(receiver, "bank") as (request: Request) => Promise<Response>),
      ).listen(0, "127.0.0.1");
      await once(app, "listening");
      onTestFinished(() => void app.close());
      const body = JSON.stringify({
        type: "paid",
        customer: { email: "ann@example.com" },
        list: [{ phone: "251911000000" }],
      });
      const { status } = await fetch(`http://127.0.0.1:${(app.address() as AddressInfo).port}/`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-signature": sign(body) },
        body,
      });
      expect(status).toBe(200);
      await expect.poll(async () => (await receiver.events.counts()).held).toBe(1);
      const fetched = MOUNTS.fetch;
      if (fetched === undefined) throw new Error("no mount is named fetch");
      const open = async (redact: readonly string[]) => {
        const mount = await fetched(receiver as never, {
          authorize: () => ({ by: "marta", can: ["view", "replay", "discard"] }),
          redact,
        });
        onTestFinished(mount.close);
        return async (query: string): Promise<string> => (await fetch(mount.url + query)).text();
      };
      const eventId = await heldId(receiver as never);
      const isDone = async () => (await receiver.events.get(eventId))?.state === "done";
      return {
        eventId,
        open,
        finish: async () => {
          isAway = false;
          await receiver.events.replay(eventId, { by: "marta", note: "again" });
          await expect.poll(isDone).toBe(true);
        },
      };
    }

    it("is in no list, title or download, before its end and after it", async () => {
      const { eventId, open, finish } = await bank();
      const everywhere = [
        ...everyPart(eventId),
        "?state=held&download=csv",
        "?state=held&download=jsonl",
        "?state=finished&download=csv",
        "?state=finished&download=jsonl",
      ];
      const [redacted, other, whole] = [await open(["email", "phone"]), await open(["iban"]), await open([])];
      for (const query of everywhere) expect(await redacted(query)).not.toMatch(/ann@|251911/);
      expect(await redacted("")).toContain(`<bdi>customer:${REDACTION_MARK}</bdi>`);
      for (const page of [other, whole]) {
        expect(await page(`?event=${eventId}`)).toContain("ann@example.com");
        expect(await page("?state=held&download=csv")).toContain("ann@example.com,");
      }
      await finish();
      for (const query of everywhere) expect(await redacted(query)).not.toMatch(/ann@|251911/);
      // Without its fields, nobody knows what they are from.
      expect(await other("?state=finished&download=csv")).not.toMatch(/ann@|251911/);
      expect(await whole("?state=finished&download=csv")).toContain("ann@example.com,");
    });
  });

  it.each([
    ["each in its place", ({ ...fields }) => fields],
    [
      "swallowed by the name before it",
      ({ timestamp, userId, providerTxId, referenceId, ...rest }) => ({
        ...rest,
        [`providerTxId=${providerTxId}&referenceId`]: referenceId,
        [`timestamp=${timestamp}&userId`]: userId,
      }),
    ],
    [
      "swallowed by the value before it",
      ({ status, timestamp, userId, ...rest }) => ({
        ...rest,
        status: `${status}&timestamp=${timestamp}&userId=${userId}`,
      }),
    ],
  ] satisfies [string, (fields: Record<string, unknown>) => object][])(
    "is hidden however a sender has spelt the body: %s",
    async (_, spelt) => {
      const fixture = await consoleFixture();
      fixture.words = "the bank is away";
      const fields = callbackFields({ referenceId: "order 4711", userId: "Abebe Kebede" });
      const genuine = signPaymentCallback(fields, keys.privateKey);
      const { signature } = JSON.parse(genuine.rawBody.toString()) as { signature: string };
      expect(await fixture.deliver(asDelivery({ ...spelt(fields), signature }))).toBe(200);
      const eventId = await heldId(fixture.receiver);
      const page = await fixture.open({ redact: ["userId", "referenceId"] });
      for (const query of everyPart(eventId)) {
        expect((await page.get(query)).text).not.toMatch(/4711|Abebe|Kebede/);
      }
      expect((await (await fixture.open()).get(`?event=${eventId}`)).text).toContain("Kebede");
    },
  );

  it("is not in a body that has it twice", async () => {
    const fixture = await consoleFixture();
    const text = `{"userId":"${SECRET}","userId":"x","event":"settlement.approved"}`;
    const body = new TextEncoder().encode(text);
    expect(await fixture.webhook(signConnectWebhook(body, keys.webhookSecret))).toBe(200);
    const eventId = await heldId(fixture.receiver);
    const page = await fixture.open({ redact: ["userId"] });
    for (const query of everyPart(eventId)) expect((await page.get(query)).text).not.toContain(SECRET);
  });

  it("takes no signature with it", async () => {
    const fixture = await consoleFixture();
    fixture.words = "the bank is away";
    const delivery = signPaymentCallback(callbackFields(), keys.privateKey);
    const { signature } = JSON.parse(delivery.rawBody.toString()) as { signature: string };
    await fixture.deliver(delivery);
    const eventId = await heldId(fixture.receiver);
    const page = await fixture.open();
    for (const query of everyPart(eventId)) {
      expect((await page.get(query)).text).not.toContain(signature.slice(0, 24));
    }
  });
});
