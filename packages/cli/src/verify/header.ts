import type { Cause } from "./explanation.ts";

/** The digest in a header, and the fault of the header's form. */
export interface HeaderResult {
  /** In lowercase hex. Null if there is no digest to be found. */
  readonly digest: string | null;
  readonly flaw: { readonly summary: string; readonly cause: Cause } | null;
}

const HEADER_PATTERN = /^sha256=([0-9a-f]{64})$/;

/** Reads a value of `X-Connect-Signature`. */
export function readHeader(header: string): HeaderResult {
  const exactDigest = HEADER_PATTERN.exec(header)?.[1];
  if (exactDigest !== undefined) return { digest: exactDigest, flaw: null };
  const flawedHeader = (digest: string | null, what: string, fix: string): HeaderResult => ({
    digest,
    flaw: {
      summary: "The header is not sha256= and 64 lowercase hex digits.",
      cause: { what, fix, certain: digest === null },
    },
  });
  const bareValue = header
    .trim()
    .replace(/^x-connect-signature\s*:\s*/i, "")
    .replace(/^(["'])(.*)\1$/, "$2");
  if (HEADER_PATTERN.test(bareValue)) {
    const fix = "A receiver gets the value alone; pass it without its name, quotes and white space.";
    return flawedHeader(
      HEADER_PATTERN.exec(bareValue)?.[1] ?? null,
      "The value has its name, quotes or white space around it.",
      fix,
    );
  }
  if (bareValue.includes(",")) {
    return flawedHeader(
      null,
      "There are several values, joined by commas: the header was sent twice.",
      "A proxy added one, or somebody tries values: a receiver refuses it.",
    );
  }
  const hex = bareValue.replace(/^sha256[=:]/i, "");
  if (/^[0-9a-f]{64}$/i.test(hex)) {
    const isUpper = hex !== hex.toLowerCase();
    const what = isUpper
      ? "The digits are in capitals."
      : "The prefix sha256= is missing or written differently.";
    return flawedHeader(
      hex.toLowerCase(),
      what,
      "The service sends sha256= and lowercase digits: something rewrote the header.",
    );
  }
  if (/^[0-9a-f]+$/i.test(hex)) {
    return flawedHeader(
      null,
      `There are ${hex.length} hex digits, not 64: it was cut off, or is of another algorithm.`,
      "Pass the whole value.",
    );
  }
  const digestBytes = Buffer.from(hex, "base64");
  if (digestBytes.length === 32 && /^[A-Za-z0-9+/_-]{43}=?$/.test(hex)) {
    return flawedHeader(
      digestBytes.toString("hex"),
      "The digest is base64, not hex.",
      "The service sends lowercase hex: the sender is another one, or something rewrote the header.",
    );
  }
  return flawedHeader(null, "It is something else.", "Pass the value of X-Connect-Signature as it arrived.");
}
