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
import { createSandbox, type Sandbox } from "@payhooks/sandbox";

/** The keys that a merchant and the service share, made anew for each run of the demo. */
export interface ServiceKeys {
  readonly publicKey: string;
  readonly privateKey: string;
  readonly webhookSecret: string;
}

/** The service, and an attacker beside it. */
export interface Service {
  readonly sandbox: Sandbox;
  readonly keys: ServiceKeys;
  /** Sends what the service never would; resolves with the answer's status. */
  post(path: string, delivery: SignedDelivery): Promise<number>;
}

/** One delivery of the scenario, and what has to become of it. */
export interface Step {
  readonly what: string;
  readonly expected: Outcome;
  /** Has it sent; resolves with the answer's status. */
  readonly send: (service: Service) => Promise<number>;
}

/** One delivery, as seen from outside and from the handlers. */
export interface Outcome {
  readonly status: number;
  /** Handlers that ran because of it. */
  readonly ran: readonly string[];
  /** Why it was put on hold, if it was. */
  readonly held?: string;
  /** Known already: a copy, or a PENDING that came too late. */
  readonly known?: "duplicate" | "stale";
}

const PAYMENTS = "/callbacks/pay";
const CONNECT = "/webhooks/connect";

export function createServiceKeys(): ServiceKeys {
  return { ...createTestKeys(), webhookSecret: "whsec_demo_2f6b1c9a7d3e" };
}

/** The sandbox, which sends its callbacks and webhooks to the receiver at `base`. */
export async function startService(base: string, keys: ServiceKeys, port: number): Promise<Service> {
  const sandbox = await createSandbox({
    port,
    callbackUrl: base + PAYMENTS,
    settings: { webhook_url: base + CONNECT, webhook_secret: keys.webhookSecret, webhook_enabled: true },
    merchant: { privateKey: keys.privateKey },
    delayMs: 0,
    retry: { baseMs: 50 },
  });
  return {
    sandbox,
    keys,
    async post(path, { headers, rawBody }) {
      const response = await fetch(base + path, { method: "POST", headers, body: rawBody });
      await response.text();
      return response.status;
    },
  };
}

/** Everything that a receiver has to get right, in the order in which the service, or an attacker, might send it. */
export function scenario(): readonly Step[] {
  return [
    {
      what: "deposit PENDING",
      expected: { status: 200, ran: ["deposit.PENDING"] },
      async send({ sandbox }) {
        sandbox.deposit({ reference: "order-1001", amount: "250.00", outcome: "PENDING" });
        return moved(sandbox, "order-1001", "PENDING");
      },
    },
    {
      what: "the same deposit, SUCCESS",
      expected: { status: 200, ran: ["deposit.SUCCESS"] },
      send: ({ sandbox }) => moved(sandbox, "order-1001", "SUCCESS"),
    },
    {
      what: "the same bytes again",
      expected: { status: 200, ran: [], known: "duplicate" },
      send: ({ sandbox }) => replayed(sandbox),
    },
    {
      what: "another deposit, SUCCESS first",
      expected: { status: 200, ran: ["deposit.SUCCESS"] },
      async send({ sandbox }) {
        sandbox.deposit({ reference: "order-1002", amount: "75.00", outcome: "PENDING" });
        return moved(sandbox, "order-1002", "SUCCESS");
      },
    },
    {
      what: "its PENDING, too late",
      expected: { status: 200, ran: [], known: "stale" },
      send: ({ sandbox }) => moved(sandbox, "order-1002", "PENDING"),
    },
    {
      what: "a deposit whose answer is lost, sent again",
      expected: { status: 200, ran: ["deposit.SUCCESS"], known: "duplicate" },
      async send({ sandbox }) {
        sandbox.faults.add({ kind: "drop-answer", reference: "order-1003" });
        sandbox.deposit({ reference: "order-1003" });
        return delivered(sandbox, "order-1003");
      },
    },
    {
      what: "a hosted checkout, paid",
      expected: { status: 200, ran: ["deposit.SUCCESS"] },
      async send({ sandbox }) {
        const { transaction } = sandbox.checkout({ reference: "order-1004", amount: "1200.00" });
        sandbox.transactions.decide(transaction.id, "pay", "TELEBIRR");
        return delivered(sandbox, "order-1004");
      },
    },
    {
      what: "FAILED after SUCCESS",
      expected: { status: 200, ran: [], held: "conflict" },
      send: ({ sandbox }) => moved(sandbox, "order-1001", "FAILED"),
    },
    {
      what: "SUCCESS with another amount",
      expected: { status: 200, ran: [], held: "mismatch" },
      send({ sandbox, keys, post }) {
        const payTxnId = sandbox.transactions.byReference("order-1001")?.transaction.id;
        const { merchantId, userId } = sandbox.keys;
        const same = { referenceId: "order-1001", payTxnId, merchantId, userId };
        const fields = callbackFields({ ...same, amount: "950.000000" });
        return post(PAYMENTS, signPaymentCallback(fields, keys.privateKey));
      },
    },
    {
      what: "forged: amount changed after signing",
      expected: { status: 401, ran: [] },
      send: ({ keys, post }) =>
        post(PAYMENTS, forgedCallback(callbackFields(), { amount: "9999.000000" }, keys.privateKey)),
    },
    {
      what: "forged: no signature",
      expected: { status: 401, ran: [] },
      send: ({ post }) => post(PAYMENTS, asDelivery(callbackFields())),
    },
    {
      what: "re-split: a FAILED deposit's signature on a SUCCESS",
      expected: { status: 200, ran: [], held: "ambiguous" },
      send: ({ keys, post }) => post(PAYMENTS, resplitPair("order-1005", keys.privateKey).forged),
    },
    {
      what: "withdrawal FAILED",
      expected: { status: 200, ran: ["withdrawal.FAILED"] },
      async send({ sandbox }) {
        sandbox.withdraw({ reference: "payout-1", amount: "40.00", outcome: "FAILED" });
        return delivered(sandbox, "payout-1");
      },
    },
    {
      what: "connected account approved",
      expected: { status: 200, ran: ["connected_account.approved"] },
      async send({ sandbox }) {
        sandbox.accounts.decide(sandbox.accounts.create().id, "approved");
        return lastAnswer(sandbox);
      },
    },
    {
      what: "settlement approved",
      expected: { status: 200, ran: ["settlement.approved"] },
      async send({ sandbox }) {
        sandbox.settlements.decide(sandbox.settlements.create({ amount: 125_000 }).id, "approved");
        return lastAnswer(sandbox);
      },
    },
    {
      what: "settlement again",
      expected: { status: 200, ran: [], known: "duplicate" },
      send: ({ sandbox }) => replayed(sandbox),
    },
    {
      what: "webhook signed with another secret",
      expected: { status: 400, ran: [] },
      send: ({ post }) =>
        post(CONNECT, signConnectWebhook(connectEvent("settlement.approved"), "whsec_of_somebody_else")),
    },
  ];
}

/** Moves a transaction on; resolves with the answer to the callback that announces it. */
function moved(
  sandbox: Sandbox,
  reference: string,
  status: "PENDING" | "SUCCESS" | "FAILED",
): Promise<number> {
  const id = sandbox.transactions.byReference(reference)?.transaction.id ?? "";
  sandbox.transactions.setStatus(id, status);
  return lastAnswer(sandbox);
}

/** Sends the last delivery's bytes once more. */
function replayed(sandbox: Sandbox): Promise<number> {
  sandbox.deliveries.replay(sandbox.deliveries.list().at(-1)?.id ?? "");
  return lastAnswer(sandbox);
}

/** The answer to a callback that comes in its own time. */
async function delivered(sandbox: Sandbox, reference: string): Promise<number> {
  const delivery = await sandbox.deliveries.waitFor({ reference, state: "delivered" }, { timeoutMs: 20_000 });
  return delivery.attempts.at(-1)?.answer?.status ?? 0;
}

/** The answer to what was sent last. */
async function lastAnswer(sandbox: Sandbox): Promise<number> {
  await sandbox.deliveries.idle();
  return sandbox.deliveries.list().at(-1)?.attempts.at(-1)?.answer?.status ?? 0;
}
