import type { StoredDelivery, VerifiedEvent } from "../inbox/record/event.ts";
import { claimKeyFor, hashOf, recordKeyFor, subjectKeyFor } from "../inbox/record/keys.ts";
import { labelOf } from "../inbox/record/label.ts";
import type { SetupWarning } from "../notices/setup-warnings.ts";
import type { Contents } from "../protocol/contents.ts";
import type { Delivery, Reply } from "../protocol/delivery.ts";
import type { DeliveryErrorCode } from "../protocol/errors.ts";
import type { AnyEvent, FlowName, SourceEvent } from "../protocol/events.ts";
import type { HeldReason } from "../protocol/held-reasons.ts";
import { sha256 } from "../signature/sha256.ts";

const NO_FIELDS_LEFT_OUT: readonly string[] = [];

type FlowEvent = AnyEvent | SourceEvent;

/** A stored delivery, read with today's rules. */
export class ReadDelivery {
  /** The event for the inbox to record. `verdict` says whether it may run. */
  readonly verified: VerifiedEvent;
  /** Documented and declared fields that the body has but the event lacks, because their value is not certain. */
  readonly leftOut: readonly string[];
  #readEvent: (() => FlowEvent | null) | null;
  #event: FlowEvent | null = null;

  /** `readEvent` is called only when the event is needed. A process that only accepts does not need it. */
  constructor(
    verified: VerifiedEvent,
    readEvent: (() => FlowEvent | null) | null,
    leftOut: readonly string[] = NO_FIELDS_LEFT_OUT,
  ) {
    this.verified = verified;
    this.leftOut = leftOut;
    this.#readEvent = readEvent;
  }

  /** The event, if its reading is certain and its fields are as documented. */
  get event(): FlowEvent | null {
    if (this.#readEvent !== null) {
      this.#event = this.#readEvent();
      this.#readEvent = null;
    }
    return this.#event;
  }
}

/** A delivery that is authentic. */
export interface AuthenticReading {
  readonly ok: true;
  readonly reading: ReadDelivery;
  /** Set if the signed timestamp is outside of the window. This is then the answer, unless the event is recorded already. */
  readonly outsideWindow: "ERR_TIMESTAMP_EXPIRED" | "ERR_TIMESTAMP_FUTURE" | null;
}

const CACHED_READING: unique symbol = Symbol("read");

/** A delivery that was read in this process. If it runs from memory, it need not be read again. */
interface DeliveryWithReading extends StoredDelivery {
  [CACHED_READING]?: { readonly by: object; readonly reading: ReadDelivery };
}

/** Caches a reading with its delivery. `by` identifies the rules, because other rules may read it differently. */
export function cacheReading(delivery: DeliveryWithReading, by: object, reading: ReadDelivery): void {
  delivery[CACHED_READING] = { by, reading };
}

/** The reading that was cached with exactly this delivery, not with one that it was copied from. */
export function cachedReading(delivery: DeliveryWithReading, by: object): ReadDelivery | undefined {
  const cached = delivery[CACHED_READING];
  return cached?.by === by && cached.reading.verified.delivery === delivery ? cached.reading : undefined;
}

/** A delivery that is authentic and wants an answer, but carries no event. */
export interface ChallengeAnswer {
  readonly ok: null;
  readonly reply: Reply;
}

/** The outcome of the verification of one delivery. */
export type Verification =
  | AuthenticReading
  | {
      readonly ok: false;
      readonly code: DeliveryErrorCode;
      readonly why: string;
      /** How to fix it, if this delivery shows that. Otherwise the refusal names the most likely cause of the code. */
      readonly fix?: string | undefined;
    };

/** Why a delivery is refused if the resolver does not know its merchant. */
export const UNKNOWN_TENANT_REASON = "unknown tenant: the resolver has no keys for it";

/** The warning about entries of a list of keys that are not set, if there are any. */
export function unsetEntryWarnings(option: string, count: number): readonly SetupWarning[] {
  if (count === 0) return [];
  const what = `${option} lists ${count} ${count === 1 ? "entry that is" : "entries that are"} not set.`;
  const fix = "That is fine between two rotations. During a rotation, check the environment variable.";
  return [{ what, fix }];
}

/** The traits that only the flow of a source has. */
export interface SourceTraits {
  /** The answer to a delivery that was accepted. */
  readonly acceptedReply: Reply;
  readonly maxBodyBytes: number;
  /** The sender does not repeat a refused delivery. */
  readonly sendsOnce: boolean;
  /** The treatment of a name that has no handler. */
  readonly unhandled: "acknowledge" | "hold";
  /** The answer to a GET with this URL; null if it has none. */
  challenge(url: string): Reply | null;
  /** The event with the output of its schema, or the reason to hold it. Rejects if the schema throws. */
  check(event: SourceEvent): Promise<{ readonly event: SourceEvent } | { readonly issues: string }>;
}

/** An event of which only the identifying fields are known, because another receiver has its delivery. */
export interface NamedEvent {
  /** `payTxnId`, `idempotency_key`, or the id that `read` of a source gives. */
  readonly id: string;
  /** The event's name, such as `DEPOSIT`. */
  readonly event: string;
  /** The payment's status, in the service's word or in ours; of a source, one of its `stages`. Left out if it has none. */
  readonly status?: string | undefined;
}

/** A kind of deliveries: how they are verified and read. */
export interface Flow {
  readonly name: FlowName;
  /** True if a resolver chooses the keys. Then every event belongs to a tenant that it named. */
  readonly hasTenants: boolean;
  /** The HTTP status for a delivery that is not authentic. */
  readonly badSignatureStatus: number;
  /** How old the signed time of a new event may be, in milliseconds. */
  readonly windowMs: number;
  /** Checks and loads the keys; throws a set-up error. Returns warnings. */
  prepare(): Promise<readonly SetupWarning[]>;
  /** Verifies a delivery. Asynchronous only if a resolver has to be asked. */
  verify(
    delivery: Delivery,
    now: number,
  ): Verification | ChallengeAnswer | Promise<Verification | ChallengeAnswer>;
  /** Reads a stored delivery again, for a run. It was verified when it arrived. */
  read(stored: StoredDelivery): ReadDelivery;
  /** An event that another receiver names, for the inbox. Null if the flow has no event of this name and status. */
  eventFromName(event: NamedEvent, tenant: string, now: number): VerifiedEvent | null;
  /** Left out for the service's two flows. */
  readonly source?: SourceTraits;
  /** Shows a person a stored delivery. */
  contents(stored: StoredDelivery): Contents;
}

/** Signed timestamps may be this far in the future, because clocks differ. */
export const MAX_FUTURE_MS: number = 24 * 60 * 60 * 1000;
/** A finished record is kept for this much longer than the window, because clocks differ. */
export const RETENTION_SLACK_MS: number = 24 * 60 * 60 * 1000;

/** The keys of the usual slots, which are computed once. They are few, but names and statuses of a source may be any text. */
const slotKeys = new Map<string, string>();
const MAX_SLOT_KEYS = 1_000;

function slotKey(name: string, status: string): string {
  // The length separates name and status: without it, two pairs of them could have the same key.
  const slot = `${name.length} ${name}${status}`;
  let key = slotKeys.get(slot);
  if (key === undefined) {
    key = hashOf([name, status, ""], 16);
    if (slotKeys.size === MAX_SLOT_KEYS) slotKeys.clear();
    slotKeys.set(slot, key);
  }
  return key;
}

/** Facts as labels, so that a record stays short. */
function labelsOf(facts: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const labels: Record<string, string> = {};
  for (const name in facts) labels[name] = labelOf(facts[name] ?? "");
  return labels;
}

/** An event as the table of deduplication takes it: its reading is certain. */
export interface CertainReading {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly rank: number;
  /** The rank that is final. Default 1. */
  readonly lastRank?: number | undefined;
  readonly fixedFacts: Readonly<Record<string, string>>;
  readonly amount: string | null;
  readonly signedAt: number | null;
  /**
   * Why to hold it; null to run it. The reasons `unexpected` and `unrecognized` keep it out of the table, in a slot of its own.
   */
  readonly hold: { readonly reason: HeldReason; readonly detail: string } | null;
  /** The reference that this id claims for itself (`oneSuccessPerReference`); null if it claims none. */
  readonly reference: string | null;
  /** The merchant's reference; null if the event has none. */
  readonly referenceId: string | null;
  /**
   * The subject of the event, and the time by which the events of this subject are ordered. Left out for an event without a
   * subject.
   */
  readonly subject?: { readonly name: string; readonly at: number } | undefined;
}

/** For how long the inbox remembers an event of a flow. */
export interface Lifetimes {
  /** How old the signed time of a new event may be. */
  readonly windowMs: number;
  /** How long the signed text is kept after the event's end. Undefined: it is dropped at the end. */
  readonly keepMs: number | undefined;
}

function lifetimesOf({ windowMs, keepMs }: Lifetimes): Pick<VerifiedEvent, "retentionMs" | "keepMs"> {
  return { retentionMs: windowMs + RETENTION_SLACK_MS, ...(keepMs === undefined ? {} : { keepMs }) };
}

/** The inbox's form of an event whose reading is certain. */
export function eventOf(
  facts: CertainReading,
  delivery: StoredDelivery,
  lifetimes: Lifetimes,
): VerifiedEvent {
  const { tenant, flow } = delivery;
  const { id, name, status, amount, signedAt, hold, reference, referenceId, subject } = facts;
  const fixedFacts = labelsOf(facts.fixedFacts);
  return {
    key: recordKeyFor(tenant, flow, id),
    // A name or status that is not listed can be any text, so only slots of listed ones are kept.
    slot: hold === null ? slotKey(name, status) : hashOf([name, status, ""], 16),
    variantSlot: () => hashOf([name, status, hashOf([JSON.stringify(fixedFacts), amount ?? ""], 32)], 16),
    id,
    name,
    status,
    rank: hold === null ? facts.rank : null,
    ...(facts.lastRank === undefined ? {} : { lastRank: facts.lastRank }),
    fixedFacts,
    amount,
    signedAt,
    isWithinWindow: true,
    ...lifetimesOf(lifetimes),
    verdict: hold?.reason ?? "run",
    detail: hold?.detail ?? null,
    referenceKey: reference === null ? null : claimKeyFor(tenant, flow, name, labelOf(reference)),
    referenceId: referenceId === null ? null : labelOf(referenceId),
    ...(subject === undefined || hold !== null
      ? {}
      : { subject: { key: subjectKeyFor(tenant, flow, subject.name), at: subject.at } }),
    delivery,
  };
}

/** The event that the inbox records if another receiver names it. It contradicts no delivery of the same event. */
export function eventWithoutDelivery(
  { id, event: name }: NamedEvent,
  { status, ...ranks }: Pick<CertainReading, "status" | "rank" | "lastRank">,
  origin: Pick<StoredDelivery, "flow" | "tenant" | "arrivedBy" | "receivedAt">,
  lifetimes: Lifetimes,
): VerifiedEvent {
  const facts = { id, name, status, ...ranks, fixedFacts: {}, amount: null, signedAt: null, hold: null };
  const delivery = { ...origin, content: new Uint8Array(0), signature: null, keyId: null };
  return eventOf({ ...facts, reference: null, referenceId: null }, delivery, lifetimes);
}

/**
 * The reading of a delivery that is authentic, but not certain or not usable. Its key is a hash of the signed text, never an id
 * that a forger may have chosen. So the delivery changes no other record.
 */
export function readingOutsideTable(
  reason: "malformed" | "ambiguous",
  detail: string,
  signed: string | Uint8Array,
  signedAt: number | null,
  delivery: StoredDelivery,
  lifetimes: Lifetimes,
  foundBy: readonly string[] = [],
): ReadDelivery {
  const { tenant, flow } = delivery;
  const id = sha256(signed, "hex").slice(0, 32);
  const slot = hashOf([reason], 16);
  const verified: VerifiedEvent = {
    key: hashOf([tenant, flow, "entry", id], 32),
    slot,
    variantSlot: () => slot,
    id,
    name: "",
    status: "",
    rank: null,
    fixedFacts: {},
    amount: null,
    signedAt,
    isWithinWindow: true,
    ...lifetimesOf(lifetimes),
    verdict: reason,
    detail,
    referenceKey: null,
    referenceId: null,
    foundBy,
    delivery,
  };
  return new ReadDelivery(verified, null);
}

/** Compares the signed time with the window. */
export function withFreshness(reading: ReadDelivery, now: number, windowMs: number): AuthenticReading {
  const { signedAt } = reading.verified;
  if (signedAt === null) return { ok: true, reading, outsideWindow: null };
  const outsideWindow =
    signedAt < now - windowMs
      ? "ERR_TIMESTAMP_EXPIRED"
      : signedAt > now + MAX_FUTURE_MS
        ? "ERR_TIMESTAMP_FUTURE"
        : null;
  if (outsideWindow === null) return { ok: true, reading, outsideWindow };
  const verified = { ...reading.verified, isWithinWindow: false };
  return {
    ok: true,
    reading: new ReadDelivery(verified, () => reading.event, reading.leftOut),
    outsideWindow,
  };
}
