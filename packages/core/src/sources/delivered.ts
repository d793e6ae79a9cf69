import type { StoredDelivery } from "../inbox/record/event.ts";
import { frozen, type JsonValue, parseJson } from "../protocol/json.ts";
import { sha256 } from "../signature/sha256.ts";
import type { Delivered } from "./source.ts";

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A form has no more fields than this. */
const MAX_FIELDS = 1_000;

/** The bytes of a delivery cannot be given to `read`. The message says why, without their texts. */
export class Unusable extends Error {}

function parsed(bytes: Uint8Array, kind: "json" | "form" | "text"): unknown {
  if (kind === "json") {
    const json = parseJson(bytes);
    if (json === null) throw new Unusable("the body is not JSON in UTF-8");
    if (json.flaw !== null) throw new Unusable(`the body has ${json.flaw}`);
    return frozen<JsonValue>(json.value);
  }
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    throw new Unusable("the body is not text in UTF-8");
  }
  return kind === "text" ? text : formOf(text);
}

function formOf(text: string): Readonly<Record<string, string>> {
  const fields: Record<string, string> = Object.create(null);
  let count = 0;
  for (const [name, value] of new URLSearchParams(text)) {
    if (++count > MAX_FIELDS) throw new Unusable(`the form has more than ${MAX_FIELDS} fields`);
    if (name in fields) throw new Unusable("the form has a field twice");
    fields[name] = value;
  }
  return Object.freeze(fields);
}

/** A delivery as `read` gets it. `looseHeader` gives a header field that nothing covers. Throws `Unusable`. */
export function deliveredOf(
  { content, headers = {}, covered = [], signedAt }: StoredDelivery,
  kind: "json" | "form" | "text",
  looseHeader: (name: string) => string | null,
): Delivered {
  let digest: string | null = null;
  return {
    body: parsed(content, kind),
    bytes: content,
    get digest() {
      digest ??= sha256(content, "hex");
      return digest;
    },
    covered: {
      get: (name) => {
        const lower = name.toLowerCase();
        return covered.includes(lower) ? (headers[lower] ?? null) : null;
      },
    },
    loose: { get: (name) => (covered.includes(name.toLowerCase()) ? null : looseHeader(name.toLowerCase())) },
    signedAt: signedAt === undefined ? null : new Date(signedAt),
  };
}
