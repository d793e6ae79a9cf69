/** The one waiting room (docs/concepts/deduplication.md, Held): what enters it, stays until a person decides. */
import { Reject, serviceNames } from "@payhooks/core";
import { eachEvent } from "@payhooks/core/events";
import type { Inbox } from "@payhooks/core/inbox";
import { expect } from "vitest";
import { type ContractCase, onFreshData } from "./inbox-processes.ts";
import { depositOf, merchantOn, noticed } from "./merchant-receiver.ts";
import { heldOf, newId, outcomes, sampleEvent, sampleRunner, workAll } from "./sample-events.ts";

const BY = { by: "an operator", note: "looked into it" };
const notHeld = { code: "ERR_EVENT_NOT_FOUND" };
/** A runner whose every event ends on hold. */
const holding = () => sampleRunner(() => ({ kind: "held", reason: "rejected", detail: "no", onHeld: [] }));

export const heldCases: readonly ContractCase[] = [
  onFreshData("the held list is filtered by flow, tenant and reason, and read in pages", async (rig) => {
    const { inbox } = rig.start();
    const held = (sample: Parameters<typeof sampleEvent>[2]) => sampleEvent(newId(), rig.now(), sample);
    const events = [
      held({ verdict: "ambiguous", tenant: "a" }),
      held({ verdict: "malformed", tenant: "a" }),
      held({ verdict: "malformed", tenant: "b" }),
      held({ verdict: "malformed", tenant: "b", flow: "connect", status: "", arrivedBy: "webhook" }),
    ];
    expect(await outcomes(inbox, events)).toEqual(["held", "held", "held", "held"]);
    const ids = async (filter: Parameters<typeof heldOf>[1]) =>
      (await heldOf(inbox, filter)).map(({ id }) => id).sort();
    const expected = (...indexes: readonly number[]) => indexes.map((index) => events[index]?.id).sort();
    expect(await ids({})).toEqual(expected(0, 1, 2, 3));
    expect(await ids({ reason: "malformed" })).toEqual(expected(1, 2, 3));
    expect(await ids({ tenant: "a" })).toEqual(expected(0, 1));
    expect(await ids({ flow: "connect" })).toEqual(expected(3));
    expect(await ids({ flow: "payments", tenant: "b", reason: "malformed" })).toEqual(expected(2));
    expect(await ids({ reason: "conflict" })).toEqual([]);
    expect(await ids({ limit: 3 })).toEqual(expected(0, 1, 2, 3));
    expect((await inbox.events.list({ state: "held", limit: 3 })).events).toHaveLength(3);
    const [entry] = await heldOf(inbox, { flow: "connect" });
    expect(entry).toMatchObject({
      state: "held",
      reason: "malformed",
      detail: "as sampled",
      flow: "connect",
      tenant: "b",
    });
    expect(entry?.delivery).toMatchObject({ arrivedBy: "webhook", keyId: "key-1", signature: null });
    expect([...(entry?.delivery?.content ?? [])]).toEqual([...new TextEncoder().encode("{}")]);
    expect(Math.abs((entry?.heldAt ?? 0) - rig.now())).toBeLessThan(60_000);
  }),
  onFreshData("a replay makes a held event wait again by one write, as often as it is held", async (rig) => {
    const { inbox, calls } = rig.start();
    const event = sampleEvent(newId(), rig.now());
    const eventId = event.key + event.slot;
    await inbox.accept(event);
    await workAll(inbox, holding());
    expect(await inbox.events.get(eventId)).toMatchObject({
      state: "held",
      reason: "rejected",
      detail: "no",
      replays: 0,
    });
    await inbox.events.replay(eventId, BY);
    expect(calls.at(-1)).toBe("replay");
    expect(await inbox.events.get(eventId)).toMatchObject({ state: "waiting", replays: 1 });
    expect(await heldOf(inbox)).toEqual([]);
    const runner = holding();
    await workAll(inbox, runner);
    expect(runner.ran).toEqual(["SUCCESS"]);
    await inbox.events.replay(eventId, BY);
    const last = sampleRunner();
    await workAll(inbox, last);
    expect(last.ran).toEqual(["SUCCESS"]);
    expect(await inbox.events.get(eventId)).toMatchObject({ state: "done", replays: 2 });
    await expect(inbox.events.replay(eventId, BY)).rejects.toMatchObject({ code: "ERR_NOT_DECIDABLE" });
  }),
  onFreshData(
    "the trace that an instrumentation keeps with an event comes with every run, also after a replay",
    async (rig) => {
      const { inbox } = rig.start();
      const event = sampleEvent(newId(), rig.now());
      await inbox.accept(event, { trace: "of the acceptance" });
      await inbox.accept(event, { trace: "of a copy" });
      const runner = holding();
      await workAll(inbox, runner);
      await inbox.events.replay(event.key + event.slot, BY);
      await workAll(inbox, runner);
      expect(runner.runs.map(({ input }) => input.trace)).toEqual(["of the acceptance", "of the acceptance"]);
      const plain = sampleEvent(newId(), rig.now());
      await inbox.accept(plain);
      await workAll(inbox, runner);
      expect(runner.runs.at(-1)?.input.trace).toBeNull();
    },
  ),
  onFreshData("an entry's history says who has replayed it, and why", async (rig) => {
    const { inbox } = rig.start();
    const event = sampleEvent(newId(), rig.now());
    const eventId = event.key + event.slot;
    await inbox.accept(event);
    await workAll(inbox, holding());
    await inbox.events.replay(eventId, BY);
    await workAll(inbox, holding());
    const history = (await inbox.events.get(eventId))?.history ?? [];
    expect(history.map(({ what }) => what)).toEqual([
      "accepted",
      "held: rejected",
      "replay 1",
      "held: rejected",
    ]);
    expect(history[2]).toMatchObject(BY);
    expect(history.map(({ at }) => at)).toEqual(history.map(({ at }) => at).sort((a, b) => a - b));
  }),
  ...(["replay", "discard"] as const).map((what) =>
    onFreshData(`a ${what} is refused if the entry is no longer as it was seen`, async (rig) => {
      const { inbox } = rig.start();
      const id = newId();
      const event = sampleEvent(id, rig.now());
      const eventId = event.key + event.slot;
      await inbox.accept(event);
      await workAll(inbox, holding());
      const seen = async () => (await inbox.events.get(eventId))?.revision ?? undefined;
      const first = await seen();
      expect(first).toMatch(/^[0-9a-f]{16}$/);
      expect((await heldOf(inbox))[0]?.revision).toBe(first);
      // A copy changes nothing that a decision depends on.
      await inbox.accept(event);
      expect(await seen()).toBe(first);

      // A colleague replays it, and it is held again.
      await inbox.events.replay(eventId, { ...BY, revision: first });
      await workAll(inbox, holding());
      const changed = { code: "ERR_EVENT_CHANGED" };
      await expect(inbox.events[what](eventId, { ...BY, revision: first })).rejects.toMatchObject(changed);
      expect(await inbox.events.get(eventId)).toMatchObject({ state: "held", replays: 1 });

      // Another event of the transaction is held, which changes nothing. Then a colleague replays it.
      const second = await seen();
      const other = sampleEvent(id, rig.now(), { amount: "9999" });
      const { eventId: otherId } = await inbox.accept(other);
      expect(await seen()).toBe(second);
      await inbox.events.replay(otherId, BY);
      await expect(inbox.events[what](eventId, { ...BY, revision: second })).rejects.toMatchObject(changed);
      await inbox.events[what](eventId, { ...BY, revision: await seen() });
      await expect(inbox.events[what](eventId, { ...BY, revision: second })).rejects.toMatchObject(notHeld);
      expect(await seen()).toBeUndefined();
    }),
  ),
  onFreshData("an entry says which amount it has, and what else is known of its transaction", async (rig) => {
    const { inbox } = rig.start();
    const id = newId();
    const paid = sampleEvent(id, rig.now(), { amount: "10.5" });
    const other = sampleEvent(id, rig.now(), { amount: "9999" });
    const pending = sampleEvent(id, rig.now(), { status: "PENDING", amount: "10.5" });
    expect(await outcomes(inbox, [pending])).toEqual(["new"]);
    await workAll(inbox, sampleRunner());
    expect(await outcomes(inbox, [paid, other])).toEqual(["progress", "held"]);
    await workAll(inbox, sampleRunner());
    const [entry] = await heldOf(inbox);
    expect(entry).toMatchObject({ reason: "mismatch", amount: "9999" });
    expect(entry?.others).toMatchObject([
      { eventId: paid.key + paid.slot, status: "SUCCESS", state: "done", amount: "10.5", runsToo: true },
      { status: "PENDING", state: "done", amount: "10.5", runsToo: false },
    ]);
    // The other one has run, and this one has not.
    expect((await inbox.events.get(paid.key + paid.slot))?.others).toMatchObject([
      { status: "PENDING", runsToo: false },
      { eventId: entry?.eventId, state: "held", reason: "mismatch", amount: "9999", runsToo: false },
    ]);
  }),
  ...(["replay", "discard"] as const).map((what) =>
    onFreshData(`a ${what} whose answer was lost is made once, and is no error`, async (rig) => {
      let lost = 0;
      const { inbox, calls } = rig.start((moment, call) =>
        moment === "after" && call === what && lost++ === 0 ? "lose" : undefined,
      );
      const event = sampleEvent(newId(), rig.now());
      const eventId = event.key + event.slot;
      await inbox.accept(event);
      await workAll(inbox, holding());
      expect(await rig.until(inbox.events[what](eventId, BY))).toMatchObject({ decided: 1 });
      expect(lost).toBe(1);
      expect(calls.filter((call) => call !== "list").slice(-2)).toEqual([what, "conflict"]);
      expect(await inbox.events.get(eventId)).toMatchObject(
        what === "replay" ? { state: "waiting", replays: 1 } : { state: "discarded" },
      );
    }),
  ),
  ...(["replay", "discard"] as const).flatMap((what) =>
    (["fail", "lose"] as const).map((fate) =>
      onFreshData(
        `a ${what} fails within its time while the store ${fate === "fail" ? "refuses" : "does not answer"}, and can be repeated`,
        async (rig) => {
          let broken = false;
          const { inbox } = rig.start((moment, call) =>
            broken && moment === "before" && (call === what || (call === "read" && fate === "fail"))
              ? fate
              : undefined,
          );
          const event = sampleEvent(newId(), rig.now());
          const eventId = event.key + event.slot;
          await inbox.accept(event);
          await workAll(inbox, holding());
          broken = true;
          const before = rig.now();
          await expect(rig.until(inbox.events[what](eventId, BY))).rejects.toMatchObject({
            code: "ERR_INBOX_UNAVAILABLE",
          });
          expect(rig.now() - before).toBeLessThan(rig.leaseMs * 2);
          broken = false;
          expect(await heldOf(inbox)).toMatchObject([{ eventId, reason: "rejected" }]);
          await inbox.events[what](eventId, BY);
          const runner = sampleRunner();
          await workAll(inbox, runner);
          expect(runner.ran).toEqual(what === "replay" ? ["SUCCESS"] : []);
        },
      ),
    ),
  ),
  onFreshData("of many decisions at the same time, in several processes, one is made", async (rig) => {
    const [one, other] = [rig.start(), rig.start()];
    const event = sampleEvent(newId(), rig.now());
    const eventId = event.key + event.slot;
    await one.inbox.accept(event);
    await workAll(one.inbox, holding());
    const made = await Promise.allSettled(
      [one, other, one, other].map(({ inbox }) => inbox.events.replay(eventId, BY)),
    );
    expect(made.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const runner = sampleRunner();
    await workAll(one.inbox, runner);
    expect(runner.ran).toEqual(["SUCCESS"]);
    expect(await one.inbox.events.get(eventId)).toMatchObject({ state: "done", replays: 1 });
  }),
  onFreshData(
    "a replay takes the lease from the process that is calling onHeld handlers, and that process then changes nothing",
    async (rig) => {
      const { inbox } = rig.start();
      const event = sampleEvent(newId(), rig.now(), { verdict: "malformed" });
      const eventId = event.key + event.variantSlot();
      await inbox.accept(event);
      const wrote: boolean[] = [];
      const plain = sampleRunner();
      await workAll(inbox, {
        ...plain,
        async run(run) {
          if (run.input.mode === "run") return plain.run(run);
          await inbox.events.replay(eventId, BY);
          wrote.push(await run.write([{ name: "held:mail", kind: "done", attempt: 1 }]));
          return plain.run(run);
        },
      });
      expect(wrote).toEqual([false]);
      await workAll(inbox, plain);
      expect(plain.ran.filter((name) => !name.startsWith("onHeld"))).toHaveLength(1);
      expect(await inbox.events.get(eventId)).toMatchObject({ state: "done", replays: 1 });
    },
  ),
  onFreshData(
    "the list skips nothing while its entries are replayed and discarded, and gives each once",
    async (rig) => {
      const { inbox } = rig.start();
      const events = Array.from({ length: 250 }, () =>
        sampleEvent(newId(), rig.now(), { verdict: "malformed" }),
      );
      await Promise.all(events.map((event) => inbox.accept(event)));
      const seen: string[] = [];
      for await (const { eventId } of eachEvent(inbox.events, { state: "held" })) {
        seen.push(eventId);
        await inbox.events[seen.length % 2 === 0 ? "replay" : "discard"](eventId, BY);
      }
      expect(seen.sort()).toEqual(events.map((event) => event.key + event.variantSlot()).sort());
      expect(await heldOf(inbox)).toEqual([]);
    },
  ),
  onFreshData("a discarded entry is gone for good, and its copies are duplicates", async (rig) => {
    const { inbox } = rig.start();
    const event = sampleEvent(newId(), rig.now());
    const eventId = event.key + event.slot;
    await inbox.accept(event);
    await workAll(inbox, holding());
    await inbox.events.discard(eventId, BY);
    expect(await heldOf(inbox)).toEqual([]);
    expect((await inbox.events.get(eventId))?.state).toBe("discarded");
    expect(await outcomes(inbox, [event])).toEqual(["duplicate"]);
    await expect(inbox.events.discard(eventId, BY)).rejects.toMatchObject(notHeld);
    await expect(inbox.events.replay(eventId, BY)).rejects.toMatchObject({ code: "ERR_NOT_DECIDABLE" });
    const runner = sampleRunner();
    await workAll(inbox, runner);
    expect(runner.ran).toEqual([]);
  }),
  onFreshData("an event that is not held can be neither replayed nor discarded", async (rig) => {
    const { inbox } = rig.start();
    const event = sampleEvent(newId(), rig.now());
    await inbox.accept(event);
    for (const eventId of [event.key + event.slot, "f".repeat(48)]) {
      await expect(inbox.events.replay(eventId, BY)).rejects.toMatchObject(notHeld);
      await expect(inbox.events.discard(eventId, BY)).rejects.toMatchObject(notHeld);
    }
    const runner = sampleRunner();
    await workAll(inbox, runner);
    expect(runner.ran).toEqual(["SUCCESS"]);
  }),
  onFreshData("a duplicate never revives a held event, and names its reason", async (rig) => {
    const { inbox } = rig.start();
    const id = newId();
    const [success, failed] = [sampleEvent(id, rig.now()), sampleEvent(id, rig.now(), { status: "FAILED" })];
    await inbox.accept(success);
    await workAll(inbox, holding());
    await inbox.accept(failed);
    const runner = sampleRunner();
    await workAll(inbox, runner);
    expect(runner.ran).toEqual(["onHeld FAILED"]);
    for (let copy = 0; copy < 3; copy++) {
      expect(await inbox.accept(success)).toMatchObject({
        outcome: "duplicate",
        reason: "rejected",
      });
      expect(await inbox.accept(failed)).toMatchObject({
        outcome: "duplicate",
        reason: "conflict",
      });
    }
    await workAll(inbox, runner);
    expect(runner.ran).toEqual(["onHeld FAILED"]);
    expect((await heldOf(inbox)).map(({ reason }) => reason).sort()).toEqual(["conflict", "rejected"]);
  }),
  onFreshData("a PENDING that was held and is replayed under a terminal status is stale", async (rig) => {
    const { inbox } = rig.start();
    const id = newId();
    const pending = sampleEvent(id, rig.now(), { status: "PENDING" });
    const eventId = pending.key + pending.slot;
    await inbox.accept(pending);
    await workAll(inbox, holding());
    await inbox.accept(sampleEvent(id, rig.now()));
    const runner = sampleRunner();
    await workAll(inbox, runner);
    await inbox.events.replay(eventId, BY);
    await workAll(inbox, runner);
    expect(runner.ran).toEqual(["SUCCESS"]);
    expect((await inbox.events.get(eventId))?.state).toBe("stale");
  }),
  onFreshData(
    "eight contradictions are kept; further ones are counted, until one was decided about",
    async (rig) => {
      const { inbox } = rig.start();
      const id = newId();
      const contradiction = (n: number) =>
        sampleEvent(id, rig.now(), { fixedFacts: { referenceId: `other-${n}` } });
      await inbox.accept(sampleEvent(id, rig.now()));
      for (let n = 0; n < 12; n++) expect((await inbox.accept(contradiction(n))).outcome).toBe("held");
      const kept = await heldOf(inbox);
      expect(kept).toHaveLength(8);
      expect(kept.flatMap(({ history }) => history.map(({ what }) => what))).toContain("and more: 1");
      const [first] = kept;
      await inbox.events.discard(first?.eventId ?? "", BY);
      expect((await inbox.accept(contradiction(20))).outcome).toBe("held");
      expect(await heldOf(inbox)).toHaveLength(8);
      expect(await inbox.events.get(first?.eventId ?? "")).toBeNull();
    },
  ),
  onFreshData("maxHeld refuses a delivery that would be held, and no other", async (rig) => {
    const { inbox } = rig.start();
    const maxHeld = { maxHeld: 1 };
    const id = newId();
    const conflict = sampleEvent(id, rig.now(), { status: "FAILED" });
    const entry = sampleEvent(newId(), rig.now(), { verdict: "malformed" });
    await inbox.accept(sampleEvent(id, rig.now()), maxHeld);
    expect((await inbox.accept(entry, maxHeld)).outcome).toBe("held");
    await expect((async () => inbox.accept(conflict, maxHeld))()).rejects.toMatchObject({
      code: "ERR_HELD_FULL",
    });
    expect(await inbox.events.get(conflict.key + conflict.slot)).toBeNull();
    expect((await inbox.accept(entry, maxHeld)).outcome).toBe("duplicate");
    // Other deliveries go on, and what has been accepted is held when its run ends so.
    const newcomer = rig.start().inbox;
    expect((await newcomer.accept(sampleEvent(newId(), rig.now()), maxHeld)).outcome).toBe("new");
    // A process that has seen nothing of what is held knows its copies all the same.
    expect((await newcomer.accept(entry, maxHeld)).outcome).toBe("duplicate");
    await workAll(inbox, holding());
    expect((await heldOf(inbox)).map(({ reason }) => reason).sort()).toEqual([
      "malformed",
      "rejected",
      "rejected",
    ]);
    for (const { eventId } of await heldOf(inbox)) await inbox.events.discard(eventId, BY);
    expect((await inbox.accept(conflict, maxHeld)).outcome).toBe("held");
  }),
  onFreshData(
    "an entry that a process has held itself counts at once; those of other processes count within a second",
    async (rig) => {
      const [one, other] = [rig.start(), rig.start()];
      const entry = () => sampleEvent(newId(), rig.now(), { verdict: "malformed" });
      for (let n = 0; n < 2; n++) await one.inbox.accept(entry(), { maxHeld: 3 });
      await other.inbox.accept(entry(), { maxHeld: 3 });
      await rig.advance(1_100);
      for (const { inbox } of [one, other]) {
        await expect((async () => inbox.accept(entry(), { maxHeld: 3 }))()).rejects.toMatchObject({
          code: "ERR_HELD_FULL",
        });
      }
      for (let n = 0; n < 2; n++)
        expect(await one.inbox.accept(entry(), { maxHeld: 5 })).toMatchObject({ outcome: "held" });
      await expect((async () => one.inbox.accept(entry(), { maxHeld: 5 }))()).rejects.toMatchObject({
        code: "ERR_HELD_FULL",
      });
    },
  ),
  onFreshData("no tenant takes the whole room, in whichever process", async (rig) => {
    const [one, other] = [rig.start().inbox, rig.start().inbox];
    const entry = (tenant: string) => sampleEvent(newId(), rig.now(), { verdict: "malformed", tenant });
    const accept = async (inbox: Inbox, event = entry("a")) =>
      (await inbox.accept(event, { maxHeld: 8 })).outcome;
    const full = { code: "ERR_HELD_FULL" };
    for (const inbox of [one, other, one, other]) expect(await accept(inbox)).toBe("held");
    await rig.advance(1_100);
    const refused = entry("a");
    for (const inbox of [one, other]) await expect(accept(inbox, refused)).rejects.toMatchObject(full);
    expect(await one.events.get(refused.key + refused.variantSlot())).toBeNull();
    // Half of the room is left for others. They have to leave something, too.
    for (const inbox of [one, one]) expect(await accept(inbox, entry("b"))).toBe("held");
    await expect(accept(one, entry("b"))).rejects.toMatchObject(full);
    // Events without a tenant may take what is left.
    expect(await accept(one, entry(""))).toBe("held");

    const [first, second, third] = await heldOf(one, { tenant: "a" });
    await one.events.replay(first?.eventId ?? "", BY);
    for (const held of [second, third]) await one.events.discard(held?.eventId ?? "", BY);
    expect(await accept(one, refused)).toBe("held");
    expect(await heldOf(one, { tenant: "a" })).toHaveLength(2);
  }),
  onFreshData("a replay of named handlers runs these, finished or not, and no other", async (rig) => {
    const ran: string[] = [];
    let rejects = true;
    const merchant = merchantOn(rig.start(), (receiver) =>
      receiver
        .onDeposit(() => void ran.push("books"))
        .onDeposit(() => void ran.push("mail"), { name: "mail" })
        .onDeposit(
          () => {
            ran.push("stock");
            if (rejects) throw new Reject("no stock");
          },
          { name: "stock" },
        ),
    );
    const eventId = await merchant.deliver(depositOf(rig));
    await merchant.work();
    expect(ran.splice(0)).toEqual(["books", "mail", "stock"]);
    rejects = false;
    await merchant.receiver.events.replay(eventId, { ...BY, handlers: ["mail", "stock"] });
    await merchant.work();
    expect(ran.splice(0)).toEqual(["mail", "stock"]);
    expect((await merchant.storedEvent(eventId))?.state).toBe("done");
  }),
  onFreshData("a replay without names runs the handlers that have not finished", async (rig) => {
    const ran: string[] = [];
    let rejects = true;
    const merchant = merchantOn(rig.start(), (receiver) =>
      receiver
        .onDeposit(() => void ran.push("books"))
        .onDeposit(
          (_, { attempt }) => {
            ran.push(`stock ${attempt}`);
            if (rejects) throw new Reject("no stock");
          },
          { name: "stock" },
        ),
    );
    const fields = depositOf(rig);
    const eventId = await merchant.deliver(fields);
    await merchant.work();
    rejects = false;
    await merchant.receiver.events.replay(eventId, BY);
    await merchant.work();
    await merchant.deliver(fields);
    await merchant.work();
    expect(ran).toEqual(["books", "stock 1", "stock 1"]);
    expect((await noticed(merchant, "replayed")).map(({ by, note }) => ({ by, note }))).toEqual([BY]);
  }),
  onFreshData(
    "onHeld handlers are durable: retried, also after a death, until they are through",
    async (rig) => {
      const told: string[] = [];
      const process = rig.start();
      const dying = merchantOn(process, (receiver) =>
        receiver
          .onDeposit(() => {})
          .onHeld(({ reason }, { attempt }) => {
            told.push(`${reason} ${attempt}`);
            process.kill();
          }),
      );
      await dying.deliver(depositOf(rig, { payTxnId: "tx-held" }));
      const eventId = await dying.deliver(depositOf(rig, { payTxnId: "tx-held", referenceId: "another" }));
      // A process that is slow may find its begin too late, and leaves the event to the next call.
      const working = async (): Promise<void> => {
        while (told.length === 0) {
          await dying.work();
          await rig.advance(rig.leaseMs / 2);
        }
      };
      void working();
      await process.dead;
      await rig.advance(rig.leaseMs * 1.5);
      const survivor = merchantOn(rig.start(), (receiver) =>
        receiver
          .onDeposit(() => {})
          .onHeld(
            ({ reason }, { attempt }) => {
              told.push(`${reason} ${attempt}`);
              if (attempt === 2) throw new Error("mail is down");
            },
            { backoffMs: () => rig.leaseMs },
          ),
      );
      await survivor.work();
      await rig.advance(rig.leaseMs * 1.25);
      await survivor.work();
      expect(told).toEqual(["mismatch 1", "mismatch 2", "mismatch 3"]);
      await rig.advance(rig.leaseMs * 2);
      expect(await survivor.work()).toMatchObject({ ran: 0 });
      expect(await survivor.storedEvent(eventId)).toMatchObject({ state: "held", reason: "mismatch" });
    },
  ),
  onFreshData(
    "an onHeld handler that uses up its attempts gives a notice, and no second entry",
    async (rig) => {
      let attempts = 0;
      const merchant = merchantOn(rig.start(), (receiver) =>
        receiver
          .onDeposit(() => {
            throw new Reject("never");
          })
          .onHeld(
            () => {
              attempts++;
              throw new Error("mail is down");
            },
            { maxAttempts: 2, backoffMs: () => 0 },
          ),
      );
      const eventId = await merchant.deliver(depositOf(rig));
      await merchant.work();
      await merchant.work();
      expect(attempts).toBe(2);
      expect(
        (await noticed(merchant, "given-up")).map(({ handler, reason }) => `${handler} ${reason}`),
      ).toEqual(["deposit rejected", "held:held exhausted"]);
      expect((await heldOf(merchant.receiver)).map((entry) => [entry.eventId, entry.reason])).toEqual([
        [eventId, "rejected"],
      ]);
      // Held anew after a replay, it is told anew.
      await merchant.receiver.events.replay(eventId, BY);
      await merchant.work();
      expect(attempts).toBe(4);
    },
  ),
  onFreshData(
    "an entry that is released enters the table as an ordinary event, and runs there once",
    async (rig) => {
      const ran: string[] = [];
      const register = (receiver: Parameters<Parameters<typeof merchantOn>[1]>[0]) =>
        receiver.onDeposit(({ referenceId }) => void ran.push(referenceId));
      const process = rig.start();
      const strict = merchantOn(process, register);
      // An undocumented field right after referenceId has two readings, until it is declared.
      const fields = depositOf(rig, { referenceId: "o-1", region: "north" });
      const entryId = await strict.deliver(fields);
      await strict.work();
      expect(await strict.storedEvent(entryId)).toMatchObject({ state: "held", reason: "ambiguous" });
      const lenient = merchantOn(rig.start(), register, {
        payments: { publicKey: undefined },
        names: serviceNames({ callback: { extra: { region: "always" } } }),
      });
      await strict.receiver.events.replay(entryId, BY);
      await lenient.work();
      await lenient.work();
      expect(ran).toEqual(["o-1"]);
      expect((await lenient.storedEvent(entryId))?.state).toBe("done");
      expect((await noticed(lenient, "finished")).map(({ id }) => id)).toContain(fields.payTxnId);
      expect(await heldOf(lenient.receiver)).toEqual([]);
    },
  ),
  onFreshData(
    "an entry that was signed too long ago runs only if its replay says evenIfExpired, and a notice says so",
    async (rig) => {
      const ran: string[] = [];
      const register = (receiver: Parameters<Parameters<typeof merchantOn>[1]>[0]) =>
        receiver.onDeposit(({ referenceId }) => void ran.push(referenceId));
      const process = rig.start();
      const strict = merchantOn(process, register);
      const timestamp = new Date(rig.now() - 2 * 86_400_000).toISOString();
      const entryId = await strict.deliver(
        depositOf(rig, { referenceId: "o-1", region: "north", timestamp }),
      );
      await strict.work();
      // Two days are nothing to the one, and too long for the other.
      const lenient = merchantOn(rig.start(), register, {
        payments: { publicKey: undefined },
        names: serviceNames({ callback: { extra: { region: "always" } } }),
        windowMs: 86_400_000,
      });
      await strict.receiver.events.replay(entryId, BY);
      await lenient.work();
      expect(ran).toEqual([]);
      expect(await heldOf(lenient.receiver)).toMatchObject([
        { eventId: entryId, reason: "ambiguous", detail: expect.stringContaining("evenIfExpired") },
      ]);
      await strict.receiver.events.replay(entryId, { ...BY, evenIfExpired: true });
      await lenient.work();
      await lenient.work();
      expect(ran).toEqual(["o-1"]);
      expect(await heldOf(lenient.receiver)).toEqual([]);
      expect((await noticed(lenient, "double-risk")).map(({ why }) => why)).toEqual([
        "replayed-after-expiry",
      ]);
    },
  ),
  onFreshData("an entry whose event is a duplicate in the table closes and runs nothing", async (rig) => {
    const ran: string[] = [];
    const register = (receiver: Parameters<Parameters<typeof merchantOn>[1]>[0]) =>
      receiver.onDeposit(({ referenceId }) => void ran.push(referenceId));
    const fields = depositOf(rig, { referenceId: "o-1", region: "north" });
    const strict = merchantOn(rig.start(), register);
    const lenient = merchantOn(rig.start(), register, {
      payments: { publicKey: undefined },
      names: serviceNames({ callback: { extra: { region: "always" } } }),
    });
    const entryId = await strict.deliver(fields);
    await strict.work();
    await lenient.deliver(fields);
    await lenient.work();
    expect(ran).toEqual(["o-1"]);
    await lenient.receiver.events.replay(entryId, BY);
    await lenient.work();
    await lenient.work();
    expect(ran).toEqual(["o-1"]);
    expect((await lenient.storedEvent(entryId))?.state).toBe("done");
    expect(await heldOf(lenient.receiver)).toEqual([]);
  }),
  onFreshData(
    "an event without a handler is held by the process that runs it, and replayed once there is a handler",
    async (rig) => {
      const ran: string[] = [];
      const without = merchantOn(rig.start(), (receiver) => receiver.onDeposit(() => {}));
      const eventId = await without.deliver(depositOf(rig, { event: "WITHDRAWAL" }));
      expect((await without.storedEvent(eventId))?.state).toBe("waiting");
      await without.work();
      expect(await without.storedEvent(eventId)).toMatchObject({ state: "held", reason: "unhandled" });
      const withOne = merchantOn(rig.start(), (receiver) =>
        receiver.onWithdrawal(({ payTxnId }) => void ran.push(payTxnId)),
      );
      await withOne.receiver.events.replay(eventId, BY);
      await withOne.work();
      expect(ran).toHaveLength(1);
      expect((await withOne.storedEvent(eventId))?.state).toBe("done");
    },
  ),
];
