/**
 * The rules are held against every reading that there is. A body may be run only if no other body that the service
 * could have signed, the same canonical string and all, says something else.
 */
import { CALLBACK_FIELDS } from "@payhooks/core/signature";
import fc from "fast-check";
import {
  type CallbackBody,
  type CallbackRules,
  findMalformedField,
  findViolation,
  isDocumented,
  isFieldName,
  uncertainFields,
} from "../../packages/core/src/flows/callback.ts";

/** A body's fields but its signature, all of them text. */
export type Body = Readonly<Record<string, string>>;

const RULES: CallbackRules = {
  extraFields: new Set(),
  pinnedUrls: new Set(),
  merchantIdRequired: false,
  pinnedMerchantIds: new Set(),
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
  onlyDocumented: Object.keys(body).every((name) => isDocumented(name) || name === "signature"),
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

const MAY_BE_CUT: ReadonlySet<string> = new Set(["callbackUrl", "message"]);

/** One is the other, cut off at an `&`. */
const isTail = (a: string, b: string): boolean => a === b || a.startsWith(`${b}&`) || b.startsWith(`${a}&`);

/** What handlers are given of a body: its fields but those that are left out because they are not certain. */
type Given = Body;

/** The documented field of which a handler is told something else than was sent, or null. */
export function findDifference(body: Body, given: Given, sent: Body): string | null {
  for (const name of CALLBACK_FIELDS) {
    const [a, b] = [given[name], sent[name]];
    if (a === b || (a === undefined && body[name] !== undefined)) continue;
    if (a !== undefined && b !== undefined && MAY_BE_CUT.has(name) && isTail(a, b)) continue;
    return name;
  }
  return null;
}

/** At most 16 `&`: the bodies are as many as there are ways to cut. */
const MAX_PARTS = 17;

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

const fieldsOf = (names: readonly string[]): fc.Arbitrary<Record<string, string>> =>
  fc
    .tuple(...names.map((name) => textOf(name).map((value): [string, string] => [name, value])))
    .map((fields) => Object.fromEntries(fields));
const tailOf = (names: readonly string[]): fc.Arbitrary<string> =>
  fc
    .tuple(...names.map((name) => textOf(name).map((value) => `&${name}=${value}`)))
    .map((parts) => parts.join(""));

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
    return tailOf(chosen);
  });

const OPTIONAL = ["merchantId", "message", "providerTxId", "userId"];

/** A body as the service could send it, where a customer had a say in one or two values. */
const random: fc.Arbitrary<Body> = fc
  .tuple(fc.subarray(OPTIONAL), fc.oneof(fc.constant([]), fc.subarray(EXTRA, { maxLength: 2 })))
  .chain(([optional, extra]) => {
    const names = [...REQUIRED, ...optional, ...extra];
    const hosts = names.filter((name) => !OWN.has(name));
    return fc
      .tuple(
        fieldsOf(names),
        fc.constantFrom(...hosts),
        tail,
        fc.option(fc.tuple(fc.constantFrom(...hosts), tail), { freq: 5 }),
      )
      .map(([fields, host, text, second]): Body => {
        const body = { ...fields, [host]: fields[host] + text };
        return second === null ? body : { ...body, [second[0]]: body[second[0]] + second[1] };
      });
  });

/** Each field in turn carries a complete sorted tail of the others, which a body at random seldom does. */
const targeted: fc.Arbitrary<Body> = fc
  .tuple(
    fc.constantFrom("callbackUrl", "referenceId", ...OPTIONAL, ...EXTRA),
    fc.subarray(OPTIONAL, { maxLength: 2 }),
  )
  .chain(([host, optional]) => {
    const names = [...new Set([...REQUIRED, ...optional, host])];
    const following = CALLBACK_FIELDS.filter((name) => name > host);
    const tails = following.map((_, count) => following.slice(0, count + 1));
    const complete = tails.length === 0 ? tail : fc.constantFrom(...tails).chain(tailOf);
    return fc
      .tuple(fieldsOf(names), complete)
      .map(([fields, text]): Body => ({ ...fields, [host]: fields[host] + text }));
  });

/** Canonical strings of bodies that the service could send, and that were meant to be read as others. */
export const hostile: fc.Arbitrary<string> = fc
  .oneof({ weight: 3, arbitrary: random }, { weight: 2, arbitrary: targeted })
  .map(canonicalOf)
  .filter((canonical) => canonical.split("&").length <= MAX_PARTS);

/** A way of accepting bodies: what handlers are given, or null when it is not run. */
export type Accepts = (body: Body) => Given | null;

/** What is wrong with a way of accepting bodies, on one canonical string; null when nothing is. */
export function findFault(
  canonical: string,
  accepts: Accepts,
  { every = false, count = () => {} }: { every?: boolean; count?: (readings: number) => void } = {},
): string | null {
  const bodies = bodiesOf(canonical, every);
  count(bodies.length);
  const genuine = bodies.filter(isGenuine);
  for (const body of bodies) {
    const given = accepts(body);
    if (given === null) continue;
    for (const sent of genuine) {
      const name = findDifference(body, given, sent);
      if (name !== null) return `${name}: ${JSON.stringify(given)} is run, ${JSON.stringify(sent)} was sent`;
    }
  }
  return null;
}

const isRun = (body: Body): boolean => isListed(body) && findViolation(readBody(body), RULES) === null;
function certain(body: Body): Given {
  const uncertain = uncertainFields(readBody(body), RULES);
  return Object.fromEntries(Object.entries(body).filter(([name]) => !uncertain.includes(name)));
}

export const accepts: Accepts = (body) => (isRun(body) ? certain(body) : null);

/** The rules with a part of one switched off: its trigger is taken out of the body before they see it. */
const without =
  (disarm: (body: Body) => Body) =>
  (body: Body): Given | null =>
    isListed(body) && isRun(disarm(body)) ? certain(body) : null;
const replaced = (body: Body, change: (name: string, value: string) => string): Body =>
  Object.fromEntries(Object.entries(body).map(([name, value]) => [name, change(name, value)]));
const unescaped = (names: (name: string) => boolean) =>
  without((body) => replaced(body, (name, value) => (names(name) ? value.replaceAll("&", "_") : value)));

/** Ways of accepting bodies that are wrong; the oracle has to find a fault of each. */
export const MUTANTS: readonly (readonly [string, Accepts])[] = [
  ["that hands on what an undocumented field may have carried", (body) => (isRun(body) ? body : null)],
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
