import { emptyContext } from "../time/async-context.ts";
import type { Clock } from "../time/clock.ts";
import { Limiter } from "./limiter.ts";
import type { Logger } from "./logger.ts";
import type { Alert, Notice, UndatedNotice } from "./notice.ts";

/** The lowest level that is written. `info` also writes successes. */
export type LogLevel = "info" | "warn" | "error";

interface Rule {
  readonly level: LogLevel;
  /** How many lines of one subject are written within a minute. Further lines are counted, and reported in one line. */
  readonly perMinute: number;
}

/** One line within the minute is enough. Further lines are only counted. */
const LIMIT_ONE = 1;
/** Strangers can cause these, and make up a new name for each. */
const LIMIT_FEW = 10;
/** Each of these names an event, which a person may have to search for. */
const LIMIT_MANY = 100;
/** Only authentic deliveries cause these, and copies do not. */
const NO_LIMIT = Number.POSITIVE_INFINITY;

/** How each notice is logged, except `refused` ones; null: not at all. */
export const LOG_RULES: Readonly<Record<Exclude<Notice["type"], "refused">, Rule | null>> = {
  accepted: { level: "info", perMinute: NO_LIMIT },
  duplicate: { level: "info", perMinute: LIMIT_MANY },
  stale: { level: "info", perMinute: LIMIT_MANY },
  held: { level: "warn", perMinute: LIMIT_MANY },
  unhandled: { level: "warn", perMinute: LIMIT_MANY },
  replayed: { level: "info", perMinute: NO_LIMIT },
  discarded: { level: "info", perMinute: NO_LIMIT },
  erased: { level: "info", perMinute: NO_LIMIT },
  "amount-changed": { level: "info", perMinute: NO_LIMIT },
  started: null,
  done: { level: "info", perMinute: NO_LIMIT },
  retry: { level: "warn", perMinute: LIMIT_MANY },
  "given-up": { level: "error", perMinute: LIMIT_MANY },
  finished: null,
  "double-risk": { level: "warn", perMinute: LIMIT_MANY },
  "effect-skipped": { level: "info", perMinute: LIMIT_MANY },
  "record-missing": { level: "warn", perMinute: LIMIT_MANY },
  "inbox-error": { level: "error", perMinute: LIMIT_ONE },
  stalled: { level: "error", perMinute: LIMIT_FEW },
  recovered: { level: "warn", perMinute: LIMIT_FEW },
  readiness: { level: "warn", perMinute: LIMIT_FEW },
  "data-lost": { level: "error", perMinute: LIMIT_MANY },
  "window-shrunk": { level: "warn", perMinute: LIMIT_ONE },
  alert: { level: "error", perMinute: LIMIT_FEW },
  "keys-changed": { level: "info", perMinute: LIMIT_FEW },
  "keys-unreadable": { level: "error", perMinute: LIMIT_ONE },
  warning: { level: "warn", perMinute: LIMIT_MANY },
};

type NoticeWithOwnText = "refused" | "warning" | "alert";

/** The text of a notice's line. The facts of the notice follow. */
const NOTICE_TEXTS: Readonly<
  Record<Exclude<Notice["type"], NoticeWithOwnText | "started" | "finished">, string>
> = {
  accepted: "the event is stored and will run",
  duplicate: "a copy of a stored event",
  stale: "a later event has overtaken this one, so it does not run",
  held: "the event does not run until a person decides",
  unhandled: "an event of a source has no handler, and is not stored; each name is logged once",
  replayed: "a person has put an event back to run",
  discarded: "a person has discarded a held event",
  erased: "a person has erased the contents of events",
  "amount-changed": "a known event has another amount",
  done: "a handler is done",
  retry: "a handler failed and will run again",
  "given-up": "a handler failed and will not run again",
  "double-risk": "a handler may run twice",
  "effect-skipped": "an earlier run has already committed this effect",
  "record-missing": "the inbox does not have this event",
  "inbox-error": "the inbox's store did not answer, or refused",
  stalled: "events do not run, or are not accepted, until this works again",
  recovered: "what had stalled works again",
  readiness: "the answer to load balancers has changed",
  "data-lost": "acknowledged events are lost, or may be",
  "keys-changed": "the keys were read again, and others are valid now",
  "keys-unreadable": "the keys could not be read again, so the last keys stay in use",
  "window-shrunk": "the memory inbox is too small, and forgets events too early",
};

const UNEXPECTED_EFFECT_TEXT =
  "this effect is committed already, though the inbox knows of no earlier run. Two receivers may share a table of effects without a scope";

/** The text of an alert's line, by its kind. */
const ALERT_TEXTS: Readonly<Record<Alert["kind"], string>> = {
  "all-failing": "no delivery is authentic. The key may be wrong, or was rotated",
  probing: "deliveries keep failing, while others are authentic",
  "held-full": "too many events are held, so new ones that would be held are refused",
  refused: "authentic deliveries are refused, and their events are not stored. The code says why",
};

/** Anybody can cause refused deliveries, as often as they like. */
const SERVER_FAULT_RULE: Rule = { level: "error", perMinute: LIMIT_ONE };
const BAD_SIGNATURE_RULE: Rule = { level: "warn", perMinute: LIMIT_FEW };
/** An authentic delivery that will never be accepted. Perhaps a clock is wrong. */
const OUTSIDE_WINDOW_RULE: Rule = { level: "warn", perMinute: LIMIT_FEW };

/** An effect that is stored although this inbox knows of no run that had it. */
const UNEXPECTED_EFFECT_RULE: Rule = { level: "warn", perMinute: LIMIT_MANY };

/** A logger that leaves out lines below a level. */
export function loggerFromLevel(log: Logger, level: LogLevel): Logger {
  const ignoreLine = (): void => {};
  return {
    info: LEVEL_RANKS.info >= LEVEL_RANKS[level] ? log.info : ignoreLine,
    warn: LEVEL_RANKS.warn >= LEVEL_RANKS[level] ? log.warn : ignoreLine,
    error: log.error,
  };
}

const MINUTE_MS = 60_000;
const LEVEL_RANKS: Readonly<Record<LogLevel, number>> = { info: 0, warn: 1, error: 2 };
const MAX_FACT_CHARS = 500;

/** A line that may be written. */
interface Line {
  readonly rule: Rule;
  /** The subject under which it is counted. */
  readonly subject: string;
  /** The common part of all lines of the subject. */
  readonly title: string;
  readonly message: string;
  readonly facts?: Readonly<Record<string, unknown>>;
  /** How often it happened. Default once. */
  readonly times?: number;
}

/**
 * Writes notices as log lines. It writes a limited number of lines for each subject within a minute, and at the end of the
 * minute how many were left out.
 */
export class LogLines {
  readonly #log: Logger;
  readonly #level: LogLevel;
  readonly #limiter: Limiter<Line>;

  constructor(log: Logger, level: LogLevel, clock: Clock) {
    this.#log = log;
    this.#level = level;
    this.#limiter = new Limiter({
      clock,
      periodMs: MINUTE_MS,
      pass: (line) => this.#writeLine(line),
      passSummary: ({ rule, title }, suppressed) =>
        this.#writeLine({ rule, message: `${title}: ${suppressed} more within a minute were not written` }),
    });
  }

  /** True if lines about successes are written too. */
  get writesSuccesses(): boolean {
    return this.#level === "info";
  }

  isWritten(notice: UndatedNotice): boolean {
    return this.#ruleFor(notice) !== null;
  }

  write(notice: Notice): void {
    const rule = this.#ruleFor(notice);
    if (rule !== null) this.#limit(lineOf(notice, rule));
  }

  logObserverError(error: string): void {
    const title = "the observer threw";
    const rule = { level: "error", perMinute: LIMIT_ONE } as const;
    this.#limit({ rule, subject: title, title, message: title, facts: { error } });
  }

  logDroppedNotices(count: number): void {
    const title = "notices were dropped: the observer is too slow";
    const rule = { level: "warn", perMinute: LIMIT_ONE } as const;
    if (this.#isWanted(rule)) this.#limit({ rule, subject: title, title, message: `${count} ${title}` });
  }

  /** Writes how many lines were left out so far. */
  close(): void {
    this.#limiter.close();
  }

  /** Null if it is not written. */
  #ruleFor(notice: UndatedNotice): Rule | null {
    const rule = ruleOf(notice);
    return rule !== null && this.#isWanted(rule) ? rule : null;
  }

  #isWanted({ level }: Rule): boolean {
    return LEVEL_RANKS[level] >= LEVEL_RANKS[this.#level];
  }

  #limit(line: Line): void {
    const { rule, subject, times = 1 } = line;
    if (rule.perMinute === NO_LIMIT) this.#writeLine(line);
    else this.#limiter.add(subject, line, rule.perMinute, times);
  }

  #writeLine({ rule, message, facts }: Pick<Line, "rule" | "message" | "facts">): void {
    emptyContext.run(() => this.#log[rule.level](message, facts));
  }
}

function ruleOf(notice: UndatedNotice): Rule | null {
  if (notice.type === "effect-skipped" && notice.unexpected) return UNEXPECTED_EFFECT_RULE;
  if (notice.type === "unhandled" && notice.count > 1) return null;
  if (notice.type !== "refused") return LOG_RULES[notice.type];
  if (notice.httpStatus >= 500) return SERVER_FAULT_RULE;
  if (notice.code.startsWith("ERR_TIMESTAMP_")) return OUTSIDE_WINDOW_RULE;
  return notice.fix === null ? null : BAD_SIGNATURE_RULE;
}

function lineOf(notice: Notice, rule: Rule): Line {
  const { type } = notice;
  if (notice.type === "warning") {
    return { rule, subject: type, title: "warnings", message: `${notice.what} ${notice.fix}` };
  }
  if (notice.type === "refused") {
    const { flow, code, httpStatus, why, fix, address, stack } = notice;
    const refusalText = `refused with ${httpStatus} ${code}`;
    const title = `${refusalText} in ${flow}`;
    const message = `${refusalText}: ${why}${fix === null ? "" : `. ${fix}`}`;
    const facts = { flow, address, ...(stack === null ? {} : { stack }) };
    return { rule, subject: title, title, message, facts };
  }
  const title = titleOf(notice);
  const times = notice.type === "inbox-error" ? notice.count : 1;
  const text = lineTextOf(notice);
  const message = text === null ? type : `${type}: ${text}`;
  return { rule, subject: title, title, message, facts: factsIn(notice), times };
}

function lineTextOf(notice: Exclude<Notice, { type: "refused" | "warning" }>): string | null {
  switch (notice.type) {
    case "alert":
      return ALERT_TEXTS[notice.kind];
    case "started":
    case "finished":
      return null;
    case "effect-skipped":
      return notice.unexpected ? UNEXPECTED_EFFECT_TEXT : NOTICE_TEXTS[notice.type];
    default:
      return NOTICE_TEXTS[notice.type];
  }
}

/** The subject of a notice. Failing calls have a subject for each kind of call, and alerts one for each kind and flow. */
function titleOf(notice: Notice): string {
  if ("during" in notice) return `${notice.type} during ${notice.during}`;
  return notice.type === "alert" ? `${notice.type} ${notice.kind} in ${notice.flow}` : notice.type;
}

/** The notice's facts, with long texts shortened. Ids and references are as long as their sender likes. */
function factsIn({ type: _, at, ...facts }: Notice): Readonly<Record<string, unknown>> {
  const shownFacts: Record<string, unknown> = { at: new Date(at).toISOString() };
  for (const [name, value] of Object.entries(facts)) {
    const isLong = typeof value === "string" && name !== "stack" && value.length > MAX_FACT_CHARS;
    shownFacts[name] = isLong ? `${value.slice(0, MAX_FACT_CHARS)}…` : value;
  }
  return shownFacts;
}
