import { describeProblems } from "../faults/faults.ts";
import { isJsonObject, type JsonObject } from "../json.ts";
import type { WireNames } from "../names.ts";
import { phoneDigits } from "../payments/phone-number.ts";
import { type Problem, SandboxError } from "../sandbox-error.ts";
import { CURRENCIES, type Currency, MEDIUMS, type Medium } from "../wire.ts";
import { type AddressRules, problemOfReceiver, problemOfRedirect } from "./addresses.ts";

/** Reads the parameters of a request, and collects everything that is wrong with them. */
export interface Parameters {
  /** With two decimals. */
  amount(): string;
  currency(): Currency;
  /** Digits only. */
  phoneNumber(): string;
  reference(): string;
  medium(): Medium;
  supportedMediums(): readonly Medium[];
  optionalText(name: string): string | null;
  /** Checks a value that has no effect in the sandbox. */
  checkBoolean(name: string): void;
  receiver(name: string, need: "required" | "optional"): string | null;
  redirect(name: string, need: "required" | "optional"): string | null;
  boolean(name: string): boolean;
  problem(field: string, message: string): void;
  /** Throws `ERR_PARAMETERS` with every problem found. */
  checkProblems(): void;
}

const MAX_REFERENCE_LENGTH = 100;
const LONE_SURROGATE_PATTERN = /\p{Surrogate}/u;
/** With two decimals, a JSON number keeps this many digits without loss. The specification shows no maximum. */
const MAX_AMOUNT_DIGITS = 12;

export function readParameters(
  body: JsonObject,
  rules: AddressRules & { readonly mediums: readonly Medium[]; readonly names: WireNames },
): Parameters {
  const problems: Problem[] = [];
  const problem = (field: string, message: string): void => {
    problems.push({ field, message });
  };
  /** The member at a path of one or two names. */
  const valueAt = (path: string): unknown => {
    const [first = "", second] = path.split(".");
    const value = Object.hasOwn(body, first) ? body[first] : undefined;
    if (second === undefined) return value;
    return isJsonObject(value) && Object.hasOwn(value, second) ? value[second] : undefined;
  };
  const isGiven = (value: unknown) => value !== undefined && value !== null;

  const address = (
    name: string,
    need: "required" | "optional",
    check: (text: string, rules: AddressRules) => string | null,
  ): string | null => {
    const value = valueAt(name);
    if (!isGiven(value)) {
      if (need === "required") problem(name, "is required");
      return null;
    }
    const wrong = typeof value === "string" ? check(value, rules) : "must be a string";
    if (wrong !== null) problem(name, wrong);
    return typeof value === "string" ? value : null;
  };

  const oneOf = <Value extends string>(name: string, value: unknown, allowed: readonly Value[]): Value => {
    const match = allowed.find((choice) => choice === value);
    if (match === undefined)
      problem(name, isGiven(value) ? `must be one of ${allowed.join(", ")}` : "is required");
    return match ?? (allowed[0] as Value);
  };

  const mediums = new Map(rules.mediums.map((medium) => [rules.names.medium(medium), medium]));
  const mediumOf = (name: string, value: unknown): Medium => {
    const mediumName = oneOf(name, value, [...mediums.keys()]);
    return mediums.get(mediumName) ?? "PAY";
  };

  return {
    amount() {
      const value = valueAt("amount");
      if (!isGiven(value)) {
        problem("amount", "is required");
        return "0.00";
      }
      const amount = twoDecimals(value);
      if (amount === null) {
        problem(
          "amount",
          `must be a decimal with two places, such as 10.50, and at most ${MAX_AMOUNT_DIGITS} digits before them`,
        );
      } else if (Number(amount) <= 0) problem("amount", "must be above 0");
      return amount ?? "0.00";
    },
    currency: () => oneOf("currency", valueAt("currency"), CURRENCIES),
    phoneNumber() {
      const value = valueAt("phone_number");
      const digits = typeof value === "string" ? phoneDigits(value) : null;
      if (!isGiven(value)) problem("phone_number", "is required");
      else if (typeof value === "string" && value.startsWith("+")) {
        problem("phone_number", "must not start with +");
      } else if (digits === null) {
        problem(
          "phone_number",
          "must be a string of digits that starts with the country code, such as 251911234567",
        );
      }
      return digits ?? "";
    },
    reference() {
      const value = valueAt("reference");
      const refuse = (message: string) => problem("reference", message);
      if (!isGiven(value)) refuse("is required");
      else if (typeof value !== "string" || value.trim() === "") refuse("must be a string that is not empty");
      else if (value.length > MAX_REFERENCE_LENGTH) {
        refuse(`must be at most ${MAX_REFERENCE_LENGTH} characters; it has ${value.length}`);
      } else if (LONE_SURROGATE_PATTERN.test(value)) refuse("must be well-formed Unicode");
      else return value;
      return "";
    },
    medium: () => mediumOf("medium", valueAt("medium")),
    supportedMediums() {
      const value = valueAt("supported_mediums");
      if (!isGiven(value)) problem("supported_mediums", "is required");
      else if (!Array.isArray(value) || value.length === 0) {
        problem("supported_mediums", "must be an array that is not empty");
      } else {
        const chosenMediums = value.map((name, index) => mediumOf(`supported_mediums[${index}]`, name ?? ""));
        return MEDIUMS.filter((medium) => chosenMediums.includes(medium));
      }
      return [];
    },
    optionalText(name) {
      const value = valueAt(name);
      if (typeof value === "string") return value;
      if (isGiven(value)) problem(name, "must be a string");
      return null;
    },
    checkBoolean(name) {
      const value = valueAt(name);
      if (isGiven(value) && typeof value !== "boolean") problem(name, "must be true or false");
    },
    boolean(name) {
      const value = valueAt(name);
      if (!isGiven(value)) problem(name, "is required");
      else if (typeof value !== "boolean") problem(name, "must be true or false");
      return value === true;
    },
    receiver: (name, need) => address(name, need, problemOfReceiver),
    redirect: (name, need) => address(name, need, problemOfRedirect),
    problem,
    checkProblems() {
      if (problems.length === 0) return;
      throw new SandboxError("ERR_PARAMETERS", `Invalid request parameters: ${describeProblems(problems)}.`, {
        problems,
      });
    },
  };
}

/**
 * An amount with its two places, or null. A string must have them; a number may have fewer, because JSON writers
 * drop trailing zeros.
 */
function twoDecimals(value: unknown): string | null {
  if (typeof value !== "string" && typeof value !== "number") return null;
  const text = typeof value === "number" ? String(value) : value;
  const places = typeof value === "number" ? "(?:\\.(\\d{1,2}))?" : "\\.(\\d{2})";
  const match = new RegExp(`^(-?\\d{1,${MAX_AMOUNT_DIGITS}})${places}$`).exec(text);
  if (match === null || (typeof value === "string" && /^-?0\d/.test(text))) return null;
  return `${match[1]}.${(match[2] ?? "").padEnd(2, "0")}`;
}
