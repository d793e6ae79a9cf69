import type { AnyReceiver } from "@payhooks/core";
import type { DecisionKind, ScriptAnswer } from "./answers.ts";
import { isPermitted, rightFor } from "./guard.ts";
import type { ConsoleUser } from "./options.ts";
import { MAX_DECISION_EVENTS, outcomesOf, previewOf } from "./preview.ts";
import { problemOf } from "./problem.ts";
import { isEventId, readQuery } from "./query.ts";
import { escapeInvisible } from "./views/text.ts";

const MAX_NOTE_LENGTH = 500;
const REVISION_PATTERN = /^[0-9a-f]{16}$/;

/** How something that the page's script has sent is answered. */
export interface ScriptResponse {
  readonly status: 200 | 400 | 403 | 404 | 409 | 503;
  readonly body: ScriptAnswer;
}

/** The requests that the page's script may send. */
type ScriptRequest =
  | {
      readonly action: "replay" | "discard";
      readonly eventId: string;
      /** The revision of the event that the user has seen. */
      readonly revision: string;
      readonly note: string;
      readonly evenIfExpired: boolean;
      /** The handlers that a replay runs; undefined: see `ReplayDecision` of the core. */
      readonly handlers: readonly string[] | undefined;
      readonly repeatEffects: boolean;
    }
  | { readonly action: "retry"; readonly eventId: string; readonly note: string }
  | {
      readonly action: "preview";
      readonly decision: DecisionKind;
      /** The events, or the query of a list that is to be decided about as a whole. */
      readonly which: readonly string[] | string;
    }
  | { readonly action: "outcomes"; readonly eventIds: readonly string[] };

/** Makes a decision that a user has sent, in the user's name; or only shows the events that it would be about. */
export async function answerScriptRequest(
  receiver: AnyReceiver,
  user: ConsoleUser,
  redact: readonly string[],
  text: string,
): Promise<ScriptResponse> {
  const request = readRequest(text);
  if (typeof request === "string") return refusalResponse(400, request, INVALID_CODE);
  try {
    if (request.action === "outcomes") {
      return { status: 200, body: { ok: true, ...(await outcomesOf(receiver, request.eventIds)) } };
    }
    const decision = request.action === "preview" ? request.decision : request.action;
    if (!isPermitted(user, rightFor(decision)))
      return refusalResponse(403, `You may not ${decision} events.`);
    if (request.action === "preview") {
      const which =
        typeof request.which === "string" ? readQuery(new URLSearchParams(request.which)) : request.which;
      return { status: 200, body: { ok: true, ...(await previewOf(receiver, decision, which, redact)) } };
    }
    if (request.action === "retry") {
      await receiver.events.retryNow(request.eventId, { by: user.by, note: request.note });
      return { status: 200, body: { ok: true } };
    }
    const { eventId, revision, note, evenIfExpired, handlers, repeatEffects } = request;
    if (decision === "discard") await receiver.events.discard(eventId, { by: user.by, note, revision });
    else {
      const unknown = await findUnknownHandler(receiver, eventId, handlers ?? []);
      if (unknown !== undefined) {
        return refusalResponse(
          400,
          `The event has no handler ${escapeInvisible(JSON.stringify(unknown))}.`,
          INVALID_CODE,
        );
      }
      await receiver.events.replay(eventId, {
        by: user.by,
        note,
        revision,
        evenIfExpired,
        handlers,
        repeatEffects,
      });
    }
    return { status: 200, body: { ok: true } };
  } catch (error) {
    const problem = problemOf(error);
    if (problem === null) throw error;
    const { status, code, message } = problem;
    if (code === "ERR_EVENT_NOT_FOUND" || code === "ERR_NOT_DECIDABLE") {
      return refusalResponse(404, request.action === "retry" ? NOT_WAITING_MESSAGE : NOT_HELD_MESSAGE, code);
    }
    return code === "ERR_EVENT_CHANGED"
      ? refusalResponse(409, CHANGED_MESSAGE, code)
      : refusalResponse(status, message, code);
  }
}

const CHANGED_MESSAGE =
  "This event has changed since it was shown: it was replayed and held again, or another event of its transaction runs. Look at it again.";

const INVALID_CODE = "ERR_OPTION_INVALID";

/** A named handler that this process does not have for an event. If it has none at all, they are in other processes. */
async function findUnknownHandler(
  receiver: AnyReceiver,
  eventId: string,
  handlers: readonly string[],
): Promise<string | undefined> {
  const event = handlers.length === 0 ? null : await receiver.events.get(eventId);
  const knownHandlers = event === null ? [] : receiver.handlersOf(event);
  return knownHandlers.length === 0 ? undefined : handlers.find((name) => !knownHandlers.includes(name));
}

const NOT_HELD_MESSAGE = "This event is no longer held. Somebody may have replayed or discarded it already.";
const NOT_WAITING_MESSAGE =
  "This event waits for no later attempt any more: it runs, is due, is held or has ended.";

function refusalResponse(
  status: Exclude<ScriptResponse["status"], 200>,
  message: string,
  code?: string,
): ScriptResponse {
  return { status, body: { ok: false, ...(code !== undefined && { code }), message } };
}

/** The request in a body, or its fault. */
function readRequest(text: string): ScriptRequest | string {
  let sentMembers: Readonly<Record<string, unknown>>;
  try {
    sentMembers = Object(JSON.parse(text));
  } catch {
    return "The request's body is not JSON.";
  }
  const {
    action,
    decision,
    eventId,
    eventIds,
    query,
    revision,
    note,
    evenIfExpired,
    handlers,
    repeatEffects,
  } = sentMembers;
  if (action === "outcomes") return areEventIds(eventIds) ? { action, eventIds } : EVENT_IDS_MESSAGE;
  if (action === "preview") {
    if (!isDecision(decision)) return "The decision must be replay, discard or retry.";
    if (typeof query === "string") return { action, decision, which: query };
    return areEventIds(eventIds) ? { action, decision, which: eventIds } : EVENT_IDS_MESSAGE;
  }
  if (!isDecision(action)) return "The action must be replay, discard or retry.";
  if (typeof eventId !== "string" || !isEventId(eventId)) return "The eventId must be 48 hex digits.";
  if (typeof note !== "string" || note.trim() === "") return "Write a note that says why.";
  if (note.length > MAX_NOTE_LENGTH) return `The note must have at most ${MAX_NOTE_LENGTH} characters.`;
  if (action === "retry") return { action, eventId, note: note.trim() };
  if (typeof revision !== "string" || !REVISION_PATTERN.test(revision)) {
    return "The revision of the event is missing: a decision is about what a preview has shown.";
  }
  if (handlers !== undefined && !areNames(handlers)) return "The handlers must be a list of names.";
  if (repeatEffects === true && handlers === undefined)
    return "Name the handlers whose effects are to happen again.";
  return {
    action,
    eventId,
    revision,
    note: note.trim(),
    evenIfExpired: evenIfExpired === true,
    handlers,
    repeatEffects: repeatEffects === true,
  };
}

const EVENT_IDS_MESSAGE = `The eventIds must be a list of at most ${MAX_DECISION_EVENTS} ids of 48 hex digits.`;

function isDecision(value: unknown): value is DecisionKind {
  return value === "replay" || value === "discard" || value === "retry";
}

const MAX_HANDLERS = 100;

function areNames(value: unknown): value is readonly string[] {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.length <= MAX_HANDLERS &&
    value.every((name) => typeof name === "string" && name !== "" && name.length <= 64)
  );
}

function areEventIds(value: unknown): value is readonly string[] {
  return (
    Array.isArray(value) &&
    value.length <= MAX_DECISION_EVENTS &&
    value.every((eventId) => typeof eventId === "string" && isEventId(eventId))
  );
}
