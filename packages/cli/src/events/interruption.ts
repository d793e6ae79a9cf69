/** What asks a command to end: Ctrl-C, a supervisor, or a terminal that was closed. */
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** A signal while decisions are made: the one that is under way is finished first. A second signal ends the command at once. */
export class Interruption {
  readonly #wanted = new AbortController();
  readonly #on = (): void => {
    this.end();
    this.#wanted.abort();
  };

  constructor() {
    for (const signal of SIGNALS) process.once(signal, this.#on);
  }

  /** Aborted by the first signal. */
  get signal(): AbortSignal {
    return this.#wanted.signal;
  }

  end(): void {
    for (const signal of SIGNALS) process.off(signal, this.#on);
  }
}
