/** Cases about a merchant's `AsyncLocalStorage` of each request: a tenant, a transaction, a span. */
import { exchange } from "../../e2e/wire.ts";
import { CONTEXT_PATH, REQUEST_HEADER } from "../application.ts";
import { type Case, RECEIVED } from "../case.ts";
import type { Deliveries } from "../deliveries.ts";
import { bytesOf, times } from "../sending.ts";

const REQUESTS = 12;

export function contextCases(deliveries: Deliveries): readonly Case[] {
  const payments = times(REQUESTS, "tell the context").map((message) => deliveries.payment({ message }));
  return [
    {
      name: "requests at once, each with a context of its own",
      send: ({ port }) =>
        Promise.all(
          payments.map((payment) => {
            const request = [REQUEST_HEADER, deliveries.idOf(payment)] as const;
            return exchange(port, bytesOf(CONTEXT_PATH, payment, [request]));
          }),
        ),
      answers: times(REQUESTS, RECEIVED),
      effects: payments.flatMap((payment) => [
        ...deliveries.ranOnce(payment),
        `handled in the context of ${deliveries.idOf(payment)}`,
      ]),
    },
  ];
}
