const NOBODY: readonly Cancellation[] = [];

/**
 * Tells those who work that they should stop. Its `AbortSignal` is made when somebody first asks for it: most handlers
 * never do, and making one costs more than the rest of a short run.
 */
export class Cancellation {
  /** It is cancelled with this one, or before it. */
  readonly #parent: Cancellation | null;
  #isCancelled = false;
  #reason: unknown;
  #controller: AbortController | null = null;
  /** Those derived from this one that somebody listens to. */
  #listening: readonly Cancellation[] = NOBODY;

  constructor(parent: Cancellation | null = null) {
    this.#parent = parent;
  }

  get isCancelled(): boolean {
    return this.#isCancelled || (this.#parent?.isCancelled ?? false);
  }

  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      if (this.#parent !== null) this.#parent.#tell(this);
      if (this.#isCancelled) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  /** The first reason stays. */
  cancel(reason: unknown): void {
    if (!this.isCancelled) this.#settle(reason);
  }

  /** One that is cancelled with this one, or before it. */
  derive(): Cancellation {
    return new Cancellation(this);
  }

  #settle(reason: unknown): void {
    if (this.#isCancelled) return;
    this.#isCancelled = true;
    this.#reason = reason;
    this.#controller?.abort(reason);
    for (const derived of this.#listening) derived.#settle(reason);
  }

  /** Cancels what was derived as soon as this one is: at once, or later. */
  #tell(derived: Cancellation): void {
    if (this.#listening.length === 0 && this.#parent !== null) this.#parent.#tell(this);
    if (this.#isCancelled) derived.#settle(this.#reason);
    else this.#listening = [...this.#listening, derived];
  }
}
