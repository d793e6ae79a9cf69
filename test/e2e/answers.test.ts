import type { AnyEvent, Inbox, ReceiverOptions } from "@payhooks/core";
import { memoryInbox } from "@payhooks/core";
import { canonicalString } from "@payhooks/core/signature";
import {
  asDelivery,
  callbackFields,
  type SignedDelivery,
  signCanonicalString,
  signConnectWebhook,
} from "@payhooks/core/testing";
import { afterEach, describe, expect, it } from "vitest";
import {
  closeMerchants,
  type MerchantServer,
  PATHS,
  requestOf,
  SECRET,
  startMerchant,
  testKeys,
} from "./merchant-server.ts";
import { type Answer, chunked, exchange, type HeaderLines, request, Wire } from "./wire.ts";

const FLOWS = ["payments", "connect"] as const;
type FlowName = (typeof FLOWS)[number];

afterEach(closeMerchants);

const JSON_TYPE: HeaderLines = [["Content-Type", "application/json"]];

/** The whole answer, as docs/reference/outcomes.md has it. */
function expectReceived(answer: Answer): void {
  expect({ status: answer.status, body: answer.body }).toEqual({ status: 200, body: '{"received":true}' });
  expect(answer.headers.get("content-type")).toBe("application/json");
  expect(answer.headers.get("cache-control")).toBe("no-store");
  expect(answer.headers.has("retry-after")).toBe(false);
}

function expectRefused(answer: Answer, status: number, code: string): void {
  expect({ status: answer.status, body: answer.body }).toEqual({
    status,
    body: `{"error":{"code":"${code}"}}`,
  });
  expect(answer.headers.get("content-type")).toBe("application/json");
  expect(answer.headers.get("cache-control")).toBe("no-store");
  expect(answer.headers.get("retry-after")).toBe(status === 503 ? "5" : undefined);
  expect(answer.headers.get("allow")).toBe(status === 405 ? "POST" : undefined);
}

const genuine = (t: MerchantServer, flow: FlowName): SignedDelivery =>
  flow === "payments" ? t.callback() : t.webhook();

/** A body made by hand, truly signed, whatever it says. */
function signedText(flow: FlowName, text: string | Uint8Array): SignedDelivery {
  const bytes = Buffer.from(text as string);
  return flow === "connect"
    ? signConnectWebhook(bytes, SECRET)
    : { rawBody: bytes, headers: { "content-type": "application/json" } };
}

const accepting = (accept: Inbox["accept"]) => (): Partial<ReceiverOptions> => ({
  inbox: { ...delegate(memoryInbox()), accept },
});

/** An inbox whose methods can be replaced one by one. */
function delegate(inbox: Inbox): Inbox {
  return {
    durability: inbox.durability,
    events: inbox.events,
    texts: inbox.texts,
    observe: (notify) => inbox.observe(notify),
    ready: () => inbox.ready(),
    compareHandlers: (handlers) => inbox.compareHandlers(handlers),
    accept: (event, options) => inbox.accept(event, options),
    run: (runner, options) => inbox.run(runner, options),
    work: (runner, options) => inbox.work(runner, options),
    runEvent: (runner, eventId) => inbox.runEvent(runner, eventId),
    health: () => inbox.health(),
    close: (options) => inbox.close(options),
  };
}

describe("200, and the sender need not come again", () => {
  it.each(FLOWS)("%s: accepted, and a copy", async (flow) => {
    const t = await startMerchant();
    const delivery = genuine(t, flow);
    expectReceived(await t.send(flow, delivery));
    await t.until(({ type }) => type === "finished");
    expectReceived(await t.send(flow, delivery));
    await t.until(({ type }) => type === "duplicate");
    expect(t.notices.filter(({ type }) => type === "started")).toHaveLength(1);
    expect(await t.held()).toEqual([]);
  });

  it("payments: a PENDING after the terminal status is stale", async () => {
    const t = await startMerchant();
    expectReceived(await t.send("payments", t.callback({ payTxnId: "t-1", referenceId: "o-1" })));
    expectReceived(
      await t.send("payments", t.callback({ payTxnId: "t-1", referenceId: "o-1", status: "PENDING" })),
    );
    await t.until(({ type }) => type === "stale");
    expect(await t.held()).toEqual([]);
  });

  it.each([
    ["ambiguous", { referenceId: "o-1&status=SUCCESS" }],
    ["malformed", { amount: "ten" }],
    ["malformed", { payTxnId: null }],
    ["unrecognized", { event: "REFUND" }],
    ["unrecognized", { status: "REVERSED" }],
    ["unexpected", { merchantId: "somebody-else" }],
  ])("payments: authentic but held as %s (%j)", async (reason, fields) => {
    const t = await startMerchant({
      receiver: () => ({
        payments: {
          publicKey: testKeys().publicKey,
          expect: { merchantId: String(callbackFields().merchantId) },
        },
      }),
    });
    expectReceived(await t.send("payments", t.callback(fields)));
    expect(await t.held()).toMatchObject([{ reason }]);
    expect(t.notices.some(({ type }) => type === "started")).toBe(false);
  });

  it("payments: of a body with a name twice runs what was signed, once", async () => {
    const ran: AnyEvent[] = [];
    const t = await startMerchant({
      register: (receiver) => receiver.onDeposit((event) => void ran.push(event)),
    });
    const fields = callbackFields({}, t.clock.now());
    const signature = signCanonicalString(canonicalString(fields), testKeys().privateKey);
    const text = JSON.stringify({ ...fields, signature });
    const twice = text.replace("{", '{"amount":"999999.000000",');
    expectReceived(await t.send("payments", signedText("payments", twice)));
    await t.until(({ type }) => type === "finished");
    expectReceived(await t.send("payments", signedText("payments", text)));
    await t.until(({ type }) => type === "duplicate");
    expect(ran).toMatchObject([{ payTxnId: fields.payTxnId, amount: fields.amount }]);
    expect(await t.held()).toEqual([]);
    // The other way round it is not what was signed.
    const forged = text.replace(/\}$/, ',"amount":"999999.000000"}');
    expectRefused(await t.send("payments", signedText("payments", forged)), 401, "ERR_SIGNATURE_INVALID");
  });

  it.each([
    ["ambiguous", { referenceId: "A&s=1", timestamp: "2025-01-01T00:00:00Z" }],
    ["malformed", { amount: "ten", timestamp: "2025-01-01T03:00:00+03:00" }],
  ])("payments: what would be held as %s, but was signed long ago, is 400 (%j)", async (_, fields) => {
    const t = await startMerchant();
    expectRefused(await t.send("payments", t.callback(fields)), 400, "ERR_TIMESTAMP_EXPIRED");
    expect(await t.held()).toEqual([]);
  });

  it.each([{ timestamp: "yesterday" }, { timestamp: null }, { timestamp: "2025-01-01T00:00:00" }])(
    "payments: what does not say when it was signed is held (%j)",
    async (fields) => {
      const t = await startMerchant();
      expectReceived(await t.send("payments", t.callback(fields)));
      expect(await t.held()).toMatchObject([{ reason: "malformed" }]);
    },
  );

  it.each([
    ["malformed", '{"event":"settlement.approved"}'],
    ["malformed", '{"event":"settlement.approved","event":"settlement.declined"}'],
    [
      "unrecognized",
      '{"event":"settlement.reversed","idempotency_key":"evt_1","occurred_at":"2026-01-01T00:00:00Z","data":{}}',
    ],
  ])("connect: authentic but held as %s (%s)", async (reason, text) => {
    const t = await startMerchant({ receiver: () => ({ windowMs: 100 * 365 * 24 * 60 * 60 * 1000 }) });
    expectReceived(await t.send("connect", signedText("connect", text)));
    expect(await t.held()).toMatchObject([{ reason }]);
  });

  it.each(FLOWS)("%s: an event that no handler is registered for is held by the run", async (flow) => {
    const t = await startMerchant({
      register: (receiver) =>
        receiver.onWithdrawal(async () => {}).onConnectedAccountApproved(async () => {}),
    });
    expectReceived(await t.send(flow, genuine(t, flow)));
    await t.until(({ type }) => type === "held");
    expect(await t.held()).toMatchObject([{ reason: "unhandled" }]);
  });
});

describe.each(FLOWS)("%s: refused by the head alone", (flow) => {
  const path = PATHS[flow];

  it.each(["GET", "PUT", "PATCH", "DELETE", "OPTIONS"])("405 for %s", async (method) => {
    const t = await startMerchant();
    expectRefused(await exchange(t.port, request(method, path, JSON_TYPE)), 405, "ERR_METHOD_NOT_ALLOWED");
  });

  it("405 for HEAD, without a body", async () => {
    const t = await startMerchant();
    const wire = await Wire.open(t.port);
    await wire.write(request("HEAD", path, []));
    const answer = await wire.answer({ bodiless: true });
    expect([answer.status, answer.headers.get("allow")]).toEqual([405, "POST"]);
    await wire.write(requestOf(path, genuine(t, flow)));
    expectReceived(await wire.answer());
    wire.destroy();
  });

  it.each([
    ["ERR_CONTENT_TYPE", []],
    ["ERR_CONTENT_TYPE", [["Content-Type", ""]]],
    ["ERR_CONTENT_TYPE", [["Content-Type", "text/plain"]]],
    ["ERR_CONTENT_TYPE", [["Content-Type", "application/x-www-form-urlencoded"]]],
    ["ERR_CONTENT_TYPE", [["Content-Type", "text/plain; application/json"]]],
    ["ERR_CONTENT_ENCODING", [...JSON_TYPE, ["Content-Encoding", "gzip"]]],
    ["ERR_CONTENT_ENCODING", [...JSON_TYPE, ["Content-Encoding", "br"]]],
    ["ERR_CONTENT_ENCODING", [...JSON_TYPE, ["Content-Encoding", "identity, gzip"]]],
  ] as [string, HeaderLines][])("415 %s for %j, and the connection stays in use", async (code, headers) => {
    const t = await startMerchant();
    const wire = await Wire.open(t.port);
    const delivery = genuine(t, flow);
    const { "content-type": _, ...others } = delivery.headers;
    await wire.write(request("POST", path, [...Object.entries(others), ...headers], delivery.rawBody));
    expectRefused(await wire.answer(), 415, code);
    await wire.write(requestOf(path, delivery));
    expectReceived(await wire.answer());
    wire.destroy();
  });

  it.each(["application/json; charset=utf-8", "Application/JSON", "application/vnd.pay+json"])(
    "takes the content type %s",
    async (type) => {
      const t = await startMerchant();
      const delivery = genuine(t, flow);
      const headers = { ...delivery.headers, "content-type": type };
      expectReceived(await t.send(flow, { ...delivery, headers }));
    },
  );

  it("413 for a length over the bound, with the body still to come", async () => {
    const t = await startMerchant({ receiver: () => ({ limits: { maxBodyBytes: 1_000 } }) });
    const wire = await Wire.open(t.port);
    await wire.write(request("POST", path, [...JSON_TYPE, ["Content-Length", "1001"]]));
    const answer = await wire.answer();
    expectRefused(answer, 413, "ERR_BODY_TOO_LARGE");
    expect(answer.headers.get("connection")).toBe("close");
    wire.destroy();
  });
});

describe.each(FLOWS)("%s: refused by the body", (flow) => {
  const path = PATHS[flow];
  const signatureStatus = flow === "payments" ? 401 : 400;

  it("takes a body of exactly the bound and refuses one byte more, chunked or not", async () => {
    const probe = await startMerchant();
    const delivery = genuine(probe, flow);
    const t = await startMerchant({
      receiver: () => ({ limits: { maxBodyBytes: delivery.rawBody.byteLength } }),
    });
    expectReceived(await t.send(flow, delivery));
    const halves = [delivery.rawBody.subarray(0, 100), delivery.rawBody.subarray(100)];
    const headers = [...Object.entries(delivery.headers), ["Transfer-Encoding", "chunked"]] as HeaderLines;
    expectReceived(await exchange(t.port, request("POST", path, headers, chunked(halves))));
    const oneMore = request("POST", path, headers, chunked([...halves, Buffer.from(" ")]));
    const answer = await exchange(t.port, oneMore);
    expectRefused(answer, 413, "ERR_BODY_TOO_LARGE");
    expect(answer.headers.get("connection")).toBe("close");
  });

  it("408 for a body that is not complete in time, and the connection is closed", async () => {
    const t = await startMerchant({ receiver: () => ({ limits: { bodyTimeoutMs: 50 } }) });
    const wire = await Wire.open(t.port);
    await wire.write(request("POST", path, [...JSON_TYPE, ["Content-Length", "10"]], Buffer.from("{")));
    const answer = await wire.answer();
    expectRefused(answer, 408, "ERR_BODY_TIMEOUT");
    expect(answer.headers.get("connection")).toBe("close");
    await wire.closed;
    expect(wire.rest).toBe("");
  });

  it.each([
    ["ERR_SIGNATURE_MISSING", undefined],
    ["ERR_SIGNATURE_MISSING", ""],
    ["ERR_SIGNATURE_MALFORMED", "of the wrong form"],
    ["ERR_SIGNATURE_INVALID", "wrong"],
  ])(`${signatureStatus} %s for the signature %j`, async (code, signature) => {
    const t = await startMerchant();
    const delivery = genuine(t, flow);
    const signatureOf = (other: SignedDelivery): string =>
      flow === "payments"
        ? (JSON.parse(Buffer.from(other.rawBody).toString()) as { signature: string }).signature
        : (other.headers["x-connect-signature"] ?? "");
    const value = signature === "wrong" ? signatureOf(genuine(t, flow)) : signature;
    const { signature: _, ...fields } = JSON.parse(Buffer.from(delivery.rawBody).toString()) as Record<
      string,
      unknown
    >;
    const forged: SignedDelivery =
      flow === "payments"
        ? asDelivery(value === undefined ? fields : { ...fields, signature: value })
        : {
            rawBody: delivery.rawBody,
            headers: {
              "content-type": "application/json",
              ...(value === undefined ? {} : { "x-connect-signature": value }),
            },
          };
    expectRefused(await t.send(flow, forged), signatureStatus, code);
    expect(t.notices.some(({ type }) => type === "accepted")).toBe(false);
  });

  it.each([
    ["nothing", ""],
    ["no JSON", "event=DEPOSIT"],
    ["half of it", '{"event":'],
    ["invalid UTF-8", Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ["a byte order mark", "\ufeff{}"],
    ["an array", "[]"],
    ["a string", '"{}"'],
    ["null", "null"],
  ])("400 for a body that is %s", async (_name, text) => {
    const t = await startMerchant();
    expectRefused(await t.send(flow, signedText(flow, text)), 400, "ERR_BODY_NOT_JSON");
  });

  it("400 outside of the window on either side, but 200 for what is recorded already", async () => {
    const t = await startMerchant();
    const known = genuine(t, flow);
    const unknown = genuine(t, flow);
    expectReceived(await t.send(flow, known));
    await t.until(({ type }) => type === "finished");
    await t.clock.advance("169h");
    expectRefused(await t.send(flow, unknown), 400, "ERR_TIMESTAMP_EXPIRED");
    expectReceived(await t.send(flow, known));
    await t.until(({ type }) => type === "duplicate");
    const future = new Date(t.clock.now() + 25 * 3_600_000).toISOString();
    const early =
      flow === "payments" ? t.callback({ timestamp: future }) : t.webhook(undefined, { occurred_at: future });
    expectRefused(await t.send(flow, early), 400, "ERR_TIMESTAMP_FUTURE");
    const codes = t.notices.flatMap((notice) => (notice.type === "refused" ? [notice.code] : []));
    expect(codes).toEqual(["ERR_TIMESTAMP_EXPIRED", "ERR_TIMESTAMP_FUTURE"]);
  });
});

it("connect: a bad signature can be answered 401", async () => {
  const t = await startMerchant({
    receiver: () => ({ connect: { secret: SECRET, badSignatureStatus: 401 } }),
  });
  const forged = signConnectWebhook(t.webhook().rawBody, "another secret, of somebody else");
  expectRefused(await t.send("connect", forged), 401, "ERR_SIGNATURE_INVALID");
});

describe.each(FLOWS)("%s: 503, and the sender comes again", (flow) => {
  it("refuses while the inbox is down", async () => {
    const t = await startMerchant({
      receiver: accepting(async () =>
        Promise.reject(Object.assign(new Error("connect"), { code: "ECONNREFUSED" })),
      ),
    });
    expectRefused(await t.send(flow, genuine(t, flow)), 503, "ERR_INBOX_UNAVAILABLE");
    await t.until((notice) => notice.type === "refused" && notice.why.includes("Error: ECONNREFUSED."));
  });

  it("refuses and logs if the inbox is out of reach at the start; the next delivery starts it", async () => {
    let down = true;
    const t = await startMerchant({
      receiver: (clock) => ({
        inbox: {
          ...delegate(memoryInbox({ clock })),
          ready: async () => {
            if (down) throw new Error("ECONNREFUSED");
          },
        },
      }),
    });
    await t.until((notice) => notice.type === "inbox-error" && notice.during === "start");
    const delivery = genuine(t, flow);
    expectRefused(await t.send(flow, delivery), 503, "ERR_INBOX_UNAVAILABLE");
    down = false;
    expectReceived(await t.send(flow, delivery));
    await t.until(({ type }) => type === "finished");
  });

  it("refuses exactly at acceptTimeoutMs if the outcome is unknown", async () => {
    let asked = (): void => {};
    const isAsked = new Promise<void>((resolve) => {
      asked = resolve;
    });
    const t = await startMerchant({
      receiver: accepting(() => {
        asked();
        return new Promise(() => {});
      }),
    });
    let answered = false;
    const answer = t.send(flow, genuine(t, flow)).finally(() => {
      answered = true;
    });
    await isAsked;
    await t.clock.advance(1_999);
    // A round trip on the same server: had the answer been sent, it would be here by now.
    await exchange(t.port, request("GET", PATHS[flow], []));
    expect(answered).toBe(false);
    await t.clock.advance(1);
    expectRefused(await answer, 503, "ERR_ACCEPT_TIMEOUT");
  });

  it("refuses while the inbox is full", async () => {
    let release = (): void => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const t = await startMerchant({
      receiver: (clock) => ({ inbox: memoryInbox({ clock, maxUnfinished: 1 }) }),
      register: (receiver) => receiver.onDeposit(() => gate).onSettlementApproved(() => gate),
    });
    const first = genuine(t, flow);
    const second = genuine(t, flow);
    expectReceived(await t.send(flow, first));
    expectRefused(await t.send(flow, second), 503, "ERR_INBOX_FULL");
    expectReceived(await t.send(flow, first));
    release();
    await t.until(({ type }) => type === "finished");
    expectReceived(await t.send(flow, second));
  });

  it("refuses what would be held beyond the bound, and accepts the rest", async () => {
    const t = await startMerchant({ receiver: () => ({ limits: { maxHeld: 1 } }) });
    const odd = (id: string): SignedDelivery =>
      flow === "payments"
        ? t.callback({ event: "REFUND", payTxnId: id })
        : t.webhook("settlement.reversed", { idempotency_key: id });
    expectReceived(await t.send(flow, odd("1")));
    expectRefused(await t.send(flow, odd("2")), 503, "ERR_HELD_FULL");
    expectReceived(await t.send(flow, genuine(t, flow)));
    await t.until((notice) => notice.type === "alert" && notice.kind === "held-full");
  });

  it("refuses while it is overloaded", async () => {
    const t = await startMerchant({
      receiver: () => ({ ...accepting(() => new Promise(() => {}))(), limits: { maxInFlight: 1 } }),
    });
    const first = t.send(flow, genuine(t, flow));
    first.catch(() => {});
    // Either may be first: one waits for the inbox, the other is refused at once.
    const answer = await Promise.race([first, t.send(flow, genuine(t, flow))]);
    expectRefused(answer, 503, "ERR_OVERLOADED");
  });

  it("refuses while it closes", async () => {
    const t = await startMerchant();
    const delivery = genuine(t, flow);
    expectReceived(await t.send(flow, delivery));
    const closing = t.receiver.close();
    expectRefused(await t.send(flow, delivery), 503, "ERR_CLOSING");
    await t.clock.advance(10_000);
    expect(await closing).toEqual({ unfinished: 0 });
    expectRefused(await t.send(flow, delivery), 503, "ERR_CLOSING");
  });

  it("refuses if a resolver fails", async () => {
    const broken = async (): Promise<never> => Promise.reject(new Error("the key service is down"));
    const t = await startMerchant({
      receiver: () => ({ payments: { publicKey: broken }, connect: { secret: broken } }),
    });
    expectRefused(await t.send(flow, genuine(t, flow)), 503, "ERR_RESOLVER_FAILED");
  });
});

it("both flows: the answer says nothing but the code, and the log nothing of what the store was given", async () => {
  const error = Object.assign(new Error("password=hunter2"), { code: "E_AUTH" });
  const t = await startMerchant({ receiver: accepting(async () => Promise.reject(error)) });
  for (const flow of FLOWS) {
    const answer = await t.send(flow, genuine(t, flow));
    expect(answer.body).not.toContain("hunter2");
    expectRefused(answer, 503, "ERR_INBOX_UNAVAILABLE");
  }
  await t.until(({ type }) => type === "refused", 2);
  expect(t.lines.join("\n")).toContain(
    "refused with 503 ERR_INBOX_UNAVAILABLE: The inbox failed: Error: E_AUTH.",
  );
  expect(t.lines.join("\n")).not.toContain("hunter2");
});
