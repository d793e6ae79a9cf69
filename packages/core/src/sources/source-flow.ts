import { contentsOf } from "../flows/contents.ts";
import {
  type ChallengeAnswer,
  cachedReading,
  cacheReading,
  eventOf,
  eventWithoutDelivery,
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
import { type Delivery, RECEIVED_REPLY, type Reply } from "../protocol/delivery.ts";
import type { SourceEvent } from "../protocol/events.ts";
import { describeError } from "../protocol/foreign-error.ts";
import type { HeldReason } from "../protocol/held-reasons.ts";
import { isThenable } from "../time/awaitable.ts";
import { type CheckedEvent, readEvent } from "./read-event.ts";
import { type Answer, checkAnswer, type SourceDefinition } from "./source.ts";
import { sourceDeliveryOf, UnusableDelivery } from "./source-delivery.ts";
import { pathsOf } from "./standard-schema.ts";
import type { AuthenticVerdict, InauthenticVerdict, SourceRequest } from "./verifier.ts";

type Outcome = Verification | ChallengeAnswer;

const MAX_CHALLENGE_BYTES = 1_024;

/** The flow of a source. `name` is its name among the receiver's `sources`. */
export function sourceFlow(
  name: string,
  definition: SourceDefinition,
  { windowMs, ...limits }: FlowContext,
): Flow {
  const verifier = definition.bindVerifier(`sources.${name}`, limits);
  const rememberMs = definition.rememberMs ?? windowMs + RETENTION_SLACK_MS;
  /** The helpers of flows add the slack. */
  const lifetimes = { windowMs: rememberMs - RETENTION_SLACK_MS, keepMs: definition.keepMs };

  function verify(delivery: Delivery, now: number): Outcome | Promise<Outcome> {
    const request: SourceRequest = {
      method: delivery.method,
      path: pathOf(delivery.url),
      headers: { get: (header) => delivery.headers.get(header.toLowerCase()) ?? null },
      body: delivery.rawBody,
      tenant: delivery.tenant,
    };
    const verdict = verifier.verify(request, now);
    return isThenable(verdict)
      ? verdict.then((knownVerdict) => accept(request, knownVerdict, now))
      : accept(request, verdict, now);
  }

  function accept(
    request: SourceRequest,
    verdict: AuthenticVerdict | InauthenticVerdict,
    now: number,
  ): Outcome {
    if (!verdict.ok) return verdict;
    const { signedHeaders, keyId, signature, signedAt } = verdict;
    const keptHeaders: Record<string, string> = { ...signedHeaders };
    const readUnsignedHeader = (header: string): string | null => {
      const value = request.headers.get(header);
      if (value !== null) keptHeaders[header] = value;
      return value;
    };
    for (const header of definition.keepHeaders) if (!(header in signedHeaders)) readUnsignedHeader(header);
    const storedDelivery: StoredDelivery = {
      flow: name,
      tenant: verdict.tenant ?? ONLY_TENANT,
      arrivedBy: "webhook",
      content: verdict.content ?? request.body,
      signature,
      keyId,
      receivedAt: now,
      headers: keptHeaders,
      signedHeaders: Object.keys(signedHeaders),
      ...(signedAt === null ? {} : { signedAt }),
    };
    const reply = handshakeOf(storedDelivery, readUnsignedHeader);
    if (reply !== null) return { ok: null, reply };
    const reading = readingOf(storedDelivery, readUnsignedHeader);
    if (verdict.outsideWindow !== null) {
      const { verified, leftOut } = reading;
      const event = reading.event;
      const lateEvent = { ...verified, isWithinWindow: false };
      return {
        ok: true,
        reading: new ReadDelivery(lateEvent, event === null ? null : () => event, leftOut),
        outsideWindow: verdict.outsideWindow,
      };
    }
    // The tolerance of the verifier is narrower than the receiver's window. That window is for functions of one's own.
    return withFreshness(reading, now, windowMs);
  }

  function handshakeOf(
    storedDelivery: StoredDelivery,
    readUnsignedHeader: (name: string) => string | null,
  ): Reply | null {
    if (definition.handshake === null) return null;
    let answer: Answer | null;
    try {
      answer = definition.handshake(sourceDeliveryOf(storedDelivery, definition.body, readUnsignedHeader));
    } catch {
      // `read` finds the same fault, and the delivery is held with its reason.
      return null;
    }
    if (answer === null || answer === undefined) return null;
    checkAnswer(answer);
    return replyOf(answer);
  }

  /** Reads a delivery as an event. An unreadable delivery is an event outside of the table. Its key is a hash of its bytes. */
  function readingOf(
    delivery: StoredDelivery,
    readUnsignedHeader: (name: string) => string | null,
  ): ReadDelivery {
    let checkedEvent: CheckedEvent;
    try {
      checkedEvent = readEvent(definition, sourceDeliveryOf(delivery, definition.body, readUnsignedHeader));
    } catch (error) {
      const detail =
        error instanceof UnusableDelivery ? error.message : `read threw: ${describeError(error)}`;
      return withCachedReading(
        readingOutsideTable(
          "malformed",
          detail,
          delivery.content,
          delivery.signedAt ?? null,
          delivery,
          lifetimes,
        ),
      );
    }
    const isForeign =
      checkedEvent.tenant !== null &&
      delivery.tenant !== ONLY_TENANT &&
      checkedEvent.tenant !== delivery.tenant;
    const storedDelivery =
      checkedEvent.tenant === null || isForeign ? delivery : { ...delivery, tenant: checkedEvent.tenant };
    const { id, name: event, status, fixedFacts, searchReference, subject, occurredAt } = checkedEvent;
    const hold = isForeign
      ? holdBecause("mismatch", "read names another tenant than the key")
      : definition.stageOf !== null && checkedEvent.stage === null
        ? holdBecause("unrecognized", "the status is in none of the source's stages")
        : isAhead(checkedEvent, delivery)
          ? holdBecause("unrecognized", "its subject is ordered by an occurredAt that is over a day ahead")
          : null;
    const verified = eventOf(
      {
        id,
        name: event,
        status,
        rank: checkedEvent.stage ?? 1,
        lastRank: checkedEvent.stage === null ? undefined : definition.lastStage,
        fixedFacts,
        amount: null,
        signedAt: storedDelivery.signedAt ?? null,
        hold,
        reference: null,
        referenceId: null,
        subject:
          subject === null || occurredAt === null ? undefined : { name: subject, at: occurredAt.getTime() },
      },
      storedDelivery,
      lifetimes,
    );
    const verifiedEvent = { ...verified, referenceId: searchReference };
    return withCachedReading(
      new ReadDelivery(verifiedEvent, hold === null ? () => eventIn(checkedEvent, storedDelivery) : null),
    );
  }

  function withCachedReading(reading: ReadDelivery): ReadDelivery {
    cacheReading(reading.verified.delivery, definition, reading);
    return reading;
  }

  function eventIn(checkedEvent: CheckedEvent, { headers = {}, signedAt }: StoredDelivery): SourceEvent {
    return Object.freeze({
      flow: name,
      event: checkedEvent.name,
      id: checkedEvent.id,
      data: checkedEvent.data,
      status: checkedEvent.status,
      reference: checkedEvent.reference,
      occurredAt: checkedEvent.occurredAt,
      signedAt: signedAt === undefined ? null : new Date(signedAt),
      headers: Object.freeze({ ...headers }),
      authenticated: verifier.isOpen !== true,
    });
  }

  return {
    name,
    hasTenants: verifier.usesResolver,
    badSignatureStatus: definition.badSignatureStatus,
    windowMs,
    prepare: async () => [...(await verifier.prepare()), ...warningsOf(name, definition)],
    verify,
    read: (storedDelivery) =>
      cachedReading(storedDelivery, definition) ??
      readingOf(storedDelivery, (header) => storedDelivery.headers?.[header] ?? null),
    eventFromName(event, tenant, now) {
      const { stageOf, lastStage } = definition;
      const { status = "" } = event;
      const rank = stageOf === null ? 1 : stageOf.get(status);
      if (rank === undefined || (stageOf === null && status !== "")) return null;
      const ranks = stageOf === null ? { status, rank } : { status, rank, lastRank: lastStage };
      return eventWithoutDelivery(
        event,
        ranks,
        { flow: name, tenant, arrivedBy: "webhook", receivedAt: now },
        lifetimes,
      );
    },
    contents: contentsOf,
    source: {
      acceptedReply: definition.accepted === null ? RECEIVED_REPLY : replyOf(definition.accepted),
      maxBodyBytes: definition.maxBodyBytes,
      sendsOnce: definition.sendsOnce,
      unhandled: definition.unhandled,
      challenge(url) {
        const path = pathOf(url);
        const queryStart = path.indexOf("?");
        const query = new URLSearchParams(queryStart < 0 ? "" : path.slice(queryStart));
        let text: string | null;
        try {
          text = definition.challenge?.({ query }) ?? null;
        } catch {
          // Anybody may send a GET. A GET that is not understood has no answer.
          return null;
        }
        if (text === null || Buffer.byteLength(text) > MAX_CHALLENGE_BYTES) return null;
        return replyOf({ status: 200, body: text });
      },
      async check(event) {
        const schema =
          definition.schemas !== null && Object.hasOwn(definition.schemas, event.event)
            ? definition.schemas[event.event]
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

function holdBecause(
  reason: HeldReason,
  detail: string,
): { readonly reason: HeldReason; readonly detail: string } {
  return { reason, detail };
}

function warningsOf(name: string, { rememberMs }: SourceDefinition): readonly SetupWarning[] {
  if (rememberMs === undefined || rememberMs >= MAX_FUTURE_MS) return [];
  const what = `sources.${name} remembers an ended event for ${rememberMs} ms: a copy that comes later runs again.`;
  return [{ what, fix: "Remember it for as long as the sender sends again, which is mostly days." }];
}

/** Path and query, without the host. */
function pathOf(url: string): string {
  const origin = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i.exec(url);
  return origin === null ? url : url.slice(origin[0].length) || "/";
}

function replyOf({ status, body = "", contentType = "text/plain; charset=utf-8" }: Answer): Reply {
  const headers = {
    "content-type": contentType,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  };
  return Object.freeze({ status, headers: Object.freeze(headers), body });
}
