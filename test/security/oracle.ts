/**
 * Compares the reading of a signed string with all bodies that there are for it: by brute force, each `&` either separates two
 * fields or is part of a value. What handlers are given must be what all bodies say that the service could have signed, no more
 * and no less, whichever of them arrived.
 */
import { isPayhooksError, type ServiceNamesOptions, serviceNames } from "@payhooks/core";
import { CALLBACK_FIELDS } from "@payhooks/core/signature";
import fc from "fast-check";
import {
  type CallbackRules,
  type CallbackTexts,
  findMalformedField,
  wireOf,
} from "../../packages/core/src/flows/callback.ts";
import { callbackJudge } from "../../packages/core/src/flows/judgement.ts";
import type { ServiceNames } from "../../packages/core/src/names/options.ts";

/** A body's fields but its signature, all of them text. */
export type Body = Readonly<Record<string, string>>;

/** The rules of a receiver for the callbacks that it gets. */
export interface Rules extends CallbackRules {
  readonly names: ServiceNames;
}

type Sent = "always" | "sometimes";
type CallbackField = (typeof CALLBACK_FIELDS)[number];
type Extra = Readonly<Record<string, Sent>>;

const PINNED = ["https://m.example/?x=1&event=PAID", "https://m.example/cb"];
interface Changes extends Partial<Omit<CallbackRules, "wire">> {
  readonly names?: ServiceNames;
  readonly extra?: Extra;
}
const rulesWith = ({
  extra,
  names = serviceNames({ callback: { extra: extra ?? {} } }),
  ...changes
}: Changes): Rules => ({
  names,
  wire: wireOf(names.callback),
  pinnedUrls: new Set(),
  isMerchantIdRequired: false,
  pinnedMerchantIds: new Set(),
  isCallbackUrlRequired: true,
  ...changes,
});

type Fields = NonNullable<NonNullable<ServiceNamesOptions["callback"]>["fields"]>;
function named(fields: Fields, extra: Extra = {}): Rules {
  return rulesWith({ names: serviceNames({ callback: { fields, extra } }) });
}

/** Default options, and each option that changes what can be read. */
export const SETTINGS: readonly (readonly [what: string, rules: Rules])[] = [
  ["by default", rulesWith({})],
  ["with a declared field", rulesWith({ extra: { currency: "always" } })],
  ["with a field that is sent sometimes", rulesWith({ extra: { currency: "sometimes" } })],
  [
    "with two declared fields",
    rulesWith({
      extra: { d: "always", zone: "sometimes" },
    }),
  ],
  ["with a declared field in front of all", rulesWith({ extra: { accountName: "always" } })],
  [
    "with fields sent sometimes in front of optional ones",
    rulesWith({
      extra: { fee: "sometimes", phone: "sometimes" },
    }),
  ],
  ["with a resolver", rulesWith({ isMerchantIdRequired: true })],
  ["with a pinned merchantId", rulesWith({ pinnedMerchantIds: new Set(["a"]) })],
  ["with pinned URLs", rulesWith({ pinnedUrls: new Set(PINNED) })],
  [
    "with all of them",
    rulesWith({
      extra: { currency: "sometimes", fee: "always" },
      pinnedUrls: new Set(PINNED),
      isMerchantIdRequired: true,
    }),
  ],
  ["with a brand's name for the id", named({ payTxnId: "acmeTxnId" })],
  [
    "with a brand's name for the id, and providerTxId always sent",
    named({ payTxnId: "acmeTxnId", providerTxId: { sent: "always" } }),
  ],
  [
    "with a dialect of other names",
    named(
      {
        payTxnId: "transaction_id",
        referenceId: "reference",
        callbackUrl: { sent: "absent" },
        merchantId: { sent: "absent" },
        providerTxId: { sent: "absent" },
        timestamp: "created_at",
        userId: { sent: "absent" },
      },
      { currency: "always", medium: "sometimes" },
    ),
  ],
  [
    "with a URL that is sent sometimes",
    named({ callbackUrl: { name: "callback_url", sent: "sometimes" }, merchantId: { sent: "always" } }),
  ],
];

export const canonicalOf = (body: Body): string =>
  Object.keys(body)
    .sort()
    .map((name) => `${name}=${body[name]}`)
    .join("&");

/** Fields that make money move: without one there is no event. The URL is one if it is always sent. */
const ESSENTIAL: readonly CallbackField[] = [
  "amount",
  "event",
  "payTxnId",
  "referenceId",
  "status",
  "timestamp",
];
/** The texts that customers and merchants may choose. An `&` can be in it. */
const FREE: ReadonlySet<string> = new Set([
  "callbackUrl",
  "message",
  "providerTxId",
  "referenceId",
  "userId",
]);

/** The oracle's knowledge of the fields under some names. It asks the names only, not the rules. */
interface Shape {
  /** The name on the wire of each field that may be sent, by what events call it. */
  readonly wire: ReadonlyMap<string, string>;
  readonly key: ReadonlyMap<string, string>;
  /** On the wire: sent always, sometimes, and made by the service. */
  readonly always: readonly string[];
  readonly sometimes: readonly string[];
  readonly own: ReadonlySet<string>;
  /** The fields that an event cannot lack, by their names in events. */
  readonly needed: readonly string[];
  readonly url: string | undefined;
  readonly urlRequired: boolean;
}

const shapes = new WeakMap<ServiceNames, Shape>();
function shapeOf({ names }: Rules): Shape {
  const known = shapes.get(names);
  if (known !== undefined) return known;
  const { fields, extra } = names.callback;
  const all = [
    ...CALLBACK_FIELDS.map((key) => ({ key: key as string, ...fields[key], own: !FREE.has(key) })),
    ...Object.entries(extra).map(([key, sent]) => ({ key, name: key, sent, own: true })),
  ].filter(({ sent }) => sent !== "absent");
  const urlRequired = fields.callbackUrl.sent === "always";
  const shape: Shape = {
    wire: new Map(all.map(({ key, name }) => [key, name])),
    key: new Map(all.map(({ key, name }) => [name, key])),
    always: all.filter(({ sent }) => sent === "always").map(({ name }) => name),
    sometimes: all.filter(({ sent }) => sent === "sometimes").map(({ name }) => name),
    own: new Set(all.filter(({ own }) => own).map(({ name }) => name)),
    needed: [
      ...ESSENTIAL,
      ...(urlRequired ? ["callbackUrl"] : []),
      ...Object.keys(extra).filter((name) => extra[name] === "always"),
    ],
    url: fields.callbackUrl.sent === "absent" ? undefined : fields.callbackUrl.name,
    urlRequired,
  };
  shapes.set(names, shape);
  return shape;
}

/** A body's fields by what events call them. */
const neutral = (body: Body, rules: Rules): Body => {
  const { key } = shapeOf(rules);
  return Object.fromEntries(
    Object.entries(body).flatMap(([name, text]) => (key.has(name) ? [[key.get(name) ?? "", text]] : [])),
  );
};

type Cut = readonly (readonly [name: string, text: string])[];

/** Every way to cut a string into fields, by brute force. `take` sees each, and `goesOn` what there is of it so far. */
function cut(canonical: string, goesOn: (fields: Cut) => boolean, take: (fields: Cut) => void): void {
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
 * what the service writes itself is in order. If the URL can be a pinned one, it is that.
 *
 * @param deviating the service may also write a field in a way that is not documented, such as another form of time.
 */
export function genuineOf(canonical: string, rules: Rules, deviating = false): readonly Body[] {
  const { own, always, url = "" } = shapeOf(rules);
  // A receiver may ask for a merchantId, but that does not make the service send one.
  const sent = { ...rules, isMerchantIdRequired: false };
  const genuine: Body[] = [];
  cut(
    canonical,
    (fields) => {
      const [name = "", text = ""] = fields.at(-1) ?? [];
      if (name === "" || name === "signature" || (own.has(name) && text.includes("&"))) return false;
      return !always.some((each) => each < name && !fields.some(([present]) => present === each));
    },
    (fields) => {
      const body = Object.fromEntries(fields);
      if (always.some((name) => body[name] === undefined)) return;
      if (deviating || findMalformedField(wellFormedPart(body, rules), sent) === null) genuine.push(body);
    },
  );
  const isPinned = (body: Body): boolean => rules.pinnedUrls.has(body[url] ?? "");
  const start = (body: Body): number => (body[url] === undefined ? -1 : startOf(body, url));
  const pinned = new Set(genuine.filter(isPinned).map(start));
  return genuine.filter((body) => isPinned(body) || !pinned.has(start(body)));
}

/** The fields that have to be well formed: those that every callback has. */
const wellFormedPart = (body: Body, rules: Rules): CallbackTexts => {
  const { callbackUrl, ...others } = neutral(body, rules);
  return textsOf(
    shapeOf(rules).urlRequired && callbackUrl !== undefined ? { ...others, callbackUrl } : others,
  );
};

/** The position of a field in the string. */
function startOf(body: Body, field: string): number {
  return canonicalOf(Object.fromEntries(Object.entries(body).filter(([name]) => name < field))).length;
}

/** The fields that handlers are given, or the reason why the event is not run. */
export type Given = Body | "ambiguous" | "malformed";
export type Believes = (body: Body, rules: Rules) => Given;

/** The fields that handlers may be given: those that every genuine body agrees on, tails apart. */
export function agreementOf(genuine: readonly Body[], rules: Rules, looksForNames = true): Given {
  const [first, ...others] = genuine;
  if (first === undefined) return "malformed";
  if (looksForNames && leavesANameBehind(genuine, first, rules)) return "ambiguous";
  const given: Record<string, string> = {};
  const { wire, needed: ofEvents } = shapeOf(rules);
  const withMerchant = rules.isMerchantIdRequired || rules.pinnedMerchantIds.size > 0;
  const needed = [...ofEvents, ...(withMerchant ? ["merchantId"] : [])];
  for (const [key, name] of wire) {
    const agreed =
      first[name] !== undefined &&
      others.every((other) =>
        MAY_BE_CUT.has(key)
          ? other[name] !== undefined && startOf(other, name) === startOf(first, name)
          : other[name] === first[name],
      );
    const isNoMerchant = key === "merchantId" && rules.isMerchantIdRequired && first[name] === "";
    if (agreed && !isNoMerchant) given[key] = first[name] ?? "";
    else if (needed.includes(key)) return "ambiguous";
  }
  // A URL that need not be there is no absolute one by the names' word.
  return findMalformedField(textsOf(given), { ...rules, isCallbackUrlRequired: false }) === null
    ? given
    : "malformed";
}

/** A known name stands twice in the string, the query of the callback URL apart: one was swallowed. */
function leavesANameBehind(genuine: readonly Body[], first: Body, rules: Rules): boolean {
  const { key, always, own, url = "", urlRequired } = shapeOf(rules);
  const parts = canonicalOf(first).split("&");
  const isExtra = (name: string): boolean => Object.hasOwn(rules.names.callback.extra, name);
  const partsBefore = (body: Body, name: string): number =>
    Object.keys(body)
      .filter((field) => field < name)
      .reduce((count, field) => count + (body[field] ?? "").split("&").length, 0);
  // The query ends where a field begins that is always there, and made by the service. No free text may be before it.
  const behind = [...key.keys()].sort().filter((name) => name > url);
  const ending = behind.find((name) => (always.includes(name) && !isExtra(name)) || !own.has(name));
  const hasQuery = urlRequired && ending !== undefined && own.has(ending);
  const start = hasQuery ? partsBefore(first, url) : parts.length;
  const end = hasQuery ? Math.min(...genuine.map((body) => partsBefore(body, ending))) : 0;
  const pinned = genuine.find((body) => rules.pinnedUrls.has(body[url] ?? ""));
  const pinnedEnd = pinned === undefined ? 0 : start + (pinned[url] ?? "").split("&").length;
  const names = parts.map((part, i) => {
    const name = part.includes("=") ? part.slice(0, part.indexOf("=")) : "";
    if (!key.has(name)) return "";
    if (i <= start || (i >= end && i >= pinnedEnd)) return name;
    if (i < pinnedEnd) return "";
    if (name === ending || name === url) return name;
    // Of a field between the URL and its end, one is the true one.
    return name > url && name < (ending ?? "") ? `in query: ${name}` : "";
  });
  const once = [...new Set(names.filter((name) => name.startsWith("in query: ")))].map((name) =>
    name.slice(10),
  );
  const all = [...names.filter((name) => name !== "" && !name.startsWith("in query: ")), ...once];
  return new Set(all).size < all.length;
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
 * Finds a fault in a way of believing bodies, on one canonical string; null when there is none. `exact` also asks that nothing is
 * kept back that all genuine bodies agree on.
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
      const name = findDifference(given, neutral(sent, rules));
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
    const money = [...ESSENTIAL, ...(shapeOf(rules).urlRequired ? ["callbackUrl"] : [])];
    const moving = Object.fromEntries(money.map((name) => [name, given[name] ?? ""]));
    for (const sent of genuine) {
      const name = findDifference(moving, neutral(sent, rules));
      if (name !== null) return `${name}: ${JSON.stringify(given)} is run, ${JSON.stringify(sent)} was sent`;
    }
  }
  return null;
}

/** As the receiver does it. */
export const believes: Believes = (body, rules) => {
  const judgement = callbackJudge(rules)(canonicalOf(body));
  if (judgement.kind !== "certain") return judgement.kind;
  return Object.fromEntries(judgement.texts);
};

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
/** Strings that are made by some rules: from fields by their names on the wire. */
class Attacker {
  readonly #shape: Shape;
  readonly #known: readonly string[];
  /** Undocumented fields, which the receiver was not told of. */
  readonly #others: readonly string[];

  constructor(rules: Rules) {
    this.#shape = shapeOf(rules);
    this.#known = [...this.#shape.key.keys()].sort();
    this.#others = EXTRA.filter((name) => !this.#shape.key.has(name));
  }

  #valueOf(name: string): fc.Arbitrary<string> {
    return VALUES[this.#shape.key.get(name) ?? name] ?? word;
  }

  #fieldsOf(names: readonly string[]): fc.Arbitrary<Record<string, string>> {
    return fc
      .tuple(...names.map((name) => this.#valueOf(name).map((value): [string, string] => [name, value])))
      .map((fields) => Object.fromEntries(fields));
  }

  #tailOf(names: readonly string[]): fc.Arbitrary<string> {
    return fc
      .tuple(...names.map((name) => this.#valueOf(name).map((value) => `&${name}=${value}`)))
      .map((parts) => parts.join(""));
  }

  /** `&name=value` some times, most often the sorted tail of a whole body, as an attacker would write it. */
  #tail(): fc.Arbitrary<string> {
    const known = this.#known;
    return fc
      .oneof(
        {
          weight: 4,
          arbitrary: fc
            .tuple(fc.nat(known.length - 1), fc.integer({ min: 1, max: 8 }))
            .map(([from, count]) => known.slice(from, from + count)),
        },
        {
          weight: 1,
          arbitrary: fc.subarray([...known, ...this.#others].sort(), { minLength: 1, maxLength: 3 }),
        },
      )
      .chain((names) => this.#tailOf(names));
  }

  /** Fields that are sent sometimes: each in about half of the bodies. */
  get #sometimes(): fc.Arbitrary<string[]> {
    return fc.subarray([...this.#shape.sometimes]);
  }

  /** A body as the service could send it, where a customer had a say in one or two values. */
  #random(): fc.Arbitrary<Body> {
    const { always, sometimes, own } = this.#shape;
    const tail = this.#tail();
    return fc
      .tuple(this.#sometimes, fc.oneof(fc.constant([]), fc.subarray([...this.#others], { maxLength: 2 })))
      .chain(([present, others]) => {
        const names = [...always, ...present, ...others];
        const hosts = names.filter((name) => !own.has(name));
        return fc
          .tuple(
            this.#fieldsOf(names),
            fc.constantFrom(...hosts),
            fc.oneof(tail, ...sometimes.map((name) => this.#tailOf([name]))),
            fc.option(fc.tuple(fc.constantFrom(...hosts), tail), { freq: 5 }),
          )
          .map(([fields, host, text, second]): Body => {
            const body = { ...fields, [host]: fields[host] + text };
            return second === null ? body : { ...body, [second[0]]: body[second[0]] + second[1] };
          });
      });
  }

  /** Each field in turn carries a complete sorted tail of the others, which a body at random seldom does. */
  #targeted(): fc.Arbitrary<Body> {
    const { always, own } = this.#shape;
    const hosts = [...this.#known.filter((name) => !own.has(name)), ...this.#others];
    return fc.tuple(fc.constantFrom(...hosts), this.#sometimes).chain(([host, present]) => {
      const following = this.#known.filter((name) => name > host);
      const tails = following.map((_, count) => following.slice(0, count + 1));
      const complete =
        tails.length === 0 ? this.#tail() : fc.constantFrom(...tails).chain((names) => this.#tailOf(names));
      return fc
        .tuple(this.#fieldsOf([...new Set([...always, ...present, host])]), complete)
        .map(([fields, text]): Body => ({ ...fields, [host]: fields[host] + text }));
    });
  }

  /** Canonical strings of bodies that the service could send, and that were meant to be read as others. */
  strings(): fc.Arbitrary<string> {
    return fc
      .oneof({ weight: 3, arbitrary: this.#random() }, { weight: 2, arbitrary: this.#targeted() })
      .map(canonicalOf)
      .filter((canonical) => canonical.split("&").length <= MAX_PARTS);
  }
}

/**
 * Canonical strings of bodies that the service could send, and that were meant to be read as others. A field that is sent
 * sometimes is in about half of them, also as the end of another value.
 */
export const hostileTo = (rules: Rules): fc.Arbitrary<string> => new Attacker(rules).strings();

/** The names of any deployment that is not refused: names, so order, how often each field is sent, and extra fields of both kinds. */
const anyNames: fc.Arbitrary<ServiceNames> = fc
  .record({
    words: fc.uniqueArray(fc.stringMatching(/^[A-Za-z][a-z]$/), {
      minLength: CALLBACK_FIELDS.length,
      maxLength: CALLBACK_FIELDS.length,
    }),
    renamed: fc.array(fc.boolean(), { minLength: CALLBACK_FIELDS.length, maxLength: CALLBACK_FIELDS.length }),
    sent: fc.array(fc.constantFrom("always", "sometimes", "absent", undefined), {
      minLength: CALLBACK_FIELDS.length,
      maxLength: CALLBACK_FIELDS.length,
    }),
    extra: fc.dictionary(fc.constantFrom(...EXTRA), fc.constantFrom<Sent>("always", "sometimes"), {
      maxKeys: 3,
    }),
  })
  .map(({ words, renamed, sent, extra }) => {
    const fields = CALLBACK_FIELDS.map((role, i) => {
      const name = renamed[i] === true ? words[i] : role;
      return [role, { name, ...(ESSENTIAL.includes(role) ? {} : { sent: sent[i] }) }] as const;
    });
    return namesOrNull({ callback: { fields: Object.fromEntries(fields), extra } });
  })
  .filter((names) => names !== null);

function namesOrNull(options: ServiceNamesOptions): ServiceNames | null {
  try {
    return serviceNames(options);
  } catch (error) {
    if (isPayhooksError(error) && error.code === "ERR_NAMES_INVALID") return null;
    throw error;
  }
}

/** Any names, and every other option. */
export const anyRules: fc.Arbitrary<Rules> = fc
  .record({
    names: anyNames,
    pinsUrls: fc.boolean(),
    isMerchantIdRequired: fc.boolean(),
    pinsMerchantId: fc.boolean(),
  })
  .map(({ names, pinsUrls, isMerchantIdRequired, pinsMerchantId }) => {
    const { callbackUrl, merchantId } = names.callback.fields;
    const hasMerchant = merchantId.sent !== "absent";
    return rulesWith({
      names,
      pinnedUrls: new Set(pinsUrls && callbackUrl.sent !== "absent" ? PINNED : []),
      isMerchantIdRequired: isMerchantIdRequired && hasMerchant,
      pinnedMerchantIds: new Set(pinsMerchantId && hasMerchant ? ["a"] : []),
    });
  });

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
    return agreement;
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
const withExtra = ({ names: _, wire: __, ...rules }: Rules, extra: Extra): Rules =>
  rulesWith({ ...rules, extra });
const allAlways = (rules: Rules): Rules =>
  withExtra(
    rules,
    Object.fromEntries(Object.keys(rules.names.callback.extra).map((name) => [name, "always" as const])),
  );
const isSpecified = (name: string): boolean => (CALLBACK_FIELDS as readonly string[]).includes(name);
const BRANDED_RULES = rulesOf("with a brand's name for the id");

/** Ways of believing bodies that are wrong; the oracle has to find a fault of each. */
export const MUTANTS: readonly (readonly [what: string, wrong: Believes, rules: Rules])[] = [
  ["that believes the body that arrived", (body, rules) => neutral(body, rules), DEFAULT_RULES],
  [
    "that believes it where it is well formed",
    among((sent, arrived) => JSON.stringify(sent) === JSON.stringify(arrived)),
    DEFAULT_RULES,
  ],
  [
    "that hands on what may be the end of another value",
    (body, rules) => {
      const given = believes(body, rules);
      return typeof given === "string" ? given : { ...neutral(body, rules), ...given };
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
    among((sent) => !Object.entries(sent).some(([name, text]) => !isSpecified(name) && text.includes("&"))),
    DEFAULT_RULES,
  ],
  [
    "that thinks of no undocumented fields",
    among((sent) => Object.keys(sent).every(isSpecified)),
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
      const given = believes(body, withExtra(rules, {}));
      return typeof given === "string" ? given : { ...given, currency: body.currency ?? "" };
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
      return typeof given === "string" ? given : { ...neutral(body, rules), ...given };
    },
    SOMETIMES_RULES,
  ],
  ["that thinks a resolver makes the service send merchantId", thinksAlways("merchantId"), RESOLVER_RULES],
  ["that thinks expect makes the service send merchantId", thinksAlways("merchantId"), PINNED_MERCHANT_RULES],
  [
    "that renames the id only: a plain body has one reading, as the specification's order says",
    (body, rules) => {
      const isPlain = Object.entries(body).every(
        ([name, text]) => shapeOf(rules).key.has(name) && !text.includes("&"),
      );
      const isWhole = isPlain && findMalformedField(textsOf(neutral(body, rules)), rules) === null;
      return isWhole ? neutral(body, rules) : believes(body, rules);
    },
    BRANDED_RULES,
  ],
  [
    "that calls always sent what the specification sends sometimes",
    thinksAlways("providerTxId"),
    BRANDED_RULES,
  ],
];
