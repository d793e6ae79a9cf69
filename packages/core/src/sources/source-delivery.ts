import type { StoredDelivery } from "../inbox/record/event.ts";
import { deepFreeze, type JsonValue, parseJson } from "../protocol/json.ts";
import { sha256 } from "../signature/sha256.ts";
import type { SourceDelivery } from "./source.ts";

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A form has no more fields than this. */
const MAX_FORM_FIELDS = 1_000;

/** The bytes of a delivery cannot be given to `read`. The message says why, without their texts. */
export class UnusableDelivery extends Error {}

function parseBody(bytes: Uint8Array, kind: "json" | "form" | "text"): unknown {
  if (kind === "json") {
    const json = parseJson(bytes);
    if (json === null) throw new UnusableDelivery("the body is not JSON in UTF-8");
    if (json.flaw !== null) throw new UnusableDelivery(`the body has ${json.flaw}`);
    return deepFreeze<JsonValue>(json.value);
  }
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    throw new UnusableDelivery("the body is not text in UTF-8");
  }
  return kind === "text" ? text : formOf(text);
}

function formOf(text: string): Readonly<Record<string, string>> {
  const fields: Record<string, string> = Object.create(null);
  let count = 0;
  for (const [name, value] of new URLSearchParams(text)) {
    if (++count > MAX_FORM_FIELDS)
      throw new UnusableDelivery(`the form has more than ${MAX_FORM_FIELDS} fields`);
    if (name in fields) throw new UnusableDelivery("the form has a field twice");
    fields[name] = value;
  }
  return Object.freeze(fields);
}

/** A delivery as `read` gets it. `readUnsignedHeader` gives a header field that no signature covers. Throws `UnusableDelivery`. */
export function sourceDeliveryOf(
  { content, headers = {}, signedHeaders = [], signedAt }: StoredDelivery,
  kind: "json" | "form" | "text",
  readUnsignedHeader: (name: string) => string | null,
): SourceDelivery {
  let digest: string | null = null;
  return {
    body: parseBody(content, kind),
    bytes: content,
    get digest() {
      digest ??= sha256(content, "hex");
      return digest;
    },
    signedHeaders: {
      get: (name) => {
        const lower = name.toLowerCase();
        return signedHeaders.includes(lower) ? (headers[lower] ?? null) : null;
      },
    },
    unsignedHeaders: {
      get: (name) =>
        signedHeaders.includes(name.toLowerCase()) ? null : readUnsignedHeader(name.toLowerCase()),
    },
    signedAt: signedAt === undefined ? null : new Date(signedAt),
  };
}
