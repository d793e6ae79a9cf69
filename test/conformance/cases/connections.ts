/** A connection that is kept for further requests. */
import { type Answer, request, Wire } from "../../e2e/wire.ts";
import { CONNECT_PATH } from "../application.ts";
import { type Case, RECEIVED, refused } from "../case.ts";
import type { Deliveries } from "../deliveries.ts";
import { bytesOf } from "../sending.ts";

export function connectionCases(deliveries: Deliveries): readonly Case[] {
  const delivery = deliveries.webhook();
  const { headers, rawBody } = delivery;
  const requests = [
    bytesOf(CONNECT_PATH, { rawBody, headers: { ...headers, "content-type": "text/plain" } }),
    bytesOf(CONNECT_PATH, delivery),
    request("PUT", CONNECT_PATH, Object.entries(headers), rawBody),
    bytesOf(CONNECT_PATH, delivery),
  ];
  return [
    {
      name: "one connection, refused and accepted in turn",
      async send({ port }) {
        const wire = await Wire.open(port);
        const answers: Answer[] = [];
        for (const bytes of requests) {
          await wire.write(bytes);
          answers.push(await wire.answer());
        }
        wire.destroy();
        return answers;
      },
      answers: [refused(415, "ERR_CONTENT_TYPE"), RECEIVED, refused(405, "ERR_METHOD_NOT_ALLOWED"), RECEIVED],
      effects: [
        ...deliveries.ranOnce(delivery),
        deliveries.duplicate(delivery),
        "refused 415 ERR_CONTENT_TYPE",
        "refused 405 ERR_METHOD_NOT_ALLOWED",
      ],
    },
  ];
}
