/**
 * Tells running work to stop. Its `AbortSignal` is made only when somebody first asks for it. Most handlers never do, and
 * making one costs more than the rest of a short run.
 */
export class Cancellation {
  readonly #parent: Cancellation | null;
  #isCancelled = false;
  #reason: unknown;
  #controller: AbortController | null = null;

  constructor(parent: Cancellation | null = null) {
    this.#parent = parent;
  }

  get isCancelled(): boolean {
    return this.#isCancelled || this.#parent?.isCancelled === true;
  }

  get signal(): AbortSignal {
    if (this.#controller === null) {
      const controller = new AbortController();
      const parentSignal = this.#parent?.signal;
      const follow = (): void => controller.abort(parentSignal?.reason);
      if (this.#isCancelled) controller.abort(this.#reason);
      else if (parentSignal?.aborted) follow();
      else parentSignal?.addEventListener("abort", follow);
      this.#controller = controller;
    }
    return this.#controller.signal;
  }

  /** Only the first reason is kept. */
  cancel(reason: unknown): void {
    if (this.isCancelled) return;
    this.#isCancelled = true;
    this.#reason = reason;
    this.#controller?.abort(reason);
  }

  /** A cancellation that is cancelled together with this one, or earlier. */
  derive(): Cancellation {
    return new Cancellation(this);
  }
}
