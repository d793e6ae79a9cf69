import { createReceiver, memoryInbox } from "@payhooks/core";
import { source, unsafeUnsigned } from "@payhooks/core/sources";
import { fakeClock } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { receiving } from "./receiving.ts";

const verify = unsafeUnsigned({ because: "a test of what comes after the verification" });
interface Body {
  readonly id?: string;
  readonly type: string;
  readonly status?: string;
}
const read = ({ body }: { readonly body: Body }) => ({ id: body.id, name: body.type, data: body });
const plain = () => source({ verify, read });
const json = (value: unknown): { readonly body: string } => ({ body: JSON.stringify(value) });

describe("the result of read", () => {
  it("runs a new event once, and answers copies", async () => {
    const { post, ran, notices } = receiving(plain());
    for (let copy = 0; copy < 3; copy++)
      expect((await post(json({ id: "1", type: "paid" }))).status).toBe(200);
    expect(ran).toEqual([
      expect.objectContaining({
        flow: "any",
        event: "paid",
        id: "1",
        data: { id: "1", type: "paid" },
        status: "",
      }),
    ]);
    expect(notices.filter(({ type }) => type === "duplicate")).toHaveLength(2);
  });

  it("holds the same id under another name", async () => {
    const { post, held, ran } = receiving(plain());
    await post(json({ id: "1", type: "paid" }));
    await post(json({ id: "1", type: "refunded" }));
    expect(await held()).toEqual([expect.objectContaining({ reason: "mismatch" })]);
    expect(ran).toHaveLength(1);
  });

  it.each([
    ["no JSON", "id=1", /not JSON/],
    ["a name twice", '{"id":"1","id":"2","type":"paid"}', /duplicate names/],
    ["deep nesting", `{"id":"1","type":"paid","x":${"[".repeat(20)}${"]".repeat(20)}}`, /nested/],
    ["another byte order mark", "\uFEFF{}", /not JSON/],
    ["no name", '{"id":"1"}', /no name/],
    ["an id that is a number", '{"id":1,"type":"paid"}', /id that is not text/],
    ["a body that read cannot read", "null", /read threw: TypeError/],
    ["the name of every name", '{"id":"1","type":"*"}', /no name/],
  ])("holds %s as malformed, once", async (_what, body, detail) => {
    const { post, held, ran } = receiving(plain());
    expect((await post({ body })).status).toBe(200);
    expect((await post({ body })).status).toBe(200);
    expect(await held()).toEqual([
      expect.objectContaining({ reason: "malformed", detail: expect.stringMatching(detail) }),
    ]);
    expect(ran).toEqual([]);
  });

  it("recognises copies by their bytes without an id, and holds one under another loose name", async () => {
    const one = source({
      verify,
      read: ({ body, unsignedHeaders }) => ({ name: unsignedHeaders.get("x-event") ?? "", data: body }),
    });
    const { post, ran, held } = receiving(one);
    const sent = (name: string) => ({ body: '{"a":1}', headers: { "x-event": name } });
    await post(sent("push"));
    await post(sent("push"));
    await post(sent("release"));
    expect(ran.map(({ event, headers }) => [event, headers])).toEqual([["push", { "x-event": "push" }]]);
    expect(await held()).toEqual([expect.objectContaining({ reason: "mismatch", event: "release" })]);
  });

  it("holds an event whose tenant is not the one of the key", async () => {
    const one = source({
      verify: () => ({ ok: true, keyId: "k", tenant: "shop-a" }),
      read: ({ body }) => ({ id: "1", name: "paid", data: body, tenant: body.shop }),
    });
    const { post, held, ran } = receiving(one);
    await post(json({ shop: "shop-b" }));
    await post(json({ shop: "shop-a" }));
    expect(await held()).toEqual([expect.objectContaining({ reason: "mismatch", tenant: "shop-a" })]);
    expect(ran).toHaveLength(1);
  });

  it("scopes records by its tenant", async () => {
    const one = source({
      verify,
      read: ({ body }) => ({ id: "1", name: "paid", data: body, tenant: body.shop }),
    });
    const { post, ran } = receiving(one);
    for (const shop of ["a", "b", "a"]) await post(json({ shop }));
    expect(ran).toHaveLength(2);
  });

  it("reads forms and texts", async () => {
    const form = receiving(
      source({ verify, body: "form", read: ({ body }) => ({ id: body.id, name: "sms", data: body }) }),
    );
    await form.post({
      body: "id=1&text=a+b%26c",
      headers: { "content-type": "application/x-www-form-urlencoded" },
    });
    expect(form.ran).toEqual([expect.objectContaining({ id: "1", data: { id: "1", text: "a b&c" } })]);
    await form.post({ body: "id=1&id=2" });
    expect(await form.held()).toEqual([expect.objectContaining({ detail: "the form has a field twice" })]);
    const text = receiving(
      source({ verify, body: "text", read: ({ body }) => ({ name: "line", data: body }) }),
    );
    await text.post({ body: "a line" });
    expect(text.ran).toEqual([expect.objectContaining({ data: "a line" })]);
  });

  it("is found by its reference or its unsignedId, beside payments", async () => {
    const one = source({
      verify,
      read: ({ body, unsignedHeaders }) => ({
        id: body.id,
        name: "paid",
        data: body,
        reference: body.order,
        unsignedId: unsignedHeaders.get("x-delivery") ?? undefined,
      }),
    });
    const { post, receiver } = receiving(one);
    await post({ ...json({ id: "1", order: "order-17" }), headers: { "x-delivery": "d-1" } });
    await post({ ...json({ id: "2" }), headers: { "x-delivery": "d-2" } });
    const idsOf = async (query: Parameters<typeof receiver.events.list>[0]) =>
      (await receiver.events.list(query)).events.map(({ id }) => id);
    expect(await idsOf({ referenceId: "order-17" })).toEqual(["1"]);
    expect(await idsOf({ referenceId: "d-2" })).toEqual(["2"]);
    expect(await idsOf({ flow: "any", id: "1" })).toEqual(["1"]);
    expect(await idsOf({ flow: "payments", id: "1" })).toEqual([]);
  });
});

describe("a read that has changed since an event was accepted", () => {
  it.each(["id", "name", "status"] as const)("does not run it with another %s", async (what) => {
    const stages = what === "status" ? { stages: [["open"], ["shut"]] as const } : {};
    const reading = (suffix: string) =>
      source({
        verify,
        ...stages,
        read: ({ body }) => ({
          id: what === "id" ? body.id + suffix : body.id,
          name: what === "name" ? body.type + suffix : body.type,
          data: body,
          fixedFacts: {},
          ...(what === "status" ? { status: suffix === "" ? "open" : "shut" } : {}),
        }),
      } as Parameters<typeof source>[0]) as never;
    const clock = fakeClock();
    const inbox = memoryInbox({ clock });
    const before = receiving(reading(""), { inbox, clock, run: "elsewhere" });
    await before.post(json({ id: "1", type: "paid" }), { run: false });
    const after = receiving(reading("-2"), { inbox, clock });
    await after.receiver.work();
    expect(await after.held()).toEqual([
      expect.objectContaining({
        id: "1",
        reason: "mismatch",
        detail: `read gives another ${what} than when it was accepted`,
      }),
    ]);
    expect([...before.ran, ...after.ran]).toEqual([]);
  });
});

describe("stages", () => {
  const staged = () =>
    source({
      verify,
      stages: [["started"], ["reviewing"], ["passed", "failed"]],
      read: ({ body }) => ({ id: body.id, name: "applicant", data: body, status: body.status }),
    });
  const sent = (status: string) => json({ id: "1", status });

  it("let a later one follow, and no earlier one", async () => {
    const { post, ran, notices, held } = receiving(staged());
    for (const status of ["reviewing", "started", "passed", "reviewing", "passed"]) await post(sent(status));
    expect(ran.map(({ status }) => status)).toEqual(["reviewing", "passed"]);
    expect(notices.filter(({ type }) => type === "stale")).toHaveLength(1);
    expect(notices.filter(({ type }) => type === "duplicate")).toHaveLength(2);
    await post(sent("failed"));
    expect(await held()).toEqual([expect.objectContaining({ reason: "conflict", status: "failed" })]);
  });

  it("let a later event overtake one that waits", async () => {
    let isDown = true;
    const { post, ran, clock, notices, receiver } = receiving(staged(), {
      register: (one, all) =>
        one.on("any", "applicant", (event, { previousStatus }) => {
          if (isDown) throw new Error("down");
          all.push(event);
          expect(previousStatus).toBe("started");
        }),
    });
    await post(sent("started"));
    isDown = false;
    await post(sent("reviewing"));
    await clock.advance(3_600_000);
    await receiver.work();
    expect(ran.map(({ status }) => status)).toEqual(["reviewing"]);
    expect(notices.find(({ type }) => type === "stale")).toMatchObject({ status: "started" });
  });

  it("hold a status that is in none of them", async () => {
    const { post, held } = receiving(staged());
    await post(sent("lost"));
    expect(await held()).toEqual([expect.objectContaining({ reason: "unrecognized", status: "lost" })]);
  });
});

describe("a subject", () => {
  const about = () =>
    source({
      verify,
      read: ({ body }) => ({
        id: body.id,
        name: body.type,
        data: body,
        tenant: body.tenant,
        subject: body.account,
        occurredAt: body.at,
      }),
    });
  const said = (id: string, at: unknown, others: object = { account: "17" }) =>
    json({ id, type: "status", at, ...others });
  const [EARLY, LATE] = ["2026-05-01T10:00:00Z", "2026-05-01T10:00:01Z"];

  it("runs no event after a later one, by the time that the event says, and not by its arrival", async () => {
    const { post, ran, notices } = receiving(about());
    await post(said("late", LATE));
    expect((await post(said("early", EARLY))).status).toBe(200);
    expect(ran.map(({ id }) => id)).toEqual(["late"]);
    expect(notices.find(({ type }) => type === "stale")).toMatchObject({ id: "early" });
  });

  it("is of its own for each tenant, and an event without one is in no order", async () => {
    const { post, ran } = receiving(about());
    await post(said("late", LATE));
    await post(said("of a tenant", EARLY, { account: "17", tenant: "shop" }));
    await post(said("of nothing", EARLY, {}));
    expect(ran.map(({ id }) => id)).toEqual(["late", "of a tenant", "of nothing"]);
  });

  it("holds an event without the time by which it is ordered, and one that says a time far ahead", async () => {
    const { post, held, ran, clock } = receiving(about());
    await post(said("1", undefined));
    await post(said("2", clock.now() + 25 * 3_600_000));
    expect((await held()).toSorted((a, b) => (`${a.reason}` < `${b.reason}` ? -1 : 1))).toEqual([
      expect.objectContaining({ reason: "malformed", detail: expect.stringMatching(/no occurredAt/) }),
      expect.objectContaining({ reason: "unrecognized", detail: expect.stringMatching(/over a day ahead/) }),
    ]);
    expect(ran).toEqual([]);
  });
});

describe("schemas", () => {
  const schemaOf = (validate: (value: unknown) => unknown) =>
    ({ "~standard": { version: 1, vendor: "test", validate } }) as never;
  const withSchema = (validate: (value: unknown) => unknown) =>
    source({ verify, read, events: { paid: schemaOf(validate) } }) as never;

  it("give the handler their output", async () => {
    const { post, ran } = receiving(withSchema(async () => ({ value: { amount: 5 } })));
    await post(json({ id: "1", type: "paid" }));
    expect(ran).toEqual([expect.objectContaining({ data: { amount: 5 } })]);
  });

  it("hold what does not fit, without its values, and are asked again at a replay", async () => {
    let fits = false;
    const issues = [
      { message: 'Expected number, received "a secret text"', path: ["lines", { key: 0 }, "amount"] },
    ];
    const { post, ran, held, receiver } = receiving(withSchema(() => (fits ? { value: 1 } : { issues })));
    expect((await post(json({ id: "1", type: "paid" }))).status).toBe(200);
    const [event] = await held();
    expect(event).toMatchObject({
      reason: "schema",
      detail: "its data does not fit the schema at: lines.0.amount",
    });
    expect(ran).toEqual([]);
    fits = true;
    await receiver.events.replay(event?.eventId ?? "", { by: "a test", note: "the schema was mended" });
    await receiver.work();
    expect(ran).toEqual([expect.objectContaining({ data: 1 })]);
  });

  it("that throw are a failed attempt", async () => {
    let isDown = true;
    const { post, ran, clock, notices, receiver } = receiving(
      withSchema((value) => {
        if (isDown) throw new Error("no catalogue");
        return { value };
      }),
    );
    await post(json({ id: "1", type: "paid" }));

    expect(notices.find(({ type }) => type === "retry")).toMatchObject({
      attempt: 1,
      error: expect.stringContaining("no catalogue"),
    });
    isDown = false;
    await clock.advance(3_600_000);
    await receiver.work();
    expect(ran).toHaveLength(1);
  });
});

describe("a name without a handler", () => {
  it("is acknowledged, counted, reported once and not stored", async () => {
    const { post, notices, receiver } = receiving(plain(), {
      register: (one) => one.on("any", "paid", () => {}),
    });
    for (const id of ["1", "2"]) expect((await post(json({ id, type: "opened" }))).status).toBe(200);
    expect(notices.filter(({ type }) => type === "unhandled")).toMatchObject([
      { flow: "any", event: "opened", count: 1 },
      { flow: "any", event: "opened", count: 2 },
    ]);
    expect((await receiver.events.list({ state: "finished" })).events).toEqual([]);
    expect((await receiver.events.list()).events).toEqual([]);
  });

  it("is held where the source says so, unless it is ignored", async () => {
    const { post, held } = receiving(source({ verify, read, unhandled: "hold" }), {
      register: (one) => one.on("any", "paid", () => {}).ignore("any", "closed"),
    });
    await post(json({ id: "1", type: "opened" }));
    await post(json({ id: "2", type: "closed" }));
    expect(await held()).toEqual([expect.objectContaining({ reason: "unhandled", event: "opened" })]);
  });

  it("is not stored if it is ignored, also beside a handler of every name", async () => {
    const { post, receiver, notices, ran } = receiving(plain(), {
      register: (one, ran) => one.on("any", "*", (event) => void ran.push(event)).ignore("any", "ping"),
    });
    expect(await post(json({ id: "1", type: "ping" }))).toMatchObject({ status: 200 });
    await post(json({ id: "2", type: "paid" }));
    expect((await receiver.events.list({ flow: "any", id: "1" })).events).toEqual([]);
    expect(ran.map(({ event }) => event)).toEqual(["paid"]);
    expect(notices.map(({ type }) => type)).not.toContain("unhandled");
    expect(receiver.handlersOf({ flow: "any", event: "ping", status: "" })).toEqual([]);
  });

  it("is stored where the handlers are in another process, because that process decides", async () => {
    const clock = fakeClock();
    const { post, receiver } = receiving(plain(), {
      run: "elsewhere",
      inbox: memoryInbox({ clock }),
      clock,
      register: () => {},
    });
    await post(json({ id: "1", type: "opened" }));
    expect((await receiver.events.list({ flow: "any", id: "1" })).events).toMatchObject([{ state: "done" }]);
  });
});

describe("handlers", () => {
  it("of a name and of every name run beside each other", async () => {
    const order: string[] = [];
    const { post } = receiving(plain(), {
      register: (one) =>
        one
          .on(
            "any",
            "invoice.paid",
            (_event, { effectId }) => void order.push(effectId.split(".").at(-1) ?? ""),
          )
          .on("any", "*", (_event, { effectId }) => void order.push(effectId.split(".").at(-1) ?? "")),
    });
    await post(json({ id: "1", type: "invoice.paid" }));
    expect(order).toEqual(["invoicePaid", "every"]);
  });

  it.each([
    ["of a source that is not there", "ather", "paid", "ERR_SOURCE_UNKNOWN"],
    ["of no name", "any", "", "ERR_OPTION_INVALID"],
    ["of a name that the schemas do not have", "any", "payed", "ERR_OPTION_INVALID"],
  ])("%s are refused", (_what, name, event, code) => {
    const schema = {
      "~standard": { version: 1, vendor: "test", validate: (value: unknown) => ({ value }) },
    } as const;
    const receiver = createReceiver({ sources: { any: source({ verify, read, events: { paid: schema } }) } });
    expect(() => receiver.on(name as "any", event as "paid", () => {})).toThrow(
      expect.objectContaining({ code }),
    );
    if (code === "ERR_SOURCE_UNKNOWN")
      expect(() => receiver.on(name as "any", "paid", () => {})).toThrow(/It has any\./);
  });

  it.each(["payments", "connect", "Any", "__proto__", "constructor", "a b", "a".repeat(33), ""])(
    "of a source named %j are refused",
    (name) => {
      const sources = Object.defineProperty({}, name, { value: plain(), enumerable: true });
      expect(() => createReceiver({ sources })).toThrow(expect.objectContaining({ code: "ERR_SOURCE_NAME" }));
    },
  );

  it("need a source that source() made", () => {
    expect(() => createReceiver({ sources: { any: {} as never } })).toThrow(/is not a source/);
  });
});

describe("answers", () => {
  it("are those of the source", async () => {
    const accepted = { status: 202, body: "[accepted]" };
    const { post } = receiving(source({ verify, read, answer: { accepted } }));
    expect(await post(json({ id: "1", type: "paid" }))).toMatchObject({
      status: 202,
      body: "[accepted]",
      headers: { "content-type": "text/plain; charset=utf-8" },
    });
  });

  it("to a handshake are computed from the delivery, and nothing is stored", async () => {
    const one = source({
      verify,
      read,
      handshake: ({ body }) => (body.type === "hello" ? { status: 200, body: body.word } : null),
    });
    const { post, receiver, ran } = receiving(one);
    expect((await post(json({ type: "hello", word: "friend" }))).body).toBe("friend");
    expect((await receiver.events.list()).events).toEqual([]);
    await post(json({ id: "1", type: "paid" }));
    expect(ran).toHaveLength(1);
  });

  it("to a GET are plain text, and only where the source has one", async () => {
    const one = source({ verify, read, challenge: ({ query }) => query.get("hub.challenge") });
    const { post } = receiving(one);
    const answer = await post({
      body: "",
      method: "GET",
      url: "https://shop.example/hook?hub.challenge=%3Cscript%3E",
    });
    expect(answer).toMatchObject({ status: 200, body: "<script>" });
    expect(answer.headers).toMatchObject({
      "content-type": "text/plain; charset=utf-8",
      "x-content-type-options": "nosniff",
      "cache-control": "no-store",
    });
    const asked = await post({ body: "", method: "GET", url: "/hook?hub.challenge=who?&hub.mode=subscribe" });
    expect(asked).toMatchObject({ status: 200, body: "who?" });
    expect((await post({ body: "", method: "GET", url: "/" })).status).toBe(405);
    expect(
      (await post({ body: "", method: "GET", url: `/?hub.challenge=${"x".repeat(1_025)}` })).status,
    ).toBe(405);
    expect((await receiving(plain()).post({ body: "", method: "GET" })).status).toBe(405);
  });

  it.each([500, 302, 404])("of status %i are refused at once", (status) => {
    expect(() => source({ verify, read, answer: { accepted: { status } } })).toThrow(/200 to 299/);
  });

  it("have the status that the source names if a delivery is not authentic", async () => {
    const one = source({
      verify: () => ({ ok: false, code: "ERR_SIGNATURE_INVALID", why: "a test" }),
      read,
      answer: { badSignatureStatus: 403 },
    });
    expect((await receiving(one).post(json({}))).status).toBe(403);
  });

  it("have the status 413 if a body is too large", async () => {
    const { post } = receiving(source({ verify, read, maxBodyBytes: 10 }));
    expect((await post(json({ id: "1", type: "paid" }))).status).toBe(413);
  });
});

describe("a sender that never sends again", () => {
  it("raises an alert when an authentic delivery is refused", async () => {
    const full = {
      ...memoryInbox(),
      accept: async () => {
        throw new Error("down");
      },
    } as unknown as ReturnType<typeof memoryInbox>;
    for (const sendsOnce of [true, false]) {
      const { post, notices } = receiving(source({ verify, read, sendsOnce }), { inbox: full });
      expect((await post(json({ id: "1", type: "paid" }))).status).toBe(503);
      expect(notices.some((notice) => notice.type === "alert" && notice.kind === "refused")).toBe(sendsOnce);
    }
  });
});

describe("a source is refused", () => {
  it.each([
    [
      "a body in an answer without one",
      { answer: { accepted: { status: 204, body: "ok" } } },
      /status 204 and a body/,
    ],
    [
      "a body that is not text",
      { answer: { accepted: { status: 200, body: { ok: true } } } },
      /body .* object/,
    ],
    [
      "a content type with a line end",
      { answer: { accepted: { status: 200, contentType: "text/plain\nx: y" } } },
      /contentType/,
    ],
    [
      "an answer with an unknown option",
      { answer: { accepted: { status: 200, text: "ok" } } },
      /no option "text"/,
    ],
    ["a handshake that is an answer", { handshake: { status: 200 } }, /handshake .* not a function/],
    ["a challenge that is text", { challenge: "hub.challenge" }, /challenge .* not a function/],
    ["a flag in words", { sendsOnce: "true" }, /sendsOnce .* "true"/],
  ])("for %s", (_what, options, message) => {
    expect(() => source({ verify, read, ...(options as object) })).toThrow(message);
  });
});
