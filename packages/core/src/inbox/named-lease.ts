import { checkTime } from "../protocol/check-number.ts";
import { invalidOptionError } from "../protocol/errors.ts";
import { describeValue } from "../protocol/foreign-value.ts";
import type { SharedTexts } from "./contract/texts.ts";
import { pullBackTime } from "./record/schedule.ts";
import { TEXT_TTL_MS } from "./write/shared-texts.ts";

/**
 * The lease of a task that only one process may do at a time. It ends by itself, on the store's clock, unless the
 * holder renews it. It has a note for the next holder.
 */
export interface NamedLease {
  /** The last holder's note, from this process or another one; empty if there was no holder. */
  readonly note: string;
  /**
   * Extends the lease to its full time, counted from now, and replaces the note, of at most 15,000 characters.
   * @returns false if the lease was lost. Then nothing was written, and another process may have the task.
   * @throws PayhooksError `ERR_OPTION_INVALID` for a longer note, or what the inbox throws.
   */
  renew(note: string): Promise<boolean>;
  /** Ends the lease, so that another process may take it at once, and replaces the note. False as for `renew`. */
  end(note: string): Promise<boolean>;
}

/** The public view of a task. */
export interface LeaseView {
  /** The last holder's note. */
  readonly note: string;
  /** True if a process has it now. */
  readonly isTaken: boolean;
}

interface StoredLease {
  readonly token: string;
  /** When the lease ends, on the store's clock. */
  readonly until: number;
  /** How far away that was when it was written. It shows whether the clock was wrong then. */
  readonly originalLengthMs: number;
  readonly note: string;
}

const LEASE_NAME_PATTERN = /^[a-z][a-z0-9-]{0,49}$/;
const MAX_NOTE_CHARS = 15_000;

const NO_LEASE: StoredLease = { token: "", until: 0, originalLengthMs: 0, note: "" };

/** Takes the lease with this name for this long. Null while another holder has it. */
export async function takeLease(
  texts: SharedTexts,
  name: string,
  lengthMs: number,
  token: string,
): Promise<NamedLease | null> {
  checkLength(lengthMs);
  const nameOfText = textName(name);
  const note = await texts.change<string | null>(nameOfText, (storedText, now) => {
    const storedLease = decodeLease(storedText);
    const lease = correctLease(storedLease, now);
    if (lease.token !== token && isTaken(lease, now)) {
      // A time that was corrected is written, so that the lease ends although nobody renews it.
      return { answer: null, text: lease.until === storedLease.until ? null : encodeLease(lease) };
    }
    return {
      answer: lease.note,
      text: encodeLease({ token, until: now + lengthMs, originalLengthMs: lengthMs, note: lease.note }),
    };
  });
  if (note === null) return null;
  async function write(note: string, lastsMs: number): Promise<boolean> {
    checkNote(note);
    return texts.change<boolean>(nameOfText, (storedText, now) => {
      const lease = decodeLease(storedText);
      if (lease.token !== token) return { answer: lastsMs === 0 && lease.token === `${token}.`, text: null };
      // A lease that has ended gets another token, so that its last holder cannot write under it again.
      const next = lastsMs === 0 ? `${token}.` : token;
      return {
        answer: true,
        text: encodeLease({ token: next, until: now + lastsMs, originalLengthMs: lastsMs, note }),
      };
    });
  }
  return { note, renew: (note) => write(note, lengthMs), end: (note) => write(note, 0) };
}

/** Reads a lease from the store; null if nobody has ever taken it. */
export async function viewLease(texts: SharedTexts, name: string): Promise<LeaseView | null> {
  return texts.change<LeaseView | null>(textName(name), (storedText, now) => {
    const lease = correctLease(decodeLease(storedText), now);
    const view = storedText === null ? null : { note: lease.note, isTaken: isTaken(lease, now) };
    return { answer: view, text: null };
  });
}

/** Corrects the end of a lease that a wrong clock has dated, as in a record. A small step of a clock changes nothing. */
function correctLease(lease: StoredLease, now: number): StoredLease {
  return { ...lease, until: pullBackTime(lease.until, lease.originalLengthMs, now) };
}

/** A lease that was ended is free at once, even if the clock has stepped back since. */
function isTaken({ until, originalLengthMs }: StoredLease, now: number): boolean {
  return originalLengthMs > 0 && until > now;
}

/** A lease is kept no longer than its text. */
function checkLength(lengthMs: number): void {
  checkTime("lengthMs", lengthMs);
  if (lengthMs <= TEXT_TTL_MS) return;
  throw invalidOptionError(
    `The lengthMs of a lease is ${describeValue(lengthMs)}, more than 30 days.`,
    "Take the lease for 30 days at most, and renew it in time.",
  );
}

function textName(name: string): string {
  if (typeof name !== "string" || !LEASE_NAME_PATTERN.test(name)) {
    throw invalidOptionError(
      `A lease cannot be named ${describeValue(name)}.`,
      "Use up to 50 lowercase letters, digits and -, beginning with a letter.",
    );
  }
  return `lease:${name}`;
}

function checkNote(note: string): void {
  if (typeof note !== "string") {
    throw invalidOptionError(
      `The note of a lease is ${describeValue(note)}.`,
      "Give a text, such as String(value) or JSON.stringify(value).",
    );
  }
  if (note.length > MAX_NOTE_CHARS) {
    throw invalidOptionError(
      `The note of a lease has ${note.length} characters.`,
      `Keep it to ${MAX_NOTE_CHARS} characters.`,
    );
  }
}

/** The note comes last and as it is, so that it takes no more room than it has letters. */
function encodeLease({ token, until, originalLengthMs, note }: StoredLease): string {
  return `${JSON.stringify([token, until, originalLengthMs])}\n${note}`;
}

/** A text that cannot be read counts as none. */
function decodeLease(text: string | null): StoredLease {
  const [head = "", ...lines] = (text ?? "").split("\n");
  try {
    const [token, until, originalLengthMs]: readonly unknown[] = JSON.parse(head);
    const isRight =
      typeof token === "string" && typeof until === "number" && typeof originalLengthMs === "number";
    return isRight ? { token, until, originalLengthMs, note: lines.join("\n") } : NO_LEASE;
  } catch {
    return NO_LEASE;
  }
}
