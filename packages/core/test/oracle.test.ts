import { isPayhooksError, verifyPaymentCallback } from "@payhooks/core";
import { CALLBACK_FIELDS, importPublicKeys } from "@payhooks/core/signature";
import { asDelivery, createTestKeys, signCanonicalString } from "@payhooks/core/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type CallbackBody,
  type CallbackRules,
  findMalformedField,
  findViolation,
  isDocumented,
  isFieldName,
} from "../src/flows/callback.ts";

/**
 * The rules are held against every reading that there is. A body may be run only if no other body that the service
 * could have signed, the same canonical string and all, says something else.
 */
type Body = Readonly<Record<string, string>>;

const RULES: CallbackRules = {
  extraFields: new Set(),
  pinnedUrls: new Set(),
  merchantIdRequired: false,
  callbackUrlRequired: true,
};

const canonicalOf = (body: Body): string =>
  Object.keys(body)
    .sort()
    .map((name) => `${name}=${body[name]}`)
    .join("&");

const REQUIRED = ["amount", "callbackUrl", "event", "payTxnId", "referenceId", "status", "timestamp"];
/** What the service writes itself: no `&` can be in it, in a genuine body (it would not be well formed) or an accepted one. */
const OWN: ReadonlySet<string> = new Set([
  "amount",
  "event",
  "merchantId",
  "payTxnId",
  "status",
  "timestamp",
]);

/**
 * Every body with this canonical string, by brute force: each `&` either separates two fields or is in a value.
 *
 * @param every false leaves out those that break R3 in plain sight: a required field is missing, or has an `&`.
 */
function bodiesOf(canonical: string, every: boolean): Body[] {
  const parts = canonical.split("&");
  const bodies: Body[] = [];
  const fields: (readonly [name: string, text: string])[] = [];
  function search(at: number): void {
    if (at === parts.length) {
      if (!every && missing(fields, "~")) return;
      bodies.push(Object.fromEntries(fields));
      // JSON also has names with `=` and `&` in them: two fields may be one.
      if (bodies.length < 200) bodies.push(...fields.slice(1).map((_, i) => Object.fromEntries(joined(i))));
      return;
    }
    const last = fields.at(-1)?.[0] ?? "";
    const [name = "", ...rest] = (parts[at] ?? "").split("=");
    if (rest.length === 0 || (name <= last && fields.length > 0)) return;
    if (!every && missing(fields, name)) return;
    for (let end = at + 1; end <= (every || !OWN.has(name) ? parts.length : at + 1); end++) {
      fields.push([name, [rest.join("="), ...parts.slice(at + 1, end)].join("&")]);
      search(end);
      fields.pop();
    }
  }
  function joined(at: number): (readonly [string, string])[] {
    const [name, text] = fields[at] ?? ["", ""];
    const [next, tail] = fields[at + 1] ?? ["", ""];
    return [...fields.slice(0, at), [`${name}=${text}&${next}`, tail], ...fields.slice(at + 2)];
  }
  search(0);
  return bodies;
}

/** Whether a required field that sorts before a name is not there. */
function missing(fields: readonly (readonly [string, string])[], before: string): boolean {
  return REQUIRED.some((name) => name < before && !fields.some(([present]) => present === name));
}

const readBody = (body: Body): CallbackBody => ({
  json: { object: body, text: "", flaw: null },
  texts: new Map(
    Object.keys(body)
      .sort()
      .map((name) => [name, body[name] ?? ""]),
  ),
  canonical: "",
});

/** Whether the service could have sent it: names are names, and what it writes itself is in order. */
function isGenuine(body: Body): boolean {
  for (const name of OWN) if (body[name]?.includes("&")) return false;
  return (
    Object.keys(body).every((name) => isFieldName(name) && name !== "signature") &&
    findMalformedField(readBody(body).texts, RULES) === null
  );
}

const LISTED = { event: ["DEPOSIT", "WITHDRAWAL"], status: ["SUCCESS", "FAILED", "PENDING"] };
const isListed = ({ event = "", status = "" }: Body): boolean =>
  LISTED.event.includes(event) && LISTED.status.includes(status);

/** One is the other, cut off at an `&`. */
const isTail = (a: string, b: string): boolean => a === b || a.startsWith(`${b}&`) || b.startsWith(`${a}&`);

/** The documented field in which two bodies differ, or null. */
function findDifference(accepted: Body, other: Body): string | null {
  // An undocumented text in front may have carried a field that the service left out (docs/security.md).
  const certain = Object.keys(accepted).every(isDocumented);
  for (const name of CALLBACK_FIELDS) {
    const [a, b] = [accepted[name], other[name]];
    if (a === b) continue;
    if (a === undefined || b === undefined) {
      if (certain) return name;
      continue;
    }
    if ((name === "callbackUrl" || name === "message") && isTail(a, b)) continue;
    return name;
  }
  return null;
}

const T = ["2025-11-21T09:15:27.123456789Z", "2025-11-22T00:00:00Z"];
const word = fc.constantFrom("", "a", "b", "7");
const VALUES: Readonly<Record<string, fc.Arbitrary<string>>> = {
  amount: fc.constantFrom("10.000000", "99999.000000"),
  callbackUrl: fc.constantFrom("https://m.example/cb", "https://m.example/?x=1", "https://v.example/?x="),
  event: fc.constantFrom("DEPOSIT", "DEPOSIT", "REVERSAL", "WITHDRAWAL", "reversal"),
  payTxnId: fc.constantFrom("t1", "t2"),
  referenceId: fc.constantFrom("r1", "VICTIM"),
  status: fc.constantFrom("SUCCESS", "FAILED", "PENDING", "REVERSED"),
  timestamp: fc.constantFrom(...T),
};
const EXTRA = ["accountName", "bank", "d", "fee", "name", "phone", "q", "s", "tz", "zone"];
const NAMES = [...CALLBACK_FIELDS, ...EXTRA].sort();
const textOf = (name: string): fc.Arbitrary<string> => VALUES[name] ?? word;

/** `&name=value` some times, most often the sorted tail of a whole body, as an attacker would write it. */
const tail = fc
  .oneof(
    { weight: 4, arbitrary: fc.tuple(fc.nat(NAMES.length - 1), fc.integer({ min: 1, max: 8 })) },
    { weight: 1, arbitrary: fc.subarray(NAMES, { minLength: 1, maxLength: 3 }) },
  )
  .chain((names) => {
    const [from, count] = names;
    const chosen =
      typeof from === "number" && typeof count === "number"
        ? CALLBACK_FIELDS.slice(from % CALLBACK_FIELDS.length).slice(0, count)
        : (names as string[]);
    return fc.tuple(...chosen.map((name) => textOf(name).map((value) => `&${name}=${value}`)));
  })
  .map((parts) => parts.join(""));

const OPTIONAL = ["merchantId", "message", "providerTxId", "userId"];

/** A body as the service could send it, where a customer had a say in one or two values. */
const hostile = fc
  .tuple(fc.subarray(OPTIONAL), fc.oneof(fc.constant([]), fc.subarray(EXTRA, { maxLength: 2 })))
  .chain(([optional, extra]) => {
    const names = [...REQUIRED, ...optional, ...extra];
    const hosts = names.filter((name) => !OWN.has(name));
    return fc
      .tuple(
        fc.tuple(...names.map((name) => textOf(name).map((value): [string, string] => [name, value]))),
        fc.constantFrom(...hosts),
        tail,
        fc.option(fc.tuple(fc.constantFrom(...hosts), tail), { freq: 5 }),
      )
      .map(([fields, host, text, second]): Body => {
        const body: Record<string, string> = Object.fromEntries(fields);
        body[host] += text;
        if (second !== null) body[second[0]] += second[1];
        return body;
      });
  })
  .map(canonicalOf)
  .filter((canonical) => canonical.split("&").length <= 13);

/** What is wrong with a way of accepting bodies, on one canonical string; null when nothing is. */
function findFault(canonical: string, accepts: (body: Body) => boolean, every = false): string | null {
  const bodies = bodiesOf(canonical, every);
  const genuine = bodies.filter(isGenuine);
  for (const accepted of bodies.filter(accepts)) {
    for (const other of genuine) {
      const name = findDifference(accepted, other);
      if (name !== null)
        return `${name}: ${JSON.stringify(accepted)} is run, ${JSON.stringify(other)} was sent`;
    }
  }
  return null;
}

const passes = (body: Body): boolean => isListed(body) && findViolation(readBody(body), RULES) === null;

/** The rules with a part of one switched off: its trigger is taken out of the body before they see it. */
const without =
  (disarm: (body: Body) => Body) =>
  (body: Body): boolean =>
    isListed(body) && passes(disarm(body));
const replaced = (body: Body, change: (name: string, value: string) => string): Body =>
  Object.fromEntries(Object.entries(body).map(([name, value]) => [name, change(name, value)]));
const unescaped = (names: (name: string) => boolean) =>
  without((body) => replaced(body, (name, value) => (names(name) ? value.replaceAll("&", "_") : value)));

const MUTANTS: readonly (readonly [string, (body: Body) => boolean])[] = [
  ["without R4", unescaped(() => true)],
  ["without R4 for callbackUrl", unescaped((name) => name === "callbackUrl")],
  ["without R4 for message", unescaped((name) => name === "message")],
  ["without R4 for referenceId", unescaped((name) => name === "referenceId")],
  ["without R4 for userId", unescaped((name) => name === "userId")],
  ["without R4 for undocumented fields", unescaped((name) => !isDocumented(name))],
  [
    "with R4 for callbackUrl narrowed to listed events",
    without((body) =>
      replaced(body, (name, value) =>
        name === "callbackUrl" && !/&event=(DEPOSIT|WITHDRAWAL)&/.test(value)
          ? value.replaceAll("&event=", "_")
          : value,
      ),
    ),
  ],
  [
    "without R4 for &callbackUrl= in callbackUrl",
    without((body) =>
      replaced(body, (name, value) =>
        name === "callbackUrl" ? value.replaceAll("&callbackUrl=", "_") : value,
      ),
    ),
  ],
  [
    "without R5",
    without((body) =>
      Object.fromEntries(Object.entries(body).filter(([name]) => isDocumented(name) || name < "p")),
    ),
  ],
];

describe("the rules, against every body of a canonical string", { timeout: 30_000 }, () => {
  it("let only bodies run that say what any genuine one says", () => {
    let accepted = 0;
    fc.assert(
      fc.property(hostile, (canonical) => {
        const fault = findFault(canonical, (body) => {
          const ok = passes(body);
          if (ok) accepted++;
          return ok;
        });
        expect(fault).toBeNull();
      }),
      { numRuns: 1_500 },
    );
    // The search is worth something only if the rules let enough through.
    expect(accepted).toBeGreaterThan(100);
  });

  it.each(MUTANTS)("a mutant %s is caught", (_, accepts) => {
    const run = fc.check(
      fc.property(hostile, (canonical) => findFault(canonical, accepts) === null),
      {
        numRuns: 100_000,
        interruptAfterTimeLimit: 10_000,
        markInterruptAsFailure: false,
        endOnFailure: true,
      },
    );
    expect(run.failed, `seed ${run.seed}: no fault found in ${run.numRuns} strings`).toBe(true);
  });

  it("with real signatures: of all bodies with one signature, those that are accepted agree", () => {
    const { publicKey, privateKey } = createTestKeys();
    const key = importPublicKeys(publicKey)[0]?.key;
    let accepted = 0;
    let refused = 0;
    const verify = (body: Body, signature: string): boolean => {
      try {
        const { event } = verifyPaymentCallback(asDelivery({ ...body, signature }).rawBody, {
          publicKey: key,
        });
        for (const name of CALLBACK_FIELDS) expect(event[name]).toBe(body[name]);
        accepted++;
        return true;
      } catch (error) {
        if (!isPayhooksError(error)) throw error;
        // Whatever is wrong with them, the signature fits: they are held, not refused.
        expect(error.code).toMatch(/^ERR_EVENT_/);
        refused++;
        return false;
      }
    };
    fc.assert(
      fc.property(hostile, (canonical) => {
        const signature = signCanonicalString(canonical, privateKey);
        const every = canonical.split("&").length <= 8;
        expect(findFault(canonical, (body) => verify(body, signature), every)).toBeNull();
      }),
      { numRuns: 40 },
    );
    expect(accepted).toBeGreaterThan(0);
    expect(refused).toBeGreaterThan(100);
  });
});
