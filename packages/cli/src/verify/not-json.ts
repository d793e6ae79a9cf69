import type { Cause } from "./explanation.ts";
import { HOW_TO_KEEP_BYTES } from "./explanation.ts";

/** Why bytes are not a JSON object in UTF-8. */
export function causeOfNotJson(bytes: Buffer): Cause {
  const text = bytes.toString("utf8");
  const cause = (what: string, fix: string): Cause => ({ what, fix, certain: true });
  if (bytes.length === 0) {
    return cause(
      "The body is empty.",
      "Something read it before it was saved, or the redirect of the shell failed.",
    );
  }
  if (text.startsWith("\ufeff")) {
    return cause(
      "The body begins with a byte order mark, which JSON must not have.",
      "An editor added it: save it without one.",
    );
  }
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) {
    return cause("The body is compressed (gzip).", "The service sends it uncompressed; save what arrived.");
  }
  if (!Buffer.from(text, "utf8").equals(bytes)) {
    return cause(
      "The body is not valid UTF-8.",
      "It was saved in another encoding, or cut in the middle of a character.",
    );
  }
  if (/^(?:POST|GET|PUT) \S+ HTTP\/|^HTTP\/1/.test(text)) {
    return cause(
      "This is a whole HTTP message, headers included.",
      "Save the body alone: what follows the empty line.",
    );
  }
  if (/^[\w.%-]+=[^{]*/.test(text)) {
    return cause(
      "The body looks like a form, not JSON.",
      "The service sends application/json; something converted it.",
    );
  }
  if (text.trim() === "[object Object]") {
    return cause("An object was written as text.", `It was already parsed. ${HOW_TO_KEEP_BYTES}`);
  }
  if (/^\s*"/.test(text)) {
    return cause("The body is a JSON string, not an object: it was encoded twice.", HOW_TO_KEEP_BYTES);
  }
  if (/^\s*\{/.test(text)) {
    return cause(
      "The body begins as JSON and is not JSON to its end.",
      "It was cut off or changed by hand: compare its length with Content-Length.",
    );
  }
  return cause(
    "The body is not a JSON object.",
    "The service sends an object. Check that this is the body of a delivery.",
  );
}
