import type { Flow, ReadDelivery } from "../flows/flow.ts";
import type { Accepted, VerifiedEvent } from "../inbox/record/event.ts";
import type { Alerts } from "../notices/alerts.ts";
import type { NoticeBoard } from "../notices/board.ts";
import type { EventFacts } from "../notices/notice.ts";
import { type Reply, refusal } from "../protocol/delivery.ts";
import { ANSWER_STATUS, type DeliveryErrorCode } from "../protocol/errors.ts";
import { ABOUT_TIME, likelyCauseOf } from "./likely-cause.ts";

/** `stack`: where the error behind the refusal was thrown. */
export type Fault = readonly [
  code: DeliveryErrorCode,
  why: string,
  stack?: string | null,
  hint?: string | undefined,
];

const MAX_ADDRESS = 64;

/** Reports the result of each delivery to the observers, the log and the alerts. */
export class Outcomes {
  readonly #notices: NoticeBoard;
  readonly #alerts: Alerts;
  /** The sets of left-out fields that were warned about. There are few, because only four fields are optional. */
  readonly #warnedLeftOut = new Set<string>();

  constructor(notices: NoticeBoard, alerts: Alerts) {
    this.#notices = notices;
    this.#alerts = alerts;
  }

  /** A delivery is authentic. */
  verified({ name }: Flow): void {
    this.#alerts.succeeded(name);
  }

  /** The result of a verified event in the inbox. */
  accepted({ verified, leftOut }: ReadDelivery, accepted: Accepted): void {
    if (leftOut.length > 0) this.#warnOf(leftOut.join(", "));
    this.#report(verified, accepted);
    for (const facts of accepted.overtaken) this.#notices.post({ type: "stale", ...facts });
  }

  #report(verified: VerifiedEvent, accepted: Accepted): void {
    const { outcome, eventId, reason, previousAmount } = accepted;
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
        notices.post({ type: "held", ...facts, reason: reason ?? "malformed", detail: accepted.detail });
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
  refused(
    flow: Flow,
    remoteAddress: string | undefined,
    isAuthentic: boolean,
    [code, why, stack = null, hint]: Fault,
  ): Reply {
    const alerts = this.#alerts;
    const notAuthentic = code.startsWith("ERR_SIGNATURE_");
    const status = notAuthentic ? flow.badSignatureStatus : ANSWER_STATUS[code];
    const address = addressOf(remoteAddress);
    const isFirst = notAuthentic && alerts.failed(flow.name, code, address);
    if (code === "ERR_HELD_FULL") alerts.heldFull(flow.name);
    const isAboutTime = code.startsWith("ERR_TIMESTAMP_");
    const isCounted = isAuthentic && code !== "ERR_HELD_FULL" && code !== "ERR_CLOSING";
    const isAlert = isCounted && alerts.refused(flow.name, code, flow.source?.sendsOnce === true);
    const cause = isFirst ? (hint ?? likelyCauseOf(flow.name, code, why)) : null;
    const fix = isAlert && isAboutTime ? ABOUT_TIME : cause;
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
    return refusal(code, status);
  }
}

/** Shortens an address, because a sender may choose its length. The copy does not keep the long text in memory. */
function addressOf(remoteAddress: string | undefined): string | null {
  if (remoteAddress === undefined || remoteAddress.length <= MAX_ADDRESS) return remoteAddress ?? null;
  return Buffer.from(remoteAddress.slice(0, MAX_ADDRESS)).toString();
}
