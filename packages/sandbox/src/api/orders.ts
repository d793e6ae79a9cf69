import { isJsonObject, type JsonObject } from "../json.ts";
import type { WireNames } from "../names.ts";
import type { Order } from "../payments/order.ts";
import type { Medium } from "../wire.ts";
import type { AddressRules } from "./addresses.ts";
import { readParameters } from "./parameters.ts";

export type OrderRules = AddressRules & {
  readonly mediums: readonly Medium[];
  /** Refuses orders that are otherwise accepted with a warning. */
  readonly strict: boolean;
  readonly names: WireNames;
};

/** The three calls that create a transaction. */
export type OrderKind = "direct" | "withdrawal" | "checkout";

/**
 * Reads the body of a call. Throws `ERR_PARAMETERS` with every rule that it breaks (specification, Endpoints).
 *
 * The specification does not show the body of a withdrawal. The sandbox takes the body of a direct payment for it,
 * without `redirects` and `merchant_pays_fee`.
 *
 * @param ownPages where the customer goes after a checkout whose body has no `redirects`. These are pages of the sandbox,
 *   so the rules for the merchant's addresses are not for them. Without `ownPages`, `redirects` are required.
 */
export function readOrder(
  kind: OrderKind,
  body: JsonObject,
  rules: OrderRules,
  ownPages?: { readonly success: string; readonly failed: string },
): Order {
  const parameters = readParameters(body, rules);
  const common = {
    amount: parameters.amount(),
    currency: parameters.currency(),
    phoneNumber: parameters.phoneNumber(),
    reference: parameters.reference(),
    description: parameters.optionalText("description"),
    callbackUrl: parameters.receiver("callback_url", "optional"),
  };
  const nothing = {
    successUrl: null,
    failedUrl: null,
    supportedMediums: null,
    onBehalfOf: null,
    warnings: [],
  };
  const paths = kind === "withdrawal" ? null : redirectPaths(kind, body, rules.strict, parameters.problem);
  let order: Order;
  if (kind === "withdrawal" || paths === null) {
    order = { ...nothing, ...common, type: "WITHDRAWAL", medium: parameters.medium() };
  } else if (kind === "checkout") {
    const defaultPages = body.redirects === undefined ? ownPages : undefined;
    order = {
      ...nothing,
      ...common,
      type: "DEPOSIT",
      medium: null,
      successUrl: defaultPages?.success ?? parameters.redirect(paths.success, "required"),
      failedUrl: defaultPages?.failed ?? parameters.redirect(paths.failed, "required"),
      supportedMediums: parameters.supportedMediums(),
      warnings: paths.warnings,
    };
  } else {
    order = {
      ...nothing,
      ...common,
      type: "DEPOSIT",
      medium: parameters.medium(),
      successUrl: parameters.redirect(paths.success, "optional"),
      failedUrl: parameters.redirect(paths.failed, "optional"),
      warnings: paths.warnings,
    };
    parameters.checkBoolean("merchant_pays_fee");
  }
  parameters.checkProblems();
  return order;
}

/** The members of `redirects` in each call, and what other documentation and client libraries call them. */
const REDIRECT_NAMES = {
  success: { direct: "success_url", checkout: "success", others: ["successUrl"] },
  failed: { direct: "failure_url", checkout: "failed", others: ["failureUrl", "failed_url", "failedUrl"] },
} as const;

/**
 * The paths of the two redirects as the body spells them. The two calls name them differently, and so do the clients of
 * such services. Another spelling is taken with a warning, unless `isStrict`; two at once are a problem.
 */
function redirectPaths(
  kind: "direct" | "checkout",
  body: JsonObject,
  isStrict: boolean,
  problem: (field: string, message: string) => void,
): { readonly success: string; readonly failed: string; readonly warnings: readonly string[] } {
  const { redirects } = body;
  const warnings: string[] = [];
  if (redirects !== undefined && redirects !== null && !isJsonObject(redirects)) {
    problem("redirects", "must be an object");
  }
  const pathOf = ({ direct, checkout, others }: (typeof REDIRECT_NAMES)["success" | "failed"]): string => {
    const right = kind === "direct" ? direct : checkout;
    const givenNames = [direct, checkout, ...others].filter(
      (name) => isJsonObject(redirects) && Object.hasOwn(redirects, name) && redirects[name] !== null,
    );
    const otherName = givenNames.find((name) => name !== right);
    if (otherName === undefined) return `redirects.${right}`;
    const rule = `is not a member in this call; it is called ${right} here`;
    if (isStrict) problem(`redirects.${otherName}`, rule);
    else if (givenNames.length > 1)
      problem(`redirects.${otherName}`, `is given beside ${givenNames.find((name) => name !== otherName)}`);
    else {
      warnings.push(`redirects.${otherName} ${rule}.`);
      return `redirects.${otherName}`;
    }
    return `redirects.${right}`;
  };
  return { success: pathOf(REDIRECT_NAMES.success), failed: pathOf(REDIRECT_NAMES.failed), warnings };
}
