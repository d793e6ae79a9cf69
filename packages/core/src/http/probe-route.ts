import { checkNames } from "../protocol/check-names.ts";
import { checkTime } from "../protocol/check-number.ts";
import type { Reply } from "../protocol/delivery.ts";
import { describeError } from "../protocol/foreign-error.ts";
import type { Probe, ReadyOptions } from "../receiver/receiver.ts";
import { type ReceiverSource, receiverOf } from "./mount.ts";

/** Answers whether the process is alive, or whether deliveries should be sent to it. Never rejects. */
export type MountedProbe<Platform = void> = (platform: Platform) => Promise<Reply>;

/**
 * Mounts `receiver.live` or `receiver.ready`: 200 `{"ok":true}`, or 503 with the reason.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID` for a `maxDueAgeMs` that is not a positive number.
 */
export function mountProbe<Platform = void>(
  source: ReceiverSource<Platform>,
  which: "live" | "ready",
  options: ReadyOptions = {},
): MountedProbe<Platform> {
  checkNames("ready", options, { maxDueAgeMs: true });
  if (options.maxDueAgeMs !== undefined) checkTime("maxDueAgeMs", options.maxDueAgeMs);
  return async (platform) => {
    try {
      const receiver = await receiverOf(source, platform);
      return replyOf(which === "live" ? receiver.live() : await receiver.ready(options));
    } catch (error) {
      return replyOf({ ok: false, detail: `there is no receiver: ${describeError(error)}` });
    }
  };
}

/** Answers must never come from a cache. */
const HEADERS = { "content-type": "application/json", "cache-control": "no-store" } as const;

function replyOf({ ok, detail }: Probe): Reply {
  return {
    status: ok ? 200 : 503,
    headers: HEADERS,
    body: JSON.stringify(ok ? { ok } : { ok, detail }),
  };
}

/** A mounted probe as a web-standard response. */
export async function answerProbe<Platform>(
  probe: MountedProbe<Platform>,
  platform: Platform,
): Promise<Response> {
  const { status, headers, body } = await probe(platform);
  return new Response(body, { status, headers });
}
