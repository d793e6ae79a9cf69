import { inboxErrorNotice } from "../notices/notice.ts";
import type { Runner, WorkOptions, WorkReport } from "./contract/inbox.ts";
import type { DueRecord } from "./contract/store.ts";
import type { Pruning } from "./pruning.ts";
import { type Lane, otherLane, ZERO_PER_LANE } from "./record/lane.ts";
import type { Run } from "./run/run.ts";
import type { DueRequest } from "./run/runs.ts";
import { closedMeanwhileError } from "./write/batched-store.ts";
import type { InboxCore } from "./write/inbox-core.ts";

/** Begins the next event of a record that the store handed out, or ends a canary. Null if no run was begun. */
export type BeginDue = (due: DueRecord, request: DueRequest, isWanted: () => boolean) => Promise<Run | null>;

/** The lane that the next event is taken from. */
interface NextLane {
  lane: Lane;
}

/** Runs due events while a caller waits for their end: in a process that lives for a request, or in a job. */
export class DueWorker {
  readonly #core: InboxCore;
  readonly #pruning: Pruning;
  readonly #beginDue: BeginDue;
  /** Calls that are under way. They begin nothing more once the inbox closes. */
  readonly #underWay = new Set<Promise<WorkReport>>();

  constructor(core: InboxCore, pruning: Pruning, beginDue: BeginDue) {
    this.#core = core;
    this.#pruning = pruning;
    this.#beginDue = beginDue;
  }

  async run(runner: Runner, options: WorkOptions): Promise<WorkReport> {
    const working = this.#run(runner, options);
    this.#underWay.add(working);
    try {
      return await working;
    } finally {
      this.#underWay.delete(working);
    }
  }

  /** Resolves once no call is under way. */
  async atRest(): Promise<void> {
    await Promise.allSettled(this.#underWay);
  }

  async #run(runner: Runner, { deadlineMs, limit, concurrency }: WorkOptions): Promise<WorkReport> {
    const time = this.#core.stopwatch();
    let takenCount = 0;
    let ran = 0;
    let failed = 0;
    const next: NextLane = { lane: "usual" };
    const isInTime = (): boolean => time.elapsedMs < deadlineMs;
    const takeNext = async (): Promise<DueRecord | undefined> => {
      if (takenCount >= limit || !isInTime() || this.#core.isClosing) return undefined;
      takenCount++;
      const record = await this.#takeOne(next);
      if (record === undefined) takenCount--;
      return record;
    };
    const worker = async (firstRecord: DueRecord | undefined): Promise<void> => {
      for (let record = firstRecord; record !== undefined; record = await takeNext()) {
        const run = await this.#beginDue(record, { runner, inBackground: false }, isInTime);
        const outcome = run === null ? null : await run.whenEnded;
        if (outcome === null) takenCount--;
        else ran++;
        if (outcome === "retry" || outcome === "held") failed++;
      }
    };
    // After most responses nothing else is due. So the other workers poll only if the first worker has found an
    // event.
    const first = await takeNext();
    if (first !== undefined) {
      const otherWorkers = Array.from({ length: Math.min(concurrency, limit) - 1 }, async () =>
        worker(await takeNext()),
      );
      // Wait for the running events, even if no more can be taken.
      const results = await Promise.allSettled([worker(first), ...otherWorkers]);
      for (const result of results) if (result.status === "rejected") throw result.reason;
    }
    // The grace of a close ended before the events did, so the store is closed.
    if (this.#core.isAbandoned) throw closedMeanwhileError();
    await this.#pruneSome(runner);
    const { left, nextDueAt } = await this.#core.store.takeDue(ZERO_PER_LANE, 0);
    return { ran, failed, remaining: left.usual + left.patient, nextDueAt };
  }

  /** If this fails, the store keeps expired records longer. No event is lost. */
  async #pruneSome(runner: Runner): Promise<void> {
    try {
      await this.#pruning.pruneSome();
    } catch (error) {
      runner.notify(inboxErrorNotice("prune", error));
    }
  }

  /** Takes an event of the lane that is next, or of the other one if nothing is due there. */
  async #takeOne(next: NextLane): Promise<DueRecord | undefined> {
    const { store, hideMs } = this.#core;
    const first = next.lane;
    for (const lane of [first, otherLane(first)]) {
      const { records, left } = await store.takeDue({ ...ZERO_PER_LANE, [lane]: 1 }, hideMs);
      const isMoreInOther = left[otherLane(lane)] > 0;
      if (isMoreInOther) next.lane = otherLane(lane);
      if (records.length > 0 || !isMoreInOther) return records[0];
    }
    return undefined;
  }
}
