import { type PaymentEvent, serviceNames, verifyPaymentCallback } from "@payhooks/core";
import {
  anyCallbackFields,
  callbackFields,
  createTestKeys,
  type SignedDelivery,
} from "@payhooks/core/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { codeOfReply, setUp, signatureOf, signText, thrownBy, withSignature } from "../receiving.ts";

const { publicKey, privateKey } = createTestKeys();

/** A genuine body as text, with fields changed; `undefined` leaves one out. */
const bodyOf = (changes: object = {}): string => JSON.stringify({ ...callbackFields(), ...changes });
/** The same with one more member as it is written. */
const bodyWith = (member: string, changes: object = {}): string =>
  `${bodyOf(changes).slice(0, -1)},${member}}`;
const sign = (text: string): SignedDelivery => signText(text, privateKey);
type ExtraFields = Readonly<Record<string, "always" | "sometimes">>;
const always = (...names: string[]): ExtraFields => Object.fromEntries(names.map((name) => [name, "always"]));
const NONE: ExtraFields = {};
const verify = ({ rawBody }: SignedDelivery, extra: ExtraFields = NONE): PaymentEvent =>
  verifyPaymentCallback(rawBody, { publicKey, names: serviceNames({ callback: { extra } }) }).event;
/** A well-formed signature of another text. */
const otherSignature = signatureOf(sign("{}"));

const T = "2025-11-21T09:15:27.123456789Z";
type Row = readonly [what: string, text: string, detail: RegExp, extra?: ExtraFields];

const required = ["amount", "callbackUrl", "event", "payTxnId", "referenceId", "status", "timestamp"];
const MALFORMED_FIELDS: readonly Row[] = [
  ...required.flatMap((name): readonly Row[] => [
    [`no ${name}`, bodyOf({ [name]: undefined }), new RegExp(name)],
    [`a ${name} of null`, bodyOf({ [name]: null }), new RegExp(name)],
    [`an empty ${name}`, bodyOf({ [name]: "" }), new RegExp(name)],
  ]),
  ...["-1", "+1", "1e3", "1,5", "1.", ".5", "1.0000001", " 1", "1 ", "NaN", "１"].map(
    (amount): Row => [`the amount "${amount}"`, bodyOf({ amount }), /amount/],
  ),
  ...["/callbacks", "merchant.example/cb", "https://", "?a=1", " ", "http//x"].map(
    (callbackUrl): Row => [`the callbackUrl "${callbackUrl}"`, bodyOf({ callbackUrl }), /callbackUrl/],
  ),
  // The engine takes time in the square of a host's length.
  ...[`https://${"a".repeat(513)}/cb`, `${"a".repeat(33)}://m.example/cb`, "https:m.example/cb"].map(
    (callbackUrl): Row => [
      `a callbackUrl of ${callbackUrl.length} characters that is "${callbackUrl.slice(0, 12)}…"`,
      bodyOf({ callbackUrl }),
      /callbackUrl/,
    ],
  ),
  ...["deposit", "Deposit", "DEPOSIT ", "DEPOSIT2", "A".repeat(65)].map(
    (event): Row => [`the event "${event}"`, bodyOf({ event }), /event/],
  ),
  ...["success", "SUCCESS\n", "SUC-CESS"].map(
    (status): Row => [`the status ${JSON.stringify(status)}`, bodyOf({ status }), /status/],
  ),
  ...["yesterday", "2025-02-30T00:00:00Z", "2025-11-21T09:15:27", "1763716527"].map(
    (timestamp): Row => [`the timestamp "${timestamp}"`, bodyOf({ timestamp }), /timestamp/],
  ),
];

const UNREADABLE: readonly Row[] = [
  ["an empty name", bodyWith('"":"1"'), /cannot be told apart/],
  ["a name with & in front of all", bodyWith('"a&b":"1"'), /cannot be told apart/],
  ["& in an amount", bodyOf({ amount: "10&a=1" }), /amount/],
  ["& in an event", bodyOf({ event: "DEPOSIT&A" }), /event/],
  ["& in a status", bodyOf({ status: "SUCCESS&timestamp=x" }), /timestamp/],
  ["& in payTxnId", bodyOf({ payTxnId: "a&b" }), /cannot be told apart/],
  ["& in merchantId", bodyOf({ merchantId: "a&" }), /cannot be told apart/],
  ["more than 128 parts", bodyOf({ message: `a${"&a=1".repeat(130)}` }), /more than 128 parts/],
];

const AMBIGUOUS_STRINGS: readonly Row[] = [
  [
    "&event= and &message= in callbackUrl",
    bodyOf({ callbackUrl: "https://m.example/cb?x=1&event=PAID&message=x" }),
    /differ in event/,
  ],
  ["a pair in referenceId", bodyOf({ referenceId: "A&s=1" }), /differ in referenceId/],
  [
    "&status= in referenceId",
    bodyOf({ referenceId: `V-7&status=SUCCESS&timestamp=${T}&userId=u` }),
    /differ in referenceId, timestamp/,
  ],
  ["a pair with an empty value in referenceId", bodyOf({ referenceId: "A&s=" }), /differ in referenceId/],
  [
    "a name behind referenceId",
    bodyOf({ s: "1" }),
    /differ in referenceId \(s is not documented.*names.callback.extra/,
  ],
  ["a number behind referenceId", bodyOf({ s: 1 }), /differ in referenceId/],
  ["true behind referenceId", bodyOf({ s: true }), /differ in referenceId/],
  [
    "an amount in front",
    bodyWith('"accountName":"A&amount=9.000000&callbackUrl=https://s.example/?x="'),
    /differ in amount, callbackUrl/,
  ],
  [
    "a declared field in the URL",
    bodyOf({ currency: "ETB", customerName: "A&currency=USD" }),
    /differ in currency/,
    always("currency"),
  ],
  ["& in a declared field", bodyOf({ currency: "A&B" }), /told apart/, always("currency")],
  ["a declared field that is missing", bodyOf(), /zone is declared .* missing/, always("zone")],
  ["a declared field that is null", bodyOf({ zone: null }), /zone is declared .* missing/, always("zone")],
];

type FullRow = [what: string, text: string, detail: RegExp, extra: ExtraFields];
const full = ([what, text, detail, extra = NONE]: Row): FullRow => [what, text, detail, extra];
const MALFORMED = [...MALFORMED_FIELDS, ...UNREADABLE].map(full);
const AMBIGUOUS = AMBIGUOUS_STRINGS.map(full);

describe.each([
  ["malformed", "ERR_EVENT_MALFORMED", MALFORMED],
  ["ambiguous", "ERR_EVENT_AMBIGUOUS", AMBIGUOUS],
] as const)("a body with a valid signature is %s", (reason, code, rows) => {
  it.each(rows)("with %s", (_, text, detail, extra) => {
    const error = thrownBy(() => verify(sign(text), extra));
    expect(error.code).toBe(code);
    expect(error.message).toMatch(detail);
  });

  it("is held as an entry of its own, with the reason, and nothing runs", async () => {
    const t = await setUp({ payments: { publicKey } });
    const plain = rows.filter(([, , , extra]) => extra === NONE);
    for (const [what, text] of plain) {
      expect(await t.post("payments", sign(text)), what).toMatchObject({
        status: 200,
        body: '{"received":true}',
      });
    }
    expect(t.ran).toEqual([]);
    const entries = await t.held();
    expect(entries).toHaveLength(new Set(plain.map(([, text]) => signatureOf(sign(text)))).size);
    for (const entry of entries) {
      expect(entry.reason).toBe(reason);
      expect(plain.some(([, , detail]) => detail.test(entry.detail ?? ""))).toBe(true);
      // Nothing in it may be keyed by an id that a forger has chosen.
      expect(entry.id).toMatch(/^[0-9a-f]{32}$/);
      expect(entry).toMatchObject({ event: "", status: "" });
    }
    const notices = t.notices.filter(({ type }) => type === "held");
    expect(notices).toHaveLength(entries.length);
    expect(
      t.lines.filter(([level, message]) => level === "warn" && message.startsWith("held: ")),
    ).toHaveLength(entries.length);
  });

  it.each(rows)("has a bad signature if the signature is of another body: with %s", (_, text, __, extra) => {
    const sent = withSignature(text, otherSignature);
    expect(thrownBy(() => verify(sent, extra)).code).toBe("ERR_SIGNATURE_INVALID");
  });

  it("is answered 401 and not kept if the signature is of another body", async () => {
    const t = await setUp({ payments: { publicKey }, alerts: { threshold: 1_000 } });
    for (const [what, text] of rows) {
      const reply = await t.post("payments", withSignature(text, otherSignature));
      expect([reply.status, codeOfReply(reply)], what).toEqual([401, "ERR_SIGNATURE_INVALID"]);
    }
    expect(await t.held()).toEqual([]);
    expect(t.ran).toEqual([]);
  });
});

describe("a body is run", () => {
  const RUN: readonly (readonly [what: string, changes: object, extra?: ExtraFields])[] = [
    ["with every documented field", {}],
    [
      "with the required ones only",
      { message: undefined, providerTxId: undefined, merchantId: null, userId: null },
    ],
    ["with empty optional fields", { message: "", providerTxId: "", merchantId: "", userId: "" }],
    ["with a name of 64 characters", { ["a".repeat(64)]: "1" }],
    ["with an undocumented number, true and text", { d: 10.5, email: true, channel: "USSD" }],
    ["with an undocumented field in front of all", { Account: "Abebe", accountName: "Abebe" }],
    ["with a name behind timestamp and no userId", { ts: "1", userId: null }],
    ["with a name behind payTxnId and no providerTxId", { phone: "251900000000", providerTxId: undefined }],
    ["with = in values", { referenceId: "a=b", message: "x=1", userId: "=" }],
    ["with text of every script", { message: "ክፍያ ተጠናቋል ✓ 😀", referenceId: "ማጣቀሻ-7" }],
    ["with line ends and NUL in a message", { message: "a\r\nb\u0000c" }],
    ["with a pair of surrogates", { userId: "😀" }],
    ["with & in a message", { message: "R&D & sons &" }],
    ["with & and an unknown name in a message", { message: "ok&foo=1&bar=2" }],
    ["with & in a referenceId", { referenceId: "A&B" }],
    ["with & and = in a referenceId, but no name", { referenceId: "A & B = C&1=2&&=" }],
    ["with a query in callbackUrl", { callbackUrl: "https://m.example/cb?a=1&b=2" }],
    ["with a documented name in callbackUrl", { callbackUrl: "https://m.example/cb?x=1&userId=5&status=2" }],
    ["with a callbackUrl of 60 KB", { callbackUrl: `https://m.example/${"cb/".repeat(20_000)}` }],
    ["with a host of 512 characters", { callbackUrl: `https://${"a".repeat(512)}?a=1` }],
    [
      "with a port, a user and a scheme of the merchant's own",
      { callbackUrl: "my-app+2://me@localhost:3000" },
    ],
    ["with event as the first query name", { callbackUrl: "https://m.example/cb?event=5&y=1" }],
    [
      "with a name that begins with event in callbackUrl",
      { callbackUrl: "https://m.example/cb?a=1&eventId=5" },
    ],
    ["with a declared field behind userId", { zone: "1" }, always("zone")],
    ["with declared fields behind all free texts", { q: 1, s: 2, zone: true }, always("q", "s", "zone")],
    ["with an amount without decimals", { amount: "10" }],
    ["with a timestamp to the second", { timestamp: "2025-11-21T09:15:27Z" }],
  ];
  it.each(RUN.map(([what, ...given]) => ({ what, given })))("$what", ({ given: [changes, extra = NONE] }) => {
    const fields = anyCallbackFields(changes as Record<string, string>);
    const event = verify(sign(JSON.stringify(fields)), extra);
    for (const name of [...required, "message", "providerTxId", "merchantId", "userId"]) {
      expect((event as unknown as Record<string, unknown>)[name], name).toBe(fields[name] ?? undefined);
    }
  });

  it("whatever the order of its members and the white space between them", () => {
    const fields = Object.entries(anyCallbackFields({ fee: 10, none: null }));
    fc.assert(
      fc.property(
        fc.shuffledSubarray(fields, { minLength: fields.length }),
        fc.constantFrom("", " ", "\n", "\t\r\n"),
        (members, space) => {
          const text = members.map(
            ([k, v]) => `${space}${JSON.stringify(k)}${space}:${space}${JSON.stringify(v)}`,
          );
          const event = verify(sign(`{${text.join(`${space},`)}${space}}`));
          expect(event.payTxnId).toBe(fields.find(([name]) => name === "payTxnId")?.[1]);
        },
      ),
      { numRuns: 50 },
    );
  });
});

describe("a callback URL", () => {
  const urls = fc
    .tuple(
      fc.webUrl({ withQueryParameters: true }),
      fc.array(
        fc.tuple(
          fc.constantFrom(
            "a",
            "x",
            "b",
            "userId",
            "status",
            "timestamp",
            "amount",
            "payTxnId",
            "eventId",
            "EVENT",
          ),
          fc.constantFrom("", "1", "a=b", "%26", "SUCCESS", T),
        ),
        { maxLength: 4 },
      ),
    )
    .map(
      ([url, query]) =>
        `${url}${url.includes("?") ? "" : "?v=1"}${query.map(([n, v]) => `&${n}=${v}`).join("")}`,
    )
    .filter((url) => !/&(event|callbackUrl)=/.test(url));

  it("with any query that makes no other event is accepted and its callback run", async () => {
    const t = await setUp({ payments: { publicKey } });
    await fc.assert(
      fc.asyncProperty(fc.oneof(urls, fc.constantFrom(...PLAIN)), async (callbackUrl) => {
        const fields = callbackFields({ callbackUrl });
        expect((await t.post("payments", sign(JSON.stringify(fields)))).status).toBe(200);
        expect(t.ran.at(-1)).toMatchObject({ callbackUrl, payTxnId: fields.payTxnId });
      }),
      { numRuns: 150 },
    );
    expect(await t.held()).toEqual([]);
  });

  it("that can be read as a shorter URL and another event is held until it is pinned; then its callback runs", async () => {
    const at = fc.tuple(urls, fc.constantFrom("WITHDRAWAL", "REVERSAL"), fc.constantFrom("", "y", "&z=1"));
    await fc.assert(
      fc.asyncProperty(at, async ([url, value, tail]) => {
        const callbackUrl = `${url}&event=${value}&message=${tail}`;
        const sent = sign(JSON.stringify(callbackFields({ callbackUrl })));
        const open = await setUp({ payments: { publicKey } });
        expect((await open.post("payments", sent)).status).toBe(200);
        expect(open.ran).toEqual([]);
        expect(await open.held()).toMatchObject([
          { reason: "ambiguous", detail: expect.stringContaining("differ in") },
        ]);
        const pinned = await setUp({ payments: { publicKey, expect: { callbackUrl } } });
        expect((await pinned.post("payments", sent)).status).toBe(200);
        expect(pinned.ran).toMatchObject([{ callbackUrl }]);
        expect(await pinned.held()).toEqual([]);
      }),
      { numRuns: 40 },
    );
  });

  it("cannot be pinned with &callbackUrl= in it", () => {
    const expected = { callbackUrl: "https://m.example/?a=1&callbackUrl=https://v.example/" };
    expect(
      thrownBy(() => verifyPaymentCallback(sign(bodyOf()).rawBody, { publicKey, expect: expected })).code,
    ).toBe("ERR_OPTION_INVALID");
  });

  const PLAIN = [
    "https://m.example/cb?a=1&b=2",
    "https://m.example/cb?x=1&userId=5",
    "https://m.example/cb?event=5&y=1",
    "https://m.example/cb?a=1&status=SUCCESS&timestamp=1",
    "https://m.example/cb?&&=&",
    "https://m.example/cb#a&b=1",
    "https://user:p&ss=1@m.example/",
  ];
});

describe("how a body spells the signed string", () => {
  const genuine = callbackFields({ merchantId: "m-1", message: "ok", userId: "u-1" });
  const text = JSON.stringify(genuine);
  const signed = sign(text);
  const spelt = (change: (fields: Record<string, unknown>) => Record<string, unknown>): SignedDelivery =>
    withSignature(JSON.stringify(change({ ...genuine })), signatureOf(signed));
  const SPELLINGS: readonly (readonly [what: string, delivery: SignedDelivery])[] = [
    ["as it came", signed],
    [
      "one field swallows the next",
      spelt(({ message, ...fields }) => ({ ...fields, merchantId: "m-1&message=ok" })),
    ],
    [
      "a name swallows a field",
      spelt(({ message, ...f }) => ({ ...f, "merchantId=m-1&message": "ok", merchantId: undefined })),
    ],
    ["a name given twice", withSignature(text.replace("{", '{"status":"FAILED",'), signatureOf(signed))],
    ["nulls added", spelt((fields) => ({ ...fields, zone: null, "a=b": null, details: null }))],
  ];

  it.each(SPELLINGS)("makes no difference to the event: %s", (_, delivery) => {
    expect(verify(delivery)).toEqual(verify(signed));
  });

  it.each(SPELLINGS)("makes no second event: %s", async (_, delivery) => {
    const t = await setUp({ payments: { publicKey } });
    for (const sent of [delivery, signed, delivery])
      expect((await t.post("payments", sent)).status).toBe(200);
    expect(t.ran).toHaveLength(1);
    expect(await t.held()).toEqual([]);
  });

  it("cannot choose another tenant, whatever tenant the resolver makes of the merchantId", async () => {
    const asked: string[] = [];
    const t = await setUp({
      payments: {
        publicKey: ({ merchantId = "" }) => {
          asked.push(merchantId);
          return { tenant: merchantId, keys: publicKey };
        },
      },
    });
    const swallowing = { ...genuine, merchantId: "m-1&message=ok", message: undefined };
    const reply = await t.post("payments", withSignature(JSON.stringify(swallowing), signatureOf(signed)));
    expect([reply.status, codeOfReply(reply)]).toEqual([401, "ERR_SIGNATURE_INVALID"]);
    expect((await t.post("payments", signed)).status).toBe(200);
    expect(t.ran).toHaveLength(1);
    expect(asked).toEqual(["m-1&message=ok", "m-1"]);
  });

  it("makes no difference: half of a pair of surrogates is read as the bytes are", () => {
    const event = verify(sign(bodyWith('"userId":"a\\ud800b"', { userId: undefined })));
    expect(event.userId).toBe("a\ufffdb");
  });

  it("makes no difference to a value: a number or a boolean is the text that was signed", () => {
    const event = verify(sign(bodyOf({ amount: 10.5, payTxnId: 17, userId: true })));
    expect(event).toMatchObject({ amount: "10.5", payTxnId: "17", userId: "true" });
  });
});

describe("a field on which the readings do not agree", () => {
  it.each([
    ["userId, with & and a name in it", { userId: "u&v=1" }, "userId"],
    ["userId, with a name behind it", { zone: "1" }, "userId"],
    ["providerTxId, with a name behind it", { q: "1" }, "providerTxId"],
    ["a merchantId that an undocumented field may end with", { fee: "1" }, "merchantId"],
  ])("is left out if it is optional: %s", (_, changes, name) => {
    const event = verify(sign(bodyOf(changes)));
    expect(name in event).toBe(false);
    expect(event.amount).toBe("10.500000");
  });

  it.each([
    ["& without a name", { userId: "R&D", providerTxId: "&", accountName: "Abebe & sons" }],
    ["& and a name that sorts before", { userId: "u&a=1", providerTxId: "p&status" }],
  ])("is handed on if it can be nothing else: %s", (_, changes) => {
    expect(verify(sign(bodyOf(changes)))).toMatchObject({
      userId: changes.userId,
      providerTxId: changes.providerTxId,
    });
  });
});
