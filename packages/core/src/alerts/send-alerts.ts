/**
 * Sends messages about incidents to people. Each process notes what it sees. One process, the one that checked last,
 * checks the inbox for all of them. The others write to the inbox only when they see something new. The open incidents,
 * and the channels that were notified of them, are in the note of a lease. So a message is sent once, whichever process
 * noticed the incident, and another process continues if the sending process dies.
 *
 * If the inbox cannot be reached, no process can write. Then the process that checked last sends the messages, from its
 * memory. The others stay silent, unless the outage lasts so long that this process may be dead.
 */

import { randomUUID } from "node:crypto";
import type { EventCounts } from "../inbox/contract/events.ts";
import type { NamedLease } from "../inbox/named-lease.ts";
import type { Notice, StallKind } from "../notices/notice.ts";
import { checkNames } from "../protocol/check-names.ts";
import { checkTime } from "../protocol/check-number.ts";
import { invalidOptionError } from "../protocol/errors.ts";
import { describeError } from "../protocol/foreign-error.ts";
import type { AnyReceiver } from "../receiver/receiver.ts";
import { type Clock, systemClock } from "../time/clock.ts";
import {
  type AlertChannel,
  AlertNotSent,
  AlertUnanswered,
  channelsOf,
  senderOf,
  sendFailureReason,
  sendInTime,
} from "./channel.ts";
import {
  type IncidentObservation,
  observationIn,
  observationsInCounts,
  REPEATED_OBSERVATION_TTL_MS,
} from "./incident-observation.ts";
import { type DueMessage, Incidents } from "./incidents.ts";

const LEASE_NAME = "payhooks-alerts";
const LEASE_LENGTH_MS = 60_000;
const CHECK_INTERVAL_MS = 30_000;
/** The pause before a check after a new observation, or after a check that found another process writing. */
const SOON_CHECK_DELAY_MS = 1_000;
const BUSY_LEASE_DELAY_MS = 5_000;
/** If no process has checked for this long, another process checks for all. */
const TAKE_OVER_AFTER_MS = 75_000;
/** A process that has lost the inbox sends messages itself after this time, because the process that should may be dead. */
const SEND_ANYWAY_AFTER_MS = 15 * 60_000;
/** How many messages a channel gets in one check, so that the lease does not end before the check does. */
const MAX_MESSAGES_PER_CHECK = 6;

/** Options of {@link sendAlerts}. */
export interface SendAlertsOptions {
  /** The channels that get every alert. Each has a `name` of its own. */
  readonly to: readonly AlertChannel[];
  /** The name of your application in messages, such as `shop, production`. At most 60 characters. Default `payhooks`. */
  readonly from?: string | undefined;
  /** There is an incident if the oldest event that is due has waited for longer than this. Default 5 minutes. */
  readonly overdueMs?: number | undefined;
  /** How often a channel gets a reminder of an open incident. Default 4 hours. */
  readonly repeatMs?: number | undefined;
  /** Called with a sentence if a message was given up, or the inbox cannot be read. Default: a line on stderr. */
  readonly onProblem?: ((problem: string) => void) | undefined;
  /** The source of time. Default: the platform's clock. Its timers do not keep the process alive. */
  readonly clock?: Clock | undefined;
}

/** A running {@link sendAlerts}. */
export interface AlertSender {
  /** Checks now, and sends the messages that are due. For a cron job, where no timer runs. Never rejects. */
  check(): Promise<void>;
  /** Sends no further message. Call it before `receiver.close()`. */
  stop(): Promise<void>;
}

/**
 * Begins to send messages about incidents to people. Call it in every process, once for each inbox. A delivery never
 * waits for it.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID` or `ERR_OPTION_MISSING`.
 * @example
 * const alerts = sendAlerts(receiver, { to: [slackChannel({ url: process.env.SLACK_URL })], from: "shop, production" });
 */
export function sendAlerts(
  receiver: Pick<AnyReceiver, "observe" | "lease" | "viewLease" | "events">,
  options: SendAlertsOptions,
): AlertSender {
  return new Sender(receiver, options);
}

class Sender implements AlertSender {
  readonly #receiver: Pick<AnyReceiver, "lease" | "viewLease" | "events">;
  readonly #channels: ReadonlyMap<string, AlertChannel>;
  readonly #from: string;
  readonly #overdueMs: number;
  readonly #repeatMs: number;
  readonly #onProblem: (problem: string) => unknown;
  readonly #clock: Clock;
  readonly #ownId: string = randomUUID();
  readonly #stopping = new AbortController();
  readonly #unobserve: () => void;
  /** The stalls of this process that have not recovered. */
  readonly #stalls = new Map<StallKind, IncidentObservation>();
  /** Observations from notices that are not written yet. */
  readonly #newObservations = new Map<string, IncidentObservation>();
  /** The open incidents and the channels that were notified of them, as far as this process knows. */
  #incidents: Incidents = Incidents.fromNote("", 0);
  /** True if this process has sent a message that it could not note in the inbox. */
  #hasUnstoredSends = false;
  /** True while the inbox answers. `#reachabilityChangedAt` is when it began to answer, or stopped. */
  #isInboxReachable = true;
  #reachabilityChangedAt = 0;
  /** The last known check of another process, and when this process learned of it, on its own clock. Null before the first. */
  #otherCheck: { readonly checkedBy: string; readonly checkedAt: number; readonly since: number } | null =
    null;
  #checking: Promise<void> | null = null;
  #cancelTimer: () => void;
  #dueAt: number;

  constructor(
    receiver: Pick<AnyReceiver, "observe" | "lease" | "viewLease" | "events">,
    options: SendAlertsOptions,
  ) {
    checkNames("sendAlerts", options, {
      to: true,
      from: true,
      overdueMs: true,
      repeatMs: true,
      onProblem: true,
      clock: true,
    });
    const {
      to,
      from = "payhooks",
      overdueMs = 5 * 60_000,
      repeatMs = 4 * 60 * 60_000,
      onProblem = writeToStderr,
      clock = systemClock,
    } = options;
    checkTime("overdueMs", overdueMs);
    checkTime("repeatMs", repeatMs);
    if (typeof onProblem !== "function") {
      throw invalidOptionError(
        "onProblem is not a function.",
        "Give a function, or leave it out for lines on stderr.",
      );
    }
    this.#channels = channelsOf(to);
    this.#receiver = receiver;
    this.#from = senderOf(from);
    this.#overdueMs = overdueMs;
    this.#repeatMs = repeatMs;
    this.#onProblem = onProblem;
    this.#clock = clock;
    this.#unobserve = receiver.observe((notice) => this.#observe(notice));
    this.#dueAt = clock.now() + SOON_CHECK_DELAY_MS;
    this.#cancelTimer = clock.after(SOON_CHECK_DELAY_MS, () => void this.check());
  }

  check(): Promise<void> {
    this.#checking ??= this.#check().finally(() => {
      this.#checking = null;
    });
    return this.#checking;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#unobserve();
    this.#cancelTimer();
    await this.#checking;
  }

  #observe(notice: Notice): void {
    if (notice.type === "recovered") this.#stalls.delete(notice.during);
    const observation = observationIn(notice);
    if (observation === null) return;
    if (notice.type === "stalled") this.#stalls.set(notice.during, observation);
    else this.#newObservations.set(observation.incident, observation);
    this.#checkIn(SOON_CHECK_DELAY_MS);
  }

  #checkIn(ms: number): void {
    const dueAt = this.#clock.now() + ms;
    if (this.#stopping.signal.aborted || this.#dueAt <= dueAt) return;
    this.#cancelTimer();
    this.#dueAt = dueAt;
    this.#cancelTimer = this.#clock.after(ms, () => {
      // A check may still be under way. It sets the timer again at its end, and must not find it set.
      this.#dueAt = Number.POSITIVE_INFINITY;
      void this.check();
    });
  }

  async #check(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    this.#cancelTimer();
    this.#dueAt = Number.POSITIVE_INFINITY;
    let nextMs = CHECK_INTERVAL_MS;
    try {
      if (!(await this.#checkInbox())) nextMs = BUSY_LEASE_DELAY_MS;
    } catch (error) {
      await this.#checkAlone(error);
    }
    this.#checkIn(nextMs);
  }

  /** False if another process has the lease, and this process has something to write. */
  async #checkInbox(): Promise<boolean> {
    const view = await this.#receiver.viewLease(LEASE_NAME);
    const now = this.#clock.now();
    if (!this.#isInboxReachable) this.#reachabilityChangedAt = now;
    this.#isInboxReachable = true;
    const storedIncidents = Incidents.fromNote(view?.note ?? "", now);
    if (!this.#hasUnstoredSends) this.#incidents = storedIncidents;
    const isNewlyReachable = now - this.#reachabilityChangedAt < TAKE_OVER_AFTER_MS;
    // A stall of this process may be part of an outage that another process reports already. So this process waits
    // before it reports the stall.
    const hasNews =
      !isNewlyReachable &&
      [...this.#ownObservations()].some((observed) => !storedIncidents.hasObservation(observed, now));
    if (!this.#isLeader(storedIncidents, now) && !hasNews && !this.#hasUnstoredSends) return true;
    const lease = await this.#receiver.lease(LEASE_NAME, LEASE_LENGTH_MS);
    if (lease === null) return false;
    const incidents = Incidents.fromNote(lease.note, now);
    if (this.#hasUnstoredSends) incidents.merge(this.#incidents);
    if (this.#isLeader(incidents, now)) {
      incidents.markChecked(this.#ownId, now);
      // After an outage, an event that has waited for its end is not overdue yet.
      if (!isNewlyReachable) {
        const counts = await this.#readCounts(lease);
        for (const observation of observationsInCounts(counts, this.#overdueMs))
          incidents.observe(observation, now);
      }
    }
    await this.#sendAll(incidents, now);
    this.#incidents = incidents;
    this.#hasUnstoredSends = true;
    this.#hasUnstoredSends = !(await lease.end(incidents.note));
    return true;
  }

  /** If this fails, the lease is given back, so that no process has to wait for its end. */
  async #readCounts(lease: NamedLease): Promise<EventCounts> {
    try {
      return await this.#receiver.events.counts();
    } catch (error) {
      await lease.end(lease.note).catch(() => {});
      throw error;
    }
  }

  /** True if this process checks for all: it made the last check, or there was none for long. */
  #isLeader({ checkedBy, checkedAt }: Incidents, now: number): boolean {
    if (checkedBy === this.#ownId) return true;
    if (this.#otherCheck?.checkedBy !== checkedBy || this.#otherCheck.checkedAt !== checkedAt) {
      // The time is from the other process's clock. If that clock is ahead, the check counts as made now. A process
      // that has just started ignores it.
      const isFarAhead = this.#otherCheck === null && checkedAt > now + TAKE_OVER_AFTER_MS;
      this.#otherCheck = { checkedBy, checkedAt, since: isFarAhead ? 0 : Math.min(checkedAt, now) };
    }
    return now - Math.max(this.#otherCheck.since, this.#reachabilityChangedAt) >= TAKE_OVER_AFTER_MS;
  }

  async #checkAlone(error: unknown): Promise<void> {
    const now = this.#clock.now();
    if (this.#isInboxReachable) {
      this.#isInboxReachable = false;
      this.#reachabilityChangedAt = now;
      this.#reportProblem(`The inbox cannot be asked for incidents: ${describeError(error)}`);
    }
    if (this.#incidents.checkedBy !== this.#ownId && now - this.#reachabilityChangedAt < SEND_ANYWAY_AFTER_MS)
      return;
    // Without the inbox, it is not known whether any other incident is over.
    this.#incidents.prolong(now + REPEATED_OBSERVATION_TTL_MS);
    this.#hasUnstoredSends = true;
    await this.#sendAll(this.#incidents, now);
  }

  /** Sends the messages that are due, and notes this in the incidents. */
  async #sendAll(incidents: Incidents, now: number): Promise<void> {
    for (const observation of this.#ownObservations()) incidents.observe(observation, now);
    this.#newObservations.clear();
    const names = [...this.#channels.keys()];
    const dueMessages = incidents.dueMessages(names, this.#from, now, this.#repeatMs);
    await Promise.all(
      names.map(async (name) => {
        for (const dueMessage of dueMessages
          .filter(({ channel }) => channel === name)
          .slice(0, MAX_MESSAGES_PER_CHECK)) {
          if (!(await this.#send(dueMessage))) return;
        }
      }),
    );
    incidents.forgetEnded(names, now);
  }

  /** False if the channel did not answer. Its other messages wait for a later check, so that this check does not take long. */
  async #send({ channel, message, onSent, onFailed }: DueMessage): Promise<boolean> {
    const target = this.#channels.get(channel);
    if (target === undefined || this.#stopping.signal.aborted) return false;
    try {
      await sendInTime(target, message, this.#clock, this.#stopping.signal);
      onSent();
      return true;
    } catch (error) {
      const { mayPass, retryAfterMs } =
        error instanceof AlertNotSent ? error : { mayPass: true, retryAfterMs: null };
      if (onFailed(mayPass, retryAfterMs)) {
        this.#reportProblem(
          `${channel} did not take a message about ${message.incident}, which is given up: ${sendFailureReason(error)}.`,
        );
      }
      return !(error instanceof AlertUnanswered);
    }
  }

  /** If `onProblem` fails, the problem is on stderr, and alerts go on. */
  #reportProblem(problem: string): void {
    (async () => this.#onProblem(problem))().catch(() => writeToStderr(problem));
  }

  *#ownObservations(): Iterable<IncidentObservation> {
    yield* this.#stalls.values();
    yield* this.#newObservations.values();
  }
}

function writeToStderr(problem: string): void {
  console.warn(`payhooks: ${problem}`);
}
