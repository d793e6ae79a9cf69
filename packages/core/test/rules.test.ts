import { type PaymentEvent, verifyPaymentCallback } from "@payhooks/core";
import { callbackFields, createTestKeys, type SignedDelivery } from "@payhooks/core/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { codeOfReply, setUp, signatureOf, signText, thrownBy, withSignature } from "./receiving.ts";

const { publicKey, privateKey } = createTestKeys();

/** A genuine body as text, with fields changed; `undefined` leaves one out. */
const bodyOf = (changes: object = {}): string => JSON.stringify({ ...callbackFields(), ...changes });
/** The same with one more member as it is written. */
const bodyWith = (member: string, changes: object = {}): string =>
  `${bodyOf(changes).slice(0, -1)},${member}}`;
const sign = (text: string): SignedDelivery => signText(text, privateKey);
const verify = ({ rawBody }: SignedDelivery, extraFields: readonly string[] = []): PaymentEvent =>
  verifyPaymentCallback(rawBody, { publicKey, extraFields }).event;
/** A well-formed signature of another text. */
const otherSignature = signatureOf(sign("{}"));

const T = "2025-11-21T09:15:27.123456789Z";
type Row = readonly [what: string, text: string, detail: RegExp, extraFields?: readonly string[]];

const R1: readonly Row[] = [
  ["a name with =", bodyWith('"a=b":"1"'), /R1/],
  ["a name with &", bodyWith('"a&b":"1"'), /R1/],
  ["a name that swallows a field", bodyWith(`"userId=u&zzz":"1"`, { userId: undefined }), /R1/],
  ["an empty name", bodyWith('"":"1"'), /R1/],
  ["a name with a digit in front", bodyWith('"1a":"1"'), /R1/],
  ["a name with _ in front", bodyWith('"_a":"1"'), /R1/],
  ["a name with a dash", bodyWith('"a-b":"1"'), /R1/],
  ["a name with a space", bodyWith('"a b":"1"'), /R1/],
  ["a name that is not ASCII", bodyWith('"ä":"1"'), /R1/],
  ["a name with a line end behind", bodyWith('"a\\n":"1"'), /R1/],
  ["a name of 65 characters", bodyWith(`"${"a".repeat(65)}":"1"`), /R1/],
  ["__proto__", bodyWith('"__proto__":"1"'), /R1/],
  ["constructor", bodyWith('"constructor":"1"'), /R1/],
  ["prototype", bodyWith('"prototype":"1"'), /R1/],
  ["a wrong name whose value is null, and so not signed", bodyWith('"a=b":null'), /R1/],
];

const R2: readonly Row[] = [
  ["an amount that is a number", bodyOf({ amount: 10.5 }), /R2: amount is not a string/],
  ["a payTxnId that is a number", bodyOf({ payTxnId: 17 }), /R2: payTxnId/],
  ["a payTxnId in an array", bodyOf({ payTxnId: ["x"] }), /R2: payTxnId is an array/],
  [
    "a payTxnId in an object",
    bodyOf({ payTxnId: { toString: "x" } }),
    /R2: payTxnId is an array or an object/,
  ],
  ["a merchantId that is true", bodyOf({ merchantId: true }), /R2: merchantId/],
  ["a userId that is a number", bodyOf({ userId: 5 }), /R2: userId/],
  ["a message that is false", bodyOf({ message: false }), /R2: message/],
  ["a status in an array", bodyOf({ status: ["SUCCESS"] }), /R2: status/],
  ["an undocumented array", bodyOf({ fees: [1, 2] }), /R2: fees/],
  ["an undocumented object", bodyOf({ details: { Valid: true } }), /R2: details/],
  ["an empty array", bodyOf({ fees: [] }), /R2: fees/],
  ["a lone high surrogate", bodyWith('"message":"\\ud800"', { message: undefined }), /R2: message/],
  [
    "a lone low surrogate",
    bodyWith('"referenceId":"a\\udc00b"', { referenceId: undefined }),
    /R2: referenceId/,
  ],
  ["surrogates in the wrong order", bodyWith('"fees":"\\ude00\\ud83d"'), /R2: fees/],
  ["a high surrogate before a pair", bodyWith('"fees":"\\ud83d\\ud83d\\ude00"'), /R2: fees/],
];

const required = ["amount", "callbackUrl", "event", "payTxnId", "referenceId", "status", "timestamp"];
const R3: readonly Row[] = [
  ...required.flatMap((name): readonly Row[] => [
    [`no ${name}`, bodyOf({ [name]: undefined }), new RegExp(`R3: ${name}`)],
    [`a ${name} of null`, bodyOf({ [name]: null }), new RegExp(`R3: ${name}`)],
    [`an empty ${name}`, bodyOf({ [name]: "" }), new RegExp(`R3: ${name}`)],
  ]),
  ...["-1", "+1", "1e3", "1,5", "1.", ".5", "1.0000001", " 1", "1 ", "NaN", "10&a=1", "１"].map(
    (amount): Row => [`the amount "${amount}"`, bodyOf({ amount }), /R3: amount/],
  ),
  ...["/callbacks", "merchant.example/cb", "https://", "?a=1", " ", "http//x"].map(
    (callbackUrl): Row => [`the callbackUrl "${callbackUrl}"`, bodyOf({ callbackUrl }), /R3: callbackUrl/],
  ),
  ...["deposit", "Deposit", "DEPOSIT ", "DEPOSIT2", "DEPOSIT&A", "A".repeat(65)].map(
    (event): Row => [`the event "${event}"`, bodyOf({ event }), /R3: event/],
  ),
  ...["success", "SUCCESS\n", "SUC-CESS", "SUCCESS&timestamp=x"].map(
    (status): Row => [`the status ${JSON.stringify(status)}`, bodyOf({ status }), /R3: status/],
  ),
  ...["yesterday", "2025-02-30T00:00:00Z", "2025-11-21T09:15:27+03:00", `${T}&userId=u`, "1763716527"].map(
    (timestamp): Row => [`the timestamp "${timestamp}"`, bodyOf({ timestamp }), /R3: timestamp/],
  ),
];

const DUPLICATES: readonly Row[] = [
  [
    "status twice",
    bodyWith('"status":"SUCCESS"', { status: "FAILED" }),
    /JSON: the body has duplicate names/,
  ],
  [
    "status twice, once escaped",
    bodyWith('"\\u0073tatus":"SUCCESS"', { status: "FAILED" }),
    /duplicate names/,
  ],
  ["an undocumented name twice", bodyWith('"fee":1,"fee":1'), /duplicate names/],
  ["a name twice below", bodyWith('"fee":{"a":1,"a":1}'), /duplicate names/],
  ["deep nesting", bodyWith(`"fee":${"[".repeat(20)}${"]".repeat(20)}`), /nested too deeply/],
];

const R4: readonly Row[] = [
  ["& in payTxnId", bodyOf({ payTxnId: "a&b" }), /R4: payTxnId/],
  ["& in merchantId", bodyOf({ merchantId: "a&" }), /R4: merchantId/],
  ["& in providerTxId", bodyOf({ providerTxId: "&" }), /R4: providerTxId/],
  ["& in userId", bodyOf({ userId: "u&status=FAILED" }), /R4: userId/],
  ["& in an undocumented field", bodyOf({ accountName: "Abebe & sons" }), /R4: accountName/],
  ["& in a declared field", bodyOf({ accountName: "A&B" }), /R4: accountName/, ["accountName"]],
  [
    "&event= in callbackUrl",
    bodyOf({ callbackUrl: "https://m.example/cb?x=1&event=5" }),
    /R4: callbackUrl .*pin it/,
  ],
  ["&event= at its end", bodyOf({ callbackUrl: "https://m.example/cb?x=1&event=" }), /R4: callbackUrl/],
  [
    "&event= of an unlisted event",
    bodyOf({ callbackUrl: "https://m.example/cb?&event=X&y=1" }),
    /R4: callbackUrl/,
  ],
  [
    "&callbackUrl= in callbackUrl",
    bodyOf({ callbackUrl: "https://m.example/?a&callbackUrl=b" }),
    /R4: callbackUrl/,
  ],
  ...[...required, "message", "merchantId", "userId", "providerTxId"].map(
    (name): Row => [`&${name}= in message`, bodyOf({ message: `ok&${name}=1` }), /R4: message/],
  ),
  [
    "& and a present undocumented name in message",
    bodyOf({ message: "ok&fee=1", fee: 2 }),
    /R4: message contains &fee=/,
  ],
  ["&status= behind a harmless one", bodyOf({ message: "a&b=1&c&status=SUCCESS" }), /R4: message/],
  ["a pair in referenceId", bodyOf({ referenceId: "A&b=1" }), /R4: referenceId/],
  ["&status= in referenceId", bodyOf({ referenceId: "VICTIM-7&status=SUCCESS" }), /R4: referenceId/],
  ["a pair with an empty value in referenceId", bodyOf({ referenceId: "A&z=" }), /R4: referenceId/],
];

const R5: readonly Row[] = [
  ["a name behind providerTxId", bodyOf({ q: "1" }), /R5: .*\bq follows providerTxId/],
  ["a name behind referenceId", bodyOf({ s: "1" }), /R5: .*\bs follows referenceId/],
  ["a name behind userId", bodyOf({ zone: "1" }), /R5: .*\bzone follows userId/],
  ["a number behind userId", bodyOf({ zone: 5 }), /R5: .*\bzone follows userId/],
  ["true behind userId", bodyOf({ zone: true }), /R5/],
  ["an empty value behind userId", bodyOf({ zone: "" }), /R5/],
  [
    "a second name behind userId, the first declared",
    bodyOf({ x: "1", zone: "1" }),
    /zone follows userId/,
    ["x"],
  ],
  ["a declared field that is missing", bodyOf(), /R5: zone is declared .* missing/, ["zone"]],
  ["a declared field that is null", bodyOf({ zone: null }), /R5: zone is declared .* missing/, ["zone"]],
];

type FullRow = [what: string, text: string, detail: RegExp, extraFields: readonly string[]];
const full = ([what, text, detail, extraFields = []]: Row): FullRow => [what, text, detail, extraFields];
const MALFORMED = [...R1, ...R2, ...R3, ...DUPLICATES].map(full);
const AMBIGUOUS = [...R4, ...R5].map(full);

describe.each([
  ["malformed", "ERR_EVENT_MALFORMED", MALFORMED],
  ["ambiguous", "ERR_EVENT_AMBIGUOUS", AMBIGUOUS],
] as const)("a body with a valid signature is %s", (reason, code, rows) => {
  it.each(rows)("with %s", (_, text, detail, extraFields) => {
    const error = thrownBy(() => verify(sign(text), extraFields));
    expect(error.code).toBe(code);
    expect(error.message).toMatch(detail);
  });

  it("and is held by a receiver, each on its own, with the reason, and nothing runs", async () => {
    const t = await setUp({ payments: { publicKey } });
    const plain = rows.filter(([, , , extraFields]) => extraFields.length === 0);
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
    expect(t.lines.filter(([level, message]) => level === "warn" && message === "held")).toHaveLength(
      entries.length,
    );
  });

  it.each(rows)(
    "but a bad signature when the signature is another one, with %s",
    (_, text, __, extraFields) => {
      const sent = withSignature(text, otherSignature);
      expect(thrownBy(() => verify(sent, extraFields)).code).toBe("ERR_SIGNATURE_INVALID");
    },
  );

  it("and answered 401 with a bad signature, and not kept", async () => {
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
  const RUN: readonly (readonly [what: string, changes: object, extraFields?: readonly string[]])[] = [
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
    ["with event as the first query name", { callbackUrl: "https://m.example/cb?event=5&y=1" }],
    [
      "with a name that begins with event in callbackUrl",
      { callbackUrl: "https://m.example/cb?a=1&eventId=5" },
    ],
    ["with a declared field behind userId", { zone: "1" }, ["zone"]],
    ["with declared fields behind all free texts", { q: 1, s: 2, zone: true }, ["q", "s", "zone"]],
    ["with an amount without decimals", { amount: "10" }],
    ["with a timestamp to the second", { timestamp: "2025-11-21T09:15:27Z" }],
  ];
  it.each(RUN.map(([what, ...given]) => ({ what, given })))(
    "$what",
    ({ given: [changes, extraFields = []] }) => {
      const fields = callbackFields(changes as Record<string, string>);
      const event = verify(sign(JSON.stringify(fields)), extraFields);
      for (const name of [...required, "message", "providerTxId", "merchantId", "userId"]) {
        expect((event as unknown as Record<string, unknown>)[name], name).toBe(fields[name] ?? undefined);
      }
    },
  );

  it("whatever the order of its members and the white space between them", () => {
    const fields = Object.entries(callbackFields({ fee: 10, none: null }));
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

describe("a callback URL", { timeout: 30_000 }, () => {
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

  it("with any query but &event= is accepted and its callback run", async () => {
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

  it("with &event= is held until it is pinned, and then run", async () => {
    const at = fc.tuple(
      urls,
      fc.constantFrom("", "5", "DEPOSIT", "REVERSAL"),
      fc.constantFrom("", "&y=1", "&status=1"),
    );
    await fc.assert(
      fc.asyncProperty(at, async ([url, value, tail]) => {
        const callbackUrl = `${url}&event=${value}${tail}`;
        const sent = sign(JSON.stringify(callbackFields({ callbackUrl })));
        const open = await setUp({ payments: { publicKey } });
        expect((await open.post("payments", sent)).status).toBe(200);
        expect(open.ran).toEqual([]);
        expect(await open.held()).toMatchObject([
          { reason: "ambiguous", detail: expect.stringContaining("pin it") },
        ]);
        const pinned = await setUp({ payments: { publicKey, expect: { callbackUrl } } });
        expect((await pinned.post("payments", sent)).status).toBe(200);
        expect(pinned.ran).toMatchObject([{ callbackUrl }]);
        expect(await pinned.held()).toEqual([]);
      }),
      { numRuns: 40 },
    );
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
