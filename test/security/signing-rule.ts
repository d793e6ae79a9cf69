/**
 * The specification's signing rule (Authentication, 4) a second time: from the bytes, with a JSON reader of its own,
 * and nothing of Payhooks in it. A mistake has to be made twice, in two ways, to go unnoticed.
 */

/** The canonical string of a body, which is the text of a JSON object in UTF-8. */
export function secondCanonicalString(body: Uint8Array): string {
  return canonicalOfMembers(membersOf(body));
}

/** A body's members in their order, one more for a name given twice. */
export function membersOf(body: Uint8Array): readonly Field[] {
  return new Reader(Buffer.from(body).toString("utf8")).fields();
}

/** The canonical string of members. Of a name given twice the last one counts. */
export function canonicalOfMembers(fields: readonly Field[]): string {
  const signed = fields.filter(
    ([name, value], at) =>
      name !== "signature" && value !== "null" && !fields.slice(at + 1).some(([later]) => later === name),
  );
  const sorted: Field[] = [];
  for (const field of signed) {
    // Insertion by hand: the first place whose name is the greater one.
    let at = 0;
    while (at < sorted.length && precedes(sorted[at]?.[0] ?? "", field[0])) at++;
    sorted.splice(at, 0, field);
  }
  return sorted.map(([name, value]) => `${name}=${value.startsWith('"') ? decode(value) : value}`).join("&");
}

/** A name, and its value as written. */
type Field = readonly [name: string, value: string];

/** By UTF-16 code unit. */
function precedes(a: string, b: string): boolean {
  for (let at = 0; at < a.length && at < b.length; at++) {
    const difference = a.charCodeAt(at) - b.charCodeAt(at);
    if (difference !== 0) return difference < 0;
  }
  return a.length < b.length;
}

const ESCAPES: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

/** The text of a JSON string with its quotes. */
function decode(quoted: string): string {
  return quoted.slice(1, -1).replace(/\\(?:u([0-9a-fA-F]{4})|(.))/g, (_, unit?: string, one?: string) => {
    if (unit !== undefined) return String.fromCharCode(Number.parseInt(unit, 16));
    return ESCAPES[one ?? ""] ?? one ?? "";
  });
}

/** Reads the members of an object by regular expressions, value by value. */
class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  fields(): Field[] {
    const fields: Field[] = [];
    this.#take(/\s*\{\s*/y);
    while (this.#peek() !== "}") {
      const name = decode(this.#take(STRING));
      this.#take(/\s*:\s*/y);
      fields.push([name, this.#value()]);
      this.#take(/\s*,?\s*/y);
    }
    return fields;
  }

  #value(): string {
    const start = this.#at;
    const first = this.#peek();
    if (first === '"') this.#take(STRING);
    else if (first === "{" || first === "[") {
      let open = 0;
      do {
        const piece = this.#take(/"(?:[^"\\]|\\.)*"|[[\]{}]|[^"[\]{}]+/sy);
        if (piece === "{" || piece === "[") open++;
        if (piece === "}" || piece === "]") open--;
      } while (open > 0);
    } else this.#take(/[^\s,}\]]+/y);
    return this.#text.slice(start, this.#at);
  }

  #peek(): string {
    return this.#text.charAt(this.#at);
  }

  #take(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const [found] = pattern.exec(this.#text) ?? [];
    if (found === undefined) throw new Error(`not the JSON that this reads, at ${this.#at}`);
    this.#at += found.length;
    return found;
  }
}

const STRING = /"(?:[^"\\]|\\.)*"/sy;
