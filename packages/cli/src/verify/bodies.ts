import { SPELLINGS } from "./json-text.ts";

/** Bytes that a body may have had before something changed them. */
export interface BodyVariant {
  /** Completes "The signature was made over the body …". */
  readonly what: string;
  readonly bytes: Buffer;
}

const BOM = "\ufeff";

/**
 * Plausible originals of a body: other line ends, byte order marks, encodings, and other ways to write the same JSON.
 */
export function* bodyVariants(body: Buffer): Generator<BodyVariant> {
  const text = body.toString("utf8");
  const variant = (what: string, changedText: string): BodyVariant => ({
    what,
    bytes: Buffer.from(changedText, "utf8"),
  });
  yield variant("with a line end (\\n) after it, which is missing here", `${text}\n`);
  yield variant("with a line end (\\r\\n) after it, which is missing here", `${text}\r\n`);
  yield variant(
    "without the line end that follows it here: an editor or `echo` adds one",
    text.replace(/\r?\n$/, ""),
  );
  yield variant("without the white space around it", text.trim());
  yield variant("with \\n line ends; here they are \\r\\n", text.replaceAll("\r\n", "\n"));
  yield variant("with \\r\\n line ends; here they are \\n", text.replace(/\r?\n/g, "\r\n"));
  yield variant("without the byte order mark that it has here", text.replace(BOM, ""));
  yield variant("with a byte order mark, which is missing here", BOM + text);
  yield {
    what: "before its characters were read as Latin-1 and written as UTF-8",
    bytes: Buffer.from(text, "latin1"),
  };
  yield variant("before its UTF-8 was written as Latin-1", body.toString("latin1"));
  for (const number of restoreFractions(text)) yield number;
  let value: unknown;
  try {
    value = JSON.parse(text.replace(BOM, ""));
  } catch {
    return;
  }
  for (const { what, write } of SPELLINGS) {
    const json = write(value);
    const before = "before it was parsed and serialised again";
    yield variant(`${before}; it was ${what}`, json);
    yield variant(`${before}; it was ${what}, with a line end after it`, `${json}\n`);
    if (json.includes("\n")) {
      yield variant(`${before}; it was ${what}, with \\r\\n line ends`, json.replaceAll("\n", "\r\n"));
    }
  }
}

/** A parser drops the fraction of 125000.0. This puts it back, with one or two digits, into all numbers at once. */
function* restoreFractions(text: string): Generator<BodyVariant> {
  for (const fraction of [".0", ".00"]) {
    const changedText = text.replace(/(?<=[:[,]\s*)-?\d+(?=\s*[,}\]])/g, (digits) => digits + fraction);
    const what = `before its numbers were parsed and serialised again: 125000${fraction} became 125000`;
    if (changedText !== text) yield { what, bytes: Buffer.from(changedText, "utf8") };
  }
}
