/** Attempts: signed deliveries, changed in their JSON, their bytes, their encoding and their headers. */
import { gzipSync } from "node:zlib";
import { chunked, request } from "../../e2e/wire.ts";
import { quoted } from "../bodies.ts";
import type { Random } from "../random.ts";
import { breakFraming } from "./framing.ts";
import { type Signed, webhookSignature } from "./signed.ts";

export const PATHS = { payments: "/callbacks/pay", connect: "/webhooks/connect" } as const;

/** One request that is made of a signed delivery. */
export interface Attempt {
  readonly origin: Signed;
  readonly method: string;
  /** The flow whose path it is sent to. */
  readonly to: keyof typeof PATHS;
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Null where the bytes end before it does, or say two things of its length. */
  readonly body: Buffer | null;
  readonly bytes: Buffer;
  /** The server's own parser may answer it, or nobody: it is the last request of its connection. */
  readonly framingBroken: boolean;
  /** Nothing was changed that the service would not write so: it must be accepted. */
  readonly genuine: boolean;
  /** The mutations, in order. */
  readonly done: readonly string[];
}

/** A member of a JSON object, name and value as JSON text. */
interface Member {
  name: string;
  value: string;
}

interface Draft {
  readonly origin: Signed;
  readonly members: Member[];
  /** Of the other signed deliveries, for parts of them. */
  readonly others: readonly Signed[];
}

type Change<T> = readonly [name: string, apply: (draft: T, random: Random) => void];

const indexOf = (draft: Draft, random: Random): number => random.below(Math.max(1, draft.members.length));
const VALUES = [
  '"SUCCESS"',
  '"FAILED"',
  '"99999.000000"',
  '"tx-victim"',
  '"VICTIM"',
  '""',
  "null",
  "true",
  "0",
  "1e400",
  "-0",
  "12345678901234567890",
  "[]",
  "{}",
  '["SUCCESS"]',
  '{"toString":null}',
  '"\\ud800"',
  '"\\u0000"',
  '"2026-01-15T11:59:59Z"',
];
const NAMES = [
  "status",
  "amount",
  "payTxnId",
  "event",
  "userId",
  "merchantId",
  "__proto__",
  "constructor",
  "toString",
  "length",
  "signature",
  "zone",
  "a&b",
  "Status",
  "statu\u0455",
  "",
  "data",
  "idempotency_key",
];

const STRUCTURE: readonly Change<Draft>[] = [
  ["another value", (d, r) => set(d, indexOf(d, r), r.pick(VALUES))],
  ["a value of another delivery", (d, r) => set(d, indexOf(d, r), r.pick(membersOf(r.pick(d.others))).value)],
  ["a member more", (d, r) => insert(d, r, { name: quoted(r.pick(NAMES), r), value: r.pick(VALUES) })],
  ["a null more", (d, r) => insert(d, r, { name: quoted(r.pick(NAMES), r), value: "null" })],
  ["a member less", (d, r) => void d.members.splice(indexOf(d, r), 1)],
  [
    "a name twice",
    (d, r) => {
      const member = d.members[indexOf(d, r)];
      if (member !== undefined)
        insert(d, r, { ...member, value: r.oneIn(2) ? member.value : r.pick(VALUES) });
    },
  ],
  ["another name", (d, r) => rename(d, indexOf(d, r), quoted(r.pick(NAMES), r))],
  ["a value in an array", (d, r) => change(d, indexOf(d, r), (value) => `[${value}]`)],
  ["deep nesting", (d, r) => set(d, indexOf(d, r), nested(r.pick([15, 16, 17, 500, 10_000])))],
  ["many members", (d, r) => void d.members.push(...wide(r.pick([100, 1_000])))],
  ["text for a number", (d, r) => change(d, indexOf(d, r), (value) => value.replace(/^"([\d.]+)"$/, "$1"))],
  ["two members as one", (d, r) => join(d, r)],
  ["one member as two", (d, r) => split(d, r)],
];

/** Changes after which a body says and signs the same. */
const RESPELLING: readonly Change<Draft>[] = [
  ["another order", (d, r) => void d.members.splice(0, d.members.length, ...r.shuffled(d.members))],
  [
    "another spelling",
    (d, r) => change(d, indexOf(d, r), (value) => (isText(value) ? quoted(textOf(value), r) : value)),
  ],
  [
    "another spelling of a name",
    (d, r) => rename(d, indexOf(d, r), quoted(textOf(d.members[0]?.name ?? '""'), r), 0),
  ],
];

function set(draft: Draft, at: number, value: string): void {
  change(draft, at, () => value);
}

function change({ members }: Draft, at: number, to: (value: string) => string): void {
  const member = members[at];
  if (member !== undefined) members[at] = { ...member, value: to(member.value) };
}

function rename({ members }: Draft, at: number, name: string, fixed = at): void {
  const member = members[fixed];
  if (member !== undefined) members[fixed] = { ...member, name };
}

function insert({ members }: Draft, random: Random, member: Member): void {
  members.splice(random.below(members.length + 1), 0, member);
}

/** The forgery of the canonical string: a value swallows the member that follows it in sorted order. */
function join({ members }: Draft, random: Random): void {
  const sorted = members
    .filter(({ name, value }) => isText(name) && textOf(name) !== "signature" && isText(value))
    .sort((a, b) => (textOf(a.name) < textOf(b.name) ? -1 : 1));
  const at = random.below(Math.max(1, sorted.length));
  const [one, next] = [sorted[at], sorted[at + 1]];
  if (one === undefined || next === undefined) return;
  const value = JSON.stringify(`${textOf(one.value)}&${textOf(next.name)}=${textOf(next.value)}`);
  members.splice(members.indexOf(next), 1);
  members.splice(members.indexOf(one), 1, { ...one, value });
}

/** The same the other way: what stands behind an `&` in a value becomes a member. */
function split({ members }: Draft, random: Random): void {
  const hosts = members.filter(({ value }) => isText(value) && /&[^&=]+=/.test(textOf(value)));
  const host = hosts[random.below(Math.max(1, hosts.length))];
  if (host === undefined) return;
  const [kept = "", ...tail] = textOf(host.value).split("&");
  const cut = tail.map((part) => part.split("="));
  const from = random.below(cut.length);
  const rest = [kept, ...cut.slice(0, from).map((part) => part.join("="))].join("&");
  members.splice(members.indexOf(host), 1, { ...host, value: JSON.stringify(rest) });
  for (const [name = "", ...value] of cut.slice(from)) {
    const known = members.findIndex((one) => textOf(one.name) === name);
    const member = { name: JSON.stringify(name), value: JSON.stringify(value.join("=")) };
    if (known < 0) members.push(member);
    else {
      // A field in front or behind swallows the value that stood there before, as an attacker would have it.
      const before = members[known];
      members[known] = member;
      const user = members.find((one) => textOf(one.name) === "userId");
      if (user !== undefined && before !== undefined && isText(before.value) && isText(user.value)) {
        user.value = JSON.stringify(`${textOf(user.value)}&${name}=${textOf(before.value)}`);
      }
    }
  }
}

const isText = (json: string): boolean => json.startsWith('"');

function textOf(json: string): string {
  return isText(json) ? (JSON.parse(json) as string) : "";
}

function nested(depth: number): string {
  return "[".repeat(depth) + "]".repeat(depth);
}

function wide(count: number): Member[] {
  return Array.from({ length: count }, (_, n) => ({ name: `"n${n}"`, value: `${n}` }));
}

function membersOf(signed: Signed): Member[] {
  const object =
    signed.flow === "payments" ? { ...signed.fields, signature: signed.signature } : signed.event;
  return Object.entries(object).map(([name, value]) => ({
    name: JSON.stringify(name),
    value: JSON.stringify(value),
  }));
}

const PIECES = ['"', "\\", "{", "}", "[", "]", ",", ":", "&", "=", "\0", "\uFEFF", "\u0455", "1e9", "null"];

const BYTES: readonly (readonly [string, (body: Buffer, random: Random) => Buffer])[] = [
  ["a bit flipped", (body, r) => withByte(body, r, (byte) => byte ^ (1 << r.below(8)))],
  ["a byte", (body, r) => withByte(body, r, () => r.pick([0x00, 0x80, 0xc0, 0xed, 0xfe, 0xff, 0x22, 0x5c]))],
  ["bytes less", (body, r) => spliced(body, r, 1 + r.below(20), Buffer.alloc(0))],
  ["bytes more", (body, r) => spliced(body, r, 0, Buffer.from(r.pick(PIECES)))],
  ["cut off", (body, r) => body.subarray(0, r.below(body.byteLength + 1))],
  ["twice", (body) => Buffer.concat([body, body])],
  ["a byte order mark", (body) => Buffer.concat([Buffer.from("\uFEFF"), body])],
  ["in UTF-16", (body) => Buffer.from(body.toString("utf8"), "utf16le")],
  ["in Latin-1", (body) => Buffer.from(body.toString("utf8"), "latin1")],
  ["compressed", (body) => gzipSync(body)],
  ["space after it", (body, r) => Buffer.concat([body, Buffer.alloc(r.pick([1, 100, 70_000]), " ")])],
  ["in an array", (body) => Buffer.concat([Buffer.from("["), body, Buffer.from("]")])],
  ["as a text", (body) => Buffer.from(JSON.stringify(body.toString("utf8")))],
  ["nothing", () => Buffer.alloc(0)],
];

function withByte(body: Buffer, random: Random, to: (byte: number) => number): Buffer {
  const copy = Buffer.from(body);
  const at = random.below(Math.max(1, copy.byteLength));
  if (at < copy.byteLength) copy[at] = to(copy[at] ?? 0);
  return copy;
}

function spliced(body: Buffer, random: Random, remove: number, add: Buffer): Buffer {
  const at = random.below(body.byteLength + 1);
  return Buffer.concat([body.subarray(0, at), add, body.subarray(at + remove)]);
}

const SIGNATURES: readonly ((signature: string) => string)[] = [
  () => "",
  (s) => s.toUpperCase(),
  (s) => s.slice(0, -1),
  (s) => `${s} `,
  (s) => `${s}\n`,
  (s) => s.replace(/[+/]/g, "-"),
  (s) => s.replace(/=+$/, ""),
  (s) => s.replace("sha256=", "sha1="),
  (s) => s.replace("sha256=", ""),
  (s) => `${s},${s}`,
  () => "A".repeat(342).concat("=="),
  () => `sha256=${"0".repeat(64)}`,
  (s) => s.replace(/.(?=={0,2}$)/, (last) => (last === "A" ? "B" : "A")),
];

const HEADERS: readonly (readonly [string, string])[] = [
  ["Content-Type", "text/plain"],
  ["Content-Type", "application/json"],
  ["Content-Type", ""],
  ["Content-Type", ";"],
  ["Content-Type", "application/json; charset=utf-16"],
  ["Content-Type", "application/vnd.pay+json"],
  ["Content-Encoding", "gzip"],
  ["Content-Encoding", "identity"],
  ["Content-Encoding", "br, gzip"],
  ["X-Connect-Signature", `sha256=${"f".repeat(64)}`],
  ["X-Connect-Signature", ""],
  ["X-HTTP-Method-Override", "PUT"],
  ["X-Forwarded-For", "127.0.0.1, ::1, '"],
  ["X-Forwarded-Host", "evil.example"],
  ["X-Original-URL", "/webhooks/connect"],
  ["Cookie", "a=b; ".repeat(500)],
  ["__proto__", "polluted"],
  ["constructor", "x"],
  ["Accept-Encoding", "gzip;q=NaN"],
  ["X-Bytes", "caf\u00e9\u00ff"],
  ["Range", "bytes=0-0"],
  ["If-None-Match", "*"],
];

const METHODS = ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"];

/** The attempt of a seed: always the same one. */
export function attempt(signed: readonly Signed[], random: Random): Attempt {
  const origin = random.pick(signed);
  const done: string[] = [];
  let genuine = origin.flow === "connect" || origin.ordinary;
  const draft: Draft = { origin, members: membersOf(origin), others: signed };
  const original = textBody(draft.members, random);
  while (random.oneIn(2)) apply(RESPELLING, draft);
  if (random.oneIn(2)) {
    genuine = false;
    do apply(STRUCTURE, draft);
    while (random.oneIn(2));
  }
  if (origin.flow === "payments" && random.oneIn(8)) {
    genuine = false;
    const signature = draft.members.findIndex(({ name }) => textOf(name) === "signature");
    const spoilt = random.oneIn(4)
      ? random.pick(signed.flatMap((one) => (one.flow === "payments" ? [one.signature] : [])))
      : random.pick(SIGNATURES)(origin.signature);
    set(draft, signature, JSON.stringify(spoilt));
    done.push("another signature");
  }
  let body = textBody(draft.members, random);
  if (random.oneIn(3)) {
    genuine = false;
    do {
      const [name, change] = random.pick(BYTES);
      body = change(body, random);
      done.push(name);
    } while (random.oneIn(3));
  }
  let method = "POST";
  const headers: [string, string][] = [["Content-Type", "application/json"]];
  if (origin.flow === "connect") {
    // Signed as it now is, which the service would not do with what was changed, or as it was.
    const resigned = genuine || random.oneIn(2);
    done.push(resigned ? "signed anew" : "signed before");
    const signature = webhookSignature(resigned ? body : original);
    const spoilt = random.oneIn(8);
    if (spoilt) {
      genuine = false;
      done.push("another signature");
    }
    headers.push([
      "X-Connect-Signature",
      headerText(spoilt ? random.pick(SIGNATURES)(signature) : signature),
    ]);
  }
  if (random.oneIn(6)) {
    genuine = false;
    const [name, value] = random.pick(HEADERS);
    const known = headers.findIndex(([other]) => other === name);
    if (known < 0 || random.oneIn(3)) headers.push([name, value]);
    else headers[known] = [name, value];
    done.push(`header ${name}`);
  }
  if (random.oneIn(30)) {
    genuine = false;
    method = random.pick(METHODS);
    done.push(method);
  }
  const to = random.oneIn(40) ? (origin.flow === "payments" ? "connect" : "payments") : origin.flow;
  if (to !== origin.flow) {
    genuine = false;
    done.push("to the other flow");
  }
  if (method === "POST" && random.oneIn(12)) {
    const [name, broken] = breakFraming(PATHS[to], headers, body, random);
    done.push(name);
    return { origin, method, to, headers, ...broken, framingBroken: true, genuine: false, done };
  }
  return { origin, method, to, headers, body, bytes: bytesOf(), framingBroken: false, genuine, done };

  function apply(changes: readonly Change<Draft>[], to: Draft): void {
    const [name, change] = random.pick(changes);
    change(to, random);
    done.push(name);
  }

  function bytesOf(): Buffer {
    if (!random.oneIn(5)) return request(method, PATHS[to], headers, body);
    const cut = random.below(body.byteLength + 1);
    const parts = [body.subarray(0, cut), body.subarray(cut)].filter(({ byteLength }) => byteLength > 0);
    return request(method, PATHS[to], [...headers, ["Transfer-Encoding", "chunked"]], chunked(parts));
  }
}

/** A line break in a header would be another request, and the server's own parser the one that is tested. */
function headerText(value: string): string {
  return value.replaceAll("\n", " ");
}

function textBody(members: readonly Member[], random: Random): Buffer {
  const space = random.oneIn(4) ? random.pick([" ", "\n", "\r\n\t"]) : "";
  const text = members.map(({ name, value }) => `${space}${name}${space}:${value}${space}`).join(",");
  return Buffer.from(`{${text}}`);
}
