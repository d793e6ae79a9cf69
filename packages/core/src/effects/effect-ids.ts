import { PayhooksError } from "../protocol/errors.ts";

const NAME_PATTERN = /^[A-Za-z0-9_.-]{1,64}$/;

/** Checks a scope once. Throws `ERR_OPTION_INVALID`. */
export function checkScope(scope: string): string {
  if (scope === "" || NAME_PATTERN.test(scope)) return scope;
  throw new PayhooksError("ERR_OPTION_INVALID", `scope is ${JSON.stringify(String(scope).slice(0, 80))}.`, {
    fix: 'Use at most 64 letters, digits, "_", "." and "-".',
  });
}

/**
 * The id of an effect: `scope/effectId/name`. It has at most 255 characters, only letters, digits and `_.:/~-`, so that every
 * database can store it and compares it exactly.
 */
export function effectIdIn(scope: string, effectId: string, name: string | null): string {
  if (name !== null && !(typeof name === "string" && NAME_PATTERN.test(name))) {
    throw new PayhooksError(
      "ERR_EFFECT_NAME",
      `An effect has the name ${JSON.stringify(String(name).slice(0, 80))}.`,
      {
        fix: 'Give it 1 to 64 letters, digits, "_", "." or "-", and keep it: it is part of the effect\'s id.',
      },
    );
  }
  return [...(scope === "" ? [] : [scope]), effectId, ...(name === null ? [] : [name])].join("/");
}
