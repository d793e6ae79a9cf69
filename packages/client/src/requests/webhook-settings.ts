import { ClientError } from "../errors.ts";
import { kindOf } from "../kind-of.ts";
import { booleanField, callbackUrlText } from "./fields.ts";
import { writeMembers } from "./members.ts";
import type { RequestRules } from "./rules.ts";

/**
 * The outbound webhook settings of a master merchant (specification, Connected-account webhook settings). All three are
 * required. The specification does not say what happens to a member that a PUT leaves out, and without a secret
 * webhooks are not signed.
 */
export interface WebhookSettings {
  /** A URL with HTTPS. */
  readonly webhook_url: string;
  /** The secret that the receiver has as `connect.secret`. */
  readonly webhook_secret: string;
  readonly webhook_enabled: boolean;
}

/** Checks the settings, and writes them as JSON. */
export function webhookSettingsBody(settings: WebhookSettings, rules: RequestRules): string {
  return writeMembers(
    settings,
    {
      webhook_url: { required: true, text: (value) => callbackUrlText(value, rules, "webhook_url") },
      webhook_secret: { required: true, text: secretText },
      webhook_enabled: { required: true, text: (value) => booleanField(value, "webhook_enabled") },
    },
    { extra: false },
  );
}

function secretText(secret: unknown): string {
  const problem =
    typeof secret !== "string"
      ? `is ${kindOf(secret)}`
      : secret.trim() === ""
        ? "is blank"
        : secret.trim() !== secret
          ? "begins or ends with white space"
          : null;
  if (problem === null) return JSON.stringify(secret);
  throw new ClientError("ERR_FIELD_INVALID", `webhook_secret ${problem}.`, {
    fix: "Pass a long random text, the same as the receiver's connect.secret.",
    field: "webhook_secret",
  });
}
