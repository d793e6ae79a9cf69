/** Handlers, their attempts and their ends (docs/guides/handlers.md, Outcomes and retries), run by the real receiver. */
import { Reject, RetryAfter, type RunReport } from "@payhooks/core";
import { expect } from "vitest";
import type { HandlerChange } from "../../packages/core/src/inbox/record/handler-state.ts";
import { type ContractCase, newGate, onFreshData } from "./inbox-processes.ts";
import { depositOf, merchantOn, noticed } from "./merchant-receiver.ts";
import { endOf, newId, sampleEvent, sampleRunner } from "./sample-events.ts";

export const retryCases: readonly ContractCase[] = [
  onFreshData("only the handlers that have not finished run again, each by its own backoff", async (rig) => {
    const ran: string[] = [];
    const effects = new Set<string>();
    const failing =
      (name: string, times: number) => (_: unknown, ctx: { attempt: number; effectId: string }) => {
        ran.push(`${name} ${ctx.attempt}`);
        effects.add(`${name} ${ctx.effectId}`);
        if (ctx.attempt <= times) throw new Error(name);
      };
    const merchant = merchantOn(rig.start(), (receiver) =>
      receiver
        .onDeposit(failing("sure", 0))
        .onDeposit(failing("soon", 2), { name: "soon", backoffMs: () => rig.leaseMs })
        .onDeposit(failing("late", 1), { name: "late", backoffMs: () => rig.leaseMs * 2.5 }),
    );
    const eventId = await merchant.deliver(depositOf(rig));
    expect(await merchant.work()).toMatchObject({ ran: 1, failed: 1, remaining: 0 });
    expect(ran.splice(0)).toEqual(["sure 1", "soon 1", "late 1"]);
    await rig.advance(rig.leaseMs / 2);
    await merchant.work();
    expect(ran.splice(0)).toEqual([]);
    await rig.advance(rig.leaseMs);
    await merchant.work();
    expect(ran.splice(0)).toEqual(["soon 2"]);
    await rig.advance(rig.leaseMs * 1.25);
    await merchant.work();
    expect(ran.splice(0).sort()).toEqual(["late 2", "soon 3"]);
    expect((await merchant.storedEvent(eventId))?.state).toBe("done");
    await rig.advance(rig.leaseMs * 3);
    expect(await merchant.work()).toMatchObject({ ran: 0, nextDueAt: null });
    // One effectId per handler over all its attempts.
    expect(effects.size).toBe(3);
    expect([...effects].every((line) => line.includes(eventId))).toBe(true);
  }),
  onFreshData("RetryAfter sets the delay, and no attempt comes before it is over", async (rig) => {
    let attempts = 0;
    const merchant = merchantOn(rig.start(), (receiver) =>
      receiver.onDeposit(() => {
        if (++attempts === 1) throw new RetryAfter(rig.leaseMs * 2);
      }),
    );
    await merchant.deliver(depositOf(rig));
    const before = rig.now();
    const { nextDueAt } = await merchant.work();
    expect(nextDueAt).toBeGreaterThanOrEqual(before + rig.leaseMs * 2);
    expect(nextDueAt).toBeLessThanOrEqual(rig.now() + rig.leaseMs * 2);
    await rig.advance(rig.leaseMs);
    await merchant.work();
    expect(attempts).toBe(1);
    await rig.advance(rig.leaseMs * 1.5);
    await merchant.work();
    expect(attempts).toBe(2);
    expect(await noticed(merchant, "retry")).toMatchObject([{ attempt: 1, delayMs: rig.leaseMs * 2 }]);
  }),
  onFreshData("the default backoff of the first attempt is a second, give or take half", async (rig) => {
    const merchant = merchantOn(rig.start(), (receiver) =>
      receiver.onDeposit(() => {
        throw new Error("no");
      }),
    );
    await merchant.deliver(depositOf(rig));
    await merchant.work();
    const [{ delayMs } = { delayMs: 0 }] = await noticed(merchant, "retry");
    expect(delayMs).toBeGreaterThanOrEqual(500);
    expect(delayMs).toBeLessThanOrEqual(1_500);
  }),
  onFreshData(
    "a handler that rejects is given up at once; the event is held when the others are through",
    async (rig) => {
      const ran: string[] = [];
      const merchant = merchantOn(rig.start(), (receiver) =>
        receiver
          .onDeposit(() => {
            ran.push("rejecting");
            throw new Reject("not our order");
          })
          .onDeposit(
            (_, { attempt }) => {
              ran.push(`slow ${attempt}`);
              if (attempt === 1) throw new RetryAfter(rig.leaseMs);
            },
            { name: "slow" },
          ),
      );
      const eventId = await merchant.deliver(depositOf(rig));
      await merchant.work();
      expect(await noticed(merchant, "given-up")).toMatchObject([
        { handler: "deposit", reason: "rejected", attempt: 1 },
      ]);
      expect((await merchant.storedEvent(eventId))?.state).toBe("retrying");
      expect(await noticed(merchant, "held")).toEqual([]);
      await rig.advance(rig.leaseMs * 1.25);
      expect(await merchant.work()).toMatchObject({ ran: 1, failed: 1 });
      expect(ran).toEqual(["rejecting", "slow 1", "slow 2"]);
      expect(await merchant.storedEvent(eventId)).toMatchObject({ state: "held", reason: "rejected" });
      expect((await noticed(merchant, "held")).map(({ reason }) => reason)).toEqual(["rejected"]);
    },
  ),
  onFreshData("after its last attempt the event is held as exhausted, with the last error", async (rig) => {
    const attempts: number[] = [];
    const merchant = merchantOn(rig.start(), (receiver) =>
      receiver.onDeposit(
        (_, { attempt }) => {
          attempts.push(attempt);
          throw new Error(`attempt ${attempt} failed`);
        },
        { maxAttempts: 3, backoffMs: () => 0 },
      ),
    );
    const eventId = await merchant.deliver(depositOf(rig));
    expect(await merchant.work()).toMatchObject({ ran: 3, failed: 3 });
    expect(attempts).toEqual([1, 2, 3]);
    expect(await merchant.storedEvent(eventId)).toMatchObject({
      state: "held",
      reason: "exhausted",
      detail: "Error: attempt 3 failed",
    });
    expect(await merchant.work()).toMatchObject({ ran: 0 });
    expect(attempts).toHaveLength(3);
  }),
  onFreshData(
    "asked for before its time, a handler is tried at once, then at most once a second, and no such attempt counts",
    async (rig) => {
      const attempts: number[] = [];
      let down = true;
      const merchant = merchantOn(rig.start(), (receiver) =>
        receiver.onDeposit(
          (_, { attempt }) => {
            attempts.push(attempt);
            if (down) throw new Error("the database is down");
          },
          { maxAttempts: 3, backoffMs: () => 60_000 },
        ),
      );
      const eventId = await merchant.deliver(depositOf(rig));
      await merchant.work();
      expect(attempts.splice(0)).toEqual([1]);
      const due = (await merchant.storedEvent(eventId))?.handlers.deposit?.dueAt;
      const from = rig.now();
      const runs: RunReport[] = [];
      for (let second = 0; second < 3; second++) {
        for (let copy = 0; copy < 10; copy++) runs.push(await merchant.receiver.run(eventId));
        if (second < 2) await rig.advance(1_000);
      }
      const mayHaveRun = 1 + Math.floor((rig.now() - from) / 1_000);
      expect(attempts.length).toBeGreaterThanOrEqual(3);
      expect(attempts.length).toBeLessThanOrEqual(mayHaveRun);
      expect(runs.filter(({ ran }) => ran)).toHaveLength(attempts.length);
      expect(new Set(runs.map(({ state }) => state))).toEqual(new Set(["waiting"]));
      // Each would have been the second.
      expect(new Set(attempts)).toEqual(new Set([2]));
      expect(await merchant.storedEvent(eventId)).toMatchObject({
        state: "retrying",
        handlers: {
          deposit: { state: "failed", attempts: 1, dueAt: due, error: "Error: the database is down" },
        },
      });
      expect(await noticed(merchant, "given-up")).toEqual([]);
      down = false;
      await rig.advance(1_000);
      expect(await merchant.receiver.run(eventId)).toEqual({ state: "done", ran: true });
      expect(attempts.at(-1)).toBe(2);
    },
  ),
  onFreshData(
    "an attempt before its time that fails does not use up the last attempt, nor move it, whatever it throws",
    async (rig) => {
      const attempts: number[] = [];
      const merchant = merchantOn(rig.start(), (receiver) =>
        receiver.onDeposit(
          (_, { attempt }) => {
            attempts.push(attempt);
            throw attempts.length === 2 ? new RetryAfter(rig.leaseMs * 1_000) : new Error("no");
          },
          { maxAttempts: 2, backoffMs: () => rig.leaseMs * 4 },
        ),
      );
      const eventId = await merchant.deliver(depositOf(rig));
      await merchant.work();
      expect(await merchant.receiver.run(eventId)).toEqual({ state: "waiting", ran: true });
      await rig.advance(rig.leaseMs * 2);
      await merchant.work();
      expect(attempts).toEqual([1, 2]);
      await rig.advance(rig.leaseMs * 2.25);
      await merchant.work();
      expect(attempts).toEqual([1, 2, 2]);
      expect(await merchant.storedEvent(eventId)).toMatchObject({ state: "held", reason: "exhausted" });
    },
  ),
  onFreshData("an attempt before its time in which the process dies counts", async (rig) => {
    const attempts: number[] = [];
    const process = rig.start();
    const dying = merchantOn(process, (receiver) =>
      receiver.onDeposit(
        (_, { attempt }) => {
          attempts.push(attempt);
          if (attempt === 1) throw new Error("no");
          process.kill();
        },
        { maxAttempts: 2, backoffMs: () => rig.leaseMs },
      ),
    );
    const eventId = await dying.deliver(depositOf(rig));
    await dying.work();
    void dying.receiver.run(eventId);
    await process.dead;
    await rig.advance(rig.leaseMs * 1.5);
    const survivor = merchantOn(rig.start(), (receiver) =>
      receiver.onDeposit((_, { attempt }) => void attempts.push(attempt), { maxAttempts: 2 }),
    );
    await survivor.work();
    expect(attempts).toEqual([1, 2]);
    expect(await survivor.storedEvent(eventId)).toMatchObject({ state: "held", reason: "crashed" });
    expect((await noticed(survivor, "double-risk")).map(({ why }) => why)).toEqual(["died-while-running"]);
  }),
  onFreshData(
    "where another handler is due, one that was tried before its time in this second is left alone",
    async (rig) => {
      const ran: string[] = [];
      const failing = (name: string) => () => {
        ran.push(name);
        throw new Error(name);
      };
      const merchant = merchantOn(rig.start(), (receiver) =>
        receiver
          .onDeposit(failing("eager"), { backoffMs: () => 0, maxAttempts: 4 })
          .onDeposit(failing("late"), { name: "late", backoffMs: () => rig.leaseMs * 1_000 }),
      );
      const eventId = await merchant.deliver(depositOf(rig));
      const from = rig.now();
      for (let copy = 0; copy < 5; copy++) await merchant.receiver.run(eventId);
      expect(ran.filter((name) => name === "eager")).toHaveLength(4);
      const late = ran.filter((name) => name === "late").length;
      expect(late).toBeGreaterThanOrEqual(2);
      expect(late).toBeLessThanOrEqual(2 + Math.floor((rig.now() - from) / 1_000));
    },
  ),
  onFreshData(
    "deaths count as attempts: a handler that kills its process each time is held as crashed",
    async (rig) => {
      const attempts: number[] = [];
      const fields = depositOf(rig);
      let eventId = "";
      for (let death = 1; death <= 2; death++) {
        const process = rig.start();
        const merchant = merchantOn(process, (receiver) =>
          receiver.onDeposit(
            (_, { attempt }) => {
              attempts.push(attempt);
              process.kill();
            },
            { maxAttempts: 2 },
          ),
        );
        if (death === 1) eventId = await merchant.deliver(fields);
        void merchant.work();
        await process.dead;
        await rig.advance(rig.leaseMs * 1.5);
      }
      const survivor = merchantOn(rig.start(), (receiver) =>
        receiver.onDeposit((_, { attempt }) => void attempts.push(attempt), { maxAttempts: 2 }),
      );
      await survivor.work();
      expect(attempts).toEqual([1, 2]);
      expect(await survivor.storedEvent(eventId)).toMatchObject({ state: "held", reason: "crashed" });
      expect((await noticed(survivor, "double-risk")).map(({ why }) => why)).toEqual(["died-while-running"]);
    },
  ),
  ...(["rerun", "hold"] as const).map((onCrash) =>
    onFreshData(
      `after a death during the handler, onCrash: "${onCrash}" ${onCrash === "hold" ? "holds it" : "runs it again"}`,
      async (rig) => {
        const process = rig.start();
        const dying = merchantOn(process, (receiver) =>
          receiver.onDeposit(() => process.kill(), { onCrash }),
        );
        const eventId = await dying.deliver(depositOf(rig));
        void dying.work();
        await process.dead;
        await rig.advance(rig.leaseMs * 1.5);
        let again = 0;
        const survivor = merchantOn(rig.start(), (receiver) =>
          receiver.onDeposit(() => void again++, { onCrash }),
        );
        await survivor.work();
        expect(again).toBe(onCrash === "rerun" ? 1 : 0);
        expect(await survivor.storedEvent(eventId)).toMatchObject(
          onCrash === "rerun" ? { state: "done" } : { state: "held", reason: "crashed" },
        );
        expect((await noticed(survivor, "double-risk")).map(({ why }) => why)).toEqual([
          "died-while-running",
        ]);
      },
    ),
  ),
  onFreshData(
    "a handler that takes too long gets a signal that aborts, counts as an attempt, and its late return is ignored",
    async (rig) => {
      const [begun, free] = [newGate(), newGate()];
      const attempts: number[] = [];
      let aborted = false;
      const merchant = merchantOn(rig.start(), (receiver) =>
        receiver.onDeposit(
          async (_, { attempt, signal }) => {
            attempts.push(attempt);
            if (attempt > 1) return;
            signal.addEventListener("abort", () => {
              aborted = true;
            });
            begun.open();
            await free.passed;
          },
          { timeoutMs: rig.leaseMs / 2, backoffMs: () => rig.leaseMs },
        ),
      );
      const eventId = await merchant.deliver(depositOf(rig));
      const working = merchant.work();
      await begun.passed;
      expect(aborted).toBe(false);
      await rig.advance(rig.leaseMs * 0.6);
      expect(await working).toMatchObject({ ran: 1, failed: 1 });
      expect(aborted).toBe(true);
      free.open();
      expect(await merchant.storedEvent(eventId)).toMatchObject({
        state: "retrying",
        handlers: { deposit: { state: "failed", attempts: 1 } },
      });
      expect((await noticed(merchant, "double-risk")).map(({ why }) => why)).toEqual(["timeout"]);
      await rig.advance(rig.leaseMs * 1.25);
      await merchant.work();
      expect(attempts).toEqual([1, 2]);
      expect((await merchant.storedEvent(eventId))?.state).toBe("done");
    },
  ),
  onFreshData(
    "bytes of any kind and text of any script come back as they came, at every attempt",
    async (rig) => {
      const bodies = ['{"a":"Zürich 東京 😀"}', '{\n  "a": 1\r\n}\n', "", "\ufeff{}"].map((text) =>
        Buffer.from(text),
      );
      bodies.push(Buffer.from([0xff, 0x00, 0x0a, 0xc3, 0x28]));
      const tenant = "Łódź, заказ 😀";
      const error = "時間切れ 😀\n";
      for (const content of bodies) {
        const sample = sampleEvent(newId(), rig.now(), { tenant, fixedFacts: { referenceId: "№ 1\n" } });
        const event = { ...sample, delivery: { ...sample.delivery, content, signature: "ß\n" } };
        const runner = sampleRunner(async (run) => {
          const attempt = runner.runs.length;
          const failed = ["einzahlung ✓", "deposit"].map(
            (name): HandlerChange => ({ name, kind: "failed", attempt, delayMs: 0, error }),
          );
          await run.write(failed.slice(0, 1));
          return endOf(attempt < 3 ? { kind: "retry", delayMs: 0 } : { kind: "done" }, failed.slice(1));
        });
        const [one, other] = [rig.start(), rig.start()];
        await one.inbox.accept(event);
        for (const { inbox } of [one, other, one]) {
          await inbox.work(runner, { deadlineMs: 60_000, limit: 1, concurrency: 1 });
        }
        expect(runner.runs).toHaveLength(3);
        for (const [at, { input }] of runner.runs.entries()) {
          expect(Buffer.from(input.delivery.content).equals(content)).toBe(true);
          expect(input.delivery).toMatchObject({ tenant, signature: "ß\n" });
          expect(input.handlerStates["einzahlung ✓"]).toEqual(
            at === 0
              ? undefined
              : {
                  attempts: at,
                  state: "failed",
                  dueAt: expect.any(Number),
                  delayWhenWrittenMs: 0,
                  error,
                  reason: null,
                },
          );
        }
        expect((await one.inbox.accept(event)).outcome).toBe("duplicate");
      }
    },
  ),
];
