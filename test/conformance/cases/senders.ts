/** Senders that do not wait for their answer. */
import { Wire } from "../../e2e/wire.ts";
import { CONNECT_PATH, PAYMENT_PATHS } from "../application.ts";
import type { Case } from "../case.ts";
import { effectsAt } from "../control.ts";
import type { Deliveries } from "../deliveries.ts";
import { bytesOf } from "../sending.ts";

export function senderCases(deliveries: Deliveries): readonly Case[] {
  const cutOff = deliveries.webhook();
  const unread = deliveries.payment();
  return [
    {
      name: "a sender that goes away in the middle of the body",
      async send({ port }) {
        const bytes = bytesOf(CONNECT_PATH, cutOff);
        const wire = await Wire.open(port);
        await wire.write(bytes.subarray(0, bytes.byteLength - 20));
        wire.destroy();
        return [];
      },
      answers: [],
      effects: ["refused 400 ERR_BODY_INCOMPLETE"],
    },
    {
      name: "a sender that never reads its answer",
      async send({ port }) {
        const wire = await Wire.open(port);
        await wire.write(bytesOf(PAYMENT_PATHS.plain, unread));
        while (!(await effectsAt(port)).some((effect) => effect.includes(deliveries.idOf(unread))));
        wire.destroy();
        return [];
      },
      answers: [],
      effects: deliveries.ranOnce(unread),
    },
  ];
}
