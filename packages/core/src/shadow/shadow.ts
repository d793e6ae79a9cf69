/**
 * Payhooks beside an old receiver, which still answers and acts. Each delivery goes to both. Payhooks verifies and
 * records the delivery, and its answer is not sent. The old receiver reports what it did. If it has handled an event,
 * the event ends here too, so that no copy of it runs after the switch. If it has not, the event waits here, and its
 * handlers run after the switch. Nothing here may break the old receiver: failures are written to the journal.
 */
import type { VerifiedEvent } from "../inbox/record/event.ts";
import { ONLY_TENANT } from "../inbox/record/keys.ts";
import { consoleLogger } from "../notices/logger.ts";
import { factsOfThrown } from "../notices/thrown.ts";
import { checkNames } from "../protocol/check-names.ts";
import type { DeliveryHead } from "../protocol/delivery.ts";
import { isPayhooksError, PayhooksError } from "../protocol/errors.ts";
import type { FlowName } from "../protocol/events.ts";
import type { Endpoint } from "../receiver/endpoint.ts";
import type { DeliveryEnd } from "../receiver/instrumentation.ts";
import type { OtherReceiverEvent } from "../receiver/mark-handled.ts";
import { type AnyReceiver, endpointOf, type SourceNameOf } from "../receiver/receiver.ts";
import { sha256 } from "../signature/sha256.ts";
import { sleep, systemClock } from "../time/clock.ts";
import type { EventNames, OldAnswer, ShadowLine } from "./journal-line.ts";

/** Options of {@link shadow}. */
export interface ShadowOptions {
  /**
   * Gets each line of the journal, with its line end: append it to a file. It contains the ids of events, and none of
   * their other fields. `payhooks shadow` makes a report of it.
   */
  readonly journal: (line: string) => void;
}

/** A delivery, as the old receiver got it. */
export interface ShadowDelivery {
  /** The headers of the request, such as Node's `request.headers`. */
  readonly headers:
    | DeliveryHead["headers"]
    | Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The bytes of the body, exactly as they arrived. */
  readonly rawBody: Uint8Array;
  /** Path and query, if the verifier of a source needs them. */
  readonly url?: string | undefined;
  /** A hint for the resolver, like the option `tenant` of an adapter. */
  readonly tenant?: string | undefined;
}

/** An event that the old receiver has handled. */
export interface ShadowEvent extends OtherReceiverEvent {
  /** Default `payments`. */
  readonly flow?: FlowName | undefined;
}

/** The two calls that the old receiver makes. Neither throws or rejects. */
export interface Shadow<Mounted extends AnyReceiver = AnyReceiver> {
  /**
   * Gives Payhooks a delivery, beside the old receiver or before it. Its answer is not needed. Resolves once Payhooks
   * has recorded the event and the old receiver has answered.
   *
   * @param old what the old receiver did with it. A promise that rejects means that it gave no answer.
   */
  delivered(
    source: SourceNameOf<Mounted> | "payments" | "connect",
    delivery: ShadowDelivery,
    old: OldAnswer | PromiseLike<OldAnswer>,
  ): Promise<void>;
  /**
   * Says that the old receiver has handled an event: call it after its effect. Resolves to true once Payhooks knows.
   * Then no copy runs after the switch. Otherwise it resolves to false after at most some seconds, and Payhooks tries
   * again until the receiver closes, for 10,000 events at most. The journal names those that it does not try again.
   */
  handled(event: ShadowEvent): Promise<boolean>;
}

const MIN_RETRY_DELAY_MS = 200;
const MAX_RETRY_DELAY_MS = 10_000;
/** How many marks may be tried again at one time. During a long outage of the inbox there would be more and more. */
const MAX_WAITING_MARKS = 10_000;

type MarkedLine = Extract<ShadowLine, { type: "marked" }>;

/** The result of one attempt to mark an event. */
interface MarkAttempt {
  readonly result: Pick<MarkedLine, "eventId" | "state">;
  readonly next: "marked" | "again" | "never";
}

async function tryMark(
  endpoint: Endpoint,
  event: OtherReceiverEvent,
  as: MarkedLine["as"],
): Promise<MarkAttempt> {
  try {
    const { eventId, state } = await endpoint.markHandled(event, { certain: as === "handled" });
    const isOpen = state === "waiting" || state === "running";
    return isOpen
      ? { result: { eventId, state: null }, next: "again" }
      : { result: { eventId, state }, next: "marked" };
  } catch (error) {
    const isFinal = isPayhooksError(error) && FINAL_CODES.has(error.code);
    return { result: { eventId: null, state: null }, next: isFinal ? "never" : "again" };
  }
}

/**
 * Runs a receiver in the shadow of an old one. The receiver needs `run: "elsewhere"`, and a durable inbox. For the
 * switch, take the shadow and `run` out: the same inbox then knows what the old receiver has handled.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID` if the receiver could run its handlers, or for a `journal` that is not a function.
 * @example const beside = shadow(receiver, { journal: (line) => appendFileSync("shadow.jsonl", line) });
 */
export function shadow<Mounted extends AnyReceiver>(
  receiver: Mounted,
  options: ShadowOptions,
): Shadow<Mounted> {
  checkNames("shadow", options, { journal: true });
  if (typeof options.journal !== "function") {
    throw new PayhooksError("ERR_OPTION_INVALID", "The journal of a shadow is not a function.", {
      fix: 'Give journal: (line) => appendFileSync("shadow.jsonl", line).',
    });
  }
  if (runOf(receiver) !== "elsewhere") {
    throw new PayhooksError("ERR_OPTION_INVALID", "A receiver in the shadow must not run its handlers.", {
      fix: 'Give its createReceiver run: "elsewhere" until the switch.',
    });
  }
  let isReported = false;
  /** A failure of the shadow itself, such as a full disk, is reported once, because it would come with each delivery. */
  const report = (error: unknown): void => {
    if (!isReported)
      consoleLogger.error("the shadow has failed, and its report is incomplete", factsOfThrown(error));
    isReported = true;
  };
  const write = (line: ShadowLine): void => {
    // It may be an async function, such as fs.promises.appendFile. The shadow does not wait for it.
    (async () => options.journal(`${JSON.stringify(line)}\n`))().catch(report);
  };

  /** How many marks are tried again at present. */
  let waitingMarks = 0;
  let isDropReported = false;

  /** Marks an event, and tries again in the background if that fails. True if it is marked. */
  async function mark(endpoint: Endpoint, event: OtherReceiverEvent, as: MarkedLine["as"]): Promise<boolean> {
    const line = { type: "marked", as, event: namesOf(endpoint.flow, event) } as const;
    const firstAttempt = await tryMark(endpoint, event, as);
    const mustDrop = firstAttempt.next === "again" && waitingMarks >= MAX_WAITING_MARKS;
    write({ ...line, at: systemClock.now(), ...firstAttempt.result, ...(mustDrop && { dropped: true }) });
    if (mustDrop && !isDropReported) {
      isDropReported = true;
      consoleLogger.error(
        `the shadow tries to mark ${MAX_WAITING_MARKS} events again, and no further ones: payhooks shadow names them as not marked`,
      );
    }
    if (firstAttempt.next !== "again" || mustDrop) return firstAttempt.next === "marked";
    waitingMarks++;
    void (async () => {
      for (let failures = 0; ; failures++) {
        await sleep(systemClock, Math.min(MIN_RETRY_DELAY_MS * 2 ** failures, MAX_RETRY_DELAY_MS));
        const { result, next } = await tryMark(endpoint, event, as);
        if (next === "again") continue;
        waitingMarks--;
        write({ ...line, at: systemClock.now(), ...result });
        return;
      }
    })();
    return false;
  }

  async function recordDelivery(flow: FlowName, shadowDelivery: ShadowDelivery, old: unknown): Promise<void> {
    // Handle its rejection, even if the flow is off.
    const answering = answerOf(old);
    const endpoint = endpointOf(receiver, flow);
    const [{ end, verified }, answer] = await Promise.all([
      receiveDelivery(endpoint, shadowDelivery),
      answering,
    ]);
    // An event that could not be read with certainty is found by its eventId alone.
    const event = verified === null || verified.rank === null ? null : eventIn(verified);
    const { outcome, status, code, reason, eventId } = end;
    write({
      type: "delivery",
      at: systemClock.now(),
      flow,
      body: digestOf(shadowDelivery.rawBody),
      old: answer,
      status,
      outcome,
      code,
      reason,
      eventId,
      event: event === null ? null : namesOf(flow, event),
    });
    const isNew = outcome === "new" || outcome === "progress";
    if (event !== null && answer === "duplicate" && isNew) await mark(endpoint, event, "doubtful");
  }

  return {
    delivered: (source, delivery, old) => recordDelivery(source, delivery, old).catch(report),
    async handled(shadowEvent) {
      try {
        const { flow = "payments", ...event } = shadowEvent;
        const endpoint = endpointOf(receiver, flow);
        write({ type: "handled", at: systemClock.now(), event: namesOf(flow, event) });
        return await mark(endpoint, event, "handled");
      } catch (error) {
        report(error);
        return false;
      }
    },
  };
}

/** Trying again is of no use. */
const FINAL_CODES: ReadonlySet<string> = new Set(["ERR_CLOSING", "ERR_OPTION_INVALID", "ERR_OPTION_MISSING"]);

/** The option `run` of a receiver. All of its endpoints have the same. */
function runOf(receiver: AnyReceiver): Endpoint["run"] {
  const [source] = Object.keys(receiver.sources);
  if (source !== undefined) return endpointOf(receiver, source).run;
  try {
    return receiver.payments.run;
  } catch {
    return receiver.connect.run;
  }
}

/** The result of a delivery here. */
interface ReceiveResult {
  readonly end: DeliveryEnd;
  /** Null if it is not authentic. */
  readonly verified: VerifiedEvent | null;
}

async function receiveDelivery(endpoint: Endpoint, shadowDelivery: ShadowDelivery): Promise<ReceiveResult> {
  const { headers, rawBody, url = "", tenant } = shadowDelivery;
  if (!(rawBody instanceof Uint8Array)) {
    const code = "ERR_BODY_CONSUMED";
    const { status } = endpoint.refuse(code, "the old receiver gave a body that is not bytes");
    return { end: { outcome: "refused", status, code, eventId: null, reason: null }, verified: null };
  }
  const delivery = { method: "POST", url, headers: headersOf(headers), rawBody, tenant };
  return new Promise((resolve, reject) => {
    endpoint.receive(delivery, { onEnd: (end, verified) => resolve({ end, verified }) }).catch(reject);
  });
}

function headersOf(headers: ShadowDelivery["headers"]): DeliveryHead["headers"] {
  if (typeof headers.get === "function") return headers as DeliveryHead["headers"];
  const fields = new Map<string, string>();
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined)
      fields.set(name.toLowerCase(), typeof value === "string" ? value : value.join(", "));
  }
  return fields;
}

/** Null: the old receiver gave no answer, or one that is not known. */
async function answerOf(old: unknown): Promise<OldAnswer | null> {
  try {
    const answer = await old;
    return answer === "accepted" || answer === "duplicate" || answer === "refused" ? answer : null;
  } catch {
    return null;
  }
}

function eventIn({ id, name, status, delivery: { tenant } }: VerifiedEvent): OtherReceiverEvent {
  return { id, event: name, status, ...(tenant === ONLY_TENANT ? {} : { tenant }) };
}

function namesOf(flow: FlowName, { id, event, status = "", tenant }: OtherReceiverEvent): EventNames {
  return { flow, tenant: tenant ?? null, id, event, status };
}

function digestOf(body: unknown): string {
  return body instanceof Uint8Array ? sha256(body, "hex").slice(0, 16) : "";
}
