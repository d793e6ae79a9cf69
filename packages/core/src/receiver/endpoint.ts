import type { VerifiedEvent } from "../inbox/record/event.ts";
import type { Delivery, DeliveryHead, Reply } from "../protocol/delivery.ts";
import type { DeliveryErrorCode } from "../protocol/errors.ts";
import type { FlowName } from "../protocol/events.ts";
import type { DeliveryEnd } from "./instrumentation.ts";
import type { Marked, MarkOptions, OtherReceiverEvent } from "./mark-handled.ts";
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
   * Verifies a delivery, accepts it and answers. Never rejects. `mounted` is for adapters, which have called `check` before.
   * With it, a background receiver that does not run yet is started, within the deadline. Without it, such a receiver answers
   * 503 `ERR_NOT_STARTED`.
   */
  receive(delivery: Delivery, options?: ReceiveOptions): Promise<Reply>;
  /** The answer if the adapter could not get the bytes. `why` goes to the log only. */
  refuse(code: DeliveryErrorCode, why: string, remoteAddress?: string): Reply;
  /**
   * Ends an event that another receiver has handled, without a call of its handlers here: copies of it are duplicates from then on. It
   * need not have been delivered to this receiver. For a move from one receiver to another.
   * @throws PayhooksError `ERR_OPTION_INVALID` for an event that the flow does not have; `ERR_OPTION_MISSING` without a tenant if
   * a resolver chooses the keys; `ERR_CLOSING` after `close()`; or what the inbox throws. After that, nobody knows whether it is marked.
   */
  markHandled(event: OtherReceiverEvent, options?: MarkOptions): Promise<Marked>;
}

/** Options of {@link Endpoint.receive}. */
export interface ReceiveOptions {
  readonly mounted?: boolean | undefined;
  /** Called once, before the answer, with what became of the delivery. `event`: null if it is not authentic. */
  readonly onEnd?: ((end: DeliveryEnd, event: VerifiedEvent | null) => void) | undefined;
}
