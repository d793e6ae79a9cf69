/** The fields of a payment callback, in the order of the body. */
export type CallbackFields = Readonly<Record<string, string | null>>;

/**
 * The text that the signature of a callback covers (specification, Authentication 4): all fields except `signature` and
 * nulls, sorted by name, as `name=value` joined with `&`. Nothing is escaped.
 *
 * This code is separate from the receiver's, so that one mistake cannot hide in both.
 */
export function canonicalString(fields: CallbackFields): string {
  const names = Object.keys(fields).filter((name) => name !== "signature" && fields[name] !== null);
  names.sort((a, b) => (a < b ? -1 : 1));
  return names.map((name) => `${name}=${fields[name]}`).join("&");
}
