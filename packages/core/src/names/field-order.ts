import type { WireField } from "./fields.ts";
import type { NameFault } from "./names-check.ts";

/** The fields that the order of the names makes impossible or uncertain. */
export interface OrderFindings {
  readonly faults: readonly NameFault[];
  readonly warnings: readonly NameFault[];
}

/**
 * Looks for fields that are sent sometimes and may directly follow a free text in the signed string: such a field could
 * be the end of that text. With `urlKnown`, the callback URL does not count as a free text, because it is known as a
 * whole.
 */
export function checkFieldOrder(
  fields: readonly WireField[],
  { urlKnown }: { readonly urlKnown: boolean },
): OrderFindings {
  const faults: NameFault[] = [];
  const warnings: NameFault[] = [];
  fields.forEach((field, index) => {
    if (field.sent === "always") return;
    const alwaysFix = `If every callback has ${field.name}, say "always" for it`;
    for (const freeField of freeFieldsBefore(fields, index)) {
      if (urlKnown && freeField.role === "callbackUrl") continue;
      if (freeField.role === "referenceId") {
        faults.push({
          what: `${field.name} is sent sometimes and follows ${freeField.name} in the signed string, so it could be the end of a reference, and every callback that has it would be held`,
          fix: `${alwaysFix}. Otherwise nobody can tell such callbacks apart`,
        });
      } else warnings.push(warningOf(freeField, field, alwaysFix));
    }
  });
  const byCase = fields.toSorted((a, b) => (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1));
  const moved = fields.find((field, i) => byCase[i] !== field);
  if (moved !== undefined) {
    warnings.push({
      what: `The place of ${moved.name} in the signed string depends on whether capital letters sort first, as they do here.`,
      fix: "If no callback verifies, ask the service how it sorts the names.",
    });
  }
  return { faults, warnings };
}

/** The free fields that a field may directly follow, because the fields between them may be missing. */
function freeFieldsBefore(fields: readonly WireField[], index: number): readonly WireField[] {
  const freeFields: WireField[] = [];
  for (let i = index - 1; i >= 0; i--) {
    const field = fields[i];
    if (field === undefined) break;
    if (field.isFreeText) freeFields.push(field);
    if (field.sent === "always") break;
  }
  return freeFields;
}

function warningOf(freeField: WireField, field: WireField, alwaysFix: string): NameFault {
  const isCut = freeField.role === "callbackUrl" || freeField.role === "message";
  const lost = isCut ? `no ${field.name}` : `neither ${field.name} nor ${freeField.name}`;
  const pin = freeField.role === "callbackUrl" ? ", or pin the whole URL in payments.expect.callbackUrl" : "";
  return {
    what: `Handlers get ${lost} from a callback that has both: ${field.name} is sent sometimes and follows ${freeField.name} in the signed string, so it could be the end of that value.`,
    fix: `${alwaysFix}${pin}.`,
  };
}
