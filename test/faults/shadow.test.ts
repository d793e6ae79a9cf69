/**
 * A team moves from its own receiver to Payhooks, as docs/guides/moving.md says: an Express route with `SET NX` and BullMQ on a real
 * Redis, with jobs that wait in its queue. Deliveries, copies and retries arrive through the whole move. The books have one entry for
 * each call of a handler, so they show what was lost and what ran twice.
 */
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { createReceiver, formatAmount, parseAmount, type Receiver } from "@payhooks/core";
import { eachEvent } from "@payhooks/core/events";
import { redisInbox } from "@payhooks/core/redis";
import { type ShadowLine, shadow } from "@payhooks/core/shadow";
import {
  callbackFields,
  createTestKeys,
  type SignedDelivery,
  shuffled,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { paymentCallbacks } from "@payhooks/express";
import express from "express";
import { describe, expect, it } from "vitest";
import { type Report, reportOf } from "../../packages/cli/src/shadow/report.ts";
import { silent } from "../support/silent.ts";
import { OldReceiver } from "./harness/old-receiver.ts";
import { RedisServer } from "./harness/redis-server.ts";
import { pause, type Scope, until, withScope } from "./harness/scope.ts";

const PATH = "/callbacks/pay";
/** How many deliveries the service sends at one time. More than are refused while the old queue runs empty. */
const SENDERS = 30;
const keys = createTestKeys();

/** The merchant's books. They do not look for copies. */
class Books {
  readonly entries: { readonly payTxnId: string; readonly amount: bigint }[] = [];

  enter(payTxnId: string, amount: string): void {
    this.entries.push({ payTxnId, amount: parseAmount(amount) });
  }

  get total(): string {
    return formatAmount(this.entries.reduce((sum, { amount }) => sum + amount, 0n));
  }

  /** The payments with more than one entry. */
  get doubled(): string[] {
    const ids = this.entries.map(({ payTxnId }) => payTxnId);
    return [...new Set(ids.filter((id, at) => ids.indexOf(id) !== at))].sort();
  }

  /** Those of the payments that have no entry. */
  missing(payments: readonly Payment[]): string[] {
    const known = new Set(this.entries.map(({ payTxnId }) => payTxnId));
    return payments
      .map(({ payTxnId }) => payTxnId)
      .filter((id) => !known.has(id))
      .sort();
  }
}

interface Payment {
  readonly payTxnId: string;
  readonly amount: string;
  /** PENDING, if it has one, before SUCCESS. */
  readonly deliveries: readonly SignedDelivery[];
}

let made = 0;

/** A payment of an amount that no other one has. */
function payment(
  payTxnId: string,
  { event = "DEPOSIT", pending = false }: { event?: "DEPOSIT" | "WITHDRAWAL"; pending?: boolean } = {},
): Payment {
  const amount = formatAmount(BigInt(++made) * 1_370_000n);
  const fields = { event, payTxnId, referenceId: `order-${payTxnId}`, amount };
  const sign = (status: "PENDING" | "SUCCESS"): SignedDelivery =>
    signPaymentCallback(callbackFields({ ...fields, status }), keys.privateKey);
  return { payTxnId, amount, deliveries: pending ? [sign("PENDING"), sign("SUCCESS")] : [sign("SUCCESS")] };
}

const payments = (name: string, count: number): Payment[] =>
  Array.from({ length: count }, (_, at) => payment(`${name}-${at}`, { pending: at % 5 === 4 }));

const totalOf = (given: readonly Payment[]): string =>
  formatAmount(given.reduce((sum, { amount }) => sum + parseAmount(amount), 0n));

/** The merchant's one address. What answers there changes during the move; the port does not. */
class Address {
  answer: RequestListener = (_, response) => response.writeHead(503).end();
  readonly #server = createServer((request, response) => this.answer(request, response));

  static async open(scope: Scope): Promise<Address> {
    const address = scope.add(new Address(), (one) => void one.#server.close());
    scope.add(address.#server, (server) => server.closeAllConnections());
    await new Promise<void>((resolve) => address.#server.listen(0, "127.0.0.1", resolve));
    return address;
  }

  /** One attempt. Resolves to the status. */
  async post({ headers, rawBody }: SignedDelivery): Promise<number> {
    const { port } = this.#server.address() as AddressInfo;
    const response = await fetch(`http://127.0.0.1:${port}${PATH}`, {
      method: "POST",
      headers,
      body: rawBody,
    });
    await response.arrayBuffer();
    return response.status;
  }

  /** Sends the deliveries of payments until each is acknowledged, several at a time, as the service does. */
  async send(given: readonly Payment[]): Promise<void> {
    const waiting = [...given];
    const sender = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        for (const delivery of next.deliveries) {
          while (this.#server.listening && (await this.post(delivery)) !== 200) await pause(20);
        }
      }
    };
    await Promise.all(Array.from({ length: SENDERS }, sender));
  }
}

interface Move {
  /** The old queue runs empty before the switch. */
  readonly drains: boolean;
  /** The workers say what they have handled. */
  readonly marks: boolean;
  /** The service repeats what it knows to be acknowledged. It need not. */
  readonly repeats?: boolean;
  /** Payhooks' Redis is away for a while. */
  readonly outage?: boolean;
}

interface Moved {
  readonly books: Books;
  readonly report: Report;
  /** By the time at which they were first sent. */
  readonly sent: Readonly<Record<"before" | "during" | "draining" | "after" | "special", readonly Payment[]>>;
  /** Payments for which somebody had to decide. */
  readonly decided: readonly string[];
}

const UNSEEN = payment("refused-withdrawal", { event: "WITHDRAWAL" });
const LOST = payment("lost-by-old");
const STUCK = payment("given-up");
const FORGED = payment("forged");

async function move({ drains, marks, repeats = true, outage = false }: Move): Promise<Moved> {
  return withScope(async (scope) => {
    const [old, ours] = [await RedisServer.start(scope), await RedisServer.start(scope)];
    const address = await Address.open(scope);
    const books = new Books();
    const lines: ShadowLine[] = [];
    const receiverOn = (run?: "elsewhere"): Receiver => {
      const receiver = createReceiver({
        payments: { publicKey: keys.publicKey },
        // A busy machine is no outage: without one, everything is recorded, however slowly.
        inbox: redisInbox(ours.url, { logger: silent, commandTimeoutMs: outage ? 500 : 30_000 }),
        ...(outage ? {} : { limits: { acceptTimeoutMs: 30_000 } }),
        logger: silent,
        run,
      });
      const enter = async (event: { payTxnId: string; amount: string }): Promise<void> => {
        await pause(2);
        books.enter(event.payTxnId, event.amount);
      };
      receiver.onDeposit(enter).onWithdrawal(enter);
      return scope.add(receiver, (one) => one.close({ graceMs: 1_000 }));
    };

    // The old receiver alone. Its workers are behind: jobs wait.
    const by = { by: "amina", note: "looked up in the books" };
    let beside: ReturnType<typeof shadow> | null = null;
    const receiver = OldReceiver.open(
      scope,
      old.url,
      keys.publicKey,
      async ({ payTxnId, status, amount }) => {
        if (payTxnId === STUCK.payTxnId) throw new Error("no such order");
        await pause(2);
        books.enter(payTxnId, amount);
        if (marks) await beside?.handled({ id: payTxnId, event: "DEPOSIT", status });
      },
    );
    let isDraining = false;
    const app = express();
    app.post(PATH, express.raw({ type: "application/json" }), async ({ headers, body }, response) => {
      const answer = isDraining ? Promise.resolve("refused" as const) : receiver.receive(body);
      void beside?.delivered("payments", { headers, rawBody: body }, answer);
      const status = await answer.then(
        (outcome) => (isDraining ? 503 : outcome === "refused" ? 401 : 200),
        () => 500,
      );
      response.status(status).json({ received: status === 200 });
    });
    address.answer = app;
    const before = payments("before", 30);
    await address.send(before);
    expect(await receiver.left()).toBe(30);

    // Payhooks in the shadow. Copies of what waits in the queue arrive, and new payments.
    const inShadow = receiverOn("elsewhere");
    beside = shadow(inShadow, { journal: (line) => void lines.push(JSON.parse(line)) });
    await address.send(before.slice(0, 10));
    receiver.diesAfter.add(LOST.payTxnId);
    const during = payments("during", 60);
    const special = [LOST, STUCK];
    if (drains) receiver.work();
    const [legacy] = FORGED.deliveries;
    const forgery = { ...JSON.parse(legacy?.rawBody.toString() ?? ""), signature: "legacy" };
    const [first, second] = [during.slice(0, 30), during.slice(30)];
    await address.send([...first, ...special, ...first.slice(0, 15)]);
    if (outage) await ours.kill();
    await address.send(second.slice(0, 10));
    if (outage) await ours.up();
    await address.send(shuffled([...second, ...second.slice(0, 15), ...first.slice(20)], 7));
    await address.post({ rawBody: Buffer.from(JSON.stringify(forgery)), headers: legacy?.headers ?? {} });
    const withdrawal = address.send([UNSEEN]);

    // The old queue runs empty, while the service goes on sending.
    isDraining = true;
    const draining = payments("draining", 15);
    const retries = address.send([...draining, ...during.slice(40, 50)]);
    const settled = () => lines.filter(({ type }) => type === "delivery").length;
    await until("Payhooks has seen what is refused now", () => settled() > 0 && hasSeen(lines, draining));
    if (drains) {
      await until("the old queue is empty", async () => (await receiver.left()) === 0);
      expect((await receiver.queue.getFailed()).map(({ data }) => data.payTxnId)).toEqual([STUCK.payTxnId]);
    }
    if (outage) await until("every mark is made", () => reportOf(lines).rows["not-marked"].length === 0);
    const report = reportOf(lines);

    // The switch.
    address.answer = (_, response) => response.writeHead(503).end();
    await receiver.close();
    await inShadow.close();
    const next = receiverOn();
    const switched = express();
    switched.use(PATH, paymentCallbacks(next));
    address.answer = switched;
    await Promise.all([retries, withdrawal]);

    // A person decides about what is held: the books know whether the old receiver has handled it.
    const decided: string[] = [];
    for await (const event of eachEvent(next.events, { state: "held" })) {
      const isKnown = books.entries.some(({ payTxnId }) => payTxnId === event.id);
      await (isKnown ? next.events.discard(event.eventId, by) : next.events.replay(event.eventId, by));
      decided.push(event.id);
    }

    // The service repeats everything once more, and sends new payments.
    const after = payments("after", 20);
    const acknowledged = repeats ? [...before, ...during, ...draining, ...special, UNSEEN] : [];
    await address.send(shuffled([...acknowledged, ...after, ...after], 11));
    await until("nothing waits", async () => {
      const { waiting, retrying, running } = await next.events.counts();
      return waiting + retrying + running === 0;
    });
    return {
      books,
      report,
      decided,
      sent: { before, during, draining, after, special: [...special, UNSEEN] },
    };
  });
}

function hasSeen(lines: readonly ShadowLine[], given: readonly Payment[]): boolean {
  const seen = new Set(lines.flatMap((line) => (line.type === "delivery" ? [line.event?.id] : [])));
  return given.every(({ payTxnId }) => seen.has(payTxnId));
}

const everyPayment = ({ sent }: Moved): Payment[] => Object.values(sent).flat();
const idsIn = ({ rows }: Report, row: keyof Report["rows"]): (string | null)[] =>
  [...new Set(rows[row].map(({ id }) => id))].sort();

describe("a move from SET NX and BullMQ to Payhooks", () => {
  it("loses no payment and doubles none, to the cent, while jobs wait and deliveries and retries go on", async () => {
    const moved = await move({ drains: true, marks: true });
    const { books, report, sent } = moved;
    const all = everyPayment(moved);
    expect(books.doubled).toEqual([]);
    expect(books.missing(all)).toEqual([]);
    expect(books.total).toBe(totalOf([...all, FORGED]));
    expect(books.entries).toHaveLength(all.length + 1);

    // The report names what the two do differently, and nothing else.
    expect(idsIn(report, "forged")).toEqual([null]);
    expect(report.rows.forged).toMatchObject([{ why: "ERR_SIGNATURE_MALFORMED" }]);
    expect(idsIn(report, "refused-by-old")).toEqual(
      [UNSEEN, ...sent.draining].map(({ payTxnId }) => payTxnId).sort(),
    );
    expect(idsIn(report, "open")).toEqual([STUCK.payTxnId, LOST.payTxnId].sort());
    expect(idsIn(report, "only-old")).toContain(FORGED.payTxnId);
    // No worker ever handles a PENDING, so nobody can say that of those whose copies came.
    expect(report.rows.copy.map(({ id, status }) => [id, status]).sort()).toEqual(
      sent.before
        .slice(0, 10)
        .filter(({ deliveries }) => deliveries.length === 2)
        .map(({ payTxnId }) => [payTxnId, "PENDING"]),
    );
    for (const row of ["twice", "held", "refused-by-payhooks", "not-recorded", "not-marked"] as const) {
      expect(idsIn(report, row), row).toEqual([]);
    }
    expect(report.rows.both).toHaveLength(60 + 10);
  });

  it("loses no payment and doubles none while Payhooks' own database is away for a while", async () => {
    const moved = await move({ drains: true, marks: true, outage: true });
    const { books } = moved;
    const all = everyPayment(moved);
    expect(books.doubled).toEqual([]);
    expect(books.missing(all)).toEqual([]);
    expect(books.total).toBe(totalOf([...all, FORGED]));
  });

  it("loses the jobs that waited before the shadow if the old queue does not run empty first: the books show it", async () => {
    const moved = await move({ drains: false, marks: true, repeats: false });
    const { books, sent, decided } = moved;
    const [copied, lost] = [sent.before.slice(0, 10), sent.before.slice(10)];
    // Copies of the first ones came during the shadow. They were held, and a person found that nobody had handled them.
    expect(copied.every(({ payTxnId }) => decided.includes(payTxnId))).toBe(true);
    const all = everyPayment(moved);
    expect(books.missing(all)).toEqual(lost.map(({ payTxnId }) => payTxnId).sort());
    expect(books.doubled).toEqual([]);
    expect(books.total).toBe(totalOf(all.filter((one) => !lost.includes(one))));
  });

  it("doubles payments if the workers do not say what they have handled: the books show it", async () => {
    const { books } = await move({ drains: true, marks: false });
    expect(books.doubled.length).toBeGreaterThan(50);
  });
});
