import type { Flow, ReadDelivery } from "../flows/flow.ts";
import type { AcceptResult, VerifiedEvent } from "../inbox/record/event.ts";
import type { DeliveryAlerts } from "../notices/delivery-alerts.ts";
import type { EventFacts } from "../notices/notice.ts";
import type { NoticeBoard } from "../notices/notice-board.ts";
import { type Reply, refusalReply } from "../protocol/delivery.ts";
import { ANSWER_STATUS, type DeliveryErrorCode } from "../protocol/errors.ts";
import { likelyCauseOf, SIGNED_TIME_ADVICE } from "./likely-cause.ts";

/** `stack`: where the error behind the refusal was thrown. */
export type Fault = readonly [
  code: DeliveryErrorCode,
  why: string,
  stack?: string | null,
  hint?: string | undefined,
];

const MAX_ADDRESS_CHARS = 64;

/** Reports the result of each delivery to the observers, the log and the alerts. */
export class Outcomes {
  readonly #notices: NoticeBoard;
  readonly #alerts: DeliveryAlerts;
  /** The sets of left-out fields that were warned about. There are few, because only four fields are optional. */
  readonly #warnedLeftOut = new Set<string>();

  constructor(notices: NoticeBoard, alerts: DeliveryAlerts) {
    this.#notices = notices;
    this.#alerts = alerts;
  }

  /** A delivery is authentic. */
  recordAuthentic({ name }: Flow): void {
    this.#alerts.recordSuccess(name);
  }

  /** The result of a verified event in the inbox. */
  recordAccepted({ verified, leftOut }: ReadDelivery, result: AcceptResult): void {
    if (leftOut.length > 0) this.#warnOf(leftOut.join(", "));
    this.#report(verified, result);
    for (const facts of result.overtaken) this.#notices.post({ type: "stale", ...facts });
  }

  #report(verified: VerifiedEvent, result: AcceptResult): void {
    const { outcome, eventId, reason, previousAmount } = result;
    const notices = this.#notices;
    const isNoted = outcome === "held" || outcome === "stale" || previousAmount !== null;
    if (!notices.isObserved && !isNoted) return;
    const { delivery, id, name, status, amount, referenceId } = verified;
    const { flow, tenant, keyId } = delivery;
    const facts: EventFacts = { flow, tenant, eventId, id, event: name, status, referenceId };
    if (previousAmount !== null && amount !== null) {
      notices.post({ type: "amount-changed", ...facts, previousAmount, amount });
    }
    switch (outcome) {
      case "new":
      case "progress":
        notices.post({ type: "accepted", ...facts, keyId, previousAmount });
        break;
      case "duplicate":
      case "stale":
        notices.post({ type: outcome, ...facts });
        break;
      case "held":
        notices.post({ type: "held", ...facts, reason: reason ?? "malformed", detail: result.detail });
        break;
      case "expired":
        break;
    }
  }

  /** Warns once for the same fields, because one day every callback may lack them. */
  #warnOf(leftOut: string): void {
    if (this.#warnedLeftOut.has(leftOut)) return;
    this.#warnedLeftOut.add(leftOut);
    const what = `Not passed to handlers: ${leftOut}, because it could also be part of another value.`;
    const fix =
      'In names.callback.extra, declare each undocumented field whose value only the service chooses: as "always" if every callback has it.';
    this.#notices.post({ type: "warning", what, fix });
  }

  /** The answer to a delivery that is refused. `isAuthentic`: it was verified, and its event is not stored. */
  refuse(
    flow: Flow,
    remoteAddress: string | undefined,
    isAuthentic: boolean,
    [code, why, stack = null, hint]: Fault,
  ): Reply {
    const alerts = this.#alerts;
    const isInauthentic = code.startsWith("ERR_SIGNATURE_");
    const status = isInauthentic ? flow.badSignatureStatus : ANSWER_STATUS[code];
    const address = addressOf(remoteAddress);
    const isFirst = isInauthentic && alerts.recordFailure(flow.name, code, address);
    if (code === "ERR_HELD_FULL") alerts.recordHeldFull(flow.name);
    const isAboutTime = code.startsWith("ERR_TIMESTAMP_");
    const isCounted = isAuthentic && code !== "ERR_HELD_FULL" && code !== "ERR_CLOSING";
    const isAlert = isCounted && alerts.recordRefusal(flow.name, code, flow.source?.sendsOnce === true);
    const cause = isFirst ? (hint ?? likelyCauseOf(flow.name, code, why)) : null;
    const fix = isAlert && isAboutTime ? SIGNED_TIME_ADVICE : cause;
    this.#notices.post({
      type: "refused",
      flow: flow.name,
      code,
      httpStatus: status,
      why,
      address,
      fix,
      stack,
    });
    return refusalReply(code, status);
  }
}

/** Shortens an address, because a sender may choose its length. The copy does not keep the long text in memory. */
function addressOf(remoteAddress: string | undefined): string | null {
  if (remoteAddress === undefined || remoteAddress.length <= MAX_ADDRESS_CHARS) return remoteAddress ?? null;
  return Buffer.from(remoteAddress.slice(0, MAX_ADDRESS_CHARS)).toString();
}
