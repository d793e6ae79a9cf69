import type { ServiceNames } from "@payhooks/core";
import type { CallbackFields } from "@payhooks/core/testing";

/** The values of the extra fields of a callback. Others hold "sandbox". */
const EXTRA_FIELD_VALUES: Readonly<Record<string, string>> = { currency: "ETB", medium: "TELEBIRR" };

/** The fields of a callback under the names of a deployment, with its extra fields and without those it does not send. */
export function fieldsOnTheWire(fields: CallbackFields, names: ServiceNames | undefined): CallbackFields {
  if (names === undefined) return fields;
  const { fields: fieldNames, extra } = names.callback;
  const namesByField = new Map(Object.entries(fieldNames));
  const renamed = Object.entries(fields).flatMap(([field, value]) => {
    const { name = field, sent } = namesByField.get(field) ?? {};
    // A callback that lacked what is always sent could be read in another way.
    return sent === "absent" ? [] : [[name, value ?? (sent === "always" ? "none" : null)] as const];
  });
  const extraFields = Object.keys(extra).map(
    (name) => [name, EXTRA_FIELD_VALUES[name] ?? "sandbox"] as const,
  );
  return Object.fromEntries([...renamed, ...extraFields]);
}

/** The name of a field on the wire. */
export function nameOnTheWire(field: "amount", names: ServiceNames | undefined): string {
  return names?.callback.fields[field].name ?? field;
}
