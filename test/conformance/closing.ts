/** The view of a sender that keeps its connection alive while a receiver closes. */
import { callbackFields, signPaymentCallback } from "@payhooks/core/testing";
import { request, Wire } from "../e2e/wire.ts";
import { PAYMENT_PATHS } from "./application.ts";
import { closeReceiver } from "./control.ts";
import { KEYS } from "./targets.ts";

/** The answers before and after the close, and whether the server ended the connection with the second. */
export async function closeWhileConnected(port: number): Promise<{
  readonly answers: readonly string[];
  readonly isEnded: boolean;
}> {
  const { headers, rawBody } = signPaymentCallback(callbackFields({ payTxnId: "last" }), KEYS.privateKey);
  const bytes = request("POST", PAYMENT_PATHS.closing, Object.entries(headers), rawBody);
  const wire = await Wire.open(port);
  try {
    const answers: string[] = [];
    const send = async (): Promise<void> => {
      await wire.write(bytes);
      const answer = await wire.answer();
      answers.push(`${answer.status} ${answer.body}`);
    };
    await send();
    await closeReceiver(port);
    await send();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), 2_000);
    });
    const isEnded = await Promise.race([wire.closed.then(() => true), late]);
    clearTimeout(timer);
    return { answers, isEnded };
  } finally {
    wire.destroy();
  }
}

/** The expected view. */
export const ENDED_WITH_ITS_ANSWER: Awaited<ReturnType<typeof closeWhileConnected>> = {
  answers: ['200 {"received":true}', '503 {"error":{"code":"ERR_CLOSING"}}'],
  isEnded: true,
};
