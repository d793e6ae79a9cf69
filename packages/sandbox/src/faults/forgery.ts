import type { CallbackFields } from "../signature/canonical-string.ts";

/** A genuine callback, and other fields that have the same canonical string and so the same signature. */
export interface Forgery {
  readonly genuine: CallbackFields;
  readonly forged: CallbackFields;
}

/**
 * The attack on the canonical string (docs/guides/sandbox.md, Faults). Nothing in that string is escaped, so a person
 * who chooses a reference can write further fields into it. The service signs a FAILED callback for the reference
 * `victim&status=SUCCESS&timestamp=…&userId=u`. Cut into other fields, the same text is a SUCCESS for `victim`, whose
 * `userId` contains the rest of the text. A receiver that only checks the signature accepts it.
 *
 * Under the names of a deployment, the fields after the reference may be others. If the status is not among them, or no
 * text follows it, no reference can do this: then the genuine callback is sent.
 *
 * @param fields the fields of the FAILED callback on the wire, with the reference of the victim
 * @param nameOf the name of a field on the wire
 */
export function resplit(fields: CallbackFields, nameOf: (name: string) => string): Forgery {
  const [reference, status, timestamp] = [nameOf("referenceId"), nameOf("status"), nameOf("timestamp")];
  const after = Object.keys(fields)
    .filter((name) => name > reference && fields[name] !== null)
    .sort((a, b) => (a < b ? -1 : 1));
  /** The field that swallows the rest of the text. */
  const last = after.findLast((name) => name > status && name !== timestamp);
  if (last === undefined || !after.includes(status)) return { genuine: fields, forged: fields };
  const textOf = (values: CallbackFields): string =>
    after.flatMap((name) => (name > last ? [] : [`&${name}=${values[name]}`])).join("");
  const succeeded = { ...fields, [status]: "SUCCESS", [last]: "u" };
  return {
    genuine: { ...fields, [reference]: fields[reference] + textOf(succeeded) },
    forged: { ...succeeded, [last]: `u${textOf(fields)}` },
  };
}
