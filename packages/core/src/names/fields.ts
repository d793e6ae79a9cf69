import { CALLBACK_FIELDS, type CallbackField } from "../signature/canonical.ts";
import type { FieldName, FieldPresence, ServiceNames } from "./options.ts";

/** Fields without which there is no event. So every callback has them. */
export const NEVER_ABSENT_FIELDS: ReadonlySet<CallbackField> = new Set([
  "amount",
  "event",
  "payTxnId",
  "referenceId",
  "status",
  "timestamp",
]);

/** Fields whose values a customer or a merchant may choose. So an `&` may be in them. */
const FREE_FIELDS: ReadonlySet<CallbackField> = new Set([
  "callbackUrl",
  "message",
  "providerTxId",
  "referenceId",
  "userId",
]);

const documentedNames: ReadonlySet<string> = new Set(CALLBACK_FIELDS);

/** True for a field of the specification. */
export function isDocumented(name: string): name is CallbackField {
  return documentedNames.has(name);
}

const FIELD_NAME_PATTERN = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/;
const RESERVED_NAMES: ReadonlySet<string> = new Set(["signature", "constructor", "prototype"]);

/**
 * True for a name that a signed field may have. A name with `=` or `&` would have two readings, and names beyond ASCII sort
 * differently by code unit and by byte.
 */
export function isFieldName(name: unknown): name is string {
  return typeof name === "string" && FIELD_NAME_PATTERN.test(name) && !RESERVED_NAMES.has(name);
}

/** How often the specification's fields are sent, unless the names say otherwise. */
export function defaultPresenceOf(field: CallbackField): FieldPresence {
  return NEVER_ABSENT_FIELDS.has(field) || field === "callbackUrl" ? "always" : "sometimes";
}

/** A signed field as the wire has it. */
export interface WireField {
  /** Its name on the wire. */
  readonly name: string;
  /** Its neutral name; null for an extra field. */
  readonly role: CallbackField | null;
  readonly sent: FieldPresence;
  /** True if an `&` may be in its value. */
  readonly isFreeText: boolean;
}

/** The fields that a callback may have, sorted by their names on the wire as the canonical string has them. */
export function wireFields({
  fields,
  extra,
}: Pick<ServiceNames["callback"], "fields" | "extra">): readonly WireField[] {
  const wire: WireField[] = [];
  for (const role of CALLBACK_FIELDS) {
    const { name, sent }: FieldName = fields[role];
    if (sent !== "absent") wire.push({ name, role, sent, isFreeText: FREE_FIELDS.has(role) });
  }
  for (const [name, sent] of Object.entries(extra)) wire.push({ name, role: null, sent, isFreeText: false });
  return wire.sort((a, b) => (a.name < b.name ? -1 : 1));
}
