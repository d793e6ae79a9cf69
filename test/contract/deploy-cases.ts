/**
 * Processes whose handlers differ: during a deploy, after a handler was renamed or removed, or when two applications share an
 * inbox. An event ends as done only once every handler has finished that any process has begun it with.
 */
import { type Receiver, Reject } from "@payhooks/core";
import { connectEvent, signConnectWebhook } from "@payhooks/core/testing";
import { expect } from "vitest";
import { type ContractCase, onFreshData, type Rig, withOverrides } from "./inbox-processes.ts";
import { depositOf, type MerchantReceiver, merchantOn } from "./merchant-receiver.ts";
import { does } from "./write-names.ts";

const BY = { by: "an operator", note: "the handlers are there again" };
const SECRET = "a long secret of the contract";
const SOON_MS = 300;
const soon = { backoffMs: () => SOON_MS };
const fails = (): never => {
  throw new Error("the bank is down");
};

type Register = (receiver: Receiver, ran: string[]) => unknown;

const doNothing = (): void => {};

/** Handlers of the process that begins the event, and fails. */
const firsts: Readonly<Record<string, Register>> = {
  "one handler, which failed": (receiver) => receiver.onDeposit(fails, soon),
  "two handlers, of which the second failed": (receiver, ran) =>
    receiver
      .onDeposit(() => void ran.push("deposit"), { name: "ledger" })
      .onDeposit(fails, { ...soon, name: "deposit" }),
};

/** Handlers of the process that takes the event next, and lacks `deposit`. */
const others: Readonly<Record<string, Register>> = {
  "ignores the event": (receiver) => receiver.onWithdrawal(doNothing).ignore("DEPOSIT"),
  "has no handler of the event": (receiver) => receiver.onWithdrawal(doNothing),
  "has its handler under another name": (receiver) =>
    receiver.onDeposit(doNothing, { name: "credit" }).onDeposit(doNothing, { name: "ledger" }),
  "wants the event with another status only": (receiver) =>
    receiver.onDeposit({ FAILED: doNothing }, { name: "deposit" }),
};

async function stateOf(merchant: MerchantReceiver, eventId: string): Promise<string> {
  const life = await merchant.storedEvent(eventId);
  return `${life?.state} ${life?.reason ?? ""}`.trim();
}

/** Delivers an event, and has one process begin it, which cannot finish it. */
async function begunBy(rig: Rig, register: Register): Promise<{ eventId: string; ran: string[] }> {
  const ran: string[] = [];
  const first = merchantOn(rig.start(), (receiver) => register(receiver, ran));
  const eventId = await first.deliver(depositOf(rig));
  await first.receiver.work({ limit: 1 });
  expect(await stateOf(first, eventId)).toBe("retrying");
  await rig.advance(SOON_MS + 100);
  return { eventId, ran };
}

const unfinishedCases = Object.entries(firsts).flatMap(([begun, first]) =>
  Object.entries(others).map(([how, other]) =>
    onFreshData(`an event with ${begun}, is held by a process that ${how}, and not lost`, async (rig) => {
      const { eventId } = await begunBy(rig, first);
      const second = merchantOn(rig.start(), (receiver) => other(receiver, []));
      await second.work();
      expect(await stateOf(second, eventId)).toBe("held unhandled");
      const detail = (await second.storedEvent(eventId))?.detail;
      if (how !== "has no handler of the event") expect(detail).toContain("deposit");
      const ran: string[] = [];
      const third = merchantOn(rig.start(), (receiver) =>
        receiver.onDeposit(() => void ran.push("deposit"), { name: "deposit" }),
      );
      await third.receiver.events.replay(eventId, BY);
      await third.work();
      expect([await stateOf(third, eventId), ran]).toEqual(["done", ["deposit"]]);
    }),
  ),
);

export const deployCases: readonly ContractCase[] = [
  ...unfinishedCases,
  onFreshData("an event is left alone by a process that does not have its flow", async (rig) => {
    const ran: string[] = [];
    const newer = merchantOn(
      rig.start(),
      (receiver) =>
        receiver.onDeposit(fails).onSettlementApproved(() => {
          ran.push("settlement");
          if (ran.length === 2) fails();
        }, soon),
      { connect: { secret: SECRET } },
    );
    const eventId = await newer.deliverWebhook(
      signConnectWebhook(connectEvent("settlement.approved", {}, rig.now()), SECRET),
    );
    const older = merchantOn(rig.start(), (receiver) => receiver.onDeposit(() => void ran.push("deposit")));
    const deposit = await older.deliver(depositOf(rig));
    expect(await older.work()).toMatchObject({ ran: 1, failed: 0 });
    expect(await older.receiver.run(eventId)).toEqual({ state: "waiting", ran: false });
    expect(await stateOf(older, eventId)).toBe("waiting");
    expect(await stateOf(older, deposit)).toBe("done");
    await rig.advance(rig.leaseMs + 100);
    // On a slow store the retry is due before `work` ends, and would run in it.
    await newer.receiver.work({ deadlineMs: 3_600_000, limit: 1 });
    expect(await stateOf(newer, eventId)).toBe("retrying");
    await rig.advance(SOON_MS + 100);
    await older.work();
    expect(await stateOf(older, eventId)).toBe("retrying");
    await rig.advance(rig.leaseMs + 100);
    await newer.work();
    expect(await stateOf(older, eventId)).toBe("done");
    expect(ran).toEqual(["deposit", "settlement", "settlement"]);
    expect(await newer.receiver.events.counts()).toMatchObject({ waiting: 0, retrying: 0, held: 0 });
  }),
  onFreshData("an ignored event that no process has begun ends as done", async (rig) => {
    const receiving = merchantOn(rig.start(), (receiver) => receiver.onDeposit(fails));
    const eventId = await receiving.deliver(depositOf(rig));
    const ignoring = merchantOn(rig.start(), (receiver) =>
      receiver.onWithdrawal(doNothing).ignore("DEPOSIT"),
    );
    await ignoring.work();
    expect(await stateOf(ignoring, eventId)).toBe("done");
  }),
  onFreshData(
    "a handler that a process registered but never reached is not forgotten when that process dies",
    async (rig) => {
      const dying = rig.start((moment, call) =>
        moment === "after" && does(call, "begin") ? "die" : undefined,
      );
      const first = merchantOn(dying, (receiver) =>
        receiver.onDeposit(doNothing).onDeposit(doNothing, { name: "mail" }),
      );
      const eventId = await first.deliver(depositOf(rig));
      void first.work().catch(() => {});
      await rig.until(dying.dead);
      await rig.advance(rig.leaseMs + 100);
      const ran: string[] = [];
      const second = merchantOn(rig.start(), (receiver) =>
        receiver.onDeposit(() => void ran.push("deposit")),
      );
      await second.work();
      expect([await stateOf(second, eventId), ran]).toEqual(["held unhandled", ["deposit"]]);
      expect((await second.storedEvent(eventId))?.detail).toContain("mail");
    },
    { only: "outlives-process" },
  ),
  onFreshData(
    "an event whose handler was given up stays held under its reason where it is ignored",
    async (rig) => {
      const { eventId } = await begunBy(rig, (receiver) =>
        receiver.onDeposit(fails, soon).onDeposit(
          () => {
            throw new Reject("no such customer");
          },
          { name: "crm" },
        ),
      );
      const ignoring = merchantOn(rig.start(), (receiver) =>
        receiver.onWithdrawal(doNothing).ignore("DEPOSIT"),
      );
      await ignoring.work();
      expect(await stateOf(ignoring, eventId)).toBe("held rejected");
    },
  ),
  onFreshData(
    "a replay of a named handler is held again by a process that ignores the event",
    async (rig) => {
      const rejecting = merchantOn(rig.start(), (receiver) =>
        receiver.onDeposit(() => {
          throw new Reject("the ledger is closed");
        }),
      );
      const eventId = await rejecting.deliver(depositOf(rig));
      await rejecting.work();
      await rejecting.receiver.events.replay(eventId, { ...BY, handlers: ["deposit"] });
      const ignoring = merchantOn(rig.start(), (receiver) =>
        receiver.onWithdrawal(doNothing).ignore("DEPOSIT"),
      );
      await ignoring.work();
      expect(await stateOf(ignoring, eventId)).toBe("held unhandled");
    },
  ),
  onFreshData(
    "a person hears of a held event although a process without onHeld handlers took it first",
    async (rig) => {
      const heard: string[] = [];
      const first = merchantOn(rig.start(), (receiver) =>
        receiver
          .onDeposit(() => {
            throw new Reject("no such customer");
          })
          .onHeld(({ reason }) => void heard.push(reason)),
      );
      const eventId = await first.deliver(depositOf(rig));
      await first.receiver.work({ limit: 1 });
      expect([await stateOf(first, eventId), heard]).toEqual(["held rejected", []]);
      const without = merchantOn(rig.start(), (receiver) => receiver.onDeposit(doNothing));
      await without.work();
      expect(heard).toEqual([]);
      await rig.advance(2_000);
      await first.work();
      expect([await stateOf(first, eventId), heard]).toEqual(["held rejected", ["rejected"]]);
    },
  ),
  onFreshData(
    "a receiver is told at its start which handlers differ from those of the last one, once for each change",
    async (rig) => {
      const started = async (register: (receiver: Receiver) => unknown): Promise<readonly string[]> => {
        const merchant = merchantOn(rig.start(), register, { run: "after-response" });
        await merchant.receiver.start();
        const warnings = (await merchant.notices()).filter((notice) => notice.type === "warning");
        return warnings.map(({ what }) => what).filter((what) => what.includes("other handlers"));
      };
      const old = (receiver: Receiver) =>
        receiver.onDeposit({ SUCCESS: doNothing, FAILED: doNothing }).onHeld(doNothing);
      const renamed = (receiver: Receiver) =>
        receiver.onDeposit(doNothing, { name: "credit" }).onHeld(doNothing);
      const ignoring = (receiver: Receiver) => receiver.onSettlementApproved(doNothing).ignore("DEPOSIT");
      expect([await started(old), await started(old)]).toEqual([[], []]);
      expect(await started(renamed)).toEqual([
        "The receiver that started last on this inbox had other handlers. " +
          "Missing here: deposit (DEPOSIT FAILED), deposit (DEPOSIT SUCCESS). New here: credit (DEPOSIT SUCCESS).",
      ]);
      // During a rolling deploy, old and new processes start in any order.
      for (const register of [renamed, old, renamed, old]) expect(await started(register)).toEqual([]);
      expect(await started(ignoring)).toEqual([
        "The receiver that started last on this inbox had other handlers. " +
          "Missing here: deposit (DEPOSIT FAILED), deposit (DEPOSIT SUCCESS), held (onHeld). " +
          "New here: ignore (DEPOSIT), settlementApproved (settlement.approved).",
      ]);
      expect(await started(ignoring)).toEqual([]);
    },
    { only: "outlives-process" },
  ),
  onFreshData(
    "a receiver starts although its handlers cannot be kept beside the data",
    async (rig) => {
      const merchant = merchantOn(
        rig.start(undefined, {
          store: (given) => withOverrides(given, { writeNote: () => Promise.reject(new Error("no room")) }),
        }),
        (receiver) => receiver.onDeposit(doNothing),
        { run: "after-response" },
      );
      await merchant.receiver.start();
      expect(await merchant.notices()).toContainEqual(
        expect.objectContaining({ type: "inbox-error", during: "handlers" }),
      );
    },
    { only: "outlives-process" },
  ),
];
