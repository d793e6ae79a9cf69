import { type Logger, type LoggerOption, loggerOf } from "./logger.ts";

/** A setting that works but should not stay, and what to do about it. */
export interface SetupWarning {
  readonly what: string;
  readonly fix: string;
}

/**
 * The warnings of a store about its set-up. If the store has no logger of its own, its inbox passes them to the
 * receiver.
 */
export class SetupWarnings {
  readonly #logger: Logger | undefined;
  readonly #all: SetupWarning[] = [];
  readonly #known = new Set<string>();

  constructor(logger: LoggerOption | undefined) {
    this.#logger = logger === undefined ? undefined : loggerOf(logger);
  }

  /** The warnings that the store's own logger did not get. */
  get all(): readonly SetupWarning[] {
    return this.#all;
  }

  /** Gives a warning, but only once, even if the store is opened several times. */
  add(what: string, fix: string): void {
    if (this.#known.has(what)) return;
    this.#known.add(what);
    if (this.#logger === undefined) this.#all.push({ what, fix });
    else this.#logger.warn(`${what} ${fix}`);
  }
}
