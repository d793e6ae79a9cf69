import {
  asDelivery,
  callbackFields,
  connectEvent,
  createTestKeys,
  forgedCallback,
  resplitPair,
  type SignedDelivery,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";

/** The keys that a merchant and the service share, made anew for each run of the demo. */
export interface ServiceKeys {
  readonly publicKey: string;
  readonly privateKey: string;
  readonly webhookSecret: string;
}

/** One delivery of the scenario, and what has to become of it. */
export interface Step {
  readonly what: string;
  readonly path: "/callbacks/pay" | "/webhooks/connect";
  readonly delivery: SignedDelivery;
  readonly expected: Outcome;
}

/** What can be seen of a delivery from outside and from the handlers. */
export interface Outcome {
  readonly status: number;
  /** Handlers that ran because of it. */
  readonly ran: readonly string[];
  /** Why it was put on hold, if it was. */
  readonly held?: string;
  /** Known already: a copy, or a PENDING that came too late. */
  readonly known?: "duplicate" | "stale";
}

/** A stand-in for the payment service's keys. */
export function createServiceKeys(): ServiceKeys {
  return { ...createTestKeys(), webhookSecret: "whsec_demo_2f6b1c9a7d3e" };
}

/** Everything that a receiver has to get right, in the order in which the service, or an attacker, might send it. */
export function scenario({ privateKey, webhookSecret }: ServiceKeys): readonly Step[] {
  const order = callbackFields({ referenceId: "order-1001", amount: "250.000000" });
  const late = callbackFields({ referenceId: "order-1002", amount: "75.000000" });
  const pay = (fields: object, overrides: Parameters<typeof callbackFields>[0]): SignedDelivery =>
    signPaymentCallback({ ...fields, ...overrides }, privateKey);
  const resplit = resplitPair("order-1003", privateKey);
  const deposit = pay(order, { status: "SUCCESS" });
  const approved = connectEvent("connected_account.approved");
  const settlement = signConnectWebhook(connectEvent("settlement.approved"), webhookSecret);
  const payments = "/callbacks/pay";
  const connect = "/webhooks/connect";
  return [
    {
      what: "deposit PENDING",
      path: payments,
      delivery: pay(order, { status: "PENDING", message: "Waiting for the customer" }),
      expected: { status: 200, ran: ["deposit.PENDING"] },
    },
    {
      what: "the same deposit, SUCCESS",
      path: payments,
      delivery: deposit,
      expected: { status: 200, ran: ["deposit.SUCCESS"] },
    },
    {
      what: "the same bytes again",
      path: payments,
      delivery: deposit,
      expected: { status: 200, ran: [], known: "duplicate" },
    },
    {
      what: "another deposit, SUCCESS first",
      path: payments,
      delivery: pay(late, { status: "SUCCESS" }),
      expected: { status: 200, ran: ["deposit.SUCCESS"] },
    },
    {
      what: "its PENDING, too late",
      path: payments,
      delivery: pay(late, { status: "PENDING", message: "Waiting for the customer" }),
      expected: { status: 200, ran: [], known: "stale" },
    },
    {
      what: "FAILED after SUCCESS",
      path: payments,
      delivery: pay(order, { status: "FAILED", message: "Reversed?" }),
      expected: { status: 200, ran: [], held: "conflict" },
    },
    {
      what: "SUCCESS with another amount",
      path: payments,
      delivery: pay(order, { amount: "950.000000" }),
      expected: { status: 200, ran: [], held: "mismatch" },
    },
    {
      what: "forged: amount changed after signing",
      path: payments,
      delivery: forgedCallback(callbackFields(), { amount: "9999.000000" }, privateKey),
      expected: { status: 401, ran: [] },
    },
    {
      what: "forged: no signature",
      path: payments,
      delivery: asDelivery(callbackFields()),
      expected: { status: 401, ran: [] },
    },
    {
      what: "re-split: a FAILED deposit's signature on a SUCCESS",
      path: payments,
      delivery: resplit.forged,
      expected: { status: 200, ran: [], held: "ambiguous" },
    },
    {
      what: "withdrawal FAILED",
      path: payments,
      delivery: signPaymentCallback(
        callbackFields({ event: "WITHDRAWAL", status: "FAILED", message: "Account closed" }),
        privateKey,
      ),
      expected: { status: 200, ran: ["withdrawal.FAILED"] },
    },
    {
      what: "connected account approved",
      path: connect,
      delivery: signConnectWebhook(approved, webhookSecret),
      expected: { status: 200, ran: ["connected_account.approved"] },
    },
    {
      what: "settlement approved",
      path: connect,
      delivery: settlement,
      expected: { status: 200, ran: ["settlement.approved"] },
    },
    {
      what: "settlement again",
      path: connect,
      delivery: settlement,
      expected: { status: 200, ran: [], known: "duplicate" },
    },
    {
      what: "webhook signed with another secret",
      path: connect,
      delivery: signConnectWebhook(connectEvent("settlement.approved"), "whsec_of_somebody_else"),
      expected: { status: 400, ran: [] },
    },
  ];
}
