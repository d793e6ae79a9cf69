/** The order of the events of one subject (docs/concepts/order.md): the latest event counts, whatever fails and however it arrives. */
import { Reject } from "@payhooks/core";
import { explainOrder } from "@payhooks/core/events";
import { signConnectWebhook } from "@payhooks/core/testing";
import { expect } from "vitest";
import {
  type ContractCase,
  dyingAt,
  newGate,
  onFreshData,
  type Process,
  type Rig,
  rigOn,
} from "./inbox-processes.ts";
import { type MerchantReceiver, merchantOn, noticed } from "./merchant-receiver.ts";
import { RETENTION_MS } from "./sample-events.ts";

const SECRET = "whsec_of_the_merchant";
const BY = { by: "an operator", note: "the ledger is open again" };

type Decision = "approved" | "declined";

/** One event of the service about an account, to be delivered as often as one likes. */
interface AccountEvent {
  readonly decision: Decision;
  /** When it was signed, in milliseconds after the first one. */
  readonly at: number;
  readonly account?: string;
  readonly object?: "connected_account" | "settlement";
}

const APPROVED: AccountEvent = { decision: "approved", at: 0 };
const DECLINED: AccountEvent = { decision: "declined", at: 1_000 };

/** How a merchant's handlers behave, and what they wrote down: `approved?` before an attempt, `approved` once the account is that. */
interface Account {
  readonly log: string[];
  readonly on?: (decision: Decision, attempt: number) => unknown;
  readonly backoffMs?: number;
}

function merchantOf(
  process: Process,
  { log, on = () => {}, backoffMs = 1 }: Account,
  run?: "background",
): MerchantReceiver {
  const handler =
    (decision: Decision) =>
    async (_: unknown, { attempt }: { readonly attempt: number }): Promise<void> => {
      log.push(`${decision}?`);
      await on(decision, attempt);
      log.push(decision);
    };
  const options = { backoffMs: () => backoffMs };
  return merchantOn(
    process,
    (receiver) =>
      receiver
        .onConnectedAccountApproved(handler("approved"), options)
        .onConnectedAccountDeclined(handler("declined"), options)
        .onSettlementApproved(handler("approved"), options),
    { connect: { secret: SECRET }, ...(run === undefined ? {} : { run }) },
  );
}

/** When the first event was signed. */
type Start = Pick<Rig, "now"> & { readonly at: number };

function started(rig: Rig): Start {
  return { now: rig.now, at: Math.floor(rig.now()) - 10_000 };
}

function say(merchant: MerchantReceiver, { at: from }: Start, said: AccountEvent): Promise<string> {
  const { decision, at, account = "cm_1", object = "connected_account" } = said;
  const state = object === "settlement" ? { connected_account_id: "cm_1", amount: 1, status: decision } : {};
  const event = {
    event: `${object}.${decision}`,
    idempotency_key: `evt_${object}_${account}_${decision}_${at}`,
    occurred_at: new Date(from + at).toISOString(),
    data: { object, id: account, master_merchant_id: "mm_1", kyc_status: decision, ...state },
  };
  return merchant.deliverWebhook(signConnectWebhook(event, SECRET));
}

/** Works until nothing is left that waits. */
async function settle(rig: Rig, merchant: MerchantReceiver): Promise<void> {
  for (let round = 0; round < 40; round++) {
    await merchant.work();
    const { waiting, retrying, running } = await merchant.receiver.events.counts();
    if (waiting + retrying + running === 0) return;
    await rig.advance(rig.leaseMs / 2);
  }
  expect.fail("something waits for ever");
}

/** Works until the process dies. If the first event took the subject once more, the second one waits for its turn before that. */
async function workToDeath(rig: Rig, { work, process }: MerchantReceiver): Promise<void> {
  const dead = process.dead.then(() => "dead");
  for (let round = 0; round < 40; round++) {
    if ((await Promise.race([work(), dead])) === "dead") return;
    await rig.advance(rig.leaseMs / 2);
  }
  expect.fail("the process does not come to where it dies");
}

async function stateOf(merchant: MerchantReceiver, eventId: string): Promise<string> {
  const life = await merchant.storedEvent(eventId);
  return [life?.state, life?.reason].filter((part) => part != null).join(" ");
}

/** Nothing of the first event is tried after a handler of the second was called, and the second is what the account is. */
function expectLatest(log: readonly string[], last: Decision = "declined"): void {
  expect(log.at(-1)).toBe(last);
  expect(log.slice(log.indexOf(`${last}?`)).filter((line) => !line.startsWith(last))).toEqual([]);
  expect(log.filter((line) => line === last)).toHaveLength(1);
}

const [A, D] = [APPROVED, DECLINED];
/** Every order in which two events and a copy of each arrive. */
const ORDERS: readonly (readonly AccountEvent[])[] = [
  [A, A, D, D],
  [A, D, A, D],
  [A, D, D, A],
  [D, A, A, D],
  [D, A, D, A],
  [D, D, A, A],
];

const isDown = (decision: Decision): void => {
  if (decision === "approved") throw new Error("the ledger is down");
};

/** The moments at which a process dies while an event fails and the next one overtakes it. */
const DEATHS = [
  ["before", "take subject"],
  ["after", "take subject"],
  ["before", "stale"],
  ["after", "stale"],
  ["before", "finish done"],
  ["after", "finish done"],
  ["before", "leave subject"],
  ["after", "leave subject"],
] as const;

export const subjectCases: readonly ContractCase[] = [
  {
    name: "approved that fails and declined that follows: the account is declined in every order of arrival, with copies",
    async run(make) {
      for (const order of ORDERS) {
        const rig = rigOn(await make());
        try {
          const log: string[] = [];
          const merchant = merchantOf(rig.start(), { log, on: isDown });
          const start = started(rig);
          for (const event of order) {
            await say(merchant, start, event);
            await merchant.work();
            await rig.advance(5);
          }
          await settle(rig, merchant);
          expectLatest(log);
          expect(await stateOf(merchant, await say(merchant, start, APPROVED))).toBe("stale");
          expect(await noticed(merchant, "stale")).toMatchObject([{ event: "connected_account.approved" }]);
        } finally {
          await rig.close();
        }
      }
    },
  },
  ...DEATHS.map(([moment, write]) =>
    onFreshData(
      `death ${moment} the write "${write}", between an event and the next: the account is what the last one said`,
      async (rig) => {
        const log: string[] = [];
        const start = started(rig);
        const first = merchantOf(rig.start(), { log, on: isDown });
        const approved = await say(first, start, APPROVED);
        await first.work();
        const dying = merchantOf(dyingAt(rig, moment, write), { log, on: isDown });
        await say(dying, start, DECLINED);
        await workToDeath(rig, dying);
        const survivor = merchantOf(rig.start(), { log, on: isDown });
        await say(survivor, start, APPROVED);
        await settle(rig, survivor);
        expect(log.at(-1)).toBe("declined");
        expect(log.lastIndexOf("approved?")).toBeLessThan(log.indexOf("declined?"));
        expect(await stateOf(survivor, approved)).toBe("stale");
      },
      { only: "outlives-process" },
    ),
  ),
  onFreshData("an older event that arrives after a newer one has run is stale, and not run", async (rig) => {
    const log: string[] = [];
    const merchant = merchantOf(rig.start(), { log });
    const start = started(rig);
    await say(merchant, start, DECLINED);
    await merchant.work();
    const late = await say(merchant, start, APPROVED);
    await settle(rig, merchant);
    expect(log).toEqual(["declined?", "declined"]);
    expect(await stateOf(merchant, late)).toBe("stale");
    expect(await noticed(merchant, "finished")).toHaveLength(1);
  }),
  onFreshData(
    "events that follow each other run one after the other, in the order of their signed times",
    async (rig) => {
      const log: string[] = [];
      const merchant = merchantOf(rig.start(), { log });
      const start = started(rig);
      for (const [at, decision] of (["approved", "declined", "approved"] as const).entries()) {
        await say(merchant, start, { decision, at: at * 100 });
        await settle(rig, merchant);
      }
      expect(log.filter((line) => !line.endsWith("?"))).toEqual(["approved", "declined", "approved"]);
      expect(await noticed(merchant, "stale")).toEqual([]);
    },
  ),
  onFreshData(
    "events about other accounts, and about other things of the same name, are not in the order",
    async (rig) => {
      const log: string[] = [];
      const merchant = merchantOf(rig.start(), { log });
      const start = started(rig);
      await say(merchant, start, DECLINED);
      await merchant.work();
      await say(merchant, start, { ...APPROVED, account: "cm_2" });
      await say(merchant, start, { ...APPROVED, object: "settlement" });
      await settle(rig, merchant);
      expect(log.filter((line) => line === "approved")).toHaveLength(2);
      expect(await noticed(merchant, "stale")).toEqual([]);
    },
  ),
  onFreshData(
    "of two events that were signed at the same time the first runs, and a person decides about the other",
    async (rig) => {
      const log: string[] = [];
      const merchant = merchantOf(rig.start(), { log });
      const start = started(rig);
      await say(merchant, start, APPROVED);
      await settle(rig, merchant);
      const equal = await say(merchant, start, { ...DECLINED, at: APPROVED.at });
      await settle(rig, merchant);
      expect(await stateOf(merchant, equal)).toBe("held conflict");
      await merchant.receiver.events.replay(equal, BY);
      await settle(rig, merchant);
      expect(log.filter((line) => !line.endsWith("?"))).toEqual(["approved", "declined"]);
    },
  ),
  onFreshData("an event that is held ends as stale when a later one begins", async (rig) => {
    const log: string[] = [];
    const merchant = merchantOf(rig.start(), {
      log,
      on(decision) {
        if (decision === "approved") throw new Reject("the ledger does not know the account");
      },
    });
    const start = started(rig);
    const held = await say(merchant, start, APPROVED);
    await settle(rig, merchant);
    expect(await stateOf(merchant, held)).toBe("held rejected");
    await say(merchant, start, DECLINED);
    await settle(rig, merchant);
    expect(await stateOf(merchant, held)).toBe("stale");
    await expect(merchant.receiver.events.replay(held, BY)).rejects.toMatchObject({
      code: "ERR_NOT_DECIDABLE",
    });
    expectLatest(log);
  }),
  onFreshData(
    "while an event runs, no other of its subject does: the next waits for it, in another process too",
    async (rig) => {
      const log: string[] = [];
      const [reached, gate] = [newGate(), newGate()];
      const account: Account = {
        log,
        async on(decision) {
          if (decision !== "approved") return;
          reached.open();
          await gate.passed;
        },
      };
      const [one, other] = [merchantOf(rig.start(), account), merchantOf(rig.start(), account)];
      const start = started(rig);
      await say(one, start, APPROVED);
      const working = one.work();
      await reached.passed;
      await say(other, start, DECLINED);
      for (let wait = 0; wait < 3; wait++) {
        await other.work();
        await rig.advance(rig.leaseMs / 2);
      }
      expect(log).toEqual(["approved?"]);
      gate.open();
      await working;
      await settle(rig, other);
      expect(log).toEqual(["approved?", "approved", "declined?", "declined"]);
      expect(await noticed(one, "double-risk")).toEqual([]);
    },
  ),
  onFreshData(
    "a process dies while an event runs: the next waits until its lease is over, and is the last one",
    async (rig) => {
      const log: string[] = [];
      const reached = newGate();
      const never = newGate();
      const dying = merchantOf(rig.start(), {
        log,
        on: async () => {
          reached.open();
          await never.passed;
        },
      });
      const start = started(rig);
      const approved = await say(dying, start, APPROVED);
      void dying.work();
      await reached.passed;
      dying.process.kill();
      const survivor = merchantOf(rig.start(), { log });
      await say(survivor, start, DECLINED);
      await survivor.work();
      expect(log).toEqual(["approved?"]);
      await settle(rig, survivor);
      expect(log.slice(-2)).toEqual(["declined?", "declined"]);
      expect(["stale", "done"]).toContain(await stateOf(survivor, approved));
    },
    { only: "outlives-process" },
  ),
  onFreshData(
    "an event that waited until its subject may be forgotten is held; one that had its turn runs at a replay",
    async (rig) => {
      const log: string[] = [];
      let isOpen = false;
      const merchant = merchantOf(rig.start(), {
        log,
        on() {
          if (!isOpen) throw new Reject("the ledger is closed");
        },
      });
      const start = started(rig);
      const tried = await say(merchant, start, APPROVED);
      await settle(rig, merchant);
      const untried = await say(merchant, start, { ...APPROVED, account: "cm_2" });
      await rig.advance(3 * RETENTION_MS);
      isOpen = true;
      await settle(rig, merchant);
      expect(await stateOf(merchant, untried)).toBe("held conflict");
      await merchant.receiver.events.replay(tried, BY);
      await merchant.receiver.events.replay(untried, { ...BY, evenIfExpired: true });
      await settle(rig, merchant);
      expect(await Promise.all([tried, untried].map((one) => stateOf(merchant, one)))).toEqual([
        "done",
        "done",
      ]);
    },
    { timeTravel: true },
  ),
  onFreshData(
    "the order of a subject has its events by the time they were signed, with what each waits for and which overtook it",
    async (rig) => {
      const log: string[] = [];
      const merchant = merchantOf(rig.start(), { log, on: isDown, backoffMs: 600_000 });
      const { events } = merchant.receiver;
      const start = started(rig);
      const approved = await say(merchant, start, APPROVED);
      await merchant.work();
      const told = async (eventId: string): Promise<readonly string[]> => {
        const order = await events.subjectOrder(eventId);
        return explainOrder(order ?? expect.fail("it has no order")).map(
          ({ event, state, text }) => `${event.split(".")[1]} ${state}: ${text}`,
        );
      };
      const at = (ms: number): string => new Date(start.at + ms).toISOString();
      const tried = "It has begun, so no earlier event runs any more, and it is tried again.";
      expect(await told(approved)).toEqual([`approved retrying: ${tried}`]);
      const other = await say(merchant, start, { ...DECLINED, account: "cm_2" });
      const declined = await say(merchant, start, DECLINED);
      const waits = "It waits for its run. If a later event begins first, this one will not run.";
      expect(await told(declined)).toEqual([`approved retrying: ${tried}`, `declined waiting: ${waits}`]);
      await settle(rig, merchant);
      const overtaken = `stale: It was overtaken: the event signed at ${at(1_000)} has replaced it.`;
      const last = "declined done: It has run, and is the latest event.";
      expect(await told(approved)).toEqual([`approved ${overtaken}`, last]);
      await rig.advance(5);
      const late = await say(merchant, start, { ...APPROVED, at: -1_000 });
      await settle(rig, merchant);
      // A store that lists no finished events knows the latest event all the same, and says that it may not know the others.
      const { events: found = [], complete } = (await events.subjectOrder(declined)) ?? {};
      const known = complete === true ? [late, approved, declined] : [declined];
      expect(found.map(({ eventId }) => eventId)).toEqual(known);
      expect(found.at(-1)).toMatchObject({ isLatest: true, signedAt: start.at + 1_000 });
      const ofLate = await told(late);
      expect([ofLate[0], ofLate.at(-1)]).toEqual([`approved ${overtaken}`, last]);
      expect((await events.subjectOrder(other))?.events.map(({ eventId }) => eventId)).toEqual([other]);
      expect(await events.subjectOrder("0".repeat(48))).toBeNull();
    },
  ),
  onFreshData(
    "an event without a subject costs no more than before; one with a subject two writes",
    async (rig) => {
      const process = rig.start();
      const log: string[] = [];
      const merchant = merchantOf(process, { log }, "background");
      await merchant.receiver.start();
      const start = started(rig);
      const from = process.calls.length;
      await say(merchant, start, APPROVED);
      for (let wait = 0; wait < 40 && !process.calls.includes("leave subject"); wait++) await rig.advance(1);
      const writes = process.calls
        .slice(from)
        .filter((name) => !["takeDue", "read", "replicated", "counts"].includes(name));
      expect(writes).toEqual(["accept+begin+started", "take subject", "finish done", "leave subject"]);
      await merchant.receiver.close();
    },
  ),
];
