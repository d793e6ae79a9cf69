import { contentsOf } from "../flows/contents.ts";
import {
  type ChallengeAnswer,
  cachedReading,
  cacheReading,
  eventNamed,
  eventOf,
  type Flow,
  MAX_FUTURE_MS,
  RETENTION_SLACK_MS,
  ReadDelivery,
  readingOutsideTable,
  type Verification,
  withFreshness,
} from "../flows/flow.ts";
import type { FlowContext } from "../flows/payments.ts";
import type { StoredDelivery } from "../inbox/record/event.ts";
import { ONLY_TENANT } from "../inbox/record/keys.ts";
import type { SetupWarning } from "../notices/setup-warnings.ts";
import { type Delivery, RECEIVED, type Reply } from "../protocol/delivery.ts";
import type { SourceEvent } from "../protocol/events.ts";
import { describeError } from "../protocol/foreign-error.ts";
import type { HeldReason } from "../protocol/held-reasons.ts";
import { isPending } from "../time/awaitable.ts";
import { deliveredOf, Unusable } from "./delivered.ts";
import { type CheckedEvent, readEvent } from "./read-event.ts";
import { type Answer, checkAnswer, type MadeSource } from "./source.ts";
import { pathsOf } from "./standard-schema.ts";
import type { Authentic, NotAuthentic, SourceRequest } from "./verifier.ts";

type Outcome = Verification | ChallengeAnswer;

const MAX_CHALLENGE = 1_024;

/** The flow of a source. `name` is its name among the receiver's `sources`. */
export function sourceFlow(name: string, made: MadeSource, { windowMs, ...limits }: FlowContext): Flow {
  const verifier = made.bind(`sources.${name}`, limits);
  const rememberMs = made.rememberMs ?? windowMs + RETENTION_SLACK_MS;
  /** The helpers of flows add the slack. */
  const lifetimes = { windowMs: rememberMs - RETENTION_SLACK_MS, keepMs: made.keepMs };

  function verify(delivery: Delivery, now: number): Outcome | Promise<Outcome> {
    const request: SourceRequest = {
      method: delivery.method,
      path: pathOf(delivery.url),
      headers: { get: (header) => delivery.headers.get(header.toLowerCase()) ?? null },
      body: delivery.rawBody,
      tenant: delivery.tenant,
    };
    const verdict = verifier.verify(request, now);
    return isPending(verdict)
      ? verdict.then((known) => accept(request, known, now))
      : accept(request, verdict, now);
  }

  function accept(request: SourceRequest, verdict: Authentic | NotAuthentic, now: number): Outcome {
    if (!verdict.ok) return verdict;
    const { covered, keyId, signature, signedAt } = verdict;
    const kept: Record<string, string> = { ...covered };
    const looseHeader = (header: string): string | null => {
      const value = request.headers.get(header);
      if (value !== null) kept[header] = value;
      return value;
    };
    for (const header of made.keepHeaders) if (!(header in covered)) looseHeader(header);
    const stored: StoredDelivery = {
      flow: name,
      tenant: verdict.tenant ?? ONLY_TENANT,
      arrivedBy: "webhook",
      content: verdict.content ?? request.body,
      signature,
      keyId,
      receivedAt: now,
      headers: kept,
      covered: Object.keys(covered),
      ...(signedAt === null ? {} : { signedAt }),
    };
    const reply = handshakeOf(stored, looseHeader);
    if (reply !== null) return { ok: null, reply };
    const reading = readingOf(stored, looseHeader);
    if (verdict.outsideWindow !== null) {
      const { verified, leftOut } = reading;
      const event = reading.event;
      const late = { ...verified, isWithinWindow: false };
      return {
        ok: true,
        reading: new ReadDelivery(late, event === null ? null : () => event, leftOut),
        outsideWindow: verdict.outsideWindow,
      };
    }
    // The tolerance of the verifier is narrower than the receiver's window. That window is for functions of one's own.
    return withFreshness(reading, now, windowMs);
  }

  function handshakeOf(stored: StoredDelivery, looseHeader: (name: string) => string | null): Reply | null {
    if (made.handshake === null) return null;
    let answer: Answer | null;
    try {
      answer = made.handshake(deliveredOf(stored, made.body, looseHeader));
    } catch {
      // `read` finds the same fault, and the delivery is held with its reason.
      return null;
    }
    if (answer === null || answer === undefined) return null;
    checkAnswer(answer);
    return replyOf(answer);
  }

  /** Reads a delivery as an event. An unreadable delivery is an event outside of the table. Its key is a hash of its bytes. */
  function readingOf(given: StoredDelivery, looseHeader: (name: string) => string | null): ReadDelivery {
    let read: CheckedEvent;
    try {
      read = readEvent(made, deliveredOf(given, made.body, looseHeader));
    } catch (error) {
      const why = error instanceof Unusable ? error.message : `read threw: ${describeError(error)}`;
      return keep(
        readingOutsideTable("malformed", why, given.content, given.signedAt ?? null, given, lifetimes),
      );
    }
    const isForeign = read.tenant !== null && given.tenant !== ONLY_TENANT && read.tenant !== given.tenant;
    const stored = read.tenant === null || isForeign ? given : { ...given, tenant: read.tenant };
    const { id, name: event, status, fixedFacts, foundAs, subject, occurredAt } = read;
    const hold = isForeign
      ? reasonOf("mismatch", "read names another tenant than the key")
      : made.stageOf !== null && read.stage === null
        ? reasonOf("unrecognized", "the status is in none of the source's stages")
        : isAhead(read, given)
          ? reasonOf("unrecognized", "its subject is ordered by an occurredAt that is over a day ahead")
          : null;
    const verified = eventOf(
      {
        id,
        name: event,
        status,
        rank: read.stage ?? 1,
        lastRank: read.stage === null ? undefined : made.lastStage,
        fixedFacts,
        amount: null,
        signedAt: stored.signedAt ?? null,
        hold,
        reference: null,
        referenceId: null,
        subject:
          subject === null || occurredAt === null ? undefined : { name: subject, at: occurredAt.getTime() },
      },
      stored,
      lifetimes,
    );
    const found = { ...verified, referenceId: foundAs };
    return keep(new ReadDelivery(found, hold === null ? () => eventIn(read, stored) : null));
  }

  function keep(reading: ReadDelivery): ReadDelivery {
    cacheReading(reading.verified.delivery, made, reading);
    return reading;
  }

  function eventIn(read: CheckedEvent, { headers = {}, signedAt }: StoredDelivery): SourceEvent {
    return Object.freeze({
      flow: name,
      event: read.name,
      id: read.id,
      data: read.data,
      status: read.status,
      reference: read.reference,
      occurredAt: read.occurredAt,
      signedAt: signedAt === undefined ? null : new Date(signedAt),
      headers: Object.freeze({ ...headers }),
      authenticated: verifier.isOpen !== true,
    });
  }

  return {
    name,
    hasTenants: verifier.usesResolver,
    badSignatureStatus: made.badSignatureStatus,
    windowMs,
    prepare: async () => [...(await verifier.prepare()), ...warningsOf(name, made)],
    verify,
    read: (stored) =>
      cachedReading(stored, made) ?? readingOf(stored, (header) => stored.headers?.[header] ?? null),
    named(event, tenant, now) {
      const { stageOf, lastStage } = made;
      const { status = "" } = event;
      const rank = stageOf === null ? 1 : stageOf.get(status);
      if (rank === undefined || (stageOf === null && status !== "")) return null;
      const ranks = stageOf === null ? { status, rank } : { status, rank, lastRank: lastStage };
      return eventNamed(
        event,
        ranks,
        { flow: name, tenant, arrivedBy: "webhook", receivedAt: now },
        lifetimes,
      );
    },
    contents: contentsOf,
    source: {
      received: made.accepted === null ? RECEIVED : replyOf(made.accepted),
      maxBodyBytes: made.maxBodyBytes,
      sendsOnce: made.sendsOnce,
      unhandled: made.unhandled,
      challenge(url) {
        const path = pathOf(url);
        const at = path.indexOf("?");
        const query = new URLSearchParams(at < 0 ? "" : path.slice(at));
        let text: string | null;
        try {
          text = made.challenge?.({ query }) ?? null;
        } catch {
          // Anybody may send a GET. A GET that is not understood has no answer.
          return null;
        }
        if (text === null || Buffer.byteLength(text) > MAX_CHALLENGE) return null;
        return replyOf({ status: 200, body: text });
      },
      async check(event) {
        const schema =
          made.schemas !== null && Object.hasOwn(made.schemas, event.event)
            ? made.schemas[event.event]
            : undefined;
        if (schema === undefined) return { event };
        const result = await schema["~standard"].validate(event.data);
        if (result.issues !== undefined) return { issues: pathsOf(result.issues) };
        return { event: Object.freeze({ ...event, data: result.value }) };
      },
    },
  };
}

/** True if the event's time is more than a day ahead. Until that time, every other event of the subject would be stale. */
function isAhead({ subject, occurredAt }: CheckedEvent, { receivedAt }: StoredDelivery): boolean {
  return subject !== null && occurredAt !== null && occurredAt.getTime() > receivedAt + MAX_FUTURE_MS;
}

function reasonOf(
  reason: HeldReason,
  detail: string,
): { readonly reason: HeldReason; readonly detail: string } {
  return { reason, detail };
}

function warningsOf(name: string, { rememberMs }: MadeSource): readonly SetupWarning[] {
  if (rememberMs === undefined || rememberMs >= MAX_FUTURE_MS) return [];
  const what = `sources.${name} remembers an ended event for ${rememberMs} ms: a copy that comes later runs again.`;
  return [{ what, fix: "Remember it for as long as the sender sends again, which is mostly days." }];
}

/** Path and query, without the host. */
function pathOf(url: string): string {
  const at = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i.exec(url);
  return at === null ? url : url.slice(at[0].length) || "/";
}

function replyOf({ status, body = "", contentType = "text/plain; charset=utf-8" }: Answer): Reply {
  const headers = {
    "content-type": contentType,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  };
  return Object.freeze({ status, headers: Object.freeze(headers), body });
}
