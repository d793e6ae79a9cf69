/**
 * What is believed of a signed string is held against every body that there is for it: by brute force, each `&` either
 * separates two fields or is part of a value. What handlers are given must be what all bodies say that the service could
 * have signed, no more and no less, whichever of them arrived.
 */
import { CALLBACK_FIELDS } from "@payhooks/core/signature";
import fc from "fast-check";
import {
  type CallbackRules,
  type CallbackTexts,
  findMalformedField,
  isDocumented,
} from "../../packages/core/src/flows/callback.ts";
import { judgeBy } from "../../packages/core/src/flows/judgement.ts";

/** A body's fields but its signature, all of them text. */
export type Body = Readonly<Record<string, string>>;

/** What a receiver was told of the callbacks that it gets. */
export type Rules = CallbackRules;

const PINNED = ["https://m.example/?x=1&event=PAID", "https://m.example/cb"];
const rulesWith = (changes: Partial<Rules>): Rules => ({
  extraFields: new Map(),
  pinnedUrls: new Set(),
  merchantIdRequired: false,
  pinnedMerchantIds: new Set(),
  callbackUrlRequired: true,
  ...changes,
});

/** Default options, and each option that changes what can be read. */
export const SETTINGS: readonly (readonly [what: string, rules: Rules])[] = [
  ["by default", rulesWith({})],
  ["with a declared field", rulesWith({ extraFields: new Map([["currency", "always"]]) })],
  ["with a field that is sent sometimes", rulesWith({ extraFields: new Map([["currency", "sometimes"]]) })],
  [
    "with two declared fields",
    rulesWith({
      extraFields: new Map([
        ["d", "always"],
        ["zone", "sometimes"],
      ]),
    }),
  ],
  ["with a declared field in front of all", rulesWith({ extraFields: new Map([["accountName", "always"]]) })],
  [
    "with fields sent sometimes in front of optional ones",
    rulesWith({
      extraFields: new Map([
        ["fee", "sometimes"],
        ["phone", "sometimes"],
      ]),
    }),
  ],
  ["with a resolver", rulesWith({ merchantIdRequired: true })],
  ["with a pinned merchantId", rulesWith({ pinnedMerchantIds: new Set(["a"]) })],
  ["with pinned URLs", rulesWith({ pinnedUrls: new Set(PINNED) })],
  [
    "with all of them",
    rulesWith({
      extraFields: new Map([
        ["currency", "sometimes"],
        ["fee", "always"],
      ]),
      pinnedUrls: new Set(PINNED),
      merchantIdRequired: true,
    }),
  ],
];

/** The declared fields that every callback has, by the merchant's word. */
const alwaysSent = ({ extraFields }: Rules): readonly string[] =>
  [...extraFields].flatMap(([name, sent]) => (sent === "always" ? [name] : []));

export const canonicalOf = (body: Body): string =>
  Object.keys(body)
    .sort()
    .map((name) => `${name}=${body[name]}`)
    .join("&");

const REQUIRED = ["amount", "callbackUrl", "event", "payTxnId", "referenceId", "status", "timestamp"];
const OPTIONAL = ["merchantId", "message", "providerTxId", "userId"];
/** What the service writes itself: no `&` can be in it. */
const OWN = ["amount", "event", "merchantId", "payTxnId", "status", "timestamp"];

type Fields = readonly (readonly [name: string, text: string])[];

/** Every way to cut a string into fields, by brute force. `take` sees each, and `goesOn` what there is of it so far. */
function cut(canonical: string, goesOn: (fields: Fields) => boolean, take: (fields: Fields) => void): void {
  const parts = canonical.split("&");
  const fields: (readonly [name: string, text: string])[] = [];
  function search(at: number): void {
    if (at === parts.length) {
      take(fields);
      return;
    }
    const last = fields.at(-1)?.[0] ?? "";
    const [name = "", ...rest] = (parts[at] ?? "").split("=");
    if (rest.length === 0 || (name <= last && fields.length > 0)) return;
    for (let end = at + 1; end <= parts.length; end++) {
      fields.push([name, [rest.join("="), ...parts.slice(at + 1, end)].join("&")]);
      if (goesOn(fields)) search(end);
      fields.pop();
    }
  }
  search(0);
}

/** Bodies with this canonical string that may arrive; of very many, the first ones. */
function arrivingOf(canonical: string): readonly Body[] {
  const bodies: Body[] = [];
  const most = 100;
  cut(
    canonical,
    () => bodies.length < most,
    (fields) => {
      bodies.push(Object.fromEntries(fields));
      // JSON also has names with `=` and `&` in them: two fields may be one.
      const [[name, text] = ["", ""], [next, tail] = ["", ""], ...others] = fields;
      if (fields.length > 1)
        bodies.push({ ...Object.fromEntries(others), [`${name}=${text}&${next}`]: tail });
    },
  );
  return bodies;
}

const textsOf = (body: Body): CallbackTexts => new Map(Object.entries(body));

/**
 * The bodies that the service could have signed a string for: names are names, every field is there that always is, and
 * what the service writes itself is in order. Where the URL can be a pinned one, it is that.
 *
 * @param deviating the service may also write a field in a way that is not documented, such as another form of time.
 */
export function genuineOf(canonical: string, rules: Rules, deviating = false): readonly Body[] {
  const own = [...OWN, ...rules.extraFields.keys()];
  const always = [...REQUIRED, ...alwaysSent(rules)];
  // A receiver may ask for a merchantId, but that does not make the service send one.
  const sent = { ...rules, merchantIdRequired: false };
  const genuine: Body[] = [];
  cut(
    canonical,
    (fields) => {
      const [name = "", text = ""] = fields.at(-1) ?? [];
      if (name === "" || name === "signature" || (own.includes(name) && text.includes("&"))) return false;
      return !always.some((each) => each < name && !fields.some(([present]) => present === each));
    },
    (fields) => {
      const body = Object.fromEntries(fields);
      if (always.some((name) => body[name] === undefined)) return;
      if (deviating || findMalformedField(textsOf(body), sent) === null) genuine.push(body);
    },
  );
  const pinned = new Set(
    genuine.filter(({ callbackUrl = "" }) => rules.pinnedUrls.has(callbackUrl)).map(startOfUrl),
  );
  return genuine.filter(
    (body) => rules.pinnedUrls.has(body.callbackUrl ?? "") || !pinned.has(startOfUrl(body)),
  );
}

/** Where the value of callbackUrl begins in the string. */
function startOfUrl(body: Body): number {
  return canonicalOf(Object.fromEntries(Object.entries(body).filter(([name]) => name < "callbackUrl")))
    .length;
}

/** What handlers are given, or that it is not run. */
export type Given = Body | "ambiguous" | "malformed";
export type Believes = (body: Body, rules: Rules) => Given;

/** What handlers may be given: the fields that every genuine body agrees on, tails apart. */
export function agreementOf(genuine: readonly Body[], rules: Rules, looksForNames = true): Given {
  const [first, ...others] = genuine;
  if (first === undefined) return "malformed";
  if (looksForNames && leavesANameBehind(genuine, first, rules)) return "ambiguous";
  const given: Record<string, string> = {};
  const withMerchant = rules.merchantIdRequired || rules.pinnedMerchantIds.size > 0;
  const required = [...REQUIRED, ...alwaysSent(rules), ...(withMerchant ? ["merchantId"] : [])];
  for (const name of new Set([...required, ...OPTIONAL, ...rules.extraFields.keys()])) {
    const agreed =
      first[name] !== undefined &&
      (name === "callbackUrl"
        ? others.every((other) => startOfUrl(other) === startOfUrl(first))
        : name === "message"
          ? others.every((other) => other.message !== undefined && startsAlike(first, other))
          : others.every((other) => other[name] === first[name]));
    const isNoMerchant = name === "merchantId" && rules.merchantIdRequired && first.merchantId === "";
    if (agreed && !isNoMerchant) given[name] = first[name] ?? "";
    else if (required.includes(name)) return "ambiguous";
  }
  return given;
}

/** A documented or declared name stands twice in the string, the query of the callback URL apart: one was swallowed. */
function leavesANameBehind(genuine: readonly Body[], first: Body, rules: Rules): boolean {
  const parts = canonicalOf(first).split("&");
  const partsBefore = (body: Body, name: string): number =>
    Object.keys(body)
      .filter((field) => field < name)
      .reduce((count, field) => count + (body[field] ?? "").split("&").length, 0);
  const url = partsBefore(first, "callbackUrl");
  const event = Math.min(...genuine.map((body) => partsBefore(body, "event")));
  const pinned = genuine.find(({ callbackUrl = "" }) => rules.pinnedUrls.has(callbackUrl));
  const pinnedEnd = pinned === undefined ? 0 : url + (pinned.callbackUrl ?? "").split("&").length;
  const names = parts.map((part, i) => {
    const name = part.includes("=") ? part.slice(0, part.indexOf("=")) : "";
    if (!isDocumented(name) && !rules.extraFields.has(name)) return "";
    if (i <= url || (i >= event && i >= pinnedEnd)) return name;
    if (i < pinnedEnd) return "";
    if (name === "event" || name === "callbackUrl") return name;
    // Of a declared field between the URL and the event, one is the true one.
    return rules.extraFields.has(name) && name > "callbackUrl" && name < "event" ? `in query: ${name}` : "";
  });
  const once = [...new Set(names.filter((name) => name.startsWith("in query: ")))].map((name) =>
    name.slice(10),
  );
  const all = [...names.filter((name) => name !== "" && !name.startsWith("in query: ")), ...once];
  return new Set(all).size < all.length;
}

/** Two messages that begin at one place of the string. */
function startsAlike(one: Body, other: Body): boolean {
  const start = (body: Body): number =>
    canonicalOf(Object.fromEntries(Object.entries(body).filter(([name]) => name < "message"))).length;
  return start(one) === start(other);
}

/** One is the other, cut off at an `&`. */
const isTail = (a: string, b: string): boolean => a === b || a.startsWith(`${b}&`) || b.startsWith(`${a}&`);
const MAY_BE_CUT: ReadonlySet<string> = new Set(["callbackUrl", "message"]);

/** The field of which a handler is told something else than was sent, or null. */
export function findDifference(given: Body, sent: Body): string | null {
  for (const [name, text] of Object.entries(given)) {
    const other = sent[name];
    if (text === other) continue;
    if (other !== undefined && MAY_BE_CUT.has(name) && isTail(text, other)) continue;
    return name;
  }
  return null;
}

/**
 * What is wrong with a way of believing bodies, on one canonical string; null when nothing is. `exact` also asks that
 * nothing is kept back that all genuine bodies agree on.
 */
export function findFault(
  canonical: string,
  rules: Rules,
  believes: Believes,
  { exact = true, count = () => {} }: { exact?: boolean; count?: (bodies: number) => void } = {},
): string | null {
  const bodies = arrivingOf(canonical);
  count(bodies.length);
  const genuine = genuineOf(canonical, rules);
  const expected = agreementOf(genuine, rules);
  for (const body of bodies) {
    // A name that two fields make may sort elsewhere, and so be of another string.
    if (canonicalOf(body) !== canonical) continue;
    const given = believes(body, rules);
    if (typeof given === "string") {
      if (exact && typeof expected !== "string") return `${given}: all agree on ${JSON.stringify(expected)}`;
      continue;
    }
    if (genuine.length === 0) return `${JSON.stringify(given)} is run, and nothing can have been sent`;
    for (const sent of genuine) {
      const name = findDifference(given, sent);
      if (name !== null) return `${name}: ${JSON.stringify(given)} is run, ${JSON.stringify(sent)} was sent`;
    }
    if (!exact || typeof expected === "string") continue;
    const missing = Object.keys(expected).find((name) => given[name] === undefined);
    if (missing !== undefined) return `${missing} is left out although all agree on it`;
  }
  return null;
}

/** The field that money moves by, and of which a handler is told something else than a deviating service has sent. */
export function findForgery(canonical: string, rules: Rules, believes: Believes): string | null {
  const genuine = genuineOf(canonical, rules, true);
  for (const body of arrivingOf(canonical)) {
    const given = canonicalOf(body) === canonical ? believes(body, rules) : "malformed";
    if (typeof given === "string") continue;
    const required = Object.fromEntries(REQUIRED.map((name) => [name, given[name] ?? ""]));
    for (const sent of genuine) {
      const name = findDifference(required, sent);
      if (name !== null) return `${name}: ${JSON.stringify(given)} is run, ${JSON.stringify(sent)} was sent`;
    }
  }
  return null;
}

/** As the receiver does it. */
export const believes: Believes = (body, rules) => {
  const judgement = judgeBy(rules)(canonicalOf(body));
  if (judgement.kind !== "certain") return judgement.kind;
  return known(Object.fromEntries(judgement.texts), rules);
};

/** The fields that handlers are given. */
const known = (body: Body, { extraFields }: Rules): Body =>
  Object.fromEntries(Object.entries(body).filter(([name]) => isDocumented(name) || extraFields.has(name)));

/** At most 16 `&`: the bodies are as many as there are ways to cut. */
const MAX_PARTS = 17;

const T = ["2025-11-21T09:15:27.123456789Z", "2025-11-22T00:00:00Z"];
const word = fc.constantFrom("", "a", "b", "7");
const VALUES: Readonly<Record<string, fc.Arbitrary<string>>> = {
  amount: fc.constantFrom("10.000000", "99999.000000"),
  callbackUrl: fc.constantFrom(
    "https://m.example/cb",
    "https://m.example/?x=1",
    "https://m.example/?x=1&event=PAID",
    "https://v.example/?x=",
    "https://v.example",
  ),
  currency: fc.constantFrom("ETB", "USD"),
  event: fc.constantFrom("DEPOSIT", "DEPOSIT", "REVERSAL", "WITHDRAWAL", "reversal"),
  payTxnId: fc.constantFrom("t1", "t2"),
  referenceId: fc.constantFrom("r1", "VICTIM"),
  status: fc.constantFrom("SUCCESS", "FAILED", "PENDING", "REVERSED"),
  timestamp: fc.constantFrom(...T, "2025-11-21 09:15"),
};
const EXTRA = [
  "accountName",
  "bank",
  "currency",
  "customerName",
  "d",
  "fee",
  "name",
  "phone",
  "q",
  "s",
  "tz",
  "zone",
];
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

/** A body as the service could send it, where a customer had a say in one or two values. */
const random = (present: readonly string[], declared: readonly string[]): fc.Arbitrary<Body> =>
  fc
    .tuple(fc.subarray(OPTIONAL), fc.oneof(fc.constant([]), fc.subarray(EXTRA, { maxLength: 2 })))
    .chain(([optional, extra]) => {
      const undeclared = extra.filter((name) => !declared.includes(name));
      const names = [...new Set([...REQUIRED, ...optional, ...undeclared, ...present])];
      const hosts = names.filter((name) => !OWN.includes(name) && !declared.includes(name));
      return fc
        .tuple(
          fieldsOf(names),
          fc.constantFrom(...hosts),
          fc.oneof(tail, ...declared.map((name) => tailOf([name]))),
          fc.option(fc.tuple(fc.constantFrom(...hosts), tail), { freq: 5 }),
        )
        .map(([fields, host, text, second]): Body => {
          const body = { ...fields, [host]: fields[host] + text };
          return second === null ? body : { ...body, [second[0]]: body[second[0]] + second[1] };
        });
    });

/** Each field in turn carries a complete sorted tail of the others, which a body at random seldom does. */
const targeted = (present: readonly string[], declared: readonly string[]): fc.Arbitrary<Body> =>
  fc
    .tuple(
      fc.constantFrom(
        ...["callbackUrl", "referenceId", "message", "providerTxId", "userId"],
        ...EXTRA.filter((name) => !declared.includes(name)),
      ),
      fc.subarray(OPTIONAL, { maxLength: 2 }),
    )
    .chain(([host, optional]) => {
      const names = [...new Set([...REQUIRED, ...optional, host, ...present])];
      const known = new Set([...CALLBACK_FIELDS, ...declared]);
      const following = [...known].sort().filter((name) => name > host);
      const tails = following.map((_, count) => following.slice(0, count + 1));
      const complete = tails.length === 0 ? tail : fc.constantFrom(...tails).chain(tailOf);
      return fc
        .tuple(fieldsOf(names), complete)
        .map(([fields, text]): Body => ({ ...fields, [host]: fields[host] + text }));
    });

/**
 * Canonical strings of bodies that the service could send, and that were meant to be read as others. A field that is sent
 * sometimes is in about half of them, also as the end of another value.
 */
export const hostileTo = (rules: Rules): fc.Arbitrary<string> => {
  const sometimes = [...rules.extraFields.keys(), ...(rules.merchantIdRequired ? ["merchantId"] : [])];
  return fc
    .subarray(sometimes)
    .map((present) => [...new Set([...alwaysSent(rules), ...present])])
    .chain((present) =>
      fc.oneof(
        { weight: 3, arbitrary: random(present, sometimes) },
        { weight: 2, arbitrary: targeted(present, sometimes) },
      ),
    )
    .map(canonicalOf)
    .filter((canonical) => canonical.split("&").length <= MAX_PARTS);
};

/** Any rules: declared fields of both kinds, and every other option. */
export const anyRules: fc.Arbitrary<Rules> = fc
  .record({
    names: fc.subarray(EXTRA, { maxLength: 3 }),
    always: fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
    pinsUrls: fc.boolean(),
    merchantIdRequired: fc.boolean(),
    pinsMerchantId: fc.boolean(),
  })
  .map(({ names, always, pinsUrls, merchantIdRequired, pinsMerchantId }) =>
    rulesWith({
      extraFields: new Map(names.map((name, i) => [name, always[i] === true ? "always" : "sometimes"])),
      pinnedUrls: new Set(pinsUrls ? PINNED : []),
      merchantIdRequired,
      pinnedMerchantIds: new Set(pinsMerchantId ? ["a"] : []),
    }),
  );

/**
 * Believes what all bodies agree on among those that a weaker receiver thinks of. It does not look for names that stand
 * twice: that shows most forgeries by itself.
 */
const among =
  (thinksOf: (body: Body, arrived: Body, rules: Rules) => boolean): Believes =>
  (body, rules) => {
    const genuine = genuineOf(canonicalOf(body), rules);
    const agreement = agreementOf(
      genuine.filter((sent) => thinksOf(sent, body, rules)),
      rules,
      false,
    );
    return typeof agreement === "string" ? agreement : known(agreement, rules);
  };
/** Believes what all readings agree on, also where a name stands twice. */
export const withoutNames: Believes = among(() => true);
const withoutAmpersandIn = (...names: string[]): Believes =>
  among((sent) => !names.some((name) => sent[name]?.includes("&")));
/** The rules of a setting. Throws for a name that there is not. */
export function rulesOf(what: string): Rules {
  const setting = SETTINGS.find(([name]) => name === what);
  if (setting === undefined) throw new Error(`no setting is called ${what}`);
  return setting[1];
}
const DEFAULT_RULES = rulesOf("by default");
const DECLARED_RULES = rulesOf("with a declared field");
const SOMETIMES_RULES = rulesOf("with a field that is sent sometimes");
const RESOLVER_RULES = rulesOf("with a resolver");
const PINNED_MERCHANT_RULES = rulesOf("with a pinned merchantId");
/** A receiver for which what may be missing is always there: the others are no bodies of the service. */
const thinksAlways =
  (...names: string[]): Believes =>
  (body, rules) =>
    among((sent) => names.every((name) => sent[name] !== undefined))(body, rules);
const allAlways = ({ extraFields, ...rules }: Rules): Rules => ({
  ...rules,
  extraFields: new Map([...extraFields.keys()].map((name) => [name, "always"])),
});

/** Ways of believing bodies that are wrong; the oracle has to find a fault of each. */
export const MUTANTS: readonly (readonly [what: string, wrong: Believes, rules: Rules])[] = [
  ["that believes the body that arrived", (body, rules) => known(body, rules), DEFAULT_RULES],
  [
    "that believes it where it is well formed",
    among((sent, arrived) => JSON.stringify(sent) === JSON.stringify(arrived)),
    DEFAULT_RULES,
  ],
  [
    "that hands on what may be the end of another value",
    (body, rules) => {
      const given = believes(body, rules);
      return typeof given === "string" ? given : known({ ...body, ...given }, rules);
    },
    DEFAULT_RULES,
  ],
  ["that thinks of no & in callbackUrl", withoutAmpersandIn("callbackUrl"), DEFAULT_RULES],
  ["that thinks of no & in message", withoutAmpersandIn("message"), DEFAULT_RULES],
  ["that thinks of no & in referenceId", withoutAmpersandIn("referenceId"), DEFAULT_RULES],
  ["that thinks of no & in userId", withoutAmpersandIn("userId"), DEFAULT_RULES],
  ["that thinks of no & in providerTxId", withoutAmpersandIn("providerTxId"), DEFAULT_RULES],
  [
    "that thinks of no & in undocumented fields",
    among((sent) => !Object.entries(sent).some(([name, text]) => !isDocumented(name) && text.includes("&"))),
    DEFAULT_RULES,
  ],
  [
    "that thinks of no undocumented fields",
    among((sent) => Object.keys(sent).every(isDocumented)),
    DEFAULT_RULES,
  ],
  [
    "that thinks of listed events only",
    among(({ event = "" }) => event === "DEPOSIT" || event === "WITHDRAWAL"),
    DEFAULT_RULES,
  ],
  [
    "that thinks of no & in callbackUrl before a declared field",
    withoutAmpersandIn("callbackUrl"),
    DECLARED_RULES,
  ],
  [
    "that takes a declared field from the body",
    (body, rules) => {
      const given = believes(body, { ...rules, extraFields: new Map() });
      return typeof given === "string" ? given : known({ ...given, currency: body.currency ?? "" }, rules);
    },
    DECLARED_RULES,
  ],
  [
    "that takes what is sent sometimes for always sent",
    (body, rules) => believes(body, allAlways(rules)),
    SOMETIMES_RULES,
  ],
  [
    "that takes what is sent sometimes from the body",
    (body, rules) => {
      const given = believes(body, rules);
      return typeof given === "string" ? given : known({ ...body, ...given }, rules);
    },
    SOMETIMES_RULES,
  ],
  ["that thinks a resolver makes the service send merchantId", thinksAlways("merchantId"), RESOLVER_RULES],
  ["that thinks expect makes the service send merchantId", thinksAlways("merchantId"), PINNED_MERCHANT_RULES],
];
