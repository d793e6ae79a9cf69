/**
 * Reads the signature of a request and the text that it covers. The text that is signed is a template of header fields and the
 * body. Two requests must never give the same text with other parts, so a header field must not contain what separates it from
 * the next part.
 */

import { checkChoice, checkNames } from "../protocol/check-names.ts";
import { invalidOptionError } from "../protocol/errors.ts";
import { describeValue } from "../protocol/foreign-value.ts";
import { parseTimestamp } from "../protocol/timestamp.ts";
import type { RequestClaim } from "./keyed-verifier.ts";
import { type InauthenticVerdict, refuse, type SourceRequest } from "./verifier.ts";

/**
 * The signed text: `{body}`, `{timestamp}`, `{url}` and `{any-header-name}`. The signature covers these; it does not
 * cover other headers.
 */
export type SignedTemplate = "{body}" | (string & {});

/** The place of a signature, and the text that it covers. */
export interface SignedOptions {
  /** The header field with the signature. */
  readonly header: string;
  /** How the signature is written. Default `hex`. */
  readonly encoding?: "hex" | "base64" | "base64url" | undefined;
  /**
   * `plain` (default): one signature after a prefix. `list`: several, such as `v1,… v1,…`. `pairs`: such as `t=…,v1=…`, of which
   * `signature` may come several times and `timestamp` once.
   */
  readonly format?: SignatureFormat | undefined;
  /** The text that is signed. Default `{body}`. */
  readonly over?: SignedTemplate | undefined;
  /** For `{url}`: the address as the sender knows it. It is never taken from the request. */
  readonly url?: string | undefined;
  /**
   * The signed time: where it is, unless `format` says it, its unit (default `s`), and how far from now it may be
   * (default 5 minutes).
   */
  readonly timestamp?:
    | {
        readonly header?: string | undefined;
        readonly unit?: "s" | "ms" | "iso" | undefined;
        readonly toleranceMs?: number | undefined;
      }
    | undefined;
}

/** The form of a header field with one signature or several. */
export type SignatureFormat =
  | { readonly kind: "plain"; readonly prefix?: string | undefined }
  | { readonly kind: "list"; readonly separator: string; readonly prefix: string }
  | {
      readonly kind: "pairs";
      readonly separator: string;
      readonly signature: string;
      readonly timestamp?: string | undefined;
    };

/** The signatures of one request, and the text that they are for. */
export interface SignedText extends RequestClaim {
  readonly signatures: readonly Buffer[];
  readonly parts: readonly (string | Uint8Array)[];
}

/** The names of {@link SignedOptions}, to which a verifier adds its own. */
export const SIGNED_OPTION_NAMES = {
  header: true,
  encoding: true,
  format: true,
  over: true,
  url: true,
  timestamp: true,
} as const;

const HEADER_NAME_PATTERN = /^[a-z0-9][a-z0-9-]*$/;
const DEFAULT_TOLERANCE_MS = 5 * 60 * 1000;
/** A header field with signatures is no longer than this, and has no more of them. */
const MAX_SIGNATURE_HEADER_CHARS = 8_192;
const MAX_SIGNATURES = 16;

/** The texts of each format besides its kind: true for one that has to be given. */
const FORMAT_TEXTS: Readonly<Record<SignatureFormat["kind"], Readonly<Record<string, boolean>>>> = {
  plain: { prefix: false },
  list: { separator: true, prefix: true },
  pairs: { separator: true, signature: true, timestamp: false },
};

type Part = { readonly text: string } | { readonly field: string };

/** Reads `{id}.{timestamp}.{body}`. */
function partsOf(over: string): readonly Part[] {
  return over
    .split(/(\{[^{}]*\})/)
    .filter((part) => part !== "")
    .map((part) => (part.startsWith("{") ? { field: part.slice(1, -1).toLowerCase() } : { text: part }));
}

/** Checks the options, and returns how a request is read. `owner` names the verifier in messages. */
export function signedTextReader(
  owner: string,
  { header, encoding = "hex", format = { kind: "plain" }, over = "{body}", url, timestamp }: SignedOptions,
): (request: SourceRequest, now: number) => SignedText | InauthenticVerdict {
  const signatureHeader = toHeaderName(owner, "header", header);
  checkChoice(`encoding of ${owner}`, encoding, { hex: true, base64: true, base64url: true });
  checkFormat(`format of ${owner}`, format);
  checkNames(`timestamp of ${owner}`, timestamp ?? {}, { header: true, unit: true, toleranceMs: true });
  checkChoice(`timestamp.unit of ${owner}`, timestamp?.unit, { s: true, ms: true, iso: true });
  const parts = partsOf(over);
  const timestampName = format.kind === "pairs" ? format.timestamp : undefined;
  const timeHeader =
    timestamp?.header === undefined ? undefined : toHeaderName(owner, "timestamp.header", timestamp.header);
  const { unit = "s", toleranceMs = DEFAULT_TOLERANCE_MS } = timestamp ?? {};
  const hasTime = timestampName !== undefined || timeHeader !== undefined;
  checkTemplate();

  function checkTemplate(): void {
    const fields = parts.flatMap((part) => ("field" in part ? [part.field] : []));
    if (fields.filter((field) => field === "body").length !== 1) {
      throw invalidOptionError(
        `The template of ${owner} does not have {body} once.`,
        "A signature without the body covers nothing.",
      );
    }
    if (fields.includes("url") && (url === undefined || url === "")) {
      throw invalidOptionError(
        `${owner} signs {url} and has no url.`,
        "Give url: the address to which the sender sends.",
      );
    }
    if (fields.includes("timestamp") && !hasTime) {
      throw invalidOptionError(
        `${owner} signs {timestamp} and does not say where it is.`,
        "Give timestamp: { header }, or format.timestamp.",
      );
    }
    const coversTime =
      fields.includes("timestamp") || (timeHeader !== undefined && fields.includes(timeHeader));
    if ((hasTime || timestamp !== undefined) && !coversTime) {
      throw invalidOptionError(
        `${owner} has a timestamp, but its template does not cover it.`,
        "An unsigned time proves nothing. Put {timestamp} into `over`, or remove `timestamp`.",
      );
    }
    if (!Number.isFinite(toleranceMs) || toleranceMs <= 0) {
      throw invalidOptionError(
        `timestamp.toleranceMs of ${owner} is ${describeValue(toleranceMs)}.`,
        "Give milliseconds above 0.",
      );
    }
    parts.forEach((part, index) => {
      if (!("field" in part)) return;
      if (!["body", "url", "timestamp"].includes(part.field)) toHeaderName(owner, "over", part.field);
      const nextPart = parts[index + 1];
      const isFixed = part.field === "url" || part.field === "timestamp";
      if (nextPart !== undefined && "field" in nextPart && !isFixed) {
        throw invalidOptionError(
          `In the template of ${owner}, nothing separates {${part.field}} from {${nextPart.field}}.`,
          "Then two requests could have the same signature. Use a function of your own, which checks their lengths.",
        );
      }
    });
  }

  return ({ headers, body }, now) => {
    const headerValue = headers.get(signatureHeader) ?? "";
    if (headerValue === "") return refuse("ERR_SIGNATURE_MISSING", `there is no header ${signatureHeader}`);
    if (headerValue.length > MAX_SIGNATURE_HEADER_CHARS)
      return refuseMalformed(`${signatureHeader} is too long`);
    const signatureField = readHeader(headerValue, format);
    if (typeof signatureField === "string") return refuseMalformed(`${signatureHeader} ${signatureField}`);
    const signatures: Buffer[] = [];
    for (const text of signatureField.signatures) {
      const bytes = decode(text, encoding);
      if (bytes === null) return refuseMalformed(`${signatureHeader} is not ${encoding}`);
      signatures.push(bytes);
    }
    const signedHeaders: Record<string, string> = {};
    let time: string | null = signatureField.timestamp;
    if (time === null && timeHeader !== undefined) {
      time = headers.get(timeHeader) ?? "";
      if (time === "") return refuse("ERR_SIGNATURE_MISSING", `there is no header ${timeHeader}`);
      signedHeaders[timeHeader] = time;
    }
    const signedAt = time === null ? null : timeOf(time, unit);
    if (time !== null && signedAt === null) return refuseMalformed(`the signed time is not in ${unit}`);
    const values: (string | Uint8Array)[] = [];
    for (const [index, part] of parts.entries()) {
      if ("text" in part) values.push(part.text);
      else if (part.field === "body") values.push(body);
      else if (part.field === "url") values.push(url ?? "");
      else if (part.field === "timestamp") {
        const nextPart = parts[index + 1];
        const firstByte = body[0] ?? 0;
        const isDigit = firstByte >= 0x30 && firstByte <= 0x39;
        // Otherwise a digit could be moved from the body to the time.
        if (nextPart !== undefined && "field" in nextPart && isDigit)
          return refuseMalformed("the body continues the signed time");
        values.push(time ?? "");
      } else {
        const value = headers.get(part.field);
        if (value === null || value === "")
          return refuse("ERR_SIGNATURE_MISSING", `there is no header ${part.field}`);
        if (part.field !== timeHeader && isAmbiguous(value, parts[index - 1], parts[index + 1])) {
          return refuseMalformed(`${part.field} contains what separates it from the rest`);
        }
        signedHeaders[part.field] = value;
        values.push(value);
      }
    }
    const outsideWindow =
      signedAt === null
        ? null
        : signedAt < now - toleranceMs
          ? "ERR_TIMESTAMP_EXPIRED"
          : signedAt > now + toleranceMs
            ? "ERR_TIMESTAMP_FUTURE"
            : null;
    return {
      ok: true,
      signatures,
      parts: values,
      signedAt,
      outsideWindow,
      signedHeaders,
      content: null,
      signature: headerValue,
    };
  };
}

/**
 * True if the text before or after a value could be found elsewhere: in the value, or partly in it and partly in
 * itself, as the `::` at the end of `a:::`.
 */
function isAmbiguous(value: string, before: Part | undefined, after: Part | undefined): boolean {
  const isBefore = before !== undefined && "text" in before;
  if (isBefore && (before.text + value).lastIndexOf(before.text) !== 0) return true;
  return after !== undefined && "text" in after && (value + after.text).indexOf(after.text) !== value.length;
}

function refuseMalformed(why: string): InauthenticVerdict {
  return refuse("ERR_SIGNATURE_MALFORMED", why);
}

function checkFormat(option: string, format: SignatureFormat): void {
  const { kind } = Object(format) as SignatureFormat;
  if (kind === undefined) throw invalidOptionError(`${option} has no kind.`, "It can be plain, list, pairs.");
  checkChoice(`The kind of ${option}`, kind, { plain: true, list: true, pairs: true });
  const texts = FORMAT_TEXTS[kind];
  checkNames<object>(option, format, { kind: true, ...texts });
  for (const [name, isNeeded] of Object.entries(texts)) {
    const text: unknown = (format as unknown as Readonly<Record<string, unknown>>)[name];
    if (typeof text === "string" || (text === undefined && !isNeeded)) continue;
    throw invalidOptionError(
      `${name} of ${option} is not text.`,
      `Give the ${name} as the sender writes it.`,
    );
  }
}

/** A name of a header field, in lower case. Throws `ERR_OPTION_INVALID` for any other value. */
export function toHeaderName(owner: string, option: string, name: unknown): string {
  const lowercaseName = typeof name === "string" ? name.toLowerCase() : "";
  if (HEADER_NAME_PATTERN.test(lowercaseName)) return lowercaseName;
  throw invalidOptionError(
    `${option} of ${owner} is ${describeValue(name)}.`,
    "Give the name of a header field, such as x-signature.",
  );
}

/** The signatures of a header field and the time in it, or the fault of the field. */
function readHeader(
  headerValue: string,
  format: SignatureFormat,
): { readonly signatures: readonly string[]; readonly timestamp: string | null } | string {
  if (format.kind === "plain") {
    const { prefix = "" } = format;
    if (!headerValue.startsWith(prefix)) return "does not begin with its prefix";
    return { signatures: [headerValue.slice(prefix.length)], timestamp: null };
  }
  const entries = headerValue.split(format.separator).map((entry) => entry.trim());
  if (format.kind === "list") {
    const signatures = entries
      .filter((entry) => entry.startsWith(format.prefix))
      .map((entry) => entry.slice(format.prefix.length));
    return limitSignatures(signatures, null);
  }
  const valuesOf = (name: string): readonly string[] =>
    entries.filter((entry) => entry.startsWith(`${name}=`)).map((entry) => entry.slice(name.length + 1));
  if (format.timestamp === undefined) return limitSignatures(valuesOf(format.signature), null);
  const times = valuesOf(format.timestamp);
  if (times.length !== 1) return `has ${times.length} times`;
  return limitSignatures(valuesOf(format.signature), times[0] ?? null);
}

function limitSignatures(
  signatures: readonly string[],
  timestamp: string | null,
): { readonly signatures: readonly string[]; readonly timestamp: string | null } | string {
  if (signatures.length === 0) return "has no signature of the known kind";
  return signatures.length > MAX_SIGNATURES ? "has too many signatures" : { signatures, timestamp };
}

/** The bytes, or null for a text that is not their encoding. Hex digits may be of either case. */
function decode(text: string, encoding: "hex" | "base64" | "base64url"): Buffer | null {
  const bytes = Buffer.from(text, encoding);
  const normalized = encoding === "hex" ? text.toLowerCase() : text.replace(/=+$/, "");
  return bytes.length > 0 && bytes.toString(encoding).replace(/=+$/, "") === normalized ? bytes : null;
}

function timeOf(text: string, unit: "s" | "ms" | "iso"): number | null {
  if (unit === "iso") return parseTimestamp(text);
  if (!/^\d{1,15}$/.test(text)) return null;
  return unit === "s" ? Number(text) * 1000 : Number(text);
}
