import { systemClock } from "../time/clock.ts";
import { type AlertChannel, channelsOf, senderOf, sendFailureReason, sendInTime } from "./channel.ts";
import { KINDS } from "./message.ts";

/**
 * Sends a test through each channel, once. Resolves to the problem of each channel, by its name; null if there was none.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID` for the channels, or a `from` that is not text.
 * @example await testAlerts([slackChannel({ url: process.env.SLACK_URL })], "shop, production")
 */
export async function testAlerts(
  to: readonly AlertChannel[],
  from = "payhooks",
): Promise<Readonly<Record<string, string | null>>> {
  const now = Date.now();
  const summary = "This is a test. Nothing is wrong.";
  const message = {
    what: "test",
    incident: "test",
    kind: "test",
    ...KINDS.test,
    summary,
    from: senderOf(from),
    since: now,
    at: now,
  } as const;
  const results = [...channelsOf(to).values()].map(async (channel) => {
    try {
      const testMessage = { ...message, id: `test:${now.toString(36)}` };
      await sendInTime(channel, testMessage, systemClock, new AbortController().signal);
      return [channel.name, null] as const;
    } catch (error) {
      return [channel.name, sendFailureReason(error)] as const;
    }
  });
  return Object.fromEntries(await Promise.all(results));
}
