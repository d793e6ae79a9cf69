import { callbackFields, signConnectWebhook, signPaymentCallback } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { REDACTED, redactionOf } from "../src/redaction/redaction.ts";
import { heldId, keys, merchant } from "./support/merchant.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const of = (body: unknown, ...names: readonly string[]) =>
  redactionOf(names, bytes(typeof body === "string" ? body : JSON.stringify(body)));

describe("the body", () => {
  it("is indented, and its numbers and strings are as they were written", () => {
    const { body } = of(
      '{"amount":10.500000,"big":12345678901234567890,"name":"caf\\u00e9","none":[],"in":{"a":[1,2]}}',
    );
    expect(body).toBe(
      '{\n  "amount": 10.500000,\n  "big": 12345678901234567890,\n  "name": "caf\\u00e9",\n  "none": [],\n  "in": {\n    "a": [\n      1,\n      2\n    ]\n  }\n}',
    );
  });

  it("has no value of a redacted field, at any depth and of any kind", () => {
    const { body } = of(
      {
        userId: "alice-42",
        data: { userId: { first: "Alice", card: [4111, 5500] }, list: [{ userId: true }] },
        kept: "yes",
      },
      "userId",
    );
    expect(body).toContain('"kept": "yes"');
    for (const secret of ["alice-42", "Alice", "4111", "5500", "true"]) expect(body).not.toContain(secret);
  });

  it.each([
    ["given twice", '{"userId":"alice-42","userId":"bob-4242"}'],
    ["written with escapes", '{"\\u0075serId":"alice-42","x":"bob-4242","userId":"bob-4242"}'],
    ["in another field", '{"userId":"alice-42","message":"for alice-42 and ALICE-42"}'],
    ["in a name", '{"userId":"alice-42","of alice-42":1}'],
    ["in a field that swallowed it", '{"message":"u&userId=alice-42&status=FAILED"}'],
    ["in JSON within a string", '{"message":"{\\"userId\\": \\"alice-42\\"}"}'],
    ["in an address", '{"userId":"alice 42/x","callbackUrl":"https://a.example/?u=alice%2042%2Fx"}'],
  ])("has none that is %s", (_where, text) => {
    expect(of(text, "userId").body).not.toMatch(/alice|bob/i);
  });

  it("never has a signature", () => {
    expect(of({ signature: "c2lnbmF0dXJl" }).body).not.toContain("c2lnbmF0dXJl");
  });

  it.each([
    ["not JSON", "userId=alice"],
    ["no object", '["alice"]'],
    ["no UTF-8", Uint8Array.of(0x7b, 0xff, 0x7d)],
  ])("is not shown when it is %s", (_what, body) => {
    const raw = typeof body === "string" ? bytes(body) : body;
    expect(redactionOf([], raw).body).toBeNull();
  });

  it("is not shown when its redacted fields have more values than can be looked for", () => {
    const userId = Array.from({ length: 201 }, (_, n) => `user-${n}`);
    expect(of({ userId }, "userId").body).toBeNull();
    expect(of({ userId }, "userId").text("user-7")).toBeNull();
  });

  it("may be nested as deeply as it fits into a body", () => {
    const deep = `{"a":${"[".repeat(30_000)}${"]".repeat(30_000)}}`;
    expect((of(deep).body ?? "").length).toBeLessThan(deep.length * 40);
  });

  it("shows characters without a shape by their codes", () => {
    expect(of({ m: "a\u202eb\u200bc" }).body).toContain('"a\\u202eb\\u200bc"');
  });
});

describe("what was written about an event", () => {
  it.each([
    ["plain", "no account of alice-42 was found"],
    ["in another case", "ALICE-42 is not known"],
    ["within a word", "idalice-42x"],
    ["by its name", 'userId: "alice-42", userId=other-7'],
    ["cut off", `${"x".repeat(40)} alice…`],
    ["cut off without a sign of it", `${"x".repeat(194)} alice`],
  ])("has no value that is redacted: %s", (_how, text) => {
    const left = of({ userId: "alice-42" }, "userId").text(text);
    expect(left).toContain(REDACTED);
    expect(left).not.toMatch(/alice|other-7/i);
  });

  it("has not even a short one", () => {
    expect(of({ userId: 7 }, "userId").text("user 7 is blocked")).toBe(`user ${REDACTED} is blocked`);
  });

  it("keeps other words", () => {
    expect(of({ userId: "alice-42" }, "userId").text("connect ECONNREFUSED")).toBe("connect ECONNREFUSED");
  });

  it("is not shown while nobody can say what has to be left out of it", () => {
    expect(redactionOf(["userId"], null).text("no account of alice-42")).toBeNull();
    expect(of("not JSON", "userId").text("no account of alice-42")).toBeNull();
    expect(redactionOf([], null).text("no account of alice-42")).toBe("no account of alice-42");
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
    const shop = await merchant();
    shop.words = `no account of ${SECRET}`;
    await shop.callback({ referenceId: "order-7", userId: SECRET, message: `for ${SECRET}` });
    const eventId = await heldId(shop.receiver);
    const page = await shop.open({ redact: ["userId"] });
    const seen = async () => {
      for (const query of everyPart(eventId)) expect((await page.get(query)).text).not.toContain(SECRET);
      expect((await page.preview({ eventIds: [eventId] })).html).not.toContain(SECRET);
    };
    await seen();
    expect((await page.get(`?event=${eventId}`)).text).toContain(`no account of ${REDACTED}`);
    const decided = async (action: string, note: string) => {
      const { events } = await page.preview({ eventIds: [eventId] }, action);
      expect((await page.decide({ action, ...events[0], note })).status).toBe(200);
    };
    await decided("replay", `${SECRET} called`);
    await expect.poll(async () => (await shop.receiver.events.get(eventId))?.replays).toBe(1);
    await expect.poll(async () => (await shop.receiver.events.get(eventId))?.state).toBe("held");
    await seen();
    expect((await page.get(`?event=${eventId}`)).text).toContain(`“<bdi>${REDACTED} called</bdi>”`);
    await decided("discard", `${SECRET} paid`);
    await seen();
    const shown = await page.get(`?event=${eventId}`);
    expect(shown.text).toContain("discarded");
    // Without redact the same page shows it: what is asserted above could fail.
    const open = await shop.open();
    expect((await open.get(`?event=${eventId}`)).text).toContain(SECRET);
  });

  it.each([
    ["referenceId", "order-4711"],
    ["payTxnId", "7e0c7a52-9f3e-4f59-9b5c-0c2f6a1c4711"],
  ])("is no label either: %s", async (name, value) => {
    const shop = await merchant();
    shop.words = "the bank is away";
    await shop.callback({ [name]: value });
    const eventId = await heldId(shop.receiver);
    const page = await shop.open({ redact: [name] });
    for (const query of everyPart(eventId)) expect((await page.get(query)).text).not.toContain(value);
  });

  it("is not in a body that has it twice", async () => {
    const shop = await merchant();
    const text = `{"userId":"${SECRET}","userId":"x","event":"settlement.approved"}`;
    const body = new TextEncoder().encode(text);
    expect(await shop.webhook(signConnectWebhook(body, keys.webhookSecret))).toBe(200);
    const eventId = await heldId(shop.receiver);
    const page = await shop.open({ redact: ["userId"] });
    for (const query of everyPart(eventId)) expect((await page.get(query)).text).not.toContain(SECRET);
  });

  it("takes no signature with it", async () => {
    const shop = await merchant();
    shop.words = "the bank is away";
    const delivery = signPaymentCallback(callbackFields(), keys.privateKey);
    const { signature } = JSON.parse(delivery.rawBody.toString()) as { signature: string };
    await shop.deliver(delivery);
    const eventId = await heldId(shop.receiver);
    const page = await shop.open();
    for (const query of everyPart(eventId)) {
      expect((await page.get(query)).text).not.toContain(signature.slice(0, 24));
    }
  });
});
