import { inboxErrorNotice } from "../../notices/notice.ts";
import { sleep } from "../../time/clock.ts";
import type { Runner } from "../contract/inbox.ts";
import { recordKeyOf, type Subject, type VerifiedEvent } from "../record/event.ts";
import type { RunInput } from "../record/run-input.ts";
import {
  type OvertakeResult,
  overtakeBySubject,
  releaseSubject,
  renewSubject,
  type SubjectAnswer,
  takeSubject,
} from "../record/subject.ts";
import type { InboxCore } from "../write/inbox-core.ts";

/**
 * A subject's lease ends this much later than the run's own lease. If that lease is shorter than this, it ends later by
 * the length of the lease. A store refuses a write that is dated more than 5 s before its own time. So the run's lease
 * ends first, however its process has dated the two leases.
 */
const SUBJECT_EXTRA_LEASE_MS = 5_000;
/** The pause before the last run of an event tries again to take its busy subject. */
const BUSY_SUBJECT_PAUSE_MS = 50;

interface TakenSubject extends Subject {
  readonly retentionMs: number;
  /** The earlier events of its subject that have ended. */
  readonly endedIds: string[];
}

/** The turn of one run among the events of its subject. For an event without a subject, it does nothing and costs nothing. */
export class SubjectTurn {
  readonly #core: InboxCore;
  readonly #runner: Runner;
  #takenSubject: TakenSubject | null = null;

  constructor(core: InboxCore, runner: Runner) {
    this.#core = core;
    this.#runner = runner;
  }

  /**
   * Takes the subject for the event that is run, and ends the earlier events. Rejects if the store does not answer:
   * then no handler may be called. `isLast`: there will be no later run, so this run waits while the subject is busy.
   */
  async take(input: RunInput, event: VerifiedEvent, isLast: boolean): Promise<SubjectAnswer> {
    const { subject } = event;
    if (subject === undefined) return "acquired";
    for (;;) {
      const answer = await this.#tryTake(input, event, subject);
      if (answer !== "busy" || !isLast || this.#core.isAbandoned) return answer;
      await sleep(this.#core.environment, BUSY_SUBJECT_PAUSE_MS);
    }
  }

  async #tryTake(
    input: RunInput,
    { signedAt, delivery, ...event }: VerifiedEvent,
    subject: Subject,
  ): Promise<SubjectAnswer> {
    // The subject's record must last for as long as an earlier event can be run again.
    const retentionMs = Math.max(event.retentionMs, event.keepMs ?? 0);
    const { records, store, leaseMs } = this.#core;
    const { eventId, token, replays, hadTurn } = input;
    const { flow, tenant, receivedAt } = delivery;
    const signed = signedAt ?? receivedAt;
    let earlierIds: readonly string[] = [];
    const { answer, version } = await records.change<SubjectAnswer>({
      key: subject.key,
      guess: null,
      deadlineMs: leaseMs / 3,
      change: (record, now) => {
        const isOld = signed + retentionMs <= now || signed <= (store.forgottenBefore?.(tenant) ?? 0);
        const request = { flow, tenant, eventId, at: subject.at, token, begunAt: input.now, retentionMs };
        const result = takeSubject(
          record,
          {
            ...request,
            leaseMs: this.#leaseMs,
            isReplay: replays > 0,
            mayBeForgotten: isOld && !hadTurn && !input.evenIfExpired,
          },
          now,
        );
        earlierIds = result.unfinishedEarlierIds;
        return { answer: result.answer, record: result.record };
      },
    });
    if (answer !== "acquired") return answer;
    const takenSubject: TakenSubject = { ...subject, retentionMs, endedIds: [] };
    this.#takenSubject = takenSubject;
    if (version !== null) await store.replicated?.([{ key: subject.key, version }]);
    for (const earlierId of earlierIds)
      if (await this.#overtake(earlierId)) takenSubject.endedIds.push(earlierId);
    return takenSubject.endedIds.length === earlierIds.length ? answer : "busy";
  }

  /** True if this run has taken the subject of its event. */
  get isTaken(): boolean {
    return this.#takenSubject !== null;
  }

  get #leaseMs(): number {
    const { leaseMs, nextLeaseMs } = this.#core;
    return nextLeaseMs + Math.min(leaseMs, SUBJECT_EXTRA_LEASE_MS);
  }

  /** Ends an earlier event of the subject. False if it has not ended yet. */
  async #overtake(eventId: string): Promise<boolean> {
    let staleFacts: OvertakeResult["facts"] = null;
    const { answer: hasEnded } = await this.#core.records.change({
      key: recordKeyOf(eventId),
      deadlineMs: this.#core.leaseMs / 3,
      change: (record, now, mayHaveBeenMade) => {
        const { hasEnded, facts } = overtakeBySubject(record, eventId, now);
        // If this change is computed again after its write was made, it finds the event ended.
        if (facts !== null || !mayHaveBeenMade) staleFacts = facts;
        return { answer: hasEnded, record: facts === null ? null : record };
      },
    });
    if (staleFacts !== null)
      this.#runner.notify({ type: "stale", ...(staleFacts as NonNullable<OvertakeResult["facts"]>) });
    return hasEnded;
  }

  /**
   * Renews the lease on the subject, after that of the run. False if another run has it. Rejects if the store does not answer.
   */
  async renew({ token }: RunInput): Promise<boolean> {
    if (this.#takenSubject === null) return true;
    const { answer } = await this.#core.records.change({
      key: this.#takenSubject.key,
      deadlineMs: this.#core.leaseMs / 3,
      change: (record, now) => {
        const answer = renewSubject(record, token, this.#leaseMs, now);
        return { answer, record: answer ? record : null };
      },
    });
    return answer;
  }

  /**
   * Gives the subject back after the end of the run was written. `isOver`: the event itself has ended, too. If this
   * fails, the next event of the subject waits until the lease is over.
   */
  async release({ token, eventId }: RunInput, isOver: boolean): Promise<void> {
    const takenSubject = this.#takenSubject;
    this.#takenSubject = null;
    if (takenSubject === null || this.#core.isAbandoned) return;
    const endedIds = isOver ? [...takenSubject.endedIds, eventId] : takenSubject.endedIds;
    const releasing = this.#core.records.change({
      key: takenSubject.key,
      deadlineMs: this.#core.leaseMs / 3,
      change: (record, now) => {
        const answer = releaseSubject(record, token, endedIds, takenSubject.retentionMs, now);
        return { answer, record: answer ? record : null };
      },
    });
    await releasing.catch((error: unknown) => this.#runner.notify(inboxErrorNotice("subject", error)));
  }
}
