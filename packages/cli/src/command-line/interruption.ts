/** The signals that ask a command to end, by Ctrl-C, by a supervisor, or because its terminal was closed. */
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * A wish that the command ends. After the first signal, the step that is under way is finished. A second signal ends
 * the command at once.
 */
export class Interruption {
  readonly #abortController = new AbortController();
  readonly #onSignal = (): void => {
    this.end();
    this.#abortController.abort();
  };

  constructor() {
    for (const signal of SIGNALS) process.once(signal, this.#onSignal);
  }

  /** Aborted by the first signal. */
  get signal(): AbortSignal {
    return this.#abortController.signal;
  }

  end(): void {
    for (const signal of SIGNALS) process.off(signal, this.#onSignal);
  }
}
