import type { JsonObject } from "../json.ts";
import type { WebhookSettings } from "../wire.ts";
import type { OrderRules } from "./orders.ts";
import { readParameters } from "./parameters.ts";

/**
 * Reads webhook settings, which replace the earlier ones. `webhook_secret` may be left out, null or empty; deliveries
 * are then not signed. `webhook_url` may be left out or null while the webhooks are off.
 */
export function readSettings(body: JsonObject, rules: OrderRules): WebhookSettings {
  const parameters = readParameters(body, rules);
  const isEnabled = parameters.boolean("webhook_enabled");
  const url = parameters.receiver("webhook_url", isEnabled ? "required" : "optional");
  const secret = parameters.optionalText("webhook_secret") || null;
  if (secret?.trim() === "") parameters.problem("webhook_secret", "must not be blank");
  parameters.checkProblems();
  return { webhook_url: url, webhook_secret: secret, webhook_enabled: isEnabled };
}
