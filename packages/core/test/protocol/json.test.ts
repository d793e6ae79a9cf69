import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  deepFreeze,
  isUnwieldy,
  type JsonObject,
  parseJsonBody,
  parseJsonText,
  rawMembers,
} from "../../src/protocol/json.ts";
import { busyMs } from "../receiving.ts";

const parse = (text: string) => parseJsonBody(Buffer.from(text, "utf8"));
const flawOf = (text: string) => {
  const body = parse(text);
  if (body === null) throw new Error(`not a body: ${text.slice(0, 80)}`);
  return body.flaw;
};

/** Pieces of a JSON string as written: every escape, and every character that means something outside of strings. */
const piece = fc.constantFrom(
  ...[
    '\\"',
    "\\\\",
    "\\/",
    "\\b",
    "\\f",
    "\\n",
    "\\r",
    "\\t",
    "\\u0041",
    "\\u0022",
    "\\u005c",
    "\\ud83d\\ude00",
  ],
  ...["\\ud800", "{", "}", "[", "]", ":", ",", " ", "'", "/", "a", "0", "é", "😀", "\u2028", "__proto__"],
);
const stringText = fc.array(piece, { maxLength: 5 }).map((pieces) => `"${pieces.join("")}"`);
const space = fc.constantFrom("", "", " ", "\n", "\t \r\n");
const scalarText = fc.oneof(
  stringText,
  fc.constantFrom("0", "-0", "10.0", "1e5", "-1.50E+2", "12345678901234567890", "true", "false", "null"),
);
const nameOf = (written: string): string => JSON.parse(written) as string;

/** Members as written, with names that differ. */
const membersOf = <T>(value: fc.Arbitrary<T>, minLength = 0) =>
  fc.uniqueArray(fc.tuple(stringText, value, space, space, space), {
    selector: ([name]) => nameOf(name),
    minLength,
    maxLength: 4,
  });
type Members = readonly (readonly [string, string, string, string, string])[];
const objectText = (members: Members): string =>
  `{${members.map(([name, value, a, b, c]) => `${a}${name}${b}:${c}${value}${a}`).join(",")}}`;
const arrayText = (values: readonly string[]): string => `[${values.join(" , ")}]`;

/** Valid JSON, and what it says. `JSON.parse` does not tell that: that of Node.js 24 mistakes names. */
interface Sample {
  readonly text: string;
  readonly value: unknown;
}
const samples = fc.letrec<{ value: Sample; object: Sample; array: Sample }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", maxDepth: 4 },
    scalarText.map((text) => ({ text, value: JSON.parse(text) as unknown })),
    tie("object"),
    tie("array"),
  ),
  object: membersOf(tie("value")).map((members) => ({
    text: objectText(members.map(([name, { text }, a, b, c]) => [name, text, a, b, c])),
    value: Object.fromEntries(members.map(([name, { value }]) => [nameOf(name), value])),
  })),
  array: fc.array(tie("value"), { maxLength: 3 }).map((elements) => ({
    text: arrayText(elements.map(({ text }) => text)),
    value: elements.map(({ value }) => value),
  })),
}));
const clean = { value: samples.value.map(({ text }) => text) };

/** The same name in another spelling. */
const respelled = (written: string): string =>
  `"${[...Array(nameOf(written).length).keys()]
    .map((i) => `\\u${nameOf(written).charCodeAt(i).toString(16).padStart(4, "0")}`)
    .join("")}"`;

/** An object somewhere in which a name is given twice. */
const planted = fc.letrec<{ object: string; value: string; here: string; inArray: string; below: string }>(
  (tie) => ({
    here: fc
      .tuple(membersOf(clean.value, 1), fc.nat(), fc.nat(), fc.boolean(), clean.value)
      .map(([members, which, where, respell, value]) => {
        const [name, , a, b, c] = members[which % members.length] ?? ['""', "", "", "", ""];
        const twin = [respell ? respelled(name) : name, value, a, b, c] as const;
        const at = where % (members.length + 1);
        return objectText([...members.slice(0, at), twin, ...members.slice(at)]);
      }),
    inArray: fc
      .tuple(fc.array(clean.value, { maxLength: 2 }), tie("value"), fc.array(clean.value, { maxLength: 2 }))
      .map(([before, value, after]) => arrayText([...before, value, ...after])),
    below: fc
      .tuple(membersOf(clean.value, 1), fc.nat(), tie("value"))
      .map(([members, which, value]) =>
        objectText(
          members.map((m, i) => (i === which % members.length ? [m[0], value, m[2], m[3], m[4]] : m)),
        ),
      ),
    value: fc.oneof({ depthSize: "small", maxDepth: 3 }, tie("here"), tie("inArray"), tie("below")),
    object: fc.oneof({ depthSize: "small", maxDepth: 3 }, tie("here"), tie("below")),
  }),
);

it("the JSON parser reads names with escapes, whatever was parsed before (Node.js 24 mistakes them for others)", () => {
  parse('{"amount":[],"\\u0061":0}');
  expect(flawOf('{"amount":1,"\\u0061mount":2}')).toBe("duplicate names");
  const text = '{"\\u0061":[{"b\\"":[]}, "x,]" ,{}],"c":{"\\ud83d\\ude00": -1.5e3 ,"__proto__":null}}';
  const body = parse(text);
  expect(body?.flaw).toBeNull();
  expect(JSON.stringify(body?.object)).toBe('{"a":[{"b\\"":[]},"x,]",{}],"c":{"😀":-1500,"__proto__":null}}');
  expect(parse('{"\\u0061":[ ]}')?.object).toEqual({ a: [] });
});

describe("a body", () => {
  it("is read without a flaw, whatever it holds", () => {
    fc.assert(
      fc.property(samples.object, space, space, (object, before, after) => {
        const text = before + object.text + after;
        const body = parse(text);
        expect(body).not.toBeNull();
        expect(JSON.stringify(body?.object)).toBe(JSON.stringify(object.value));
        expect(body?.flaw).toBeNull();
        expect(body?.text).toBe(text);
      }),
      { numRuns: 1000 },
    );
  });

  it("is read as JSON.parse reads it for any JSON value in it", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 6 }), (json) => {
        const text = `{"a":${json}}`;
        expect(JSON.stringify(parse(text)?.object)).toBe(JSON.stringify(JSON.parse(text)));
        expect(flawOf(text)).toBeNull();
      }),
      { numRuns: 500 },
    );
  });

  it("with a name given twice is always found out, at any depth and in any spelling", () => {
    fc.assert(
      fc.property(planted.object, (text) => {
        expect(flawOf(text)).toBe("duplicate names");
      }),
      { numRuns: 1000 },
    );
  });

  it.each([
    ['{"a":1,"a":1}', "at the top"],
    ['{"a":1,"b":2,"a":null}', "with others between"],
    ['{"a":1,"\\u0061":2}', "through an escape"],
    ['{"é":1,"\\u00e9":2}', "through an escape of a letter that is not ASCII"],
    ['{"\\ud83d\\ude00":1,"😀":2}', "through a pair of surrogates"],
    ['{"\\/":1,"/":2}', "through an escaped slash"],
    ['{"":1,"":2}', "with an empty name"],
    ['{"__proto__":1,"__proto__":2}', "__proto__"],
    ['{"__proto__":{},"\\u005f_proto__":{"a":1}}', "__proto__ through an escape"],
    ['{"constructor":1,"constructor":2}', "constructor"],
    ['{"0":1,"0":2}', "a name that is an index"],
    ['{"a":{"b":{"c":1,"c":1}}}', "in an object in an object"],
    ['{"a":[1,{"b":1,"b":2}]}', "in an array"],
    ['{"a":[[[{"b":1},{"b":1,"b":1}]]]}', "in arrays in arrays"],
    ['{"a":{"b":1,"b":2},"a":{"b":1,"c":2}}', "where the first of two objects is hidden by the second"],
    ['{"a":{"x":1,"y":2,"z":3},"a":{}}', "where the hidden one has more names"],
    ['{"a":{},"a":{"x":1}}', "where the hidden one has fewer names"],
    ['{"a":"\\\\","a":"\\\\"}', "behind strings that end with a backslash"],
  ])("%s has duplicate names (%s)", (text) => {
    expect(flawOf(text)).toBe("duplicate names");
  });

  it.each([
    ['{"a":{"a":{"a":1}}}', "one inside of the other"],
    ['{"a":[{"a":1},{"a":1}]}', "in neighbours"],
    ['{"a":1,"A":2}', "that differ in case"],
    ['{"a":1,"a ":2}', "that differ in a space"],
    ['{"é":1,"e\\u0301":2}', "that differ in composition"],
    ['{"a":"\\"a\\":1,","b":"{\\"b\\":1"}', "in strings that look like members"],
    ['{"a\\\\":1,"b":":::{[,"}', "behind backslashes"],
    ['{"__proto__":1,"constructor":2,"toString":3}', "of every object's prototype"],
    ["{}", "none"],
  ])("%s has no duplicate names (%s)", (text) => {
    expect(flawOf(text)).toBeNull();
  });

  it("may nest 16 deep, in objects and arrays, and no deeper", () => {
    const objects = (depth: number): string => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;
    const arrays = (depth: number): string => `{"a":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`;
    for (const nested of [objects, arrays]) {
      expect(flawOf(nested(16))).toBeNull();
      expect(flawOf(nested(17))).toBe("nested too deeply");
      expect(flawOf(nested(10_000))).toBe("nested too deeply");
    }
    expect(flawOf(`{"a":"${"{[".repeat(500)}"}`)).toBeNull();
  });

  it.each([
    ["", "nothing"],
    [" ", "white space"],
    ["[]", "an array"],
    ['[{"a":1}]', "an array of objects"],
    ['"a"', "a string"],
    ["1", "a number"],
    ["true", "true"],
    ["null", "null"],
    ["{}{}", "two objects"],
    ['{"a":1}x', "more behind it"],
    ['{"a":1,}', "a comma too many"],
    ["{'a':1}", "single quotes"],
    ["{a:1}", "a bare name"],
    ['{"a":NaN}', "NaN"],
    ['{"a":01}', "a leading zero"],
    ['{"a":"\n"}', "a raw line end in a string"],
    ['{"a":1', "no end"],
    ["{}\u00a0", "white space that JSON does not know"],
    ['{"a":1}/**/', "a comment"],
    ["\ufeff{}", "a byte order mark"],
    ["{}\0", "a NUL"],
  ])("%j is not one: %s", (text) => {
    expect(parse(text)).toBeNull();
  });

  it.each([
    ["an overlong slash in two bytes", [0xc0, 0xaf]],
    ["an overlong slash in three bytes", [0xe0, 0x80, 0xaf]],
    ["an overlong NUL", [0xc0, 0x80]],
    ["a surrogate", [0xed, 0xa0, 0x80]],
    ["a pair of surrogates (CESU-8)", [0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80]],
    ["a character that is cut off", [0xf0, 0x9f, 0x98]],
    ["a stray continuation", [0x80]],
    ["a byte that never occurs", [0xff]],
    ["a character beyond U+10FFFF", [0xf4, 0x90, 0x80, 0x80]],
    ["ISO 8859-1", [0xe9]],
  ])("is not one with bytes that are not UTF-8: %s", (_, bytes) => {
    const around = (inner: number[]) =>
      Uint8Array.from([...Buffer.from('{"a":"'), ...inner, ...Buffer.from('"}')]);
    expect(parseJsonBody(around([0xc3, 0xa9]))?.object).toEqual({ a: "é" });
    expect(parseJsonBody(around(bytes))).toBeNull();
  });

  it("in UTF-16 is not one", () => {
    expect(parseJsonBody(Buffer.from('{"a":1}', "utf16le"))).toBeNull();
  });

  const KIB64 = 64 * 1024;
  const filled = (unit: string, room: number): string => unit.repeat(Math.floor(room / unit.length));
  it.each([
    ["escaped quotes", `{"a":"${filled('\\"', KIB64 - 16)}"}`, null],
    ["backslashes", `{"a":"${filled("\\\\", KIB64 - 16)}"}`, null],
    ["backslashes before every quote", `{"a":"${filled(`${"\\\\".repeat(60)}\\"`, KIB64 - 16)}"}`, null],
    ["white space", `{${filled(" ", KIB64 - 16)}"a":1}`, null],
    ["empty objects", `{"a":[${filled("{},", KIB64 - 16)}1]}`, null],
    ["one name, many times", `{${filled('"a":1,', KIB64 - 16)}"a":1}`, "duplicate names"],
    [
      "opening brackets and their ends",
      `{"a":${"[".repeat(32_000)}${"]".repeat(32_000)}}`,
      "nested too deeply",
    ],
    ["many names", `{${[...Array(5_000).keys()].map((i) => `"n${i}":1`).join(",")}}`, null],
  ])("of 64 KiB is read at once: %s", (_, text, flaw) => {
    const ms = busyMs(() => {
      expect(flawOf(text)).toBe(flaw);
      rawMembers(text);
    });
    // A step per character takes some milliseconds; a step per pair of characters, over ten seconds.
    expect(ms).toBeLessThan(1_000);
  });
});

describe("JSON in a text", () => {
  it("has the flaws that a body has", () => {
    expect(parseJsonText('[{"a":1},{"\\u0061":2}]')).toEqual({ value: [{ a: 1 }, { a: 2 }], flaw: null });
    expect(parseJsonText('[{"a":1,"\\u0061":2}]')?.flaw).toBe("duplicate names");
    expect(parseJsonText("[".repeat(17) + "]".repeat(17))?.flaw).toBe("nested too deeply");
    expect(parseJsonText("3")).toEqual({ value: 3, flaw: null });
    expect(parseJsonText("{")).toBeNull();
  });

  it("may nest as deep as the caller says", () => {
    const nested = (depth: number): string => '{"a":['.repeat(depth / 2) + "]}".repeat(depth / 2);
    for (const depth of [2, 64]) {
      expect(parseJsonText(nested(depth), depth)?.flaw).toBeNull();
      expect(parseJsonText(nested(depth + 2), depth)?.flaw).toBe("nested too deeply");
    }
    expect(parseJsonText(nested(64).replaceAll('"a"', '"a":0,"a"'), 64)?.flaw).toBe("duplicate names");
  });
});

describe("raw members", () => {
  it("are exactly what was written, without the white space around", () => {
    fc.assert(
      fc.property(membersOf(clean.value), space, space, (members, before, after) => {
        const written = rawMembers(before + objectText(members) + after);
        expect([...written]).toEqual(members.map(([name, value]) => [nameOf(name), value]));
      }),
      { numRuns: 1000 },
    );
  });

  it("keep how a number was written", () => {
    const text = '{ "a" : 10.0 , "b":1E+2,"c":-0, "d" :12345678901234567890\n}';
    expect(Object.fromEntries(rawMembers(text))).toEqual({
      a: "10.0",
      b: "1E+2",
      c: "-0",
      d: "12345678901234567890",
    });
  });

  it("of a name given twice, the last one counts, as with JSON.parse", () => {
    const text = '{"a":1,"\\u0061":2.50}';
    expect([...rawMembers(text)]).toEqual([["a", "2.50"]]);
    expect(JSON.parse(text)).toEqual({ a: 2.5 });
  });

  it("of an empty object are none", () => {
    expect(rawMembers(" { } ").size).toBe(0);
  });
});

describe("an unwieldy body", () => {
  /** Bytes of some length with so many of a part; what fills it up is no part. */
  const bytesOf = (length: number, part: string, count: number): Buffer =>
    Buffer.from(part.repeat(count) + " ".repeat(length - part.length * count));

  it.each([",", "[", "{"])("has more than 8 KiB and more than 1,000 %s", (part) => {
    expect(isUnwieldy(bytesOf(8_193, part, 1_001))).toBe(true);
    expect(isUnwieldy(bytesOf(8_193, part, 1_000))).toBe(false);
    expect(isUnwieldy(bytesOf(8_192, part, 1_001))).toBe(false);
    expect(isUnwieldy(Buffer.from(" ".repeat(8_000) + part.repeat(1_001)))).toBe(true);
  });

  it.each([
    ["text with many commas", `{"message":"${",".repeat(9_000)}"}`],
    ["quotes in its text", `{"message":"${'\\",'.repeat(3_000)}"}`],
    [
      "backslashes at the end of its text",
      `{"a":"${" ".repeat(9_000)}\\\\","message":"${",[{".repeat(1_001)}"}`,
    ],
    ["signs that are no parts", `{"a":[${"1 ".repeat(4_500)}]}]}:;-\\+|`],
  ])("is not one with %s", (_, text) => {
    expect(isUnwieldy(Buffer.from(text))).toBe(false);
  });

  it.each([
    ["short texts", `{${'"a":"b",'.repeat(1_001)}"c":"${" ".repeat(2_000)}"}`],
    ["texts that end in a backslash", `{${'"a":"\\\\",'.repeat(1_001)}"c":1}`],
    ["texts with quotes in them", `{${'"a":"\\"",'.repeat(1_001)}"c":1}`],
  ])("is one of many members with %s", (_, text) => {
    expect(isUnwieldy(Buffer.from(text))).toBe(true);
  });

  it("is found out at its first parts", () => {
    let reads = 0;
    const deep = new Proxy(new Uint8Array(0), {
      get: (_, name) => (name === "byteLength" ? Number.POSITIVE_INFINITY : ++reads && "[".charCodeAt(0)),
    });
    expect(isUnwieldy(deep)).toBe(true);
    expect(reads).toBe(1_001);
  });
});

describe("a value that is frozen", () => {
  it("is equal to what was parsed, frozen to its depth, and has no prototype anywhere", () => {
    fc.assert(
      fc.property(samples.object, (sample) => {
        const value = deepFreeze(structuredClone(sample.value) as JsonObject);
        expect(JSON.stringify(value)).toBe(JSON.stringify(sample.value));
        const check = (part: unknown): void => {
          if (typeof part !== "object" || part === null) return;
          expect(Object.isFrozen(part)).toBe(true);
          if (!Array.isArray(part)) expect(Object.getPrototypeOf(part)).toBeNull();
          for (const inner of Object.values(part)) check(inner);
        };
        check(value);
      }),
      { numRuns: 200 },
    );
  });

  it("has __proto__ as a name like any other", () => {
    const value = deepFreeze(JSON.parse('{"__proto__":{"polluted":true}}') as JsonObject);
    expect(Object.keys(value)).toEqual(["__proto__"]);
    expect(Object.getPrototypeOf(value)).toBeNull();
    expect((value as { polluted?: unknown }).polluted).toBeUndefined();
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });
});
