import { ClientError } from "../errors.ts";
import { kindOf } from "../kind-of.ts";
import type { RequestRules } from "./rules.ts";

/** The mediums of the specification, which publishes two lists. These are the mediums of both. */
export const MEDIUMS = [
  "MPESA",
  "TELEBIRR",
  "CBE",
  "ETHSWITCH",
  "CYBERSOURCE",
  "OROMIA_BANK",
  "AWASH",
  "PAY",
] as const;

/** A payment provider, as the service names it. */
export type Medium = (typeof MEDIUMS)[number];

const knownMediums: ReadonlySet<string> = new Set(MEDIUMS);

type MediumRules = Pick<RequestRules, "allowUnknownMedium" | "payMedium">;

/** A medium as JSON text. The service's own one may be called `PAY`, or as the service calls it. */
export function mediumText(
  medium: unknown,
  { allowUnknownMedium, payMedium }: MediumRules,
  field = "medium",
): string {
  if (typeof medium !== "string" || medium.trim() !== medium || medium === "") {
    throw invalidMediumError(`${field} is ${describe(medium)}.`, `Use one of ${MEDIUMS.join(", ")}.`, field);
  }
  if (medium === "PAY") return JSON.stringify(payMedium);
  if (!knownMediums.has(medium) && medium !== payMedium && !allowUnknownMedium) {
    throw invalidMediumError(
      `${field} is ${describe(medium)}, which the specification does not list.`,
      `Use one of ${MEDIUMS.join(", ")}, or create the client with allowUnknownMedium: true.`,
      field,
    );
  }
  return JSON.stringify(medium);
}

/** The mediums that a hosted page offers, as JSON text: at least one, and none twice. */
export function mediumsText(mediums: unknown, rules: MediumRules): string {
  const field = "supported_mediums";
  if (!Array.isArray(mediums) || mediums.length === 0) {
    throw invalidMediumError(
      `${field} is ${Array.isArray(mediums) ? "empty" : kindOf(mediums)}.`,
      "List at least one medium: the hosted page offers no other.",
      field,
    );
  }
  const texts = mediums.map((medium: unknown) => mediumText(medium, rules, field));
  const twice = texts.find((text, index) => texts.indexOf(text) !== index);
  if (twice !== undefined) throw invalidMediumError(`${field} lists ${twice} twice.`, "List it once.", field);
  return `[${texts.join(",")}]`;
}

function describe(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value.slice(0, 40)) : kindOf(value);
}

function invalidMediumError(problem: string, fix: string, field: string): ClientError {
  return new ClientError("ERR_MEDIUM_INVALID", problem, { fix, field });
}
