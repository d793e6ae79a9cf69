/** Deaths between every two steps of the way of an event (docs/inboxes.md, steps 1–9). */
import type { AcceptOutcome } from "@payhooks/core";
import { expect } from "vitest";
import { type ContractCase, onFreshData, type Rig } from "./rig.ts";
import { newId, outcomes, type SampleRunner, sampleEvent, sampleRunner, workAll } from "./sample-events.ts";

/** A handler with its steps, as the receiver's runner writes them: skipped when done, and held when it rejects. */
function handler(effects: string[], how: "succeeds" | "throws once" | "rejects"): SampleRunner {
  return sampleRunner(async (lease) => {
    const before = lease.data.steps.deposit;
    if (before?.state === "given-up") return { kind: "held", reason: "rejected", detail: null, tell: false };
    if (before?.state !== "done") {
      await lease.step("deposit", { kind: "started" });
      effects.push(`try ${(before?.tries ?? 0) + 1}`);
      if (how === "rejects") {
        await lease.step("deposit", { kind: "given-up", reason: "rejected", error: "never" });
        return { kind: "held", reason: "rejected", detail: null, tell: false };
      }
      if (how === "throws once" && (before?.tries ?? 0) === 0) {
        await lease.step("deposit", { kind: "failed", delayMs: 1, error: "not yet" });
        return { kind: "retry", delayMs: 1 };
      }
      await lease.step("deposit", { kind: "done" });
    }
    return { kind: "done" };
  });
}

/** A process that dies at the first such moment. */
const dyingAt = (rig: Rig, moment: "before" | "after", call: string) =>
  rig.start((when, what) => (when === moment && what === call ? "die" : undefined));

/** The redelivery's answer after a death on the way to the 200, and the steps that the copy goes through. */
const ACCEPT_DEATHS: readonly (readonly [
  moment: "before" | "after",
  call: string,
  outcome: AcceptOutcome,
])[] = [
  ["before", "store.accept", "new"],
  ["after", "store.accept", "resume"],
  ["before", "queue.add", "resume"],
  ["after", "queue.add", "resume"],
  ["before", "queue.barrier", "resume"],
  ["after", "queue.barrier", "resume"],
  ["before", "store.markQueued", "resume"],
  ["after", "store.markQueued", "duplicate"],
];

const ALL_STEPS = ["store.accept", "queue.add", "queue.barrier", "store.markQueued"];

const ownCalls = (calls: readonly string[]): readonly string[] =>
  calls.filter((call) => ALL_STEPS.includes(call));

/** `again`: the handler is run twice, which is the documented case (a). */
const RUN_DEATHS: readonly (readonly [
  moment: "before" | "after",
  call: string,
  effects: readonly string[],
])[] = [
  ["before", "store.begin", ["try 1"]],
  ["after", "store.begin", ["try 1"]],
  ["before", "store.step started", ["try 1"]],
  ["after", "store.step started", ["try 2"]],
  ["before", "store.step done", ["try 1", "try 2"]],
  ["after", "store.step done", ["try 1"]],
  ["before", "store.finish done", ["try 1"]],
  ["after", "store.finish done", ["try 1"]],
];

/** Steps 2–5, each a call of its own. */
const inSteps: readonly ContractCase[] = [
  onFreshData(
    "an accepted event is claimed, added, durable and flagged, in this order, before it is acknowledged",
    async (rig) => {
      const process = rig.start();
      await process.inbox.accept(sampleEvent(newId(), rig.now()));
      expect(process.calls).toEqual(ALL_STEPS);
    },
  ),
  ...ACCEPT_DEATHS.flatMap(([moment, call, outcome]) =>
    (["SUCCESS", "conflict"] as const).map((kind) =>
      onFreshData(
        `death ${moment} ${call} of a ${kind}: the redelivery is ${kind === "conflict" && outcome === "new" ? "held" : outcome}, and nothing is lost or repeated`,
        async (rig) => {
          const id = newId();
          const survivor = rig.start();
          if (kind === "conflict")
            await survivor.inbox.accept(sampleEvent(id, rig.now(), { status: "FAILED" }));
          const event = sampleEvent(id, rig.now());
          const dying = dyingAt(rig, moment, call);
          void dying.inbox.accept(event);
          await dying.dead;
          const from = survivor.calls.length;
          const answer = await survivor.inbox.accept(event);
          expect(answer).toMatchObject(
            kind === "conflict"
              ? { outcome: outcome === "new" ? "held" : outcome, reason: "conflict" }
              : { outcome, reason: null },
          );
          expect(ownCalls(survivor.calls.slice(from))).toEqual(
            outcome === "duplicate" ? ["store.accept"] : ALL_STEPS,
          );
          expect(await outcomes(survivor.inbox, [event])).toEqual(["duplicate"]);
          await rig.advance(rig.leaseMs * 1.5);
          const runner = sampleRunner();
          await workAll(survivor.inbox, runner);
          expect(runner.ran.sort()).toEqual(kind === "conflict" ? ["FAILED", "tell SUCCESS"] : ["SUCCESS"]);
        },
      ),
    ),
  ),
  ...(["queue.add", "queue.barrier", "store.markQueued"] as const).flatMap((call) =>
    (["before", "after"] as const).map((moment) =>
      onFreshData(
        `an error ${moment} ${call} is no acknowledgement: the redelivery goes through all steps again`,
        async (rig) => {
          let broken = true;
          const process = rig.start((when, what) =>
            broken && when === moment && what === call ? "fail" : undefined,
          );
          const [event, conflict] = [newId()].flatMap((id) => [
            sampleEvent(id, rig.now()),
            sampleEvent(id, rig.now(), { status: "FAILED" }),
          ]);
          if (event === undefined || conflict === undefined) return;
          for (const copy of [event, event, conflict, conflict]) {
            await expect(process.inbox.accept(copy)).rejects.toMatchObject({
              code: "ERR_INBOX_UNAVAILABLE",
            });
            if (moment === "after" && call === "store.markQueued") break;
          }
          broken = false;
          // Only the flag lets a copy be a duplicate, and only its own step sets it.
          const flagged = moment === "after" && call === "store.markQueued";
          expect(await outcomes(process.inbox, [event, event])).toEqual([
            flagged ? "duplicate" : "resume",
            "duplicate",
          ]);
          expect(await outcomes(process.inbox, [conflict, conflict])).toEqual([
            flagged ? "held" : "resume",
            "duplicate",
          ]);
          const runner = sampleRunner();
          await workAll(process.inbox, runner);
          expect(runner.ran.sort()).toEqual(["SUCCESS", "tell FAILED"]);
        },
      ),
    ),
  ),
  onFreshData(
    "a job that was taken before its barrier runs; its copy still goes through every step, and runs nothing",
    async (rig) => {
      const dying = dyingAt(rig, "after", "queue.add");
      const event = sampleEvent(newId(), rig.now());
      void dying.inbox.accept(event);
      await dying.dead;
      const survivor = rig.start();
      const runner = sampleRunner();
      await workAll(survivor.inbox, runner);
      expect(runner.ran).toEqual(["SUCCESS"]);
      // Whatever its run state is, it has no flag: begin and finish never set it.
      expect(await outcomes(survivor.inbox, [event])).toEqual(["resume"]);
      expect(ownCalls(survivor.calls)).toEqual(ALL_STEPS);
      expect(await outcomes(survivor.inbox, [event])).toEqual(["duplicate"]);
      await workAll(survivor.inbox, runner);
      expect(runner.ran).toEqual(["SUCCESS"]);
    },
  ),
  onFreshData(
    "the copy of an unflagged event that runs at this moment goes through every step too",
    async (rig) => {
      const dying = dyingAt(rig, "after", "queue.add");
      const event = sampleEvent(newId(), rig.now());
      void dying.inbox.accept(event);
      await dying.dead;
      const survivor = rig.start();
      const during: AcceptOutcome[] = [];
      const runner = sampleRunner(async () => {
        during.push(...(await outcomes(survivor.inbox, [event, event])));
        return { kind: "done" };
      });
      await workAll(survivor.inbox, runner);
      expect(during).toEqual(["resume", "duplicate"]);
      expect(runner.ran).toEqual(["SUCCESS"]);
    },
  ),
];

/** Steps 2–5 in one call of the store. */
const atOnce: readonly ContractCase[] = (["before", "after"] as const).flatMap((moment) =>
  (["SUCCESS", "conflict"] as const).map((kind) =>
    onFreshData(
      `death ${moment} a store.accept that does all at once, of a ${kind}: nothing is lost or repeated`,
      async (rig) => {
        const id = newId();
        const survivor = rig.start();
        if (kind === "conflict") {
          await survivor.inbox.accept(sampleEvent(id, rig.now(), { status: "FAILED" }));
        }
        const event = sampleEvent(id, rig.now());
        const dying = dyingAt(rig, moment, "store.accept");
        void dying.inbox.accept(event);
        await dying.dead;
        const first = kind === "conflict" ? "held" : "new";
        expect(await outcomes(survivor.inbox, [event, event])).toEqual([
          moment === "before" ? first : "duplicate",
          "duplicate",
        ]);
        const runner = sampleRunner();
        await workAll(survivor.inbox, runner);
        expect(runner.ran.sort()).toEqual(kind === "conflict" ? ["FAILED", "tell SUCCESS"] : ["SUCCESS"]);
      },
    ),
  ),
);

export const crashCases: readonly ContractCase[] = [
  ...inSteps.map((one): ContractCase => ({ ...one, accepts: "in-steps" })),
  ...atOnce.map((one): ContractCase => ({ ...one, accepts: "at-once" })),
  ...RUN_DEATHS.map(([moment, call, effects]) =>
    onFreshData(
      `death ${moment} ${call}: it is done in the end, the handler's tries being ${effects.join(" and ")}`,
      async (rig) => {
        const event = sampleEvent(newId(), rig.now());
        const tries: string[] = [];
        const dying = dyingAt(rig, moment, call);
        await dying.inbox.accept(event);
        void workAll(dying.inbox, handler(tries, "succeeds"));
        await dying.dead;
        // What was begun is leased by the dead one for a while: nobody else has it before that is over.
        const survivor = rig.start();
        const early = await workAll(survivor.inbox, handler(tries, "succeeds"));
        if (moment !== "before" || call !== "store.begin") expect(early.ran).toBe(0);
        expect(await outcomes(survivor.inbox, [event])).toEqual(["duplicate"]);
        await rig.advance(rig.leaseMs * 1.5);
        const late = await workAll(survivor.inbox, handler(tries, "succeeds"));
        expect(early.ran + late.ran).toBe(moment === "after" && call === "store.finish done" ? 0 : 1);
        expect(tries).toEqual(effects);
        expect((await survivor.inbox.read(event.key + event.slot))?.state).toBe("done");
        expect(await outcomes(survivor.inbox, [event])).toEqual(["duplicate"]);
      },
    ),
  ),
  ...(["before", "after"] as const).flatMap((moment) =>
    (["store.step failed", "store.finish retry"] as const).map((call) =>
      onFreshData(`death ${moment} ${call}: the retry comes all the same`, async (rig) => {
        const event = sampleEvent(newId(), rig.now());
        const tries: string[] = [];
        const dying = dyingAt(rig, moment, call);
        await dying.inbox.accept(event);
        void workAll(dying.inbox, handler(tries, "throws once"));
        await dying.dead;
        await rig.advance(rig.leaseMs * 1.5);
        const survivor = rig.start();
        await workAll(survivor.inbox, handler(tries, "throws once"));
        expect(tries).toEqual(["try 1", "try 2"]);
        expect((await survivor.inbox.read(event.key + event.slot))?.state).toBe("done");
      }),
    ),
  ),
  ...(["before", "after"] as const).flatMap((moment) =>
    (["store.step given-up", "store.finish held"] as const).map((call) =>
      onFreshData(`death ${moment} ${call}: it is held in the end`, async (rig) => {
        const event = sampleEvent(newId(), rig.now());
        const tries: string[] = [];
        const dying = dyingAt(rig, moment, call);
        await dying.inbox.accept(event);
        void workAll(dying.inbox, handler(tries, "rejects"));
        await dying.dead;
        await rig.advance(rig.leaseMs * 1.5);
        const survivor = rig.start();
        await workAll(survivor.inbox, handler(tries, "rejects"));
        const again = moment === "before" && call === "store.step given-up";
        expect(tries).toEqual(again ? ["try 1", "try 2"] : ["try 1"]);
        expect(await survivor.inbox.read(event.key + event.slot)).toMatchObject({
          state: "held",
          reason: "rejected",
        });
        expect(await survivor.inbox.accept(event)).toMatchObject({
          outcome: "duplicate",
          reason: "rejected",
        });
        await workAll(survivor.inbox, handler(tries, "rejects"));
        expect(tries).toHaveLength(again ? 2 : 1);
      }),
    ),
  ),
  ...(["succeeds", "throws once", "rejects"] as const).map((how) =>
    onFreshData(
      `a finish whose answer was lost does not remove the job: a handler that ${how} is run to its end`,
      async (rig) => {
        let lost = 0;
        const process = rig.start((moment, call) =>
          moment === "after" && call.startsWith("store.finish") && lost++ === 0 ? "fail" : undefined,
        );
        const event = sampleEvent(newId(), rig.now());
        await process.inbox.accept(event);
        const tries: string[] = [];
        const runner = handler(tries, how);
        const working = workAll(process.inbox, runner);
        // The write is repeated, and refused: it was made.
        await rig.advance(rig.leaseMs);
        await working;
        await rig.advance(rig.leaseMs);
        await workAll(process.inbox, runner);
        expect(lost).toBeGreaterThan(0);
        expect(tries).toEqual(how === "throws once" ? ["try 1", "try 2"] : ["try 1"]);
        const life = await process.inbox.read(event.key + event.slot);
        expect(life).toMatchObject(
          how === "rejects" ? { state: "held", reason: "rejected" } : { state: "done" },
        );
        expect(await workAll(process.inbox, runner)).toMatchObject({ ran: 0, remaining: 0, nextDueAt: null });
      },
    ),
  ),
  onFreshData("without any redelivery: what was flagged is run by whoever is left", async (rig) => {
    const dying = dyingAt(rig, "after", rig.accepts === "at-once" ? "store.accept" : "store.markQueued");
    void dying.inbox.accept(sampleEvent(newId(), rig.now()));
    await dying.dead;
    const runner = sampleRunner();
    await workAll(rig.start().inbox, runner);
    expect(runner.ran).toEqual(["SUCCESS"]);
  }),
];
