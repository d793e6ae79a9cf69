import type { VerifiedEvent } from "../inbox/record/event.ts";
import type { Delivery, DeliveryHead, Reply } from "../protocol/delivery.ts";
import type { DeliveryErrorCode } from "../protocol/errors.ts";
import type { FlowName } from "../protocol/events.ts";
import type { DeliveryEnd } from "./instrumentation.ts";
import type { MarkOptions, MarkResult, OtherReceiverEvent } from "./mark-handled.ts";
import type { Settings } from "./options.ts";

/** The part of a receiver that an adapter mounts: one flow. */
export interface Endpoint {
  readonly flow: FlowName;
  readonly maxBodyBytes: number;
  readonly bodyTimeoutMs: number;
  /** The receiver's option `ack`. */
  readonly ack: Settings["ack"];
  /** The receiver's option `run`; undefined if each delivery decides. */
  readonly run: Settings["run"];
  /** The answer if the request can be refused before its body is read; null to read it. */
  check(head: DeliveryHead, remoteAddress?: string): Reply | null;
  /**
   * Verifies a delivery, accepts it and answers. Never rejects. `mounted` is for adapters, which have called `check`
   * before. It starts a background receiver that does not run yet, within the deadline. Without `mounted`, such a
   * receiver answers 503 `ERR_NOT_STARTED`.
   */
  receive(delivery: Delivery, options?: ReceiveOptions): Promise<Reply>;
  /** The answer if the adapter could not get the bytes. `why` goes to the log only. */
  refuse(code: DeliveryErrorCode, why: string, remoteAddress?: string): Reply;
  /**
   * Ends an event that another receiver has handled, without calling handlers here. From then on, its copies are
   * duplicates. The event need not have been delivered to this receiver. For a move from one receiver to another.
   * @throws PayhooksError `ERR_OPTION_INVALID` for an event that the flow does not have; `ERR_OPTION_MISSING` without a
   * tenant if a resolver chooses the keys; `ERR_CLOSING` after `close()`; or what the inbox throws. After an error of
   * the inbox, the event may be marked or not: call again.
   */
  markHandled(event: OtherReceiverEvent, options?: MarkOptions): Promise<MarkResult>;
}

/** Options of {@link Endpoint.receive}. */
export interface ReceiveOptions {
  readonly mounted?: boolean | undefined;
  /** Called once, before the answer, with the result of the delivery. `event`: null if the delivery is not authentic. */
  readonly onEnd?: ((end: DeliveryEnd, event: VerifiedEvent | null) => void) | undefined;
}
