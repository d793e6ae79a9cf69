/** How a callback's body becomes the signed string, and where that string is cut. */
import { type ServiceNamesOptions, serviceNames } from "@payhooks/core";
import { describe, expect, it } from "vitest";
import {
  cutAtNames,
  findMalformedField,
  mayEndInHost,
  openCallback,
  type Wire,
  wireOf,
  withoutDeclarations,
} from "../../src/flows/callback.ts";
import { SPECIFIED_RULES } from "./specified-rules.ts";

const { wire } = SPECIFIED_RULES;
const named = (callback: NonNullable<ServiceNamesOptions["callback"]>): Wire =>
  wireOf(serviceNames({ callback }).callback);
const open = (body: string, known = wire) => openCallback(Buffer.from(body), known);

describe("the signed string of a body", () => {
  it("has each field as text, sorted by code unit, without the signature and without null", () => {
    expect(open('{"b":1.50,"signature":"s","a":"x","Z":true,"n":null,"l":[1, 2]}')).toEqual({
      canonical: "Z=true&a=x&b=1.50&l=[1, 2]",
      signature: "s",
      merchantId: undefined,
    });
  });

  it("has no separator before its first field, although the first value is empty", () => {
    expect(open('{"a":"","b":"1"}')?.canonical).toBe("a=&b=1");
  });

  it("names the merchant, by the name that the service has for it", () => {
    expect(open('{"merchantId":"m-1"}')?.merchantId).toBe("m-1");
    const acme = named({ fields: { merchantId: { name: "acmeShop" } } });
    expect(open('{"merchantId":"m-1"}', acme)?.merchantId).toBeUndefined();
    expect(open('{"acmeShop":"m-2"}', acme)?.merchantId).toBe("m-2");
    expect(open('{"merchantId":"m-1"}', named({ fields: { merchantId: { sent: "absent" } } }))).toMatchObject(
      {
        merchantId: undefined,
      },
    );
  });

  it("does not exist without a JSON object", () => {
    for (const body of ["", "[]", "1", "null", '{"a":']) expect(open(body), body).toBeNull();
  });

  it.each([
    ["a pair", String.raw`\ud83d\ude00`, "\ud83d\ude00"],
    ["a first half", String.raw`\ud83d`, "\ufffd"],
    ["a first half before a letter", String.raw`\ud83dx`, "\ufffdx"],
    ["a second half", String.raw`\ude00`, "\ufffd"],
    ["a second half after a letter", String.raw`x\ude00`, "x\ufffd"],
    ["the halves in the wrong order", String.raw`\ude00\ud83d`, "\ufffd\ufffd"],
    ["a first half before a pair", String.raw`\ud83d\ud83d\ude00`, "\ufffd\ud83d\ude00"],
    ["a second half after a pair", String.raw`\ud83d\ude00\ude00`, "\ud83d\ude00\ufffd"],
  ])("has U+FFFD for an unpaired surrogate, as its UTF-8 bytes do: %s", (_, escaped, text) => {
    expect(open(`{"a":"${escaped}"}`)?.canonical).toBe(`a=${text}`);
  });
});

const REQUIRED = "amount=1&callbackUrl=u&event=E&payTxnId=t&referenceId=r&status=S&timestamp=T";

describe("a reading of a signed string that is cut at the known names", () => {
  it("is plain with the required fields alone, and has their texts", () => {
    expect(cutAtNames(REQUIRED, wire)).toEqual({
      isPlain: true,
      texts: new Map(
        Object.entries({
          amount: "1",
          callbackUrl: "u",
          event: "E",
          payTxnId: "t",
          referenceId: "r",
          status: "S",
          timestamp: "T",
        }),
      ),
    });
  });

  it.each([
    [
      "an optional field after one that is not free",
      REQUIRED.replace("&payTxnId", "&merchantId=m&payTxnId"),
      true,
    ],
    ["an optional field at the end", `${REQUIRED}&userId=u`, true],
    ["a required field missing", REQUIRED.replace("&status=S", ""), false],
    ["an optional field in place of a required one", `${REQUIRED.replace("&status=S", "")}&userId=u`, false],
    ["an unknown field", `${REQUIRED}&zone=1`, false],
    ["a part without a name", `${REQUIRED}&zone`, false],
    ["a part that begins like a name", `${REQUIRED}&userId`, false],
    ["a name twice", REQUIRED.replace("&event=E", "&event=E&event=F"), false],
    ["names out of order", REQUIRED.replace("amount=1&callbackUrl=u", "callbackUrl=u&amount=1"), false],
    ["an unknown field first", `a=1&${REQUIRED}`, false],
    ["nothing", "", false],
  ])("is plain or not: %s", (_, signed, plain) => {
    expect(cutAtNames(signed, wire).isPlain).toBe(plain);
  });

  it.each([
    ["an optional field right after a free one", "amount=1&callbackUrl=u&date=2", false],
    ["an optional field after one that is not free", "amount=1&bank=b&callbackUrl=u", true],
    ["a required field right after a free one", "amount=1&callbackUrl=u", true],
    ["an optional field first", "a=0&amount=1&callbackUrl=u", true],
  ])("is plain or not, with declared fields: %s", (_, head, plain) => {
    const extra = { a: "sometimes", bank: "sometimes", date: "sometimes" } as const;
    const signed = REQUIRED.replace("amount=1&callbackUrl=u", head);
    expect(cutAtNames(signed, named({ extra })).isPlain).toBe(plain);
  });

  it("adds a part that is not a field to the field before it", () => {
    const { texts } = cutAtNames("x=0&amount=1&y&event=E&amount=2&=&status=a=b", wire);
    expect(texts).toEqual(new Map(Object.entries({ amount: "1&y", event: "E&amount=2&=", status: "a=b" })));
  });

  it("names a field by its neutral name, and an extra field by its own", () => {
    const acme = named({ fields: { payTxnId: { name: "acmeId" } }, extra: { currency: "always" } });
    const { texts } = cutAtNames("acmeId=t&currency=USD&payTxnId=x", acme);
    expect(texts).toEqual(new Map(Object.entries({ payTxnId: "t", currency: "USD&payTxnId=x" })));
  });
});

describe("the fields of a service", () => {
  const declared = {
    fields: { userId: { sent: "always" }, callbackUrl: { sent: "sometimes" } },
    extra: { currency: "always", zone: "sometimes" },
    statuses: { FAILED: ["CANCELLED", "EXPIRED"] },
  } as const;

  it("are required if they are always sent, and essential if the specification or a declared extra field says so", () => {
    const acme = named(declared);
    const facts = acme.fields.map(({ key, isRequired: required, isEssential: essential }) => [
      key,
      { required, essential },
    ]);
    expect(Object.fromEntries(facts)).toMatchObject({
      amount: { required: true, essential: true },
      callbackUrl: { required: false, essential: false },
      currency: { required: true, essential: true },
      message: { required: false, essential: false },
      userId: { required: true, essential: false },
      zone: { required: false, essential: false },
    });
    expect(acme.requiredCount).toBe(8);
    expect(acme.extra).toEqual(["currency", "zone"]);
    expect(wire.requiredCount).toBe(7);
    expect(wire.extra).toEqual([]);
  });

  it("have the further words of each status", () => {
    expect([...named(declared).statusOf]).toEqual([
      ["CANCELLED", "FAILED"],
      ["EXPIRED", "FAILED"],
    ]);
  });

  it("leave out the merchant's declarations on request: no extra fields, and what only the merchant says is always sent is optional", () => {
    const offered = withoutDeclarations(named(declared));
    const required = offered.fields.filter((field) => field.isRequired).map(({ key }) => key);
    expect(required).toEqual(["amount", "event", "payTxnId", "referenceId", "status", "timestamp"]);
    expect(offered.fields.find(({ key }) => key === "userId")).toMatchObject({
      sent: "sometimes",
      isRequired: false,
      isEssential: false,
    });
    expect(offered.extra).toEqual([]);
    expect(offered.requiredCount).toBe(6);
    expect(offered.statusOf).toEqual(named(declared).statusOf);
  });

  it("are named in a fault by the service's word, if that differs", () => {
    const rules = { ...SPECIFIED_RULES, wire: named({ fields: { amount: { name: "acmeSum" } } }) };
    const fault = "is not digits with up to six decimals";
    expect(findMalformedField(new Map([["amount", "x"]]), rules)).toBe(`amount (acmeSum) ${fault}`);
    expect(findMalformedField(new Map([["amount", "x"]]), SPECIFIED_RULES)).toBe(`amount ${fault}`);
  });

  it("may be missing if the service does not always send them, and must be well formed otherwise", () => {
    const rules = { ...SPECIFIED_RULES, wire: named(declared) };
    const texts = new Map([...cutAtNames(REQUIRED, wire).texts].filter(([name]) => name !== "callbackUrl"));
    texts.set("timestamp", "2025-11-21T09:15:27Z");
    expect(findMalformedField(texts, rules)).toBeNull();
    expect(findMalformedField(texts, SPECIFIED_RULES)).toBe("callbackUrl is not an absolute URL");
    expect(findMalformedField(new Map([...texts, ["callbackUrl", "/cb"]]), rules)).toBe(
      "callbackUrl is not an absolute URL",
    );
  });
});

describe("a callback URL", () => {
  const faultOf = (url: string): string | null => {
    const texts = new Map([
      ...cutAtNames(REQUIRED, wire).texts,
      ["timestamp", "2025-11-21T09:15:27Z"],
    ] as const);
    return findMalformedField(new Map([...texts, ["callbackUrl", url]]), SPECIFIED_RULES);
  };

  it.each([
    "https://m.example/cb",
    "http://127.0.0.1:3000",
    "custom+app.1-x://host?a=1",
    `https://${"a".repeat(63)}/`,
  ])("is well formed with a scheme and a host: %s", (url) => {
    expect(faultOf(url)).toBeNull();
  });

  it.each([
    "",
    "https://",
    "https:///cb",
    "1https://m.example",
    " https://m.example",
    "https://m.example:port/",
    "https:\\\\m.example",
    `${"a".repeat(33)}://m.example`,
    `https://${"a.".repeat(256)}aa/`,
  ])("is malformed: %j", (url) => {
    expect(faultOf(url)).toBe("callbackUrl is not an absolute URL");
  });

  it.each([
    ["", true],
    ["https", true],
    ["https:", true],
    ["https://m.exa", true],
    ["https://m.example:80", true],
    [`https://${"a".repeat(992)}`, true],
    [`https://${"a".repeat(993)}`, false],
    ["https://m.example/", false],
    ["https://m.example?", false],
    ["https://m.example#", false],
    ["https://m.example/x://y", false],
    ["/x://y", false],
  ])("may go on in its host or not, however long it is: %j", (url, isAllowed) => {
    expect(mayEndInHost(url)).toBe(isAllowed);
  });
});
