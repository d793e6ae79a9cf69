import { ClientError } from "../errors.ts";
import { isObject, objectText } from "../json.ts";

/** A field of a request. */
export interface Member {
  readonly required?: boolean;
  /** Writes a value, which is neither undefined nor null, as JSON. Throws if the value is wrong. */
  text(value: unknown): string;
}

/**
 * Writes a request as JSON, in the order of `members`. It refuses fields that the endpoint does not have. Otherwise
 * `callbackUrl` instead of `callback_url` would go unnoticed until a callback is missed. `extra` takes other fields.
 */
export function writeMembers(
  request: unknown,
  members: Readonly<Record<string, Member>>,
  { extra: extraAllowed }: { readonly extra: boolean },
): string {
  if (!isObject(request)) {
    throw new ClientError("ERR_FIELD_MISSING", "The request is not an object.", {
      fix: `Pass an object with ${Object.keys(members).join(", ")}.`,
    });
  }
  const given: Readonly<Record<string, unknown>> = request;
  const unknown = Object.keys(given).find(
    (name) => !Object.hasOwn(members, name) && !(extraAllowed && name === "extra"),
  );
  if (unknown !== undefined) throw unknownField(unknown, Object.keys(members), extraAllowed);
  const written = Object.entries(members).map(([name, member]) => {
    const value = given[name];
    if (value !== undefined && value !== null) return [name, member.text(value)] as const;
    if (member.required !== true) return [name, undefined] as const;
    throw new ClientError("ERR_FIELD_MISSING", `${name} is missing.`, { fix: `Pass ${name}.`, field: name });
  });
  return objectText([...written, ...extraMembers(given.extra, members)]);
}

function extraMembers(
  extra: unknown,
  members: Readonly<Record<string, Member>>,
): readonly (readonly [string, string | undefined])[] {
  if (extra === undefined || extra === null) return [];
  const refuse = (what: string, fix: string, cause?: unknown): ClientError =>
    new ClientError("ERR_FIELD_INVALID", what, { fix, field: "extra", cause });
  if (!isObject(extra)) throw refuse("extra is not an object.", "Pass an object of undocumented fields.");
  return Object.entries(extra).map(([name, value]) => {
    if (Object.hasOwn(members, name)) {
      throw refuse(
        `extra has ${name}, which is a documented field.`,
        "Pass it beside extra, where it is checked.",
      );
    }
    try {
      return [name, JSON.stringify(value) as string | undefined] as const;
    } catch (cause) {
      throw refuse(`extra.${name.slice(0, 40)} cannot be written as JSON.`, "Pass JSON values only.", cause);
    }
  });
}

function unknownField(name: string, names: readonly string[], extraAllowed: boolean): ClientError {
  const plain = (text: string): string => text.toLowerCase().replaceAll("_", "");
  const meant = names.find((known) => plain(known) === plain(name));
  const shown = JSON.stringify(name.slice(0, 40));
  const otherwise = `The fields are ${names.join(", ")}.${extraAllowed ? " Undocumented ones go into extra." : ""}`;
  return new ClientError(
    "ERR_FIELD_UNKNOWN",
    `The request has a field ${shown}, which this call does not have.`,
    {
      fix: meant === undefined ? otherwise : `Write ${meant}.`,
      field: name,
    },
  );
}
