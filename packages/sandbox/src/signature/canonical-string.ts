/** Fields of a payment callback, in the order in which they are written into the body. */
export type CallbackFields = Readonly<Record<string, string | null>>;

/**
 * The text that a callback's signature covers (specification, Authentication 4): every field but `signature`,
 * nulls left out, names sorted, `name=value` joined with `&`. Nothing is escaped.
 *
 * Written apart from the receiver's, so that one mistake cannot hide in both.
 */
export function canonicalString(fields: CallbackFields): string {
  const names = Object.keys(fields).filter((name) => name !== "signature" && fields[name] !== null);
  names.sort((a, b) => (a < b ? -1 : 1));
  return names.map((name) => `${name}=${fields[name]}`).join("&");
}
