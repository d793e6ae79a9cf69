/** Cases about which events run, and the result of a handler that fails or rejects. */

import { CONNECT_PATH, PAYMENT_PATHS } from "../application.ts";
import { type Case, RECEIVED, refused } from "../case.ts";
import type { Deliveries } from "../deliveries.ts";
import { atOnce, bytesOf, inTurn, one, times } from "../sending.ts";

const { plain: PAY, handled: HANDLED_PAY } = PAYMENT_PATHS;

export function eventCases(deliveries: Deliveries): readonly Case[] {
  const parallel = deliveries.webhook();
  const late = deliveries.fields({ payTxnId: "tx-late" });
  const success = deliveries.paymentOf({ ...late, status: "SUCCESS" });
  const pending = deliveries.paymentOf({ ...late, status: "PENDING" });
  const failing = deliveries.payment({ message: "fail once" });
  const rejected = deliveries.payment({ message: "reject" });
  const failingHandled = deliveries.payment({ message: "fail once" });
  return [
    {
      name: "eight copies at once",
      send: atOnce(bytesOf(CONNECT_PATH, parallel), 8),
      answers: times(8, RECEIVED),
      effects: [...deliveries.ranOnce(parallel), ...times(7, deliveries.duplicate(parallel))],
    },
    {
      name: "PENDING after SUCCESS",
      send: inTurn([bytesOf(PAY, success), bytesOf(PAY, pending)]),
      answers: [RECEIVED, RECEIVED],
      effects: [...deliveries.ranOnce(success), "stale DEPOSIT PENDING tx-late"],
    },
    {
      name: "a signature that fits two events",
      send: one(bytesOf(PAY, deliveries.ambiguousPayment("order-victim"))),
      answers: [RECEIVED],
      effects: ["held ambiguous"],
    },
    {
      name: "a handler that fails",
      send: inTurn(times(2, bytesOf(PAY, failing))),
      answers: [RECEIVED, RECEIVED],
      effects: [...deliveries.started(failing), "retry deposit", deliveries.duplicate(failing)],
    },
    {
      name: "a handler that rejects",
      send: one(bytesOf(PAY, rejected)),
      answers: [RECEIVED],
      effects: [...deliveries.started(rejected), "held rejected"],
    },
    {
      name: "a handler that fails before the answer, and its redelivery",
      send: inTurn(times(3, bytesOf(HANDLED_PAY, failingHandled))),
      answers: [refused(503, "ERR_NOT_HANDLED"), RECEIVED, RECEIVED],
      effects: [
        ...deliveries.ranOnce(failingHandled),
        deliveries.ran(failingHandled),
        "retry deposit",
        "refused 503 ERR_NOT_HANDLED",
        ...times(2, deliveries.duplicate(failingHandled)),
      ],
    },
  ];
}
