/**
 * Shapes say how a value is written as JSON, and check it when it is read back. The answer of a store is input: a disk may have
 * damaged it, and other programs can write to the database. So every value is checked when it is read, and a wrong type throws.
 *
 * An object is written as an array of its fields, in the order in which its shape names them.
 */
import { isUtf8 } from "node:buffer";

/** How values of one type are written and read. */
export interface Shape<T> {
  /** The value as JSON. */
  write(value: T): unknown;
  /** The reverse. Throws {@link ShapeError} for anything that {@link write} does not make. */
  read(json: unknown): T;
  /** True for a field that its object may leave out. It is written as null. */
  readonly isOptional?: true;
}

/** A value has the wrong shape. The message says which field, and which shape it must have. It does not repeat the value. */
export class ShapeError extends Error {}

/** A value that JSON can have as it is, if it fits. */
function plainShape<T>(expected: string, fits: (json: unknown) => boolean): Shape<T> {
  return {
    write: (value) => value,
    read: (json) => {
      if (!fits(json)) throw new ShapeError(`is not ${expected}`);
      return json as T;
    },
  };
}

/** Times that a `Date` can have, so that showing one does not fail. */
const MAX_DATE = 8.64e15;

export const text: Shape<string> = plainShape("a text", (json) => typeof json === "string");
export const yes: Shape<true> = plainShape("true", (json) => json === true);
export const count: Shape<number> = plainShape(
  "a count",
  (json) => Number.isSafeInteger(json) && (json as number) >= 0,
);
/** A time, or a length of time, in milliseconds. */
export const time: Shape<number> = plainShape(
  "a time",
  (json) => typeof json === "number" && Math.abs(json) <= MAX_DATE,
);

/** True, or null for false. */
export const flag: Shape<boolean> = {
  write: (value) => (value ? true : null),
  read: (json) => json !== null && yes.read(json),
};

/** One of some texts. */
export function oneOf<T extends string>(values: Readonly<Record<T, unknown>>): Shape<T> {
  return plainShape(
    "one that this version knows",
    (json) => typeof json === "string" && Object.hasOwn(values, json),
  );
}

export function orNull<T>({ write, read }: Shape<T>): Shape<T | null> {
  return {
    write: (value) => (value === null ? null : write(value)),
    read: (json) => (json === null ? null : read(json)),
  };
}

/** A field that may be absent. */
export function optional<T>({ write, read }: Shape<T>): Shape<T | undefined> {
  return {
    write: (value) => (value === undefined ? null : write(value)),
    read,
    isOptional: true,
  };
}

/** A short text on which nothing depends. If it is damaged, it counts as absent, and the rest of its object can still be read. */
export function lenientText(maxLength: number): Shape<string | undefined> {
  return {
    write: (value) => value ?? null,
    read: (json) => (typeof json === "string" && json.length <= maxLength ? json : undefined),
    isOptional: true,
  };
}

export function listOf<T>({ write, read }: Shape<T>): Shape<readonly T[]> {
  return {
    write: (values) => values.map(write),
    read: (json) => {
      if (!Array.isArray(json)) throw new ShapeError("is not a list");
      return json.map(read);
    },
  };
}

/** Values by name. */
export function mapOf<T>({ write, read }: Shape<T>, names: RegExp = /^/): Shape<Readonly<Record<string, T>>> {
  return {
    write: (values) => {
      const json: Record<string, unknown> = {};
      for (const name in values) json[name] = write(values[name] as T);
      return json;
    },
    read: (json) => {
      if (typeof json !== "object" || json === null || Array.isArray(json))
        throw new ShapeError("is not a map");
      const values: Record<string, T> = {};
      for (const [name, value] of Object.entries(json)) {
        if (name === "__proto__" || !names.test(name)) throw new ShapeError("has a name that it cannot have");
        values[name] = read(value);
      }
      return values;
    },
  };
}

/** Bytes: as a text if they are valid UTF-8, else as a list with their base64. */
export const bytes: Shape<Uint8Array> = {
  write: (value) => {
    const buffer = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    return isUtf8(buffer) ? buffer.toString() : [buffer.toString("base64")];
  },
  read: (json) => {
    if (typeof json === "string") return Buffer.from(json);
    const base64: unknown = Array.isArray(json) ? json[0] : undefined;
    const buffer = typeof base64 === "string" ? Buffer.from(base64, "base64") : null;
    if (buffer === null || buffer.toString("base64") !== base64) throw new ShapeError("is not bytes");
    return buffer;
  },
};

/** An object with these fields. Optional fields come last: absent fields at the end take no room. */
export function objectOf<T extends object>(
  shapes: { readonly [Name in keyof T]-?: Shape<T[Name]> },
): Shape<T> {
  const fields = Object.entries(shapes) as [keyof T & string, Shape<unknown>][];
  return {
    write: (value) => {
      const json = fields.map(([name, shape]) => shape.write(value[name]));
      while (json.at(-1) === null) json.pop();
      return json;
    },
    read: (json) => {
      if (!Array.isArray(json) || json.length > fields.length)
        throw new ShapeError("is not a list of its fields");
      const value: Partial<Record<keyof T, unknown>> = {};
      for (const [index, [name, shape]] of fields.entries()) {
        const fieldJson: unknown = json[index] ?? null;
        if (fieldJson === null && shape.isOptional === true) continue;
        try {
          value[name] = shape.read(fieldJson);
        } catch (error) {
          throw error instanceof ShapeError ? new ShapeError(`${name} ${error.message}`) : error;
        }
      }
      return value as T;
    },
  };
}
