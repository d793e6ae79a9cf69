import { type AlertMessage, type IncidentKind, KINDS } from "./message.ts";
import { HOLDS_MS, type Observed } from "./observed.ts";

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

const NOTHING_SENT: ChannelState = { at: null, level: 0, count: 0, isEnded: false, tries: 0, nextAt: 0 };

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
const VERSION = 2;

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
  sent(): void;
  /** It was not sent. True if it is given up. */
  failed(mayPass: boolean, retryAfterMs: number | null): boolean;
}

/** An incident that has become worse is reported again after this time. */
const WORSE_MS = 15 * 60_000;
/** The number of attempts. The last is half an hour after the first. */
const MAX_TRIES = 8;
const FIRST_RETRY_MS = 15_000;
const MAX_RETRY_MS = 10 * 60_000;
/** More incidents at one time would not help anybody. With five channels each, this many have room in the note. */
const MAX_INCIDENTS = 12;
/** The longest note that a lease takes. */
const MAX_NOTE = 15_000;
const MAX_SUMMARY = 200;

/**
 * The incidents of an inbox, and the messages that each channel got about them. They are stored in the note of a lease,
 * so that all processes know them.
 */
export class Incidents {
  /** The process that checked last, and the time. */
  by = "";
  at = 0;
  readonly #incidents: Map<string, Incident>;

  private constructor(all: Map<string, Incident>) {
    this.#incidents = all;
  }

  /** Reads a note. An unreadable note counts as none. A time in the future, written by a clock that is ahead, counts as now. */
  static fromNote(note: string, now: number): Incidents {
    try {
      const { version, by, at, all } = JSON.parse(note) as StoredNote;
      if (version !== VERSION) return new Incidents(new Map());
      for (const [, state] of all) checkTimes(state, now);
      const incidents = new Incidents(new Map(all));
      incidents.by = by;
      incidents.at = at;
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
    const all = [...this.#incidents];
    for (;;) {
      const note = JSON.stringify({ version: VERSION, by: this.by, at: this.at, all } satisfies StoredNote);
      if (note.length <= MAX_NOTE || all.pop() === undefined) return note;
    }
  }

  markChecked(by: string, now: number): void {
    this.by = by;
    this.at = now;
  }

  /** Nothing is over before this time. */
  prolong(until: number): void {
    for (const state of this.#incidents.values()) state.until = Math.max(state.until, until);
  }

  /** True if an observation is stored here already, and need not be written again. */
  covers({ incident, kind, level }: Observed, now: number): boolean {
    const known = this.#incidents.get(incident);
    return known !== undefined && known.level >= level && known.until >= now + HOLDS_MS[kind] / 2;
  }

  observe({ incident, kind, summary, level, isOnce }: Observed, now: number): void {
    const known = this.#incidents.get(incident);
    if (known === undefined && !this.#makeRoom(isOnce)) return;
    const state = known ?? { kind, since: now, isOnce, summary, level, until: 0, sent: {} };
    state.summary = summary.slice(0, MAX_SUMMARY);
    state.level = level;
    state.until = Math.max(state.until, now + HOLDS_MS[kind]);
    this.#incidents.set(incident, state);
  }

  /** False if there is no room. An observation that is made only once takes the place of one that will be made again. */
  #makeRoom(isOnce: boolean): boolean {
    if (this.#incidents.size < MAX_INCIDENTS) return true;
    const other = isOnce ? [...this.#incidents].findLast(([, state]) => !state.isOnce) : undefined;
    return other !== undefined && this.#incidents.delete(other[0]);
  }

  /** Takes over, as far as there is room, the incidents that a process has reported while it could not write. */
  merge(own: Incidents): void {
    for (const [incident, state] of own.#incidents) {
      const known = this.#incidents.get(incident);
      if (known === undefined) {
        if (this.#makeRoom(state.isOnce)) this.#incidents.set(incident, state);
        continue;
      }
      known.until = Math.max(known.until, state.until);
      for (const [channel, sent] of Object.entries(state.sent)) {
        const before = known.sent[channel];
        if (before === undefined || before.count < sent.count) known.sent[channel] = sent;
      }
    }
  }

  /** The messages that are due, at most one for each incident and channel. */
  due(channels: readonly string[], from: string, now: number, repeatMs: number): readonly DueMessage[] {
    const due: DueMessage[] = [];
    for (const [incident, state] of this.#incidents) {
      for (const channel of channels) {
        const sent = state.sent[channel] ?? { ...NOTHING_SENT };
        state.sent[channel] = sent;
        const what = messageKind(state, sent, now, repeatMs);
        if (what === null || sent.nextAt > now) continue;
        const { kind, summary, since } = state;
        const id = `${incident}:${since.toString(36)}:${what}:${sent.count}`;
        const message = { what, id, incident, kind, ...KINDS[kind], summary, from, since, at: now };
        due.push({ channel, message, ...resultCallbacks(state, sent, what, now) });
      }
    }
    return due;
  }

  /** Forgets the incidents that are over, once every channel was notified. */
  forget(channels: readonly string[], now: number): void {
    for (const [incident, state] of this.#incidents) {
      const isKnown = channels.every((channel) => state.sent[channel]?.isEnded === true);
      if (state.until <= now && isKnown) this.#incidents.delete(incident);
    }
  }
}

/** A time that another process has written never delays a message for longer than a time that is written now. */
function checkTimes(state: Incident, now: number): void {
  state.until = Math.min(state.until, now + HOLDS_MS[state.kind]);
  for (const sent of Object.values(state.sent)) {
    sent.nextAt = Math.min(sent.nextAt, now + MAX_RETRY_MS);
    if (sent.at !== null) sent.at = Math.min(sent.at, now);
  }
}

function messageKind(
  state: Incident,
  sent: ChannelState,
  now: number,
  repeatMs: number,
): "opened" | "going-on" | "ended" | null {
  if (sent.at === null) return "opened";
  if (state.until <= now) {
    if (!sent.isEnded && !state.isOnce) return "ended";
    sent.isEnded = true;
    return null;
  }
  if (state.isOnce) return null;
  // It began again before every channel was notified of its end.
  if (sent.isEnded) return "opened";
  const age = now - sent.at;
  return age >= repeatMs || (state.level > sent.level && age >= WORSE_MS) ? "going-on" : null;
}

function resultCallbacks(
  state: Incident,
  sent: ChannelState,
  what: AlertMessage["what"],
  now: number,
): Pick<DueMessage, "sent" | "failed"> {
  const done = (): void => {
    sent.at = now;
    sent.level = state.level;
    sent.count++;
    sent.isEnded = what === "ended";
    sent.tries = 0;
    sent.nextAt = 0;
  };
  return {
    sent: done,
    failed(mayPass, retryAfterMs) {
      sent.tries++;
      if (!mayPass || sent.tries >= MAX_TRIES) {
        // While the incident lasts, the next message about it is due as if this message had arrived.
        done();
        return true;
      }
      const delayMs = Math.min(FIRST_RETRY_MS * 2 ** (sent.tries - 1), MAX_RETRY_MS);
      sent.nextAt = now + Math.min(Math.max(delayMs, retryAfterMs ?? 0), MAX_RETRY_MS);
      return false;
    },
  };
}
