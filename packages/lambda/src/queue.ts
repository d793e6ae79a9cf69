import { isPayhooksError, type RunReport } from "@payhooks/core";
import { type ReceiverOrFactory, receiverOf } from "@payhooks/core/adapter";

/** The input of a function from a queue of SQS: in each body the eventId that `notifyWorker` was called with. */
export interface QueueBatch {
  readonly Records: readonly { readonly messageId: string; readonly body: string }[];
}

/** The messages that the queue shall hand over again. The event source needs `ReportBatchItemFailures`. */
export interface QueueResult {
  readonly batchItemFailures: { itemIdentifier: string }[];
}

/**
 * Runs the events that a queue names, all of a batch at once, but one event of a transaction after the other. If an
 * event failed, or another process is running it, the queue hands over its message again after its visibility timeout.
 * An event is done only once, however often its message comes.
 *
 * @example export const handler = runQueue(receiver);
 */
export function runQueue(receiver: ReceiverOrFactory): (batch: QueueBatch) => Promise<QueueResult> {
  return async ({ Records }) => {
    const states = await Promise.all(Records.map(({ body }) => run(receiver, body)));
    const batchItemFailures: { itemIdentifier: string }[] = [];
    for (const [n, { messageId, body }] of Records.entries()) {
      // Another event of the same record was run at that time. If this batch had it, it has ended since.
      const state = states[n] === "running" ? await run(receiver, body) : states[n];
      if (isUnfinished(state)) batchItemFailures.push({ itemIdentifier: messageId });
    }
    return { batchItemFailures };
  };
}

/** True if the queue has to hand the message over again. */
function isUnfinished(state: RunReport["state"] | "failed" | undefined): boolean {
  return state === "waiting" || state === "running" || state === "failed";
}

async function run(source: ReceiverOrFactory, eventId: string): Promise<RunReport["state"] | "failed"> {
  try {
    return (await (await receiverOf(source, undefined)).run(eventId)).state;
  } catch (error) {
    // The store is away, or the text is not an eventId. The queue puts aside messages that fail too often.
    const why = isPayhooksError(error) ? error.message : "an error of the store";
    console.error(`payhooks: a message of the queue was not run: ${why}`);
    return "failed";
  }
}
