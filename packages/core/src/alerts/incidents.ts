import { type IncidentObservation, OBSERVATION_TTL_MS } from "./incident-observation.ts";
import { type AlertMessage, type IncidentKind, KINDS } from "./message.ts";

/** The latest message about an incident to one channel, sent or to be sent again. */
interface ChannelState {
  /** When it was last reported, as a time of the incident's life; null: never. */
  at: number | null;
  /** How bad it was then. */
  level: number;
  /** How many messages about it were sent. */
  count: number;
  isEnded: boolean;
  /** How often the next message was tried, and when it may be tried again. */
  tries: number;
  nextAt: number;
}

const INITIAL_CHANNEL_STATE: ChannelState = {
  at: null,
  level: 0,
  count: 0,
  isEnded: false,
  tries: 0,
  nextAt: 0,
};

interface Incident {
  readonly kind: IncidentKind;
  readonly since: number;
  readonly isOnce: boolean;
  summary: string;
  level: number;
  /** It is over at this time, unless a process sees it again. */
  until: number;
  readonly sent: Record<string, ChannelState>;
}

/** A note of another version counts as none. */
const NOTE_VERSION = 2;

interface StoredNote {
  readonly version: number;
  readonly by: string;
  readonly at: number;
  readonly all: readonly (readonly [string, Incident])[];
}

/** A message that is due. */
export interface DueMessage {
  readonly channel: string;
  readonly message: AlertMessage;
  /** It was sent. */
  onSent(): void;
  /** It was not sent. True if it is given up. */
  onFailed(mayPass: boolean, retryAfterMs: number | null): boolean;
}

/** An incident that has become worse is reported again after this time. */
const WORSENED_REPEAT_MS = 15 * 60_000;
/** The number of attempts. The last is half an hour after the first. */
const MAX_TRIES = 8;
const FIRST_RETRY_DELAY_MS = 15_000;
const MAX_RETRY_DELAY_MS = 10 * 60_000;
/** More incidents at one time would not help anybody. With five channels each, this many have room in the note. */
const MAX_INCIDENTS = 12;
/** The longest note that a lease takes. */
const MAX_NOTE_CHARS = 15_000;
const MAX_SUMMARY_CHARS = 200;

/**
 * The incidents of an inbox, and the messages that each channel got about them. They are stored in the note of a lease,
 * so that all processes know them.
 */
export class Incidents {
  /** The process that checked last, and the time. */
  checkedBy = "";
  checkedAt = 0;
  readonly #incidents: Map<string, Incident>;

  private constructor(all: Map<string, Incident>) {
    this.#incidents = all;
  }

  /** Reads a note. An unreadable note counts as none. A time in the future, written by a clock that is ahead, counts as now. */
  static fromNote(note: string, now: number): Incidents {
    try {
      const { version, by, at, all: entries } = JSON.parse(note) as StoredNote;
      if (version !== NOTE_VERSION) return new Incidents(new Map());
      for (const [, state] of entries) checkTimes(state, now);
      const incidents = new Incidents(new Map(entries));
      incidents.checkedBy = by;
      incidents.checkedAt = at;
      return incidents;
    } catch {
      return new Incidents(new Map());
    }
  }

  /**
   * If each process has other channels, there may be no room for the last incidents. They are left out, because
   * otherwise the note could not be written.
   */
  get note(): string {
    const entries = [...this.#incidents];
    for (;;) {
      const note = JSON.stringify({
        version: NOTE_VERSION,
        by: this.checkedBy,
        at: this.checkedAt,
        all: entries,
      } satisfies StoredNote);
      if (note.length <= MAX_NOTE_CHARS || entries.pop() === undefined) return note;
    }
  }

  markChecked(by: string, now: number): void {
    this.checkedBy = by;
    this.checkedAt = now;
  }

  /** Nothing is over before this time. */
  prolong(until: number): void {
    for (const state of this.#incidents.values()) state.until = Math.max(state.until, until);
  }

  /** True if an observation is stored here already, and need not be written again. */
  hasObservation({ incident, kind, level }: IncidentObservation, now: number): boolean {
    const knownState = this.#incidents.get(incident);
    return (
      knownState !== undefined &&
      knownState.level >= level &&
      knownState.until >= now + OBSERVATION_TTL_MS[kind] / 2
    );
  }

  observe({ incident, kind, summary, level, isOnce }: IncidentObservation, now: number): void {
    const knownState = this.#incidents.get(incident);
    if (knownState === undefined && !this.#makeRoom(isOnce)) return;
    const state = knownState ?? { kind, since: now, isOnce, summary, level, until: 0, sent: {} };
    state.summary = summary.slice(0, MAX_SUMMARY_CHARS);
    state.level = level;
    state.until = Math.max(state.until, now + OBSERVATION_TTL_MS[kind]);
    this.#incidents.set(incident, state);
  }

  /** False if there is no room. An observation that is made only once takes the place of one that will be made again. */
  #makeRoom(isOnce: boolean): boolean {
    if (this.#incidents.size < MAX_INCIDENTS) return true;
    const replaceable = isOnce ? [...this.#incidents].findLast(([, state]) => !state.isOnce) : undefined;
    return replaceable !== undefined && this.#incidents.delete(replaceable[0]);
  }

  /** Takes over, as far as there is room, the incidents that a process has reported while it could not write. */
  merge(reported: Incidents): void {
    for (const [incident, state] of reported.#incidents) {
      const knownState = this.#incidents.get(incident);
      if (knownState === undefined) {
        if (this.#makeRoom(state.isOnce)) this.#incidents.set(incident, state);
        continue;
      }
      knownState.until = Math.max(knownState.until, state.until);
      for (const [channel, sent] of Object.entries(state.sent)) {
        const before = knownState.sent[channel];
        if (before === undefined || before.count < sent.count) knownState.sent[channel] = sent;
      }
    }
  }

  /** The messages that are due, at most one for each incident and channel. */
  dueMessages(
    channels: readonly string[],
    from: string,
    now: number,
    repeatMs: number,
  ): readonly DueMessage[] {
    const messages: DueMessage[] = [];
    for (const [incident, state] of this.#incidents) {
      for (const channel of channels) {
        const channelState = state.sent[channel] ?? { ...INITIAL_CHANNEL_STATE };
        state.sent[channel] = channelState;
        const what = messageKind(state, channelState, now, repeatMs);
        if (what === null || channelState.nextAt > now) continue;
        const { kind, summary, since } = state;
        // Standard Webhooks separate the id from what follows it by a dot, so an id with a dot is refused.
        const id = `${incident}:${since.toString(36)}:${what}:${channelState.count}`.replaceAll(".", "/");
        const message = { what, id, incident, kind, ...KINDS[kind], summary, from, since, at: now };
        messages.push({ channel, message, ...resultCallbacks(state, channelState, what, now) });
      }
    }
    return messages;
  }

  /** Forgets the incidents that are over, once every channel was notified. */
  forgetEnded(channels: readonly string[], now: number): void {
    for (const [incident, state] of this.#incidents) {
      const isReported = channels.every((channel) => state.sent[channel]?.isEnded === true);
      if (state.until <= now && isReported) this.#incidents.delete(incident);
    }
  }
}

/** A time that another process has written never delays a message for longer than a time that is written now. */
function checkTimes(state: Incident, now: number): void {
  state.until = Math.min(state.until, now + OBSERVATION_TTL_MS[state.kind]);
  for (const channelState of Object.values(state.sent)) {
    channelState.nextAt = Math.min(channelState.nextAt, now + MAX_RETRY_DELAY_MS);
    if (channelState.at !== null) channelState.at = Math.min(channelState.at, now);
  }
}

function messageKind(
  state: Incident,
  channelState: ChannelState,
  now: number,
  repeatMs: number,
): "opened" | "going-on" | "ended" | null {
  if (channelState.at === null) return "opened";
  if (state.until <= now) {
    if (!channelState.isEnded && !state.isOnce) return "ended";
    channelState.isEnded = true;
    return null;
  }
  if (state.isOnce) return null;
  // It began again before every channel was notified of its end.
  if (channelState.isEnded) return "opened";
  const age = now - channelState.at;
  return age >= repeatMs || (state.level > channelState.level && age >= WORSENED_REPEAT_MS)
    ? "going-on"
    : null;
}

function resultCallbacks(
  state: Incident,
  channelState: ChannelState,
  what: AlertMessage["what"],
  now: number,
): Pick<DueMessage, "onSent" | "onFailed"> {
  const markSent = (): void => {
    channelState.at = now;
    channelState.level = state.level;
    channelState.count++;
    channelState.isEnded = what === "ended";
    channelState.tries = 0;
    channelState.nextAt = 0;
  };
  return {
    onSent: markSent,
    onFailed(mayPass, retryAfterMs) {
      channelState.tries++;
      if (!mayPass || channelState.tries >= MAX_TRIES) {
        // While the incident lasts, the next message about it is due as if this message had arrived.
        markSent();
        return true;
      }
      const delayMs = Math.min(FIRST_RETRY_DELAY_MS * 2 ** (channelState.tries - 1), MAX_RETRY_DELAY_MS);
      channelState.nextAt = now + Math.min(Math.max(delayMs, retryAfterMs ?? 0), MAX_RETRY_DELAY_MS);
      return false;
    },
  };
}
