import { invalidOptionError, PayhooksError } from "../protocol/errors.ts";
import { describeError } from "../protocol/foreign-error.ts";
import { describeValue } from "../protocol/foreign-value.ts";
import type { Clock } from "../time/clock.ts";
import type { AlertMessage } from "./message.ts";

/** A way to a person. */
export interface AlertChannel {
  /** Identifies the channel, in the inbox as well: up to 32 lowercase letters, digits and `-`. */
  readonly name: string;
  /**
   * Sends a message within five seconds, after which `signal` aborts. If it is not known whether a message arrived, it
   * is sent again with the same `id`.
   *
   * @throws AlertNotSent if nobody got it. Any other error counts as one that may pass.
   */
  send(message: AlertMessage, signal: AbortSignal): Promise<void>;
}

/** The inbox keeps a state for each channel, and has room for this many. */
const MAX_CHANNELS = 5;

/** How long a channel has for one message. */
const SEND_TIMEOUT_MS = 5_000;

/** A message was not sent. */
export class AlertNotSent extends Error {
  override readonly name = "AlertNotSent";
  /** True if a later attempt may succeed. */
  readonly mayPass: boolean;
  /** When to try again at the earliest, in milliseconds from now; null if the server has not said. */
  readonly retryAfterMs: number | null;

  constructor(
    why: string,
    {
      mayPass,
      retryAfterMs = null,
    }: { readonly mayPass: boolean; readonly retryAfterMs?: number | null | undefined },
  ) {
    super(why);
    this.mayPass = mayPass;
    this.retryAfterMs = retryAfterMs;
  }
}

/** The channel had not answered when the time was up, or when the sender was stopped. Somebody may have got the message. */
export class AlertUnanswered extends Error {
  override readonly name = "AlertUnanswered";
}

/**
 * Sends a message. A channel may never answer, and may ignore its signal. So this stops waiting when the time is up, or
 * when `stopping` aborts.
 *
 * @throws AlertUnanswered then, or whatever the channel throws.
 */
export function sendInTime(
  channel: AlertChannel,
  message: AlertMessage,
  clock: Clock,
  stopping: AbortSignal,
): Promise<void> {
  const cancellation = new AbortController();
  return new Promise<void>((resolve, reject) => {
    const giveUp = (why: string): void => {
      cancellation.abort();
      reject(new AlertUnanswered(why));
    };
    const stop = (): void => giveUp("the sender was stopped");
    const cancel = clock.after(SEND_TIMEOUT_MS, () =>
      giveUp(`no answer within ${SEND_TIMEOUT_MS / 1_000} s`),
    );
    stopping.addEventListener("abort", stop);
    cancellation.signal.addEventListener("abort", () => stopping.removeEventListener("abort", stop));
    const sending = (async () => channel.send(message, cancellation.signal))();
    sending.then(resolve, reject).finally(() => {
      cancel();
      stopping.removeEventListener("abort", stop);
    });
  });
}

/** Why a channel did not take a message, in words without a secret. */
export function sendFailureReason(error: unknown): string {
  const isOwnText = error instanceof AlertNotSent || error instanceof AlertUnanswered;
  return isOwnText ? error.message : describeError(error);
}

/** Posts JSON. Neither the address nor the answer is in an error, because both may be secret. */
export async function postJson(
  url: URL,
  body: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<void> {
  let response: Response;
  try {
    response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body,
      redirect: "manual",
      signal,
    });
  } catch (error) {
    throw new AlertNotSent(describeError(error), { mayPass: true });
  }
  await response.body?.cancel().catch(() => {});
  const { status } = response;
  if (status >= 200 && status < 300) return;
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  const mayPass = status >= 500 || status === 429 || status === 408;
  const retryAfterMs = Number.isFinite(seconds) ? seconds * 1_000 : null;
  throw new AlertNotSent(`HTTP ${status}`, { mayPass, retryAfterMs });
}

/** An address of a channel. The error does not repeat it, because it may be a secret. */
export function addressOf(option: string, value: string): URL {
  const url = URL.canParse(value) ? new URL(value) : null;
  if (url !== null && /^https?:$/.test(url.protocol)) return url;
  throw invalidOptionError(`${option} is not a full address.`, "Give an address that begins with https://.");
}

/** A text that must not be empty. */
export function requireText(option: string, value: string): string {
  if (typeof value === "string" && value.trim() !== "") return value;
  throw new PayhooksError("ERR_OPTION_MISSING", `${option} is missing.`, {
    fix: "Give it as a text, such as from an environment variable that is set.",
  });
}

/** The channels by their names. */
export function channelsOf(to: readonly AlertChannel[]): ReadonlyMap<string, AlertChannel> {
  if (!Array.isArray(to) || to.length === 0 || to.length > MAX_CHANNELS) {
    throw invalidOptionError(
      "to has no channel, or too many.",
      `Give 1 to ${MAX_CHANNELS}, such as slackChannel({ url }).`,
    );
  }
  const channels = new Map<string, AlertChannel>();
  for (const channel of to as readonly (AlertChannel | null)[]) {
    const { name, send } = channel ?? {};
    if (typeof name !== "string" || !/^[a-z][a-z0-9-]{0,31}$/.test(name) || channels.has(name)) {
      throw invalidOptionError(
        `A channel cannot be named ${describeValue(name)}.`,
        "Give each channel a name of its own, of up to 32 lowercase letters, digits and -.",
      );
    }
    if (channel === null || typeof send !== "function") {
      throw invalidOptionError(
        `The channel ${name} has no function send.`,
        "Give it one: send(message, signal).",
      );
    }
    channels.set(name, channel);
  }
  return channels;
}

/** The name of the application in messages. */
export function senderOf(from: string): string {
  if (typeof from === "string") return from.slice(0, 60);
  throw invalidOptionError(
    "from is not a text.",
    "Give the name of your application, such as shop, production.",
  );
}
