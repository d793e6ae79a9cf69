/** Requests whose framing is broken: their head, their length or their chunks say something else than their bytes. */
import { chunked, type HeaderLines, request } from "../../e2e/wire.ts";
import type { Random } from "../random.ts";

/** Bytes to send, and the body that a server may find in them; null where none is whole. */
interface Broken {
  readonly bytes: Buffer;
  readonly body: Buffer | null;
}

interface Parts {
  readonly path: string;
  readonly headers: HeaderLines;
  readonly body: Buffer;
}

const NO_LENGTHS = ["-1", "1e3", "0x10", "+5", "5,5", "5 5", "", "9".repeat(30), "NaN", "１"];
const NO_SIZES = ["zz", "-1", "0x5", "", " ", "f".repeat(17), "5 5", "+5"];
const CODINGS = ["gzip", "xchunked", "chunked, gzip", "chunkedx", "identity, deflate"];
/** Lines of a head that RFC 9112 forbids, or wants read in one way only. */
const LINES = [
  "X-Space : a",
  "X Space: a",
  "X-Null: a\0b",
  "X-Fold: a\r\n b",
  "no colon",
  ": no name",
  "X-Feed: a\nX-b: c",
];
const FRONTS = [
  "\r\n",
  "\0",
  "\x16\x03\x01\x02\x00",
  "GET / HTTP/9.9\r\n\r\n",
  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  "{}",
];

const FRAMINGS: readonly (readonly [string, (parts: Parts, random: Random) => Broken])[] = [
  ["a length too long", (p, r) => withLengths(p, [String(p.body.byteLength + 1 + r.below(50))], null)],
  [
    "a length too short",
    (p, r) => {
      const length = r.below(Math.max(1, p.body.byteLength));
      return withLengths(p, [String(length)], p.body.subarray(0, length));
    },
  ],
  ["two lengths", (p, r) => withLengths(p, [String(p.body.byteLength), String(r.below(50))], null)],
  ["a length that is none", (p, r) => withLengths(p, [r.pick(NO_LENGTHS)], null)],
  [
    "a length and chunks",
    (p) => asChunks(p, chunked([p.body]), [["Content-Length", String(p.body.byteLength)]], null),
  ],
  ["another coding than chunks", (p, r) => ({ bytes: coded(p, r.pick(CODINGS), p.body), body: null })],
  ["a chunk size that is none", (p, r) => asChunks(p, chunkOf(r.pick(NO_SIZES), p.body))],
  ["a chunk size too small", (p, r) => asChunks(p, chunkOf(sizeOf(p.body, -1 - r.below(5)), p.body))],
  ["a chunk size too great", (p, r) => asChunks(p, chunkOf(sizeOf(p.body, 1 + r.below(5)), p.body))],
  ["a long extension of a chunk", (p, r) => extended(p, r.pick([10, 20_000]))],
  [
    "no last chunk",
    (p, r) => {
      const whole = chunked([p.body]);
      return asChunks(p, whole.subarray(0, whole.byteLength - 1 - r.below(6)));
    },
  ],
  [
    "an early end",
    (p, r) => {
      const whole = request("POST", p.path, p.headers, p.body);
      return { bytes: whole.subarray(0, r.below(whole.byteLength)), body: null };
    },
  ],
  ["a line that a head may not have", (p, r) => withLine(p, r.pick(LINES))],
  ["a long head", (p, r) => withLine(p, `X-Long: ${"x".repeat(r.pick([1_000, 20_000, 200_000]))}`)],
  [
    "many lines",
    (p, r) => withLine(p, Array.from({ length: r.pick([50, 3_000]) }, (_, n) => `X-${n}: y`).join("\r\n")),
  ],
  [
    "no host",
    (p) => {
      const { bytes } = whole(p);
      return {
        bytes: Buffer.from(bytes.toString("latin1").replace(/Host: .*\r\n/, ""), "latin1"),
        body: null,
      };
    },
  ],
  [
    "bytes in front",
    (p, r) => ({
      ...whole(p),
      bytes: Buffer.concat([Buffer.from(r.pick(FRONTS), "latin1"), whole(p).bytes]),
    }),
  ],
  [
    "a request behind it",
    (p) => ({ ...whole(p), bytes: Buffer.concat([whole(p).bytes, request("GET", p.path, [])]) }),
  ],
];

/** A request that is broken in one of these ways, and the way's name. */
export function breakFraming(
  path: string,
  headers: HeaderLines,
  body: Buffer,
  random: Random,
): readonly [name: string, Broken] {
  const [name, make] = random.pick(FRAMINGS);
  return [name, make({ path, headers, body }, random)];
}

function whole({ path, headers, body }: Parts): Broken {
  return { bytes: request("POST", path, headers, body), body };
}

function withLengths(
  { path, headers, body }: Parts,
  lengths: readonly string[],
  read: Buffer | null,
): Broken {
  const lines = lengths.map((length) => ["Content-Length", length] as const);
  return { bytes: request("POST", path, [...headers, ...lines], body), body: read };
}

/** A line is put into the head as it is. If the parser lets it pass, the body is the one that was sent. */
function withLine(parts: Parts, line: string): Broken {
  const { bytes, body } = whole(parts);
  const end = bytes.indexOf("\r\n") + 2;
  return {
    bytes: Buffer.concat([bytes.subarray(0, end), Buffer.from(`${line}\r\n`, "latin1"), bytes.subarray(end)]),
    body,
  };
}

function coded({ path, headers }: Parts, coding: string, payload: Buffer): Buffer {
  return request("POST", path, [...headers, ["Transfer-Encoding", coding]], payload);
}

function asChunks(parts: Parts, payload: Buffer, more: HeaderLines = [], body: Buffer | null = null): Broken {
  return { bytes: coded({ ...parts, headers: [...parts.headers, ...more] }, "chunked", payload), body };
}

function chunkOf(size: string, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${size}\r\n`), body, Buffer.from("\r\n0\r\n\r\n")]);
}

function sizeOf({ byteLength }: Buffer, off: number): string {
  return Math.max(0, byteLength + off).toString(16);
}

/** RFC 9112 allows extensions; how long one may be is the parser's to say. */
function extended(parts: Parts, length: number): Broken {
  const size = `${parts.body.byteLength.toString(16)};${"x".repeat(length)}`;
  return asChunks(parts, chunkOf(size, parts.body), [], parts.body.byteLength === 0 ? null : parts.body);
}
