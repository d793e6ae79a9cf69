import type { SwapResult } from "../inbox/store.ts";

/** With these Redis, or a cluster's node, refuses a script before it has written anything. */
const NOT_WRITTEN =
  /(?:^|[^A-Z])(?:LOADING|OOM|READONLY|NOREPLICAS|MISCONF|MASTERDOWN|BUSY|NOPERM|NOAUTH|WRONGPASS|TRYAGAIN|ASK|MOVED|CLUSTERDOWN|CROSSSLOT)(?: |$)/;
/** The text is longer than the server takes. */
const TOO_LONG = /invalid bulk length|exceeds maximum allowed size|max request size exceeded/;
/** ioredis had no connection to send it on. */
const NOT_SENT = /enableOfflineQueue options is false/;

/** What an error of a script says about its writes. */
export function failureOf(error: unknown): Extract<SwapResult, { readonly cause: unknown }> {
  const message = messageOf(error);
  if (TOO_LONG.test(message)) return { kind: "refused", cause: error };
  if (NOT_WRITTEN.test(message) || NOT_SENT.test(message)) return { kind: "not-written", cause: error };
  return { kind: "unknown", cause: error };
}

/** True when the server itself said so, and not whoever lost the connection to it. */
export function isReply(error: unknown): boolean {
  return /^[A-Z]{3,} /.test(messageOf(error));
}

/** A demoted primary, also where an older Redis says so from inside of a script. */
export function isReadOnly(error: unknown): boolean {
  return /(?:^|[^A-Z])READONLY /.test(messageOf(error));
}

/** The script's keys are not in one slot, and its server is a cluster's. */
export function isCrossSlot(error: unknown): boolean {
  return messageOf(error).includes("CROSSSLOT");
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : "";
}
