import type { SwapResult } from "../inbox/contract/store.ts";

/** Errors with which Redis, or a node of a cluster, refuses a script before it has written anything. */
const NOT_WRITTEN_PATTERN =
  /(?:^|[^A-Z])(?:LOADING|OOM|READONLY|NOREPLICAS|MISCONF|MASTERDOWN|BUSY|NOPERM|NOAUTH|WRONGPASS|TRYAGAIN|ASK|MOVED|CLUSTERDOWN|CROSSSLOT)(?: |$)/;
/** The text is longer than the server accepts. */
const TOO_LONG_PATTERN = /invalid bulk length|exceeds maximum allowed size|max request size exceeded/;
/** ioredis had no connection to send the command on. */
const NOT_SENT_PATTERN = /enableOfflineQueue options is false/;

/** The meaning of a script's error for its writes. */
export function writeOutcomeOf(error: unknown): Extract<SwapResult, { readonly cause: unknown }> {
  const message = messageOf(error);
  if (TOO_LONG_PATTERN.test(message)) return { kind: "refused", cause: error };
  if (NOT_WRITTEN_PATTERN.test(message) || NOT_SENT_PATTERN.test(message))
    return { kind: "not-written", cause: error };
  return { kind: "unknown", cause: error };
}

/** The error of a full Redis. The script only returns a sign of it, because it goes on with the other records. */
export function noRoomError(): Error {
  const error = new Error("OOM command not allowed when used memory > 'maxmemory'.");
  error.name = "ReplyError";
  return error;
}

/** True for an error that the server sent, and not the client when it lost the connection. */
export function isReply(error: unknown): boolean {
  return /^[A-Z]{3,} /.test(messageOf(error));
}

/** True for a demoted primary. An older Redis reports this from inside a script. */
export function isReadOnly(error: unknown): boolean {
  return /(?:^|[^A-Z])READONLY /.test(messageOf(error));
}

/** True if the server belongs to a cluster, and the script's keys are not in one slot. */
export function isCrossSlot(error: unknown): boolean {
  return messageOf(error).includes("CROSSSLOT");
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : "";
}
