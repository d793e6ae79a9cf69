import type { Cause } from "./explanation.ts";

/** The digest in a header, and the fault of the header's form. */
export interface ReadHeader {
  /** In lowercase hex. Null if there is no digest to be found. */
  readonly digest: string | null;
  readonly flaw: { readonly summary: string; readonly cause: Cause } | null;
}

const HEADER = /^sha256=([0-9a-f]{64})$/;

/** Reads a value of `X-Connect-Signature`. */
export function readHeader(header: string): ReadHeader {
  const exact = HEADER.exec(header)?.[1];
  if (exact !== undefined) return { digest: exact, flaw: null };
  const flawed = (digest: string | null, what: string, fix: string): ReadHeader => ({
    digest,
    flaw: {
      summary: "The header is not sha256= and 64 lowercase hex digits.",
      cause: { what, fix, certain: digest === null },
    },
  });
  const bare = header
    .trim()
    .replace(/^x-connect-signature\s*:\s*/i, "")
    .replace(/^(["'])(.*)\1$/, "$2");
  if (HEADER.test(bare)) {
    const fix = "A receiver gets the value alone; pass it without its name, quotes and white space.";
    return flawed(
      HEADER.exec(bare)?.[1] ?? null,
      "The value has its name, quotes or white space around it.",
      fix,
    );
  }
  if (bare.includes(",")) {
    return flawed(
      null,
      "There are several values, joined by commas: the header was sent twice.",
      "A proxy added one, or somebody tries values: a receiver refuses it.",
    );
  }
  const hex = bare.replace(/^sha256[=:]/i, "");
  if (/^[0-9a-f]{64}$/i.test(hex)) {
    const isUpper = hex !== hex.toLowerCase();
    const what = isUpper
      ? "The digits are in capitals."
      : "The prefix sha256= is missing or written differently.";
    return flawed(
      hex.toLowerCase(),
      what,
      "The service sends sha256= and lowercase digits: something rewrote the header.",
    );
  }
  if (/^[0-9a-f]+$/i.test(hex)) {
    return flawed(
      null,
      `There are ${hex.length} hex digits, not 64: it was cut off, or is of another algorithm.`,
      "Pass the whole value.",
    );
  }
  const decoded = Buffer.from(hex, "base64");
  if (decoded.length === 32 && /^[A-Za-z0-9+/_-]{43}=?$/.test(hex)) {
    return flawed(
      decoded.toString("hex"),
      "The digest is base64, not hex.",
      "The service sends lowercase hex: the sender is another one, or something rewrote the header.",
    );
  }
  return flawed(null, "It is something else.", "Pass the value of X-Connect-Signature as it arrived.");
}
