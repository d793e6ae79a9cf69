import { type AlertMessage, type IncidentKind, KINDS } from "./message.ts";
import { HOLDS_MS, type Observed } from "./observed.ts";

/** The latest message about an incident to one channel, sent or to be sent again. */
interface Sent {
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

const NOT_SENT: Sent = { at: null, level: 0, count: 0, isEnded: false, tries: 0, nextAt: 0 };

interface Incident {
  readonly kind: IncidentKind;
  readonly since: number;
  readonly isOnce: boolean;
  summary: string;
  level: number;
  /** It is over at this time, unless a process sees it again. */
  until: number;
  readonly sent: Record<string, Sent>;
}

/** A note of another version counts as none. */
const VERSION = 2;

interface Note {
  readonly version: number;
  readonly by: string;
  readonly at: number;
  readonly all: readonly (readonly [string, Incident])[];
}

/** A message that is due. */
export interface Due {
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
 * The incidents of an inbox, and the messages that each channel got about them. They are stored in the note of a lease, so that all
 * processes know them.
 */
export class Incidents {
  /** The process that checked last, and the time. */
  by = "";
  at = 0;
  readonly #all: Map<string, Incident>;

  private constructor(all: Map<string, Incident>) {
    this.#all = all;
  }

  /** Reads a note. An unreadable note counts as none. A time in the future, written by a clock that is ahead, counts as now. */
  static in(note: string, now: number): Incidents {
    try {
      const { version, by, at, all } = JSON.parse(note) as Note;
      if (version !== VERSION) return new Incidents(new Map());
      for (const [, one] of all) checkTimes(one, now);
      const incidents = new Incidents(new Map(all));
      incidents.by = by;
      incidents.at = at;
      return incidents;
    } catch {
      return new Incidents(new Map());
    }
  }

  /**
   * If each process has other channels, there may be no room for the last incidents. They are left out, since otherwise the note could not
   * be written.
   */
  get note(): string {
    const all = [...this.#all];
    for (;;) {
      const note = JSON.stringify({ version: VERSION, by: this.by, at: this.at, all } satisfies Note);
      if (note.length <= MAX_NOTE || all.pop() === undefined) return note;
    }
  }

  checkedAt(by: string, now: number): void {
    this.by = by;
    this.at = now;
  }

  /** Nothing is over before this time. */
  prolong(until: number): void {
    for (const one of this.#all.values()) one.until = Math.max(one.until, until);
  }

  /** True if the observations of a process are known here, and need not be written again. */
  knows({ incident, kind, level }: Observed, now: number): boolean {
    const known = this.#all.get(incident);
    return known !== undefined && known.level >= level && known.until >= now + HOLDS_MS[kind] / 2;
  }

  see({ incident, kind, summary, level, isOnce }: Observed, now: number): void {
    const known = this.#all.get(incident);
    if (known === undefined && !this.#makeRoom(isOnce)) return;
    const one = known ?? { kind, since: now, isOnce, summary, level, until: 0, sent: {} };
    one.summary = summary.slice(0, MAX_SUMMARY);
    one.level = level;
    one.until = Math.max(one.until, now + HOLDS_MS[kind]);
    this.#all.set(incident, one);
  }

  /** False if there is no room. An observation that is made only once takes the place of one that will be made again. */
  #makeRoom(isOnce: boolean): boolean {
    if (this.#all.size < MAX_INCIDENTS) return true;
    const other = isOnce ? [...this.#all].findLast(([, one]) => !one.isOnce) : undefined;
    return other !== undefined && this.#all.delete(other[0]);
  }

  /** Takes over, as far as there is room, the incidents that a process has reported while it could not write. */
  merge(own: Incidents): void {
    for (const [incident, one] of own.#all) {
      const known = this.#all.get(incident);
      if (known === undefined) {
        if (this.#makeRoom(one.isOnce)) this.#all.set(incident, one);
        continue;
      }
      known.until = Math.max(known.until, one.until);
      for (const [channel, sent] of Object.entries(one.sent)) {
        const before = known.sent[channel];
        if (before === undefined || before.count < sent.count) known.sent[channel] = sent;
      }
    }
  }

  /** The messages that are due, at most one for each incident and channel. */
  due(channels: readonly string[], from: string, now: number, repeatMs: number): readonly Due[] {
    const due: Due[] = [];
    for (const [incident, one] of this.#all) {
      for (const channel of channels) {
        const sent = one.sent[channel] ?? { ...NOT_SENT };
        one.sent[channel] = sent;
        const what = wanted(one, sent, now, repeatMs);
        if (what === null || sent.nextAt > now) continue;
        const { kind, summary, since } = one;
        const id = `${incident}:${since.toString(36)}:${what}:${sent.count}`;
        const message = { what, id, incident, kind, ...KINDS[kind], summary, from, since, at: now };
        due.push({ channel, message, ...outcomes(one, sent, what, now) });
      }
    }
    return due;
  }

  /** Forgets the incidents that are over, once every channel was notified. */
  forget(channels: readonly string[], now: number): void {
    for (const [incident, one] of this.#all) {
      const isKnown = channels.every((channel) => one.sent[channel]?.isEnded === true);
      if (one.until <= now && isKnown) this.#all.delete(incident);
    }
  }
}

/** A time that another process has written never delays a message for longer than a time that is written now. */
function checkTimes(one: Incident, now: number): void {
  one.until = Math.min(one.until, now + HOLDS_MS[one.kind]);
  for (const sent of Object.values(one.sent)) {
    sent.nextAt = Math.min(sent.nextAt, now + MAX_RETRY_MS);
    if (sent.at !== null) sent.at = Math.min(sent.at, now);
  }
}

function wanted(
  one: Incident,
  sent: Sent,
  now: number,
  repeatMs: number,
): "opened" | "going-on" | "ended" | null {
  if (sent.at === null) return "opened";
  if (one.until <= now) {
    if (!sent.isEnded && !one.isOnce) return "ended";
    sent.isEnded = true;
    return null;
  }
  if (one.isOnce) return null;
  // It began again before every channel was notified of its end.
  if (sent.isEnded) return "opened";
  const age = now - sent.at;
  return age >= repeatMs || (one.level > sent.level && age >= WORSE_MS) ? "going-on" : null;
}

function outcomes(
  one: Incident,
  sent: Sent,
  what: AlertMessage["what"],
  now: number,
): Pick<Due, "sent" | "failed"> {
  const done = (): void => {
    sent.at = now;
    sent.level = one.level;
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
