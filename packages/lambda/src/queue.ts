import { isPayhooksError } from "@payhooks/core";
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
 * Runs the events that a queue names, all of a batch at once. The queue hands over again what failed, or is being run by another
 * process, after its visibility timeout. An event is done only once however often its message comes.
 *
 * @example export const handler = runQueue(receiver);
 */
export function runQueue(receiver: ReceiverOrFactory): (batch: QueueBatch) => Promise<QueueResult> {
  return async ({ Records }) => {
    const ran = await Promise.all(Records.map(({ body }) => isDone(receiver, body)));
    const failed = Records.filter((_, n) => ran[n] === false);
    return { batchItemFailures: failed.map(({ messageId }) => ({ itemIdentifier: messageId })) };
  };
}

async function isDone(source: ReceiverOrFactory, eventId: string): Promise<boolean> {
  try {
    const { state } = await (await receiverOf(source, undefined)).run(eventId);
    return state !== "waiting" && state !== "running";
  } catch (error) {
    // The store is away, or the text is no eventId. The queue puts aside what fails too often.
    const why = isPayhooksError(error) ? error.message : "an error of the store";
    console.error(`payhooks: a message of the queue was not run: ${why}`);
    return false;
  }
}
