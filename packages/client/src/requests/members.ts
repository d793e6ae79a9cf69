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
  { extra: isExtraAllowed }: { readonly extra: boolean },
): string {
  if (!isObject(request)) {
    throw new ClientError("ERR_FIELD_MISSING", "The request is not an object.", {
      fix: `Pass an object with ${Object.keys(members).join(", ")}.`,
    });
  }
  const givenMembers: Readonly<Record<string, unknown>> = request;
  const unknownName = Object.keys(givenMembers).find(
    (name) => !Object.hasOwn(members, name) && !(isExtraAllowed && name === "extra"),
  );
  if (unknownName !== undefined) throw unknownFieldError(unknownName, Object.keys(members), isExtraAllowed);
  const texts = Object.entries(members).map(([name, member]) => {
    const value = givenMembers[name];
    if (value !== undefined && value !== null) return [name, member.text(value)] as const;
    if (member.required !== true) return [name, undefined] as const;
    throw new ClientError("ERR_FIELD_MISSING", `${name} is missing.`, { fix: `Pass ${name}.`, field: name });
  });
  return objectText([...texts, ...extraMembers(givenMembers.extra, members)]);
}

function extraMembers(
  extra: unknown,
  members: Readonly<Record<string, Member>>,
): readonly (readonly [string, string | undefined])[] {
  if (extra === undefined || extra === null) return [];
  const extraError = (problem: string, fix: string, cause?: unknown): ClientError =>
    new ClientError("ERR_FIELD_INVALID", problem, { fix, field: "extra", cause });
  if (!isObject(extra)) throw extraError("extra is not an object.", "Pass an object of undocumented fields.");
  return Object.entries(extra).map(([name, value]) => {
    if (Object.hasOwn(members, name)) {
      throw extraError(
        `extra has ${name}, which is a documented field.`,
        "Pass it beside extra, where it is checked.",
      );
    }
    try {
      return [name, JSON.stringify(value) as string | undefined] as const;
    } catch (cause) {
      throw extraError(
        `extra.${name.slice(0, 40)} cannot be written as JSON.`,
        "Pass JSON values only.",
        cause,
      );
    }
  });
}

function unknownFieldError(name: string, names: readonly string[], isExtraAllowed: boolean): ClientError {
  const normalize = (text: string): string => text.toLowerCase().replaceAll("_", "");
  const meantName = names.find((known) => normalize(known) === normalize(name));
  const quotedName = JSON.stringify(name.slice(0, 40));
  const fieldsFix = `The fields are ${names.join(", ")}.${isExtraAllowed ? " Undocumented ones go into extra." : ""}`;
  return new ClientError(
    "ERR_FIELD_UNKNOWN",
    `The request has a field ${quotedName}, which this call does not have.`,
    {
      fix: meantName === undefined ? fieldsFix : `Write ${meantName}.`,
      field: name,
    },
  );
}
