import { isJsonObject, type JsonObject } from "../json.ts";
import type { Order } from "../payments/order.ts";
import type { Medium } from "../wire.ts";
import type { AddressRules } from "./addresses.ts";
import { readParameters } from "./parameters.ts";

export type OrderRules = AddressRules & { readonly mediums: readonly Medium[] };

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
  const nothing = { successUrl: null, failedUrl: null, supportedMediums: null };
  let order: Order;
  if (kind === "checkout") {
    const own = body.redirects === undefined ? ownPages : undefined;
    order = {
      ...nothing,
      ...common,
      type: "DEPOSIT",
      medium: null,
      successUrl: own?.success ?? parameters.redirect("redirects.success", "required"),
      failedUrl: own?.failed ?? parameters.redirect("redirects.failed", "required"),
      supportedMediums: parameters.supportedMediums(),
    };
  } else if (kind === "direct") {
    order = {
      ...nothing,
      ...common,
      type: "DEPOSIT",
      medium: parameters.medium(),
      successUrl: parameters.redirect("redirects.success_url", "optional"),
      failedUrl: parameters.redirect("redirects.failure_url", "optional"),
    };
    parameters.checkBoolean("merchant_pays_fee");
  } else {
    order = { ...nothing, ...common, type: "WITHDRAWAL", medium: parameters.medium() };
  }
  if (kind !== "withdrawal") checkRedirectNames(kind, body, parameters.problem);
  parameters.done();
  return order;
}

/** The two calls name the members of `redirects` differently. Whoever uses the names of the other call is told so. */
function checkRedirectNames(
  kind: "direct" | "checkout",
  body: JsonObject,
  problem: (field: string, message: string) => void,
): void {
  const names = { direct: ["success_url", "failure_url"], checkout: ["success", "failed"] } as const;
  const { redirects } = body;
  if (redirects === undefined || redirects === null) return;
  if (!isJsonObject(redirects)) {
    problem("redirects", "must be an object");
    return;
  }
  for (const [index, other] of names[kind === "direct" ? "checkout" : "direct"].entries()) {
    if (!Object.hasOwn(redirects, other)) continue;
    problem(`redirects.${other}`, `is not a member in this call; it is called ${names[kind][index]} here`);
  }
}
