import { PayhooksError } from "../protocol/errors.ts";
import { type CallbackRules, type CallbackTexts, isDocumented, isFieldName, type Sent } from "./callback.ts";
import type { SetupWarning } from "./flow.ts";
import { knownFields } from "./readings.ts";

/**
 * Undocumented signed fields whose values only the service can choose. A list names fields that some callbacks have. An object
 * also says `"always"` of those that every callback has.
 */
export type ExtraFields = readonly string[] | Readonly<Record<string, "always" | "sometimes">>;

/** The declared fields, and how often each is sent. Throws `ERR_OPTION_INVALID`. */
export function extraFieldsOf(option: ExtraFields = []): ReadonlyMap<string, Sent> {
  if (typeof option !== "object" || option === null) {
    throw invalid(`payments.extraFields is of type ${typeof option}.`);
  }
  const fields = new Map<string, Sent>();
  const entries: readonly (readonly [unknown, unknown])[] = Array.isArray(option)
    ? option.map((name: unknown) => [name, "sometimes"])
    : Object.entries(option);
  for (const [name, sent] of entries) {
    if (typeof name !== "string" || !isFieldName(name) || isDocumented(name) || name === "signature") {
      throw invalid(
        `payments.extraFields has ${JSON.stringify(name)}, which cannot be an undocumented field.`,
      );
    }
    if (sent !== "always" && sent !== "sometimes") {
      const is = typeof sent === "string" ? JSON.stringify(sent.slice(0, 64)) : `of type ${typeof sent}`;
      throw invalid(`payments.extraFields.${name} is ${is}, not "always" or "sometimes".`);
    }
    fields.set(name, sent);
  }
  return fields;
}

function invalid(message: string): PayhooksError {
  return new PayhooksError("ERR_OPTION_INVALID", message, {
    fix: 'Write { currency: "always" } if every callback has the field, or ["currency"] if only some do. A name has letters, digits and underscores, and is none of the specification\'s.',
  });
}

/**
 * What cannot be read, or only seldom, because a field that is sent sometimes follows a free text in the signed string: it could
 * be the end of that text. Throws `ERR_OPTION_INVALID` if every callback with the field would be held for this.
 */
export function warningsOf(rules: CallbackRules): readonly SetupWarning[] {
  const warnings: SetupWarning[] = [];
  for (const [name, sent] of rules.extraFields) {
    const before = sent === "always" ? null : freeFieldBefore(name, rules);
    if (before === null) continue;
    const always = `If every callback has ${name}, write payments.extraFields: { ${name}: "always" }`;
    if (before === "referenceId") {
      throw new PayhooksError(
        "ERR_OPTION_INVALID",
        `payments.extraFields says that ${name} is sent sometimes. It follows referenceId in the signed string, so it could be the end of a reference, and every callback that has it would be held.`,
        { fix: `${always}. Otherwise leave it out: nobody can tell such callbacks apart.` },
      );
    }
    const neither =
      before === "providerTxId" || before === "userId" ? `neither ${name} nor ${before}` : `no ${name}`;
    const what = `Handlers get ${neither} from a callback that has both: ${name} is sent sometimes and follows ${before} in the signed string, so it could be the end of that value.`;
    const pin = before === "callbackUrl" ? ", or pin the whole URL in payments.expect.callbackUrl" : "";
    warnings.push({ what, fix: `${always}${pin}.` });
  }
  return warnings;
}

/** The free text that a field may directly follow in the signed string, or null. */
function freeFieldBefore(name: string, rules: CallbackRules): string | null {
  const { fields, indexOf, pinnedUrls } = knownFields(rules, { declared: true });
  for (let i = (indexOf.get(name) ?? 0) - 1; i >= 0; i--) {
    const field = fields[i];
    if (field === undefined) return null;
    const isPinned = field.name === "callbackUrl" && pinnedUrls.size > 0;
    if (!field.madeByService && !isPinned) return field.name;
    if (field.required) return null;
  }
  return null;
}

/** `event.extra` if there is nothing in it. */
const NO_EXTRA: Readonly<Record<string, string>> = Object.freeze(
  Object.create(null) as Record<string, string>,
);

/** The declared fields, for `event.extra`. */
export function extraOf(
  texts: CallbackTexts,
  { extraFields }: CallbackRules,
): Readonly<Record<string, string>> {
  if (extraFields.size === 0) return NO_EXTRA;
  const extra = Object.create(null) as Record<string, string>;
  for (const name of extraFields.keys()) {
    const text = texts.get(name);
    if (text !== undefined) extra[name] = text;
  }
  return Object.freeze(extra);
}
