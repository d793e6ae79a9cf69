import { isPayhooksError, type Receiver } from "@payhooks/core";
import { may } from "./guard.ts";
import type { ConsoleUser } from "./options.ts";
import { isEventId } from "./query.ts";

const MAX_NOTE_LENGTH = 500;

/** The answer to a decision. `message` is null if the decision was made. */
export interface Decided {
  readonly status: 200 | 400 | 403 | 404 | 409 | 503;
  readonly message: string | null;
}

interface Wanted {
  readonly action: "replay" | "discard";
  readonly eventId: string;
  readonly note: string;
  readonly evenIfExpired: boolean;
}

/** Makes a decision that a user has sent, in the user's name. */
export async function decide(receiver: Receiver, user: ConsoleUser, text: string): Promise<Decided> {
  const wanted = wantedIn(text);
  if (typeof wanted === "string") return { status: 400, message: wanted };
  const { action, eventId, note, evenIfExpired } = wanted;
  if (!may(user, action)) return { status: 403, message: `You may not ${action} events.` };
  try {
    if (action === "discard") await receiver.held.discard(eventId, { by: user.by, note });
    else await receiver.held.replay(eventId, { by: user.by, note, evenIfExpired });
    return { status: 200, message: null };
  } catch (error) {
    if (!isPayhooksError(error)) throw error;
    if (error.code === "ERR_HELD_NOT_FOUND") {
      return {
        status: 404,
        message: "This event is no longer held. Somebody may have replayed or discarded it already.",
      };
    }
    return { status: 503, message: error.message };
  }
}

/** The decision in a body, or what is wrong with the body. */
function wantedIn(text: string): Wanted | string {
  let sent: Partial<Record<keyof Wanted, unknown>>;
  try {
    sent = Object(JSON.parse(text));
  } catch {
    return "The request's body is not JSON.";
  }
  const { action, eventId, note, evenIfExpired } = sent;
  if (action !== "replay" && action !== "discard") return "The action must be replay or discard.";
  if (typeof eventId !== "string" || !isEventId(eventId)) return "The eventId must be 48 hex digits.";
  if (typeof note !== "string" || note.trim() === "") return "Write a note that says why.";
  if (note.length > MAX_NOTE_LENGTH) return `The note must have at most ${MAX_NOTE_LENGTH} characters.`;
  return { action, eventId, note: note.trim(), evenIfExpired: evenIfExpired === true };
}
