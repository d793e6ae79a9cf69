/** Deaths before and after every write on the way of an event (docs/concepts/inbox.md, The interface), and lost answers. */
import { Reject } from "@payhooks/core";
import { expect } from "vitest";
import { type ContractCase, dyingAt, type Moment, onFreshData, type Process } from "./inbox-processes.ts";
import { depositOf, type MerchantReceiver, merchantOn, noticed } from "./merchant-receiver.ts";
import { newId, outcomes, sampleEvent, sampleRunner, workAll } from "./sample-events.ts";

const MOMENTS = ["before", "after"] as const;

type How = "succeeds" | "throws once" | "rejects";

/** A merchant with two handlers, `a` and `b`, which write down their attempts; `b` does as it is told. */
function merchantWith(
  process: Process,
  attempts: string[],
  { how = "succeeds", run }: { readonly how?: How; readonly run?: "background" } = {},
): MerchantReceiver {
  return merchantOn(
    process,
    (receiver) =>
      receiver
        .onDeposit((_, { attempt }) => void attempts.push(`a${attempt}`), { name: "a" })
        .onDeposit(
          (_, { attempt }) => {
            attempts.push(`b${attempt}`);
            if (how === "rejects") throw new Reject("never");
            if (how === "throws once" && attempt === 1) throw new Error("not yet");
          },
          { name: "b", backoffMs: () => 1 },
        ),
    run === undefined ? {} : { run },
  );
}

/** How often each handler is called in the end, the dead process's calls included. */
const RUN_DEATHS: readonly (readonly [moment: Moment, write: string, attempts: readonly string[]])[] = [
  ["before", "begin", ["a1", "b1"]],
  // The first start is written with the begin: nobody can tell that the handler was not called.
  ["after", "begin", ["a2", "b1"]],
  ["before", "done", ["a1", "a2", "b1"]],
  ["after", "done", ["a1", "b2"]],
  ["before", "finish done", ["a1", "b1", "b2"]],
  ["after", "finish done", ["a1", "b1"]],
];

export const crashCases: readonly ContractCase[] = [
  ...MOMENTS.flatMap((moment) =>
    (["SUCCESS", "conflict"] as const).map((kind) =>
      onFreshData(`death ${moment} the accept of a ${kind}: nothing is lost or repeated`, async (rig) => {
        const id = newId();
        const survivor = rig.start();
        if (kind === "conflict") {
          await survivor.inbox.accept(sampleEvent(id, rig.now(), { status: "FAILED" }));
        }
        const event = sampleEvent(id, rig.now());
        const dying = dyingAt(rig, moment, "accept");
        void dying.inbox.accept(event);
        await dying.dead;
        const first = kind === "conflict" ? "held" : "new";
        expect(await outcomes(survivor.inbox, [event, event])).toEqual([
          moment === "before" ? first : "duplicate",
          "duplicate",
        ]);
        const runner = sampleRunner();
        await workAll(survivor.inbox, runner);
        expect(runner.ran.sort()).toEqual(kind === "conflict" ? ["FAILED", "onHeld SUCCESS"] : ["SUCCESS"]);
      }),
    ),
  ),
  onFreshData(
    "without any redelivery: another process runs an event that a dead one has accepted",
    async (rig) => {
      const dying = dyingAt(rig, "after", "accept");
      void dying.inbox.accept(sampleEvent(newId(), rig.now()));
      await dying.dead;
      const runner = sampleRunner();
      await workAll(rig.start().inbox, runner);
      expect(runner.ran).toEqual(["SUCCESS"]);
    },
  ),
  ...MOMENTS.map((moment) =>
    onFreshData(
      `death ${moment} an accept that begins: ${moment === "before" ? "the copy is new, and runs once" : "the copy is a duplicate, and it runs when the lease is over"}`,
      async (rig) => {
        const attempts: string[] = [];
        const dying = merchantWith(dyingAt(rig, moment, "begin"), attempts, { run: "background" });
        await dying.receiver.start();
        // Its first poll would take the copy from the survivor, for a short time.
        await rig.advance(1);
        const fields = depositOf(rig);
        void dying.deliver(fields).catch(() => {});
        await dying.process.dead;
        const survivor = merchantWith(rig.start(), attempts);
        const eventId = await survivor.deliver(fields);
        expect((await noticed(survivor, "duplicate")).length).toBe(moment === "before" ? 0 : 1);
        await survivor.work();
        expect(attempts).toEqual(moment === "before" ? ["a1", "b1"] : []);
        await rig.advance(rig.leaseMs * 1.5);
        await survivor.work();
        expect(attempts).toEqual(moment === "before" ? ["a1", "b1"] : ["a2", "b1"]);
        expect((await survivor.storedEvent(eventId))?.state).toBe("done");
      },
    ),
  ),
  ...RUN_DEATHS.map(([moment, write, expected]) =>
    onFreshData(
      `death ${moment} the write "${write}": it is done in the end, the handlers' attempts being ${expected.join(", ")}`,
      async (rig) => {
        const attempts: string[] = [];
        const dying = merchantWith(dyingAt(rig, moment, write), attempts);
        const fields = depositOf(rig);
        const eventId = await dying.deliver(fields);
        void dying.work();
        await dying.process.dead;
        // The dead process still has the lease of the event that it began. Nobody else gets the event before that lease is over.
        const survivor = merchantWith(rig.start(), attempts);
        const before = attempts.length;
        await survivor.work();
        if (moment !== "before" || write !== "begin") expect(attempts).toHaveLength(before);
        await survivor.deliver(fields);
        expect(await noticed(survivor, "duplicate")).toHaveLength(1);
        await rig.advance(rig.leaseMs * 1.5);
        await survivor.work();
        expect(attempts).toEqual(expected);
        expect((await survivor.storedEvent(eventId))?.state).toBe("done");
        // Each attempt that may repeat the same work is announced by a notice.
        const twice = expected.some((one) => one.endsWith("2"));
        expect((await noticed(survivor, "double-risk")).map(({ why }) => why)).toEqual(
          twice ? ["died-while-running"] : [],
        );
      },
    ),
  ),
  ...MOMENTS.map((moment) =>
    onFreshData(`death ${moment} the write of a retry: the retry comes all the same`, async (rig) => {
      const attempts: string[] = [];
      const dying = merchantWith(dyingAt(rig, moment, "finish retry"), attempts, { how: "throws once" });
      const eventId = await dying.deliver(depositOf(rig));
      void dying.work();
      await dying.process.dead;
      await rig.advance(rig.leaseMs * 1.5);
      const survivor = merchantWith(rig.start(), attempts, { how: "throws once" });
      await survivor.work();
      expect(attempts).toEqual(["a1", "b1", "b2"]);
      expect((await survivor.storedEvent(eventId))?.state).toBe("done");
    }),
  ),
  ...MOMENTS.map((moment) =>
    onFreshData(`death ${moment} the write that holds: it is held in the end`, async (rig) => {
      const attempts: string[] = [];
      const dying = merchantWith(dyingAt(rig, moment, "finish held"), attempts, { how: "rejects" });
      const eventId = await dying.deliver(depositOf(rig));
      void dying.work();
      await dying.process.dead;
      await rig.advance(rig.leaseMs * 1.5);
      const survivor = merchantWith(rig.start(), attempts, { how: "rejects" });
      await survivor.work();
      expect(attempts).toEqual(moment === "before" ? ["a1", "b1", "b2"] : ["a1", "b1"]);
      expect(await survivor.storedEvent(eventId)).toMatchObject({ state: "held", reason: "rejected" });
      await survivor.work();
      expect(attempts).toHaveLength(moment === "before" ? 3 : 2);
    }),
  ),
  ...(["rerun", "hold"] as const).flatMap((onCrash) =>
    ([3, 1] as const).flatMap((maxAttempts) =>
      onCrash === "rerun" && maxAttempts === 3
        ? []
        : [
            onFreshData(
              `a handler with onCrash "${onCrash}" and ${maxAttempts === 1 ? "one attempt" : "some attempts"}: death after its begin alone is none of it, since its start has a write of its own`,
              async (rig) => {
                const attempts: number[] = [];
                const register: Parameters<typeof merchantOn>[1] = (receiver) =>
                  receiver.onDeposit((_, { attempt }) => void attempts.push(attempt), {
                    onCrash,
                    maxAttempts,
                  });
                const process = dyingAt(rig, "after", "begin");
                const dying = merchantOn(process, register);
                const eventId = await dying.deliver(depositOf(rig));
                void dying.work();
                await process.dead;
                await rig.advance(rig.leaseMs * 1.5);
                const survivor = merchantOn(rig.start(), register);
                await survivor.work();
                expect(attempts).toEqual([1]);
                expect((await survivor.storedEvent(eventId))?.state).toBe("done");
                expect(await noticed(survivor, "double-risk")).toEqual([]);
              },
            ),
          ],
    ),
  ),
  ...MOMENTS.map((moment) =>
    onFreshData(
      `death ${moment} the claim of a reference, before the event's own write: the same event passes, another does not`,
      async (rig) => {
        const referenceKey = newId().toString(16).padStart(32, "d");
        const event = sampleEvent(newId(), rig.now(), { referenceKey });
        const dying = dyingAt(rig, moment, "reference");
        void Promise.resolve(dying.inbox.accept(event));
        await dying.dead;
        const { inbox } = rig.start();
        const other = sampleEvent(newId(), rig.now(), { referenceKey });
        // The first claim has the reference, although its event was not recorded yet.
        expect(await outcomes(inbox, moment === "after" ? [other, event] : [event, other])).toEqual(
          moment === "after" ? ["held", "new"] : ["new", "held"],
        );
        const runner = sampleRunner();
        await workAll(inbox, runner);
        expect(runner.ran.sort()).toEqual(["SUCCESS", "onHeld SUCCESS"]);
      },
    ),
  ),
];
