import { consoleLogger } from "../notices/logger.ts";
import { factsOfThrown } from "../notices/thrown.ts";
import { checkNames } from "../protocol/check-names.ts";
import { checkTime } from "../protocol/check-number.ts";
import type { Reply } from "../protocol/delivery.ts";
import type { Probe, ReadyOptions } from "../receiver/receiver.ts";
import { type ReceiverOrFactory, receiverOf } from "./mount.ts";

/** Answers whether the process is alive, or whether deliveries should be sent to it. Never rejects. */
export type MountedProbe<Platform = void> = (platform: Platform) => Promise<Reply>;

/**
 * Mounts `receiver.live` or `receiver.ready`: 200 `{"ok":true}`, or 503 `{"ok":false,"code":"…"}`. Anybody may ask, so the answer
 * has only a code of a closed list. The receiver logs the explanation when the answer changes.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID` for a `maxDueAgeMs` that is not a positive number.
 */
export function mountProbe<Platform = void>(
  receiverOrFactory: ReceiverOrFactory<Platform>,
  probeName: "live" | "ready",
  options: ReadyOptions = {},
): MountedProbe<Platform> {
  checkNames("ready", options, { maxDueAgeMs: true });
  if (options.maxDueAgeMs !== undefined) checkTime("maxDueAgeMs", options.maxDueAgeMs);
  let lastError: string | null = null;
  return async (platform) => {
    try {
      const receiver = await receiverOf(receiverOrFactory, platform);
      const probe = probeName === "live" ? receiver.live() : await receiver.ready(options);
      lastError = null;
      return replyOf(probe);
    } catch (error) {
      const facts = factsOfThrown(error);
      if (facts.error !== lastError)
        consoleLogger.error(`/${probeName} is answered 503: there is no receiver`, facts);
      lastError = facts.error;
      return replyOf({ ok: false, code: "no-receiver" });
    }
  };
}

/** Answers must never come from a cache. */
const PROBE_HEADERS = { "content-type": "application/json", "cache-control": "no-store" } as const;

function replyOf({ ok, code }: Pick<Probe, "ok" | "code">): Reply {
  return {
    status: ok ? 200 : 503,
    headers: PROBE_HEADERS,
    body: JSON.stringify(ok ? { ok } : { ok, code }),
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
