/**
 * Tells those who work that they should stop. Its `AbortSignal` is made when somebody first asks for it: most handlers
 * never do, and making one costs more than the rest of a short run.
 */
export class Cancellation {
  #isCancelled = false;
  #reason: unknown;
  #controller: AbortController | null = null;
  readonly #derived: Cancellation[] = [];

  get isCancelled(): boolean {
    return this.#isCancelled;
  }

  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      if (this.#isCancelled) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  /** The first reason stays. */
  cancel(reason: unknown): void {
    if (this.#isCancelled) return;
    this.#isCancelled = true;
    this.#reason = reason;
    this.#controller?.abort(reason);
    for (const derived of this.#derived) derived.cancel(reason);
  }

  /** One that is cancelled with this one, or before it. */
  derive(): Cancellation {
    const derived = new Cancellation();
    this.#derived.push(derived);
    if (this.#isCancelled) derived.cancel(this.#reason);
    return derived;
  }
}
