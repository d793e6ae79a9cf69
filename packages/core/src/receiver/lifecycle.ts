/**
 * The life of a receiver:
 *
 *     new --prepare--> preparing --> ready --start--> starting --> running
 *      ^                   |           ^                 |
 *      '----it failed------'           '----it failed----'
 *
 *     any of these --close--> closing --> closed
 *
 * `preparing` checks the set-up, opens the inbox and closes registration. A receiver whose events run elsewhere, or
 * after the response, stays `ready`, and receives in that state. If a step fails, the receiver goes back. The next call
 * tries again. After the first call of `start`, the receiver also tries again by itself. Nothing leads back from
 * `closing`: from then on, every call is refused with `ERR_CLOSING`.
 */

import type { BackgroundRuns } from "../inbox/contract/inbox.ts";
import type { UndatedNotice } from "../notices/notice.ts";
import { PayhooksError } from "../protocol/errors.ts";
import { emptyContext } from "../time/async-context.ts";
import type { Environment } from "../time/environment.ts";
import { StartRetry } from "./start-retry.ts";

/** The state of a receiver. */
export type LifecycleState = "new" | "preparing" | "ready" | "starting" | "running" | "closing" | "closed";

/** The state that a start leads to. If events run elsewhere, or after the response, it only prepares the receiver. */
export type StartGoal = "ready" | "running";

/** How a receiver's close ended. */
export interface CloseResult {
  readonly unfinished: number;
}

/** The goal of a receiver, and the actions between one state and the next. */
export interface LifecycleDependencies {
  readonly goal: StartGoal;
  /** Keeps the process alive during a step. The timers of Payhooks do not do that by themselves. */
  readonly environment: Environment;
  notify(notice: UndatedNotice): void;
  /** From new to ready. */
  prepare(): Promise<void>;
  /** From ready to running. */
  run(): Promise<BackgroundRuns>;
  /** From closing to closed. */
  close(options: { readonly graceMs: number }): Promise<CloseResult>;
}

/** Takes a receiver from state to state. */
export class Lifecycle {
  readonly #dependencies: LifecycleDependencies;
  readonly #startRetry: StartRetry;
  #isStartCalled = false;
  #state: LifecycleState = "new";
  #preparing: Promise<void> | null = null;
  #starting: Promise<void> | null = null;
  #closing: Promise<CloseResult> | null = null;
  #running: BackgroundRuns | null = null;
  #isPaused = false;

  constructor(dependencies: LifecycleDependencies) {
    this.#dependencies = dependencies;
    const { environment } = dependencies;
    this.#startRetry = new StartRetry(
      environment,
      (notice) => dependencies.notify(notice),
      () => {
        if (!this.isClosing) void this.start().catch(() => {});
      },
    );
  }

  get state(): LifecycleState {
    return this.#state;
  }

  /** True if deliveries can be judged and stored. */
  get isReady(): boolean {
    return this.#state === "ready" || this.#state === "starting" || this.#state === "running";
  }

  /** True if events are to run in the background here, because `start` was called. */
  get shouldRun(): boolean {
    return this.#isStartCalled && this.#dependencies.goal === "running";
  }

  /**
   * Why the start has not reached its goal; null if it has, or if `start` was not called. `cause` is null during the
   * first attempt.
   */
  get startProblem(): { readonly cause: unknown } | null {
    if (!this.#isStartCalled || this.isClosing) return null;
    if (this.#dependencies.goal === "running" ? this.isRunning : this.isReady) return null;
    return this.#startRetry.failure ?? { cause: null };
  }

  get isRunning(): boolean {
    return this.#state === "running";
  }

  /** True if nothing is accepted any more. */
  get isClosing(): boolean {
    return this.#state === "closing" || this.#state === "closed";
  }

  /** Goes to `ready`. Several callers share one attempt. */
  async prepare(): Promise<void> {
    this.refuseWhenClosing();
    if (this.isReady) return;
    this.#preparing ??= this.#transition("new", "preparing", "ready", () =>
      this.#dependencies.prepare(),
    ).finally(() => {
      this.#preparing = null;
    });
    await this.#preparing;
    this.refuseWhenClosing();
  }

  /**
   * Goes to the receiver's goal. Several callers share one attempt. Rejects if the attempt fails, and then tries again by
   * itself until it succeeds or the receiver is closed.
   */
  async start(): Promise<void> {
    this.refuseWhenClosing();
    this.#isStartCalled = true;
    this.#starting ??= this.#start().finally(() => {
      this.#starting = null;
    });
    await this.#starting;
    this.refuseWhenClosing();
  }

  async #start(): Promise<void> {
    try {
      await this.prepare();
      if (this.#dependencies.goal === "running" && !this.isRunning) {
        await this.#transition("ready", "starting", "running", async () => {
          this.#running = await this.#dependencies.run();
          if (this.#isPaused) this.#running.pause();
        });
      }
      this.#startRetry.recordSuccess();
    } catch (error) {
      if (!this.isClosing) this.#startRetry.recordFailure(error);
      throw error;
    }
  }

  /** Begins no run in the background until `resume`, even if the receiver starts only later. */
  pause(): void {
    this.#isPaused = true;
    this.#running?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#running?.resume();
  }

  /** Goes to `ready`, and keeps the process alive during an action that a caller waits for. */
  async during<T>(action: () => Promise<T>): Promise<T> {
    await this.prepare();
    return this.#whileAlive(action);
  }

  /** Goes to `closed`. Payhooks keeps the process alive until then, and not afterwards. */
  close(options: { readonly graceMs: number }): Promise<CloseResult> {
    this.#closing ??= this.#close(options);
    return this.#closing;
  }

  async #close(options: { readonly graceMs: number }): Promise<CloseResult> {
    this.#state = "closing";
    this.#startRetry.stop();
    try {
      return await this.#whileAlive(() => this.#dependencies.close(options));
    } finally {
      this.#state = "closed";
    }
  }

  /** @throws PayhooksError `ERR_CLOSING` once `close` was called. */
  refuseWhenClosing(): void {
    if (!this.isClosing) return;
    throw new PayhooksError(
      "ERR_CLOSING",
      "The receiver is closing or closed. Nothing was accepted or run.",
      {
        fix: "Call it only before the receiver is closed.",
      },
    );
  }

  /** Goes from one state to the next. If `close` was called in the meantime, the state stays as `close` has set it. */
  async #transition(
    from: LifecycleState,
    by: LifecycleState,
    to: LifecycleState,
    action: () => Promise<void>,
  ): Promise<void> {
    this.#state = by;
    let next = from;
    try {
      await this.#whileAlive(action);
      next = to;
    } finally {
      if (this.#state === by) this.#state = next;
    }
  }

  /** Keeps the process alive during an action. It may be shared by several callers, so it runs in the context of none of them. */
  async #whileAlive<T>(action: () => Promise<T>): Promise<T> {
    const stopKeepingAlive = this.#dependencies.environment.keepAlive();
    try {
      return await emptyContext.run(action);
    } finally {
      stopKeepingAlive();
    }
  }
}
