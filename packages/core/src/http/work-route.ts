import { createHash, timingSafeEqual } from "node:crypto";
import { consoleLogger } from "../notices/logger.ts";
import { factsOfThrown } from "../notices/thrown.ts";
import { refusalReply } from "../protocol/delivery.ts";
import { ANSWER_STATUS, type DeliveryErrorCode, isPayhooksError, isSetupError } from "../protocol/errors.ts";
import { type ReceiverOrFactory, receiverOf } from "./mount.ts";

/** Options of a route that runs the events that are due. */
export interface WorkRouteOptions {
  /**
   * The secret that the caller sends as `Authorization: Bearer <secret>`. Every call is refused if it is missing, or if no header
   * can carry it.
   */
  readonly secret: string | undefined;
  /** Stops taking events after this time; default 10 s. Keep it below the platform's limit for a request. */
  readonly deadlineMs?: number | undefined;
  /** How many events to run at most; default 1,000. */
  readonly limit?: number | undefined;
}

/** Answers the call of a cron job. Never rejects. */
export async function answerWork<Platform>(
  receiverOrFactory: ReceiverOrFactory<Platform>,
  request: Request,
  { secret, ...limits }: WorkRouteOptions,
  platform: Platform,
): Promise<Response> {
  const fault = secretFault(secret);
  if (fault !== null) {
    consoleLogger.error(`${fault}, so every call is refused. Check the environment variable.`);
    return refusedResponse("ERR_MISCONFIGURED");
  }
  const authorization = request.headers.get("authorization") ?? "";
  // Hashes have the same length, so that the time of the comparison says nothing about the secret.
  if (!timingSafeEqual(sha256(authorization), sha256(`Bearer ${secret}`)))
    return refusedResponse("ERR_UNAUTHORIZED");
  try {
    const report = await (await receiverOf(receiverOrFactory, platform)).work(limits);
    return Response.json(report, { headers: { "cache-control": "no-store" } });
  } catch (error) {
    if (isPayhooksError(error) && error.code === "ERR_CLOSING") return refusedResponse(error.code);
    consoleLogger.error("the work route failed", factsOfThrown(error));
    return refusedResponse(isSetupError(error) ? "ERR_MISCONFIGURED" : "ERR_INBOX_UNAVAILABLE");
  }
}

/** Why no call can have this secret; null if one can. HTTP removes white space at the ends of a header. */
function secretFault(secret: string | undefined): string | null {
  if (typeof secret !== "string" || secret.trim() === "") return "workRoute was given no secret";
  if (/^\s|\s$/.test(secret))
    return "The secret of workRoute begins or ends with white space, which no header carries";
  if (/[^\t -~\x80-\xff]/.test(secret))
    return "The secret of workRoute has a character that no header carries";
  return null;
}

function refusedResponse(code: DeliveryErrorCode): Response {
  const { status, headers, body } = refusalReply(code, ANSWER_STATUS[code]);
  return new Response(body, { status, headers });
}

function sha256(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}
