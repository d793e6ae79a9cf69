import { checkNames } from "../protocol/check-names.ts";
import { type AlertChannel, addressOf, postJson, requireText } from "./channel.ts";

/** Options of {@link pagerDutyChannel}. */
export interface PagerDutyChannelOptions {
  /** The integration key of an integration of the type Events API v2. It is a secret. */
  readonly routingKey: string;
  /**
   * The address that takes the events. Default `https://events.pagerduty.com/v2/enqueue`; accounts in Europe have
   * `https://events.eu.pagerduty.com/v2/enqueue`.
   */
  readonly url?: string | undefined;
  /** The channel's name. Required if there are several channels of this kind. Default `pagerduty`. */
  readonly name?: string | undefined;
}

/**
 * A service of PagerDuty, by its Events API v2. An incident is one alert there: it is triggered, and resolved when it
 * is over. A test stays open until a person resolves it.
 *
 * @throws PayhooksError `ERR_OPTION_MISSING` without a key, `ERR_OPTION_INVALID` for a `url` that is not an address.
 * @example pagerDutyChannel({ routingKey: process.env.PAGERDUTY_KEY })
 */
export function pagerDutyChannel(options: PagerDutyChannelOptions): AlertChannel {
  checkNames("pagerDutyChannel", options, { routingKey: true, url: true, name: true });
  const { routingKey, url = "https://events.pagerduty.com/v2/enqueue", name = "pagerduty" } = options;
  const address = addressOf("pagerDutyChannel.url", url);
  const key = requireText("pagerDutyChannel.routingKey", routingKey);
  return {
    name,
    send({ what, from, incident, severity, summary, kind, advice, since }, signal) {
      const event = {
        routing_key: key,
        event_action: what === "ended" ? "resolve" : "trigger",
        dedup_key: `payhooks/${from}/${incident}`.slice(0, 255),
        payload: {
          summary: `${from}: ${summary}`.slice(0, 1_024),
          severity,
          source: from,
          class: kind,
          timestamp: new Date(since).toISOString(),
          custom_details: { advice },
        },
      };
      return postJson(address, JSON.stringify(event), {}, signal);
    },
  };
}
