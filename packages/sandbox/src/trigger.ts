import { randomBytes } from "node:crypto";
import type { JsonObject } from "./json.ts";
import type { Outcome } from "./payments/outcomes.ts";
import type { Currency, Medium } from "./wire.ts";

/** A transaction that the library or the control API starts. It has the fields of the endpoints, all optional. */
export interface TriggerInput {
  readonly amount?: string | number | undefined;
  readonly currency?: Currency | undefined;
  readonly phone_number?: string | undefined;
  readonly medium?: Medium | undefined;
  readonly reference?: string | undefined;
  readonly description?: string | undefined;
  /** Default: the sandbox's `callbackUrl`. */
  readonly callback_url?: string | undefined;
  /** The outcome. Default: the scripts decide. */
  readonly outcome?: Outcome | undefined;
}

/** A checkout that the library or the control API starts. */
export interface CheckoutInput extends Omit<TriggerInput, "medium"> {
  readonly supported_mediums?: readonly Medium[] | undefined;
  readonly redirects?: { readonly success: string; readonly failed: string } | undefined;
}

/** The body of the API call that a trigger makes. */
export function triggerBody(
  kind: "direct" | "withdrawal" | "checkout",
  input: JsonObject,
  defaults: {
    readonly callbackUrl: string | undefined;
    readonly mediums: readonly Medium[];
  },
): JsonObject & { reference: string } {
  const givenFields = Object.fromEntries(
    Object.entries(input).filter(([, value]) => value !== undefined && value !== ""),
  );
  const { outcome: _, ...rest } = givenFields;
  const medium = defaults.mediums.includes("TELEBIRR") ? "TELEBIRR" : defaults.mediums[0];
  return {
    amount: "10.00",
    currency: "ETB",
    phone_number: "251911234567",
    reference: `sandbox-${randomBytes(5).toString("hex")}`,
    ...(defaults.callbackUrl !== undefined && { callback_url: defaults.callbackUrl }),
    ...(kind === "checkout" ? { supported_mediums: [...defaults.mediums] } : { medium }),
    ...rest,
  };
}
