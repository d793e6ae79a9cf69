import { createHmac } from "node:crypto";
import { checkNames } from "../protocol/check-names.ts";
import { PayhooksError } from "../protocol/errors.ts";
import { type AlertChannel, addressOf, postJson, requireText } from "./channel.ts";

/** Options of {@link webhookChannel}. */
export interface WebhookChannelOptions {
  readonly url: string;
  /** The secret, which the receiver of the messages has, too: `whsec_` and base64, of 24 bytes or more. */
  readonly secret: string;
  /** The channel's name. Required if there are several channels of this kind. Default `webhook`. */
  readonly name?: string | undefined;
}

/**
 * Posts each message as JSON, signed as Standard Webhooks say, so that any of their libraries verifies it, and a source
 * `standardWebhooks` of Payhooks too. `type` is `payhooks.alert`, and `data` the {@link AlertMessage}.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID` for a text that is not an address, or a secret of another form.
 * @example webhookChannel({ url: "https://ops.example/alerts", secret: process.env.ALERTS_SECRET })
 */
export function webhookChannel(options: WebhookChannelOptions): AlertChannel {
  checkNames("webhookChannel", options, { url: true, secret: true, name: true });
  const { url, secret, name = "webhook" } = options;
  const address = addressOf("webhookChannel.url", url);
  const key = importHmacKey(requireText("webhookChannel.secret", secret));
  return {
    name,
    send(message, signal) {
      const { id, at } = message;
      const timestamp = String(Math.floor(at / 1_000));
      const body = JSON.stringify({
        type: "payhooks.alert",
        timestamp: new Date(at).toISOString(),
        data: message,
      });
      const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
      const headers = {
        "webhook-id": id,
        "webhook-timestamp": timestamp,
        "webhook-signature": `v1,${signature}`,
      };
      return postJson(address, body, headers, signal);
    },
  };
}

function importHmacKey(secret: string): Buffer {
  const [, text = ""] = /^whsec_([A-Za-z0-9+/]{32,}={0,2})$/.exec(secret) ?? [];
  const key = Buffer.from(text, "base64");
  if (key.length >= 24) return key;
  throw new PayhooksError("ERR_OPTION_INVALID", "webhookChannel.secret does not have the form of a secret.", {
    fix: "Use whsec_ and the base64 of at least 24 random bytes: openssl rand -base64 32.",
  });
}
