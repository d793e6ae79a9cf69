import { inboxErrorNotice } from "../../notices/notice.ts";
import { PayhooksError } from "../../protocol/errors.ts";
import type { BulkOptions, BulkReport, EventSelection } from "../contract/bulk.ts";
import type { Events } from "../contract/events.ts";
import { copyRecord, readableRecord } from "../record/codec.ts";
import {
  type DecisionName,
  type DecisionResult,
  decideOnce,
  discard,
  isMade,
  replay,
  retryNow,
} from "../record/decisions.ts";
import { erase } from "../record/erase.ts";
import { recordKeyOf, slotKeyOf } from "../record/event.ts";
import type { EventState } from "../record/index-of.ts";
import { type IdempotencyRecord, isFinished } from "../record/record.ts";
import { type FinishedClaims, finishedClaimsOf, noteHolders } from "../record/reference-claim.ts";
import type { ReferenceHolder } from "../write/claims.ts";
import type { InboxCore } from "../write/inbox-core.ts";
import { changeErrorOf } from "../write/records.ts";
import { type DecisionKind, decideAll, type FoundEvent, isIdList } from "./decide-all.ts";

export interface DecisionDependencies {
  readonly core: InboxCore;
  ready(): Promise<void>;
  /** Called after a decision was written, because it changes the due times and the number of held entries. */
  onDecided(): void;
}

/** Decides about an event, in a record that it may change. */
type DecisionRule = (record: IdempotencyRecord | null, eventId: string, now: number) => DecisionResult;

/** The events that have the references which a record had claimed. */
type ReferenceHolders = ReadonlyMap<string, ReferenceHolder>;

const NO_HOLDERS: ReferenceHolders = new Map();

/** The decisions that people make about events. */
export function decisions({
  core,
  ready,
  onDecided,
}: DecisionDependencies): Pick<Events, "replay" | "discard" | "retryNow" | "erase"> {
  const { records, leaseMs: deadlineMs, store } = core;

  async function writeDecision(
    { eventId, versioned }: FoundEvent,
    name: DecisionName,
    rule: DecisionRule,
    claims: ReferenceHolders,
  ): Promise<DecisionResult> {
    const key = recordKeyOf(eventId);
    let claimsToClose: FinishedClaims | null = null;
    const { answer, version } = await records.change<DecisionResult>({
      key,
      deadlineMs,
      ...(versioned === null ? {} : { guess: versioned }),
      change: (record, now) => {
        const answer = decideOnce(record, eventId, name, () => {
          if (record !== null) noteHolders(record, key, claims);
          return rule(record, eventId, now);
        });
        claimsToClose = record === null ? null : finishedClaimsOf(record);
        return { answer, record: isMade(answer) ? record : null, shouldAnnounce: isMade(answer) };
      },
    });
    if (isMade(answer) || answer === "already-decided") onDecided();
    if (isMade(answer) && claimsToClose !== null) {
      const whenClosed = core.claims.close(key, version, claimsToClose);
      await whenClosed.catch((error: unknown) => core.notify(inboxErrorNotice("claim", error)));
    }
    return answer;
  }

  /** The outcome that the decision would have, for the event as it was read. */
  function outcomeOf(
    { eventId, versioned }: FoundEvent,
    name: DecisionName,
    rule: DecisionRule,
  ): DecisionResult {
    const record = readableRecord(versioned);
    const now = store.now(recordKeyOf(eventId));
    try {
      const copy = record === null ? null : copyRecord(record);
      return decideOnce(copy, eventId, name, () => rule(copy, eventId, now));
    } catch (error) {
      throw changeErrorOf(error);
    }
  }

  /** Decides about one event, or about many. If the call names a single event, an outcome other than `decided` is an error. */
  async function decide(
    kind: DecisionKind,
    which: EventSelection,
    { revision, ...options }: BulkOptions & { readonly revision?: string | undefined },
    rule: DecisionRule,
  ): Promise<BulkReport> {
    await ready();
    const bulk = { core, kind };
    const list = typeof which === "string" ? [which] : which;
    const report = await decideAll(bulk, list, options, async (foundEvent, decisionToken, dryRun) => {
      const name = { decisionToken, revision };
      let answer = outcomeOf(foundEvent, name, rule);
      if (answer === "decided" && kind === "replay" && (await isSuperseded(foundEvent)))
        answer = "superseded";
      if (isMade(answer) && !dryRun) {
        const holders = kind === "replay" ? await holdersOf(foundEvent) : NO_HOLDERS;
        answer = await writeDecision(foundEvent, name, rule, holders);
      }
      if (typeof which === "string" && !isMade(answer) && answer !== "already-decided") {
        throw refusalError(kind, which, answer);
      }
      return answer;
    });
    if (typeof which === "string" && report.unreadable !== null) throw report.unreadable.error;
    return report;
  }

  /**
   * True if a later event of the subject has run since this event ended. If the subject's record has expired, the next run of
   * the event notices that.
   */
  async function isSuperseded({ eventId, versioned }: FoundEvent): Promise<boolean> {
    const slot = readableRecord(versioned)?.slots[slotKeyOf(eventId)];
    if (slot?.kept === undefined || slot.subject === undefined) return false;
    const [subject] = await store.read([slot.subject.key]);
    return (readableRecord(subject)?.signedAt ?? 0) > slot.subject.at;
  }

  /**
   * Finds the owners of the references that a finished record had claimed. Its claims expire with the record, and a replay lets
   * the record live longer.
   */
  async function holdersOf({ eventId, versioned }: FoundEvent): Promise<ReferenceHolders> {
    const record = readableRecord(versioned);
    const slot = record?.slots[slotKeyOf(eventId)];
    if (record?.claims === undefined || slot?.kept === undefined || !isFinished(record)) return NO_HOLDERS;
    const { flow, tenant, signedAt } = record;
    const { retentionMs } = slot.kept;
    const holders = new Map<string, ReferenceHolder>();
    for (const [key, spentToken] of Object.entries(record.claims)) {
      const owner = recordKeyOf(eventId);
      const claim = { key, owner, flow, tenant, until: null, signedAt, retentionMs, spentToken };
      holders.set(key, await core.claims.acquire(claim));
    }
    return holders;
  }

  return {
    replay: async (which, decision) => {
      const rule: DecisionRule = (record, eventId, now) => replay(record, eventId, decision, now);
      return decide("replay", withState(which, ["held", "finished"]), decision, rule);
    },
    discard: async (which, decision) => {
      const rule: DecisionRule = (record, eventId, now) => discard(record, eventId, decision, now);
      return decide("discard", withState(which, ["held"], "held"), decision, rule);
    },
    erase: async (which, { unfinished = false, ...options }) => {
      const rule: DecisionRule = (record, eventId, now) => erase(record, eventId, unfinished, now);
      return decide("erase", withState(which, null), options, rule);
    },
    retryNow: async (which, decision) => {
      const rule: DecisionRule = (record, eventId, now) => retryNow(record, eventId, decision, now);
      return decide("retry", withState(which, ["retrying", "waiting"], "retrying"), decision, rule);
    },
  };
}

/** Checks that a filter names a state, so that nobody decides about events of every state by mistake. */
function withState(
  which: EventSelection,
  states: readonly string[] | null,
  byDefault?: EventState,
): EventSelection {
  if (typeof which === "string" || isIdList(which)) return which;
  const { state } = which;
  if (states === null) {
    const isNamed = which.id !== undefined || which.referenceId !== undefined;
    if (state !== undefined || isNamed) return which;
    throw stateMissingError("finished, held, waiting, retrying or running, or give an id or a referenceId");
  }
  if (state === undefined && byDefault !== undefined) return { ...which, state: byDefault };
  if (state === undefined || !states.includes(state)) throw stateMissingError(states.join(" or "));
  return which;
}

function stateMissingError(states: string): PayhooksError {
  return new PayhooksError("ERR_OPTION_INVALID", "A filter does not say the state of its events.", {
    fix: `Give state: ${states}.`,
  });
}

/** The error of a decision about one event. */
function refusalError(kind: DecisionKind, eventId: string, result: DecisionResult): PayhooksError {
  switch (result) {
    case "changed":
      return eventChangedError(eventId);
    case "superseded":
    case "not-kept":
    case "running":
    case "due":
    case "not-waiting":
      return new PayhooksError("ERR_NOT_DECIDABLE", `The event ${eventId} ${REFUSAL_TEXTS[result].what}.`, {
        fix: REFUSAL_TEXTS[result].fix,
      });
    case "unfinished":
      if (kind === "erase") {
        return new PayhooksError("ERR_NOT_DECIDABLE", `The event ${eventId} has not ended.`, {
          fix: "Let it end, or erase it with unfinished: true. Then it never runs.",
        });
      }
  }
  const isOfHeld = kind === "replay" || kind === "discard";
  const shownId = JSON.stringify(String(eventId).slice(0, 64));
  return new PayhooksError(
    "ERR_EVENT_NOT_FOUND",
    `No ${isOfHeld ? "held entry" : "event"} has the eventId ${shownId}.`,
    { fix: isOfHeld ? FIND_HELD_FIX : FIND_EVENT_FIX },
  );
}

const FIND_HELD_FIX =
  'List them with receiver.events.list({ state: "held" }); it may have been replayed or discarded already.';
const FIND_EVENT_FIX =
  "List them with receiver.events.list(); a record is forgotten some time after its events have ended.";

const REFUSAL_TEXTS = {
  superseded: {
    what: "has ended, and a later status of its transaction, or a later event of its subject, has replaced it",
    fix: "Look at the later one. An event that was replaced does not run again.",
  },
  "not-kept": {
    what: "has ended, and its signed text was not kept",
    fix: "Set keep of its flow. Events that end from then on can run again.",
  },
  running: { what: "runs", fix: "Wait until it has ended, or until its attempt has failed." },
  due: { what: "is due already", fix: "Your application runs it as soon as it has capacity." },
  "not-waiting": {
    what: "is held or has ended, so it waits for no attempt",
    fix: "Look at it: a held event is replayed instead.",
  },
} as const;

function eventChangedError(eventId: string): PayhooksError {
  return new PayhooksError(
    "ERR_EVENT_CHANGED",
    `The event ${eventId} has changed since you read it: it was replayed and held again, or another event of its transaction has run or is about to run.`,
    { fix: "Read it once more, then decide." },
  );
}
