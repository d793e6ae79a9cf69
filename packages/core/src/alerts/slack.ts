import { checkNames } from "../protocol/check-names.ts";
import { type AlertChannel, addressOf, postJson } from "./channel.ts";
import type { AlertMessage } from "./message.ts";

const EMOJI_BY_KIND = { opened: "🔴", "going-on": "🟠", ended: "🟢", test: "🔵" } as const;
const WORDS_BY_KIND = {
  opened: "began",
  "going-on": "still going on",
  ended: "over",
  test: "a test",
} as const;

/**
 * A channel of Slack, by the address of an incoming webhook. The address is a secret. Mattermost, Rocket.Chat and
 * Discord (at its address that ends with `/slack`) accept the same messages. Several channels of this kind need a
 * `name` each.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID` for a text that is not an address.
 * @example slackChannel({ url: process.env.SLACK_URL })
 */
export function slackChannel(options: { readonly url: string; readonly name?: string }): AlertChannel {
  checkNames("slackChannel", options, { url: true, name: true });
  const { url, name = "slack" } = options;
  const address = addressOf("slackChannel.url", url);
  return {
    name,
    send: (message, signal) => postJson(address, JSON.stringify({ text: slackTextOf(message) }), {}, signal),
  };
}

function slackTextOf({ what, from, summary, advice, since }: AlertMessage): string {
  const began = `Since ${new Date(since).toISOString()}.`;
  const lines = [
    `${EMOJI_BY_KIND[what]} *${escapeSlackText(from)}*, ${WORDS_BY_KIND[what]}: ${escapeSlackText(summary)}`,
    what === "ended" ? began : `${began} ${escapeSlackText(advice)}`,
  ];
  return lines.join("\n");
}

/** Slack reads these three characters as the beginning of a link or a mention. */
function escapeSlackText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
