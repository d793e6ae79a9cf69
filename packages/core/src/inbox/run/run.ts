import { type InboxCall, inboxErrorNotice, type Notice } from "../../notices/notice.ts";
import type { AsyncContext } from "../../time/async-context.ts";
import { Cancellation } from "../../time/cancellation.ts";
import { sleep } from "../../time/clock.ts";
import type { Inbox, RunEnd, RunHandle, Runner } from "../contract/inbox.ts";
import type { VersionedRecord } from "../contract/store.ts";
import type { AcceptResult, RunReport, VerifiedEvent } from "../record/event.ts";
import type { HandlerChange } from "../record/handler-state.ts";
import type { Lane } from "../record/lane.ts";
import {
  type BeginOptions,
  type BeginResult,
  begin,
  beginNext,
  type EndResult,
  endRun,
  isBegunBy,
  renew,
  wasDecidedMeanwhile,
  writeClaim,
  writeHandlerChanges,
} from "../record/leased-run.ts";
import type { IdempotencyRecord } from "../record/record.ts";
import { claimAtRun } from "../record/reference-claim.ts";
import { factsOf, type RunInput } from "../record/run-input.ts";
import type { RunOutcome } from "../record/run-outcome.ts";
import { failedRunDelayMs } from "../record/schedule.ts";
import type { InboxCore } from "../write/inbox-core.ts";
import { type ChangeResult, isRecordError, type RecordChange } from "../write/records.ts";
import { groupSizeOf } from "./crash-suspects.ts";
import { LeaseTime, leaseExpiredError } from "./lease-time.ts";
import { SubjectTurn } from "./subject-turn.ts";

/** The process of a run, as the run sees it. */
export interface RunHost {
  /** True if the event with this key, which may have killed its process, may run now. See CrashSuspects. */
  mayRunCrashSuspect(key: string, groupSize: number): boolean;
  /** True if this process has a place for a due event of this lane. */
  hasRoom(lane: Lane): boolean;
  /**
   * Leaves the place of a run to others. The returned function resolves once the run has a place again: at once if
   * `comesBackInTurn` is false.
   */
  leavePlace(run: Run): (comesBackInTurn: boolean) => Promise<void>;
  /** Accepts an event that a run has read from a held delivery. */
  readonly accept: Inbox["accept"];
}

/** For whom a run is begun. */
export interface RunRequest {
  readonly runner: Runner;
  /** The context in which its handlers are called. */
  readonly context: AsyncContext;
  /** True for a run in the background, which waits for a place. */
  readonly inBackground: boolean;
  /** The lane in which the event waited. Default: the usual lane. */
  readonly lane?: Lane;
  /** The reason to skip the backoff. Default null: the run does not skip it. */
  readonly earlyBecause?: BeginOptions["earlyBecause"];
}

/**
 * The lease as a write of the run has found it. `decided`: a person has decided about the held event, and the decision
 * ended the lease.
 */
type LeaseState = "kept" | "lost" | "decided";

/** The answer about a record whose flow only other processes have. */
const FOREIGN_FLOW_CHANGE = { answer: { kind: "wait", isRunning: false }, record: null } as const;
const REPEAT_MIN_PAUSE_MS = 100;
const REPEAT_MAX_PAUSE_MS = 5_000;

/**
 * How far a run is.
 *
 * | phase     | what happens                                                | the lease                            | goes on to                 |
 * | --------- | ----------------------------------------------------------- | ------------------------------------ | -------------------------- |
 * | `begun`   | the run waits for its place                                 | not renewed: the wait is short       | `calling`, `ending`        |
 * | `calling` | the runner calls the handlers                               | renewed                              | `ending`, `lost`           |
 * | `lost`    | no handler is called any more; those that run end           | another process has it, or may       | `ending`                   |
 * | `ending`  | the end is being written, even if the run was `lost` before | only the answer shows who has it     | its end; `lost` if refused |
 */
type Phase = "begun" | "calling" | "lost" | "ending";

/** One run of an event, from before the write that begins it until its end is written. */
export class Run implements RunHandle {
  readonly key: string;
  readonly runner: Runner;
  readonly inBackground: boolean;
  readonly lane: Lane;
  readonly cancellation: Cancellation = new Cancellation();
  /** Resolves once the run is over: to the outcome that was written, or to null if the lease was lost. */
  readonly whenEnded: Promise<RunOutcome["kind"] | null>;
  context: AsyncContext;
  /** A handler was called. If the end of the run cannot be stored, an effect may happen twice. */
  hasCalledHandler = false;
  /** Gives up the place in which the run is. */
  releasePlace: (hasEnded: boolean) => void = () => {};
  readonly #core: InboxCore;
  readonly #host: RunHost;
  readonly #runToken: string;
  readonly #turn: SubjectTurn;
  readonly #earlyBecause: BeginOptions["earlyBecause"];
  #resolve: (outcome: RunOutcome["kind"] | null) => void = () => {};
  #input: RunInput | null = null;
  readonly #lease: LeaseTime;
  #phase: Phase = "begun";
  /** The lease was over before a handler was to be called. The run calls none, and hands its event back. */
  #isLeaseExpired = false;
  #isRenewing = false;
  /** No further `double-risk` notice is due: one was posted, or a person has decided about the event. */
  #isWarned = false;
  /** Ends what the run waits for in {@link waitWithoutPlace}. */
  #wake: () => void = () => {};

  constructor(
    key: string,
    { runner, context, inBackground, lane = "usual", earlyBecause = null }: RunRequest,
    core: InboxCore,
    host: RunHost,
  ) {
    this.key = key;
    this.runner = runner;
    this.inBackground = inBackground;
    this.lane = lane;
    this.context = context;
    this.#earlyBecause = earlyBecause;
    this.#core = core;
    this.#host = host;
    this.#runToken = core.environment.token();
    this.#turn = new SubjectTurn(core, runner);
    this.#lease = new LeaseTime(key, core);
    this.whenEnded = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  /** The content of the slot that the run has a lease on. Only once the run has begun. */
  get input(): RunInput {
    if (this.#input === null) throw new Error("the run has not begun");
    return this.#input;
  }

  /** True if this is a run of the event. Before the run has begun, its event is not known, and the answer is false. */
  isRunOf(eventId: string): boolean {
    return this.#input?.eventId === eventId;
  }

  /** How long the lease has lasted on this process's clock. */
  get elapsedMs(): number {
    return this.#lease.elapsedMs;
  }

  /**
   * Every run begins here. Takes the lease on a slot, or on the next slot that is due, in a copy of the record. The
   * caller writes the copy. If the write may have been made already, the caller asks {@link isBegunIn} first.
   */
  begin(record: IdempotencyRecord | null, slot: string | "next", now: number): BeginResult {
    const { runner, key } = this;
    const result = beginIn(record, slot, {
      key,
      token: this.#runToken,
      leaseMs: this.#lease.beginLease(),
      now,
      earlyBecause: this.#earlyBecause,
      mayRunCrashSuspect: (suspicions) => this.#host.mayRunCrashSuspect(key, groupSizeOf(suspicions, runner)),
      firstHandler: (input) => runner.firstHandler(input),
      handlersOf: (input) => runner.handlersOf(input),
    });
    this.#input = result.kind === "leased" ? result.input : null;
    return result;
  }

  /**
   * Begins the run by a write of its own. If nothing was due after all, and a poll has hidden the record, it writes the
   * record unchanged to make it visible again.
   */
  async writeBegin(slot: string | "next", guess?: VersionedRecord): Promise<BeginResult> {
    const { answer } = await this.#core.records.change<BeginResult>({
      key: this.key,
      guess,
      deadlineMs: this.#core.leaseMs,
      change: (record, now) => {
        if (record !== null && this.runner.hasFlow?.(record.flow) === false) return FOREIGN_FLOW_CHANGE;
        if (this.isBegunIn(record)) return { answer: { kind: "leased", input: this.input }, record: null };
        const answer = this.begin(record, slot, now);
        const isBegin = answer.kind === "leased";
        return { answer, record: isBegin || guess !== undefined ? record : null, isBegin };
      },
    });
    return answer;
  }

  /** True if the record shows that the write that begins this run was made, although its answer was lost. */
  isBegunIn(record: IdempotencyRecord | null): boolean {
    return this.#input !== null && isBegunBy(record, this.#input);
  }

  /** The write that began the run was answered. The answer has the store's time. */
  onBeginWritten(): void {
    this.#lease.onLeaseWritten(this.input.now);
  }

  /** Calls the handlers, and resolves to the end of the run. After an error of the runner itself, the event runs again. */
  async callHandlers(): Promise<RunEnd> {
    this.#phase = "calling";
    // The run has waited long for its place. The timer that renews all leases could fire too late for this lease.
    if (this.elapsedMs >= this.#core.renewEveryMs) void this.renew();
    try {
      return await this.runner.run(this);
    } catch (error) {
      this.runner.notify(inboxErrorNotice("run", error));
      const changes = this.hasCalledHandler ? [] : this.undoneStart;
      const delayMs = failedRunDelayMs(this.input.lastDelayMs);
      return { outcome: { kind: "retry", delayMs }, changes, onWritten: () => {} };
    }
  }

  /** The start of a handler was written with the beginning of the run. This change takes it back. */
  get undoneStart(): readonly HandlerChange[] {
    const { startedHandler, handlerStates } = this.input;
    return startedHandler === null
      ? []
      : [{ name: startedHandler, kind: "undone", before: handlerStates[startedHandler] ?? null }];
  }

  mayCall(): ReturnType<RunHandle["mayCall"]> {
    if (this.#phase === "lost") return "lost";
    if (this.#lease.isOver) this.#reportLeaseExpired();
    // The signal of the run is aborted for good. The next run has another signal.
    if (this.#isLeaseExpired || this.cancellation.isCancelled) return "hand-back";
    const { isClosing, store } = this.#core;
    return isClosing && store.endsWithProcess !== true ? "hand-back" : "yes";
  }

  /** Perhaps no other process has taken the event. The write that hands it back shows whether one has. */
  #reportLeaseExpired(): void {
    if (this.#isLeaseExpired) return;
    this.#isLeaseExpired = true;
    const error = leaseExpiredError();
    this.#core.operations.recordFailure("take", error);
    this.runner.notify(inboxErrorNotice("begin", error));
  }

  async waitWithoutPlace(turn: Promise<void>): Promise<boolean> {
    // Once the inbox is closing, nothing ends a wait that begins.
    if (this.mayCall() !== "yes") return false;
    const comeBack = this.#host.leavePlace(this);
    const hasCome = await new Promise<boolean>((resolve) => {
      this.#wake = () => resolve(false);
      void turn.then(() => resolve(true));
    });
    this.#wake = () => {};
    await comeBack(hasCome);
    return hasCome;
  }

  /** Stops waiting, so that the event is handed back if no handler is being called. */
  waitNoLonger(): void {
    this.#wake();
  }

  noteCall(): void {
    this.hasCalledHandler = true;
  }

  async claimReference(event: VerifiedEvent): Promise<boolean> {
    const claim = claimAtRun(event);
    if (claim === null) return true;
    const { owner, token: claimToken } = await this.#core.claims.acquire(claim);
    if (owner !== this.key) return false;
    await this.#write("claim", (record) => writeClaim(record, this.input, { key: claim.key, claimToken }));
    return true;
  }

  takeSubject(event: VerifiedEvent): ReturnType<RunHandle["takeSubject"]> {
    return this.#turn.take(this.input, event, this.#earlyBecause === "last");
  }

  accept(event: VerifiedEvent): Promise<AcceptResult> {
    return this.#host.accept(event, { deadlineMs: this.#core.leaseMs, trace: this.input.trace });
  }

  write(changes: readonly HandlerChange[]): Promise<boolean> {
    return this.#write("step", (record, now) => writeHandlerChanges(record, this.input, changes, now));
  }

  /** Makes a change that counts only under the lease. False: the lease is lost. */
  async #write(
    during: InboxCall,
    change: (record: IdempotencyRecord | null, now: number) => boolean,
  ): Promise<boolean> {
    if (this.#phase === "lost") return false;
    const result = await this.#persist<LeaseState>(during, (record, now) => {
      const isKept = change(record, now);
      return { answer: isKept ? "kept" : this.#lossReason(record), record: isKept ? record : null };
    });
    const leaseState = typeof result === "string" ? "lost" : result.answer;
    if (leaseState !== "kept") this.#lose(leaseState);
    return leaseState === "kept";
  }

  #lossReason(record: IdempotencyRecord | null): Exclude<LeaseState, "kept"> {
    return wasDecidedMeanwhile(record, this.input) ? "decided" : "lost";
  }

  /**
   * Every run ends here. Writes the end of the run. `unreadable`: the record cannot be read any more, so another run would
   * fail in the same way.
   */
  async writeEnd({
    outcome,
    changes,
  }: RunEnd): Promise<ChangeResult<EndResult | { readonly kind: "unreadable" }>> {
    this.#phase = "ending";
    let mayHaveEnded = false;
    let lossReason: Exclude<LeaseState, "kept"> = "lost";
    const result = await this.#persist<EndResult>("finish", (record, now, mayHaveBeenMade) => {
      mayHaveEnded = mayHaveBeenMade;
      const answer = endRun(record, this.input, outcome, changes, now, this.#turn.isTaken);
      if (answer.kind === "lost") lossReason = this.#lossReason(record);
      if (record === null || answer.kind === "lost") return { answer, record: null };
      const { nextDue } = answer;
      const isDue = nextDue !== null && nextDue.inMs <= 0;
      return {
        answer,
        record,
        shouldAnnounce: isDue && !(this.inBackground && this.#host.hasRoom(nextDue.lane)),
      };
    });
    if (typeof result !== "string" && result.answer.kind === "ended") {
      await this.#turn.release(this.input, outcome.kind === "done" || outcome.kind === "stale");
      return result;
    }
    // The answer to the write was lost. If the write was made, another process may already have the event. If it was
    // not made, nobody can take the event before this lease ends, and a process that takes it then warns before it
    // calls a handler.
    if (mayHaveEnded && !this.#lease.isOver) this.#phase = "lost";
    else this.#lose(lossReason);
    return { answer: { kind: result === "unreadable" ? result : "lost" }, version: null };
  }

  /** Resolves {@link whenEnded}. Null: the lease was lost. */
  resolveEnded(outcome: RunOutcome["kind"] | null): void {
    this.#resolve(outcome);
  }

  /** What the caller who asked for this run is told when it has ended. */
  async report(): Promise<RunReport> {
    const outcome = await this.whenEnded;
    switch (outcome) {
      case null:
        return { state: "running", ran: true };
      case "done":
        return { state: "done", ran: true };
      case "stale":
        return { state: "stale", ran: false };
      case "held":
      case "stays-held":
        return { state: "held", ran: true };
      case "retry":
        return { state: this.input.mode === "onHeld" ? "held" : "waiting", ran: true };
      case "handed-back":
        return { state: this.input.mode === "onHeld" ? "held" : "waiting", ran: this.hasCalledHandler };
    }
  }

  /**
   * Writes until the store answers. The handler is not called again meanwhile: the process keeps its result. Only two
   * things end the repetition: the record has become `unreadable`, or the inbox was closed and waits no longer (`abandoned`).
   */
  async #persist<T>(
    during: InboxCall,
    change: RecordChange<T>,
  ): Promise<ChangeResult<T> | "unreadable" | "abandoned"> {
    const { operations, records, environment, leaseMs: deadlineMs } = this.#core;
    const onFailure = (cause: unknown): void => operations.recordFailure("end", cause);
    for (let delayMs = REPEAT_MIN_PAUSE_MS; ; delayMs = Math.min(delayMs * 2, REPEAT_MAX_PAUSE_MS)) {
      if (this.#core.isAbandoned) return "abandoned";
      try {
        const result = await records.change({ key: this.key, change, deadlineMs, onFailure });
        operations.recordSuccess("end");
        return result;
      } catch (error) {
        if (this.#core.isAbandoned) return "abandoned";
        this.runner.notify(inboxErrorNotice(during, error));
        if (isRecordError(error)) return "unreadable";
        operations.recordFailure("end", error);
        await sleep(environment, delayMs);
      }
    }
  }

  /** Renews the lease. Called every third of the lease's length. */
  async renew(): Promise<void> {
    if (this.#phase !== "calling" || this.#isRenewing) return;
    this.#isRenewing = true;
    let leaseWrite = this.#lease.startWrite();
    let storeTime = 0;
    try {
      const { answer: leaseState } = await this.#core.records.change<LeaseState>({
        key: this.key,
        // The lease is renewed every third of its length.
        deadlineMs: this.#lease.lengthMs / 3,
        change: (record, now) => {
          leaseWrite = this.#lease.startWrite();
          storeTime = now;
          const isKept = renew(record, this.input, leaseWrite.leaseMs, now);
          return { answer: isKept ? "kept" : this.#lossReason(record), record: isKept ? record : null };
        },
      });
      // The lease on the subject has to outlast that of the run.
      if (leaseState === "kept" && (await this.#turn.renew(this.input)))
        this.#lease.onRenewed(leaseWrite, storeTime);
      else if (this.#phase === "calling") this.#lose(leaseState === "decided" ? "decided" : "lost");
    } catch (error) {
      this.runner.notify(inboxErrorNotice("renew", error));
      // The store could not be reached for a whole lease, so another process may have the event by now.
      if (this.elapsedMs >= this.#lease.lengthMs) this.warnOfDouble("lease-lost");
    } finally {
      this.#isRenewing = false;
    }
  }

  /** Another process has the event, or may have it. If a handler is still running here, its effects may happen twice. */
  #lose(reason: Exclude<LeaseState, "kept">): void {
    if (this.#phase === "lost") return;
    this.#phase = "lost";
    this.#wake();
    if (this.#core.isAbandoned) return;
    if (reason === "decided") {
      this.#isWarned = true;
      this.cancellation.cancel(new Error("somebody has decided about the held event"));
    } else this.warnOfDouble("lease-lost");
  }

  warnOfDouble(why: Extract<Notice, { type: "double-risk" }>["why"]): void {
    this.cancellation.cancel(new Error(why));
    if (!this.hasCalledHandler || this.#isWarned) return;
    this.#isWarned = true;
    this.runner.notify({ type: "double-risk", why, ...factsOf(this.input) });
  }
}

function beginIn(
  record: IdempotencyRecord | null,
  slot: string | "next",
  options: BeginOptions,
): BeginResult {
  if (slot !== "next") return begin(record, slot, options);
  const input = record === null ? null : beginNext(record, options);
  return input === null ? { kind: "wait", isRunning: false } : { kind: "leased", input };
}
