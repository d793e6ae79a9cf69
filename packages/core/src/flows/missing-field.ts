import { isFieldName } from "../names/fields.ts";
import type { CallbackField } from "../signature/canonical.ts";
import { fieldLabel, type Wire } from "./callback.ts";

/** Likely names for the fields without which there is no event, in services that do not use the specification's names. */
const LIKELY_NAME_PATTERNS: Readonly<Partial<Record<CallbackField, RegExp>>> = {
  payTxnId: /(?:tx|txn|trx|trans|transaction)_?(?:id|no|ref)$|^id$/i,
  referenceId: /^(?:.*_)?ref(?:erence)?(?:_?(?:id|no))?$/i,
  timestamp: /time|date|_at$/i,
  event: /type$|^event/i,
  status: /stat(?:us|e)$/i,
  amount: /amount$|^total$/i,
};

/** How many names a hint lists. */
const MAX_GUESSED_NAMES = 3;

/**
 * If a required field is missing from the signed string, guesses which unknown field is that field under another name, and names
 * the option to declare it. Null if no unknown field looks like it.
 */
export function guessMissingField(signed: string, wire: Wire): string | null {
  const names = new Set(
    signed.split("&").flatMap((part) => (part.includes("=") ? [part.slice(0, part.indexOf("="))] : [])),
  );
  const unknownNames = [...names].filter((name) => isFieldName(name) && !wire.byName.has(name));
  for (const field of wire.fields) {
    const { role, name, isEssential } = field;
    const likelyPattern =
      role === null || !isEssential || names.has(name) ? undefined : LIKELY_NAME_PATTERNS[role];
    const candidates =
      likelyPattern === undefined
        ? []
        : unknownNames.filter((each) => likelyPattern.test(each)).slice(0, MAX_GUESSED_NAMES);
    if (candidates.length === 0) continue;
    const option = `names: serviceNames({ callback: { fields: { ${role}: "${candidates[0]}" } } })`;
    return `${fieldLabel(field)} is missing, and ${candidates.join(" or ")} could be it: if the service calls it so, set ${option}`;
  }
  return null;
}
