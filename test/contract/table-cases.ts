/** The table of deduplication (docs/concepts/deduplication.md): every inbox against the reference model, over all short sequences. */

import { expect } from "vitest";
import type { Runner } from "../../packages/core/src/inbox/contract/inbox.ts";
import { type ContractCase, newGate, onFreshData, rigOn } from "./inbox-processes.ts";
import { type ModelDelivery, ReferenceModel } from "./reference-model.ts";
import {
  endOf,
  heldOf,
  newId,
  outcomes,
  type Sample,
  sampleEvent,
  sampleRunner,
  slotNameOf,
  workAll,
} from "./sample-events.ts";

const FACTS = [{ referenceId: "o-1" }, { referenceId: "o-2" }];
const AMOUNTS = ["10", "11"];
const STATUSES = ["PENDING", "SUCCESS", "FAILED"];

type Sequence = readonly ModelDelivery[];

/** Every combination of the given values. */
function alphabet(values: {
  readonly statuses?: readonly string[];
  readonly unlisted?: readonly string[];
  readonly facts?: readonly Readonly<Record<string, string>>[];
  readonly amounts?: readonly string[];
  readonly arrivals?: readonly string[];
}): readonly ModelDelivery[] {
  const { statuses = STATUSES, unlisted = [], facts = FACTS, amounts = ["10"] } = values;
  const { arrivals = ["callback"] } = values;
  const deliveries: ModelDelivery[] = [];
  for (const status of [...statuses, ...unlisted])
    for (const fixedFacts of facts)
      for (const amount of amounts)
        for (const arrivedBy of arrivals)
          deliveries.push({ status, listed: !unlisted.includes(status), fixedFacts, amount, arrivedBy });
  return deliveries;
}

function* sequencesOf(first: Sequence, rest: Sequence, length: number): Generator<ModelDelivery[]> {
  if (length === 1) {
    for (const delivery of first) yield [delivery];
    return;
  }
  for (const begun of sequencesOf(first, rest, length - 1))
    for (const delivery of rest) yield [...begun, delivery];
}

function shown(sequence: Sequence): string {
  return sequence
    .map(({ status, fixedFacts, amount, arrivedBy }) =>
      [status, JSON.stringify(fixedFacts), amount, arrivedBy].join(" "),
    )
    .join(" → ");
}

/** Sequences that share one inbox; each has a record of its own. */
const BATCH = 500;

interface How {
  /** When what waits is run: never, at the end, or after every delivery. */
  readonly runs: "never" | "at the end" | "in between";
  /** True if everything is delivered again afterwards. */
  readonly again?: boolean;
  readonly flow?: "payments" | "connect";
}

/** Delivers every sequence, and compares each answer and each run with the model. */
async function compare(
  make: Parameters<ContractCase["run"]>[0],
  sequences: Iterable<Sequence>,
  how: How,
): Promise<number> {
  let count = 0;
  let batch: Sequence[] = [];
  for (const sequence of sequences) {
    count++;
    batch.push(sequence);
    if (batch.length < BATCH) continue;
    await compareBatch(make, batch, how);
    batch = [];
  }
  if (batch.length > 0) await compareBatch(make, batch, how);
  return count;
}

async function compareBatch(
  make: Parameters<ContractCase["run"]>[0],
  batch: readonly Sequence[],
  { runs, again = false, flow = "payments" }: How,
): Promise<void> {
  const rig = rigOn(await make());
  const { inbox } = rig.start();
  const ran = new Map<string, string | null>();
  const runner: Runner = {
    async run({ input: { mode, eventId, previousStatus } }) {
      if (mode === "onHeld") return endOf({ kind: "stays-held" });
      if (ran.has(eventId)) expect.fail(`${eventId} ran twice`);
      ran.set(eventId, previousStatus);
      return endOf({ kind: "done" });
    },
    firstHandler: () => null,
    handlersOf: () => [],
    notify: () => {},
  };
  const records = batch.map((sequence) => ({ sequence, id: newId(), model: new ReferenceModel() }));

  async function deliver({ sequence, id, model }: (typeof records)[number], at: number): Promise<void> {
    const delivery = sequence[at];
    if (delivery === undefined) return;
    const expected = model.deliver(delivery);
    const event = sampleEvent(id, rig.now(), { ...delivery, flow });
    const { outcome, reason, eventId, overtaken } = await inbox.accept(event);
    const answer = {
      outcome,
      reason,
      slot: slotNameOf(eventId),
      overtaken: overtaken.map((facts) => slotNameOf(facts.eventId)),
    };
    const isSame =
      outcome === expected.outcome &&
      reason === expected.reason &&
      answer.slot === expected.slot &&
      answer.overtaken.join() === expected.overtaken.join();
    if (!isSame) expect(answer, `delivery ${at + 1} of ${shown(sequence)}`).toEqual(expected);
  }

  /** Beside each other, since each has a record of its own. */
  async function deliverAll(): Promise<void> {
    const longest = Math.max(...batch.map(({ length }) => length));
    for (let at = 0; at < longest; at++) {
      await Promise.all(records.map((record) => deliver(record, at)));
      if (runs === "in between") await runAll();
    }
    if (runs === "at the end") await runAll();
  }

  async function runAll(): Promise<void> {
    await workAll(inbox, runner);
    for (const { sequence, id, model } of records) {
      model.run();
      for (const [name, { state, status, verdict, previousStatus }] of model.slots) {
        const { key, slot } = sampleEvent(id, 0, { status });
        const told = ran.get(key + slot);
        const [expected, found] =
          verdict !== "run" || state === "stale"
            ? [undefined, verdict === "run" ? told : undefined]
            : [previousStatus, told];
        if (found !== expected) expect(found, `the run of ${name} after ${shown(sequence)}`).toBe(expected);
      }
    }
    const expected = records.flatMap(({ model }) =>
      [...model.slots.values()].filter(({ state }) => state === "ran"),
    );
    expect(ran.size).toBe(expected.length);
  }

  await deliverAll();
  if (again) await deliverAll();
  await rig.close();
}

const everything = alphabet({ amounts: AMOUNTS });
const lookups = alphabet({
  amounts: AMOUNTS,
  arrivals: ["callback", "lookup"],
  facts: [{ referenceId: "o-1" }],
});

/** Those with the first fixed facts and amount: sequences that begin with others differ from theirs in names only. */
function named(deliveries: Sequence): Sequence {
  return deliveries.filter(
    ({ fixedFacts, amount }) => fixedFacts.referenceId === "o-1" && amount === AMOUNTS[0],
  );
}

function* upTo(length: number, first: Sequence, rest: Sequence): Generator<Sequence> {
  for (let shorter = 1; shorter <= length; shorter++) yield* sequencesOf(first, rest, shorter);
}

export const tableCases: readonly ContractCase[] = [
  ...(["at the end", "in between"] as const).flatMap((runs): readonly ContractCase[] => [
    {
      name: `the table of deduplication over all pairs of deliveries, run ${runs}: statuses × facts × amounts, delivered twice`,
      ...(runs === "in between" && { long: true }),
      async run(make) {
        const count = await compare(make, upTo(2, everything, everything), { runs, again: true });
        expect(count).toBe(12 + 12 ** 2);
      },
    },
    {
      name: `the table of deduplication over all sequences of three deliveries, run ${runs}, delivered twice`,
      long: true,
      async run(make) {
        const sequences = sequencesOf(named(everything), everything, 3);
        expect(await compare(make, sequences, { runs, again: true })).toBe(3 * 12 ** 2);
      },
    },
  ]),
  {
    name: "the table of deduplication over all sequences of four deliveries",
    long: true,
    async run(make) {
      const sequences = sequencesOf(named(everything), everything, 4);
      expect(await compare(make, sequences, { runs: "never" })).toBe(3 * 12 ** 3);
    },
  },
  {
    name: "look-ups beside callbacks: amounts that arrived in different ways are not compared",
    long: true,
    async run(make) {
      const sequences = sequencesOf(named(lookups), lookups, 3);
      expect(await compare(make, sequences, { runs: "at the end", again: true })).toBe(6 * 12 ** 2);
    },
  },
  {
    name: "fixed facts that are absent on one side, and unlisted statuses, which set neither rank nor facts",
    long: true,
    async run(make) {
      const deliveries = alphabet({
        statuses: ["PENDING", "SUCCESS"],
        unlisted: ["CANCELLED"],
        facts: [
          { referenceId: "o-1" },
          { referenceId: "o-1", merchantId: "m-1" },
          { referenceId: "o-1", merchantId: "m-2" },
        ],
      });
      const count = await compare(make, upTo(3, deliveries, deliveries), { runs: "at the end" });
      expect(count).toBe(9 + 9 ** 2 + 9 ** 3);
    },
  },
  {
    name: "webhooks of the connect flow, which have no status",
    async run(make) {
      const deliveries = alphabet({ statuses: [""], amounts: AMOUNTS, arrivals: ["webhook"] });
      const how = { runs: "at the end", again: true, flow: "connect" } as const;
      expect(await compare(make, upTo(4, deliveries, deliveries), how)).toBe(4 + 4 ** 2 + 4 ** 3 + 4 ** 4);
    },
  },
  onFreshData(
    "a mismatch is held once per distinct facts, and its copies are duplicates of it",
    async (rig) => {
      const { inbox } = rig.start();
      const id = newId();
      const event = (sample: Sample) => sampleEvent(id, rig.now(), sample);
      const other = { fixedFacts: { referenceId: "o-2" } };
      expect(
        await outcomes(inbox, [
          event({}),
          event(other),
          event(other),
          event({ ...other, amount: "12" }),
          event({ amount: "12" }),
          event({ amount: "12" }),
        ]),
      ).toEqual(["new", "held", "duplicate", "held", "held", "duplicate"]);
      expect((await heldOf(inbox)).map(({ reason }) => reason)).toEqual(["mismatch", "mismatch", "mismatch"]);
    },
  ),
  onFreshData(
    "an amount that changed since PENDING is given as previousAmount; an amount that arrived in another way only to a copy",
    async (rig) => {
      const { inbox } = rig.start();
      const [first, second] = [newId(), newId()];
      await inbox.accept(sampleEvent(first, rig.now(), { status: "PENDING", amount: "10" }));
      expect(await inbox.accept(sampleEvent(first, rig.now(), { amount: "9.5" }))).toMatchObject({
        outcome: "progress",
        previousAmount: "10",
      });
      await inbox.accept(sampleEvent(second, rig.now(), { amount: "10" }));
      const lookup = sampleEvent(second, rig.now(), { amount: "9.9", arrivedBy: "lookup" });
      expect(await inbox.accept(lookup)).toMatchObject({ outcome: "duplicate", previousAmount: "10" });
      expect(await inbox.accept(lookup)).toMatchObject({ outcome: "duplicate", previousAmount: null });
      const runner = sampleRunner();
      await workAll(inbox, runner);
      const progressed = runner.runs.filter(({ input }) => input.id === `tx-${first}`);
      expect(
        progressed.map(({ input: { status, previousStatus, previousAmount } }) => [
          status,
          previousStatus,
          previousAmount,
        ]),
      ).toEqual([["SUCCESS", "PENDING", "10"]]);
    },
  ),
  onFreshData(
    "entries (ambiguous, malformed) and unexpected events touch no rank and no facts",
    async (rig) => {
      const { inbox } = rig.start();
      const id = newId();
      const event = (sample: Sample) => sampleEvent(id, rig.now(), sample);
      for (const verdict of ["ambiguous", "malformed", "unexpected"] as const) {
        const foreign = { verdict, fixedFacts: { referenceId: verdict }, amount: "99" };
        expect(await outcomes(inbox, [event(foreign), event(foreign)])).toEqual(["held", "duplicate"]);
      }
      expect(await outcomes(inbox, [event({ status: "PENDING" }), event({})])).toEqual(["new", "progress"]);
      const runner = sampleRunner();
      await workAll(inbox, runner);
      expect(runner.ran.filter((name) => !name.startsWith("onHeld "))).toEqual(["SUCCESS"]);
      expect(runner.ran.filter((name) => name.startsWith("onHeld "))).toHaveLength(3);
      expect((await heldOf(inbox)).map(({ reason }) => reason).sort()).toEqual([
        "ambiguous",
        "malformed",
        "unexpected",
      ]);
    },
  ),
  onFreshData("of 200 copies at the same time, one is new, and it runs once", async (rig) => {
    const processes = [rig.start(), rig.start()];
    const event = sampleEvent(newId(), rig.now());
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, i) => (processes[i % 2] ?? rig.start()).inbox.accept(event)),
    );
    const others = answers.map(({ outcome }) => outcome).filter((outcome) => outcome !== "new");
    expect(others).toHaveLength(199);
    expect(others.filter((outcome) => outcome !== "duplicate")).toEqual([]);
    expect(new Set(answers.map(({ eventId }) => eventId)).size).toBe(1);
    const runner = sampleRunner();
    await Promise.all(processes.map(({ inbox }) => workAll(inbox, runner)));
    expect(runner.ran).toEqual(["SUCCESS"]);
  }),
  onFreshData("records are scoped by tenant, flow and id, and by nothing else", async (rig) => {
    const { inbox } = rig.start();
    const [one, other] = [newId(), newId()];
    expect(
      await outcomes(inbox, [
        sampleEvent(one, rig.now(), { tenant: "a" }),
        sampleEvent(other, rig.now(), { tenant: "b" }),
        sampleEvent(one, rig.now(), { tenant: "a" }),
      ]),
    ).toEqual(["new", "new", "duplicate"]);
  }),
  onFreshData("an event signed outside of the window is refused unless it is recorded", async (rig) => {
    const { inbox } = rig.start();
    const [known, unknown] = [newId(), newId()];
    await inbox.accept(sampleEvent(known, rig.now()));
    const stale = { isWithinWindow: false };
    expect(
      await outcomes(inbox, [
        sampleEvent(known, rig.now(), stale),
        sampleEvent(unknown, rig.now(), stale),
        sampleEvent(unknown, rig.now(), { ...stale, listed: false, status: "CANCELLED" }),
        // A recorded transaction does not make another status of it known.
        sampleEvent(known, rig.now(), { ...stale, status: "FAILED" }),
        sampleEvent(known, rig.now(), { ...stale, amount: "11" }),
      ]),
    ).toEqual(["duplicate", "expired", "expired", "expired", "expired"]);
    expect(await inbox.events.get(sampleEvent(unknown, 0).key + sampleEvent(unknown, 0).slot)).toBeNull();
    expect(await heldOf(inbox)).toEqual([]);
    // Nothing of what was refused was recorded: signed anew, it is new.
    expect(await outcomes(inbox, [sampleEvent(unknown, rig.now())])).toEqual(["new"]);
    const runner = sampleRunner();
    await workAll(inbox, runner);
    expect(runner.ran).toEqual(["SUCCESS", "SUCCESS"]);
  }),
  onFreshData(
    "a PENDING that waits when a terminal status is recorded is stale by the same write, and is named as overtaken",
    async (rig) => {
      const { inbox, calls } = rig.start();
      const id = newId();
      const pending = sampleEvent(id, rig.now(), { status: "PENDING" });
      await inbox.accept(pending);
      const accepted = await inbox.accept(sampleEvent(id, rig.now(), { status: "FAILED" }));
      expect(accepted).toMatchObject({
        outcome: "progress",
        overtaken: [
          { eventId: pending.key + pending.slot, id: pending.id, event: "DEPOSIT", status: "PENDING" },
        ],
      });
      expect(calls.at(-1)).toBe("accept+stale");
      expect((await inbox.events.get(pending.key + pending.slot))?.state).toBe("stale");
      const runner = sampleRunner();
      expect(await workAll(inbox, runner)).toMatchObject({ ran: 1, failed: 0, remaining: 0 });
      expect(runner.ran).toEqual(["FAILED"]);
      expect(await outcomes(inbox, [pending])).toEqual(["duplicate"]);
    },
  ),
  onFreshData(
    "a PENDING that runs when a terminal status is recorded is run to its end; its retry is stale",
    async (rig) => {
      for (const ending of ["done", "retry"] as const) {
        const { inbox } = rig.start();
        const id = newId();
        const pending = sampleEvent(id, rig.now(), { status: "PENDING" });
        await inbox.accept(pending);
        const [begun, free] = [newGate(), newGate()];
        const runner = sampleRunner(async ({ input: { status } }) => {
          if (status !== "PENDING") return { kind: "done" };
          begun.open();
          await free.passed;
          return ending === "done" ? { kind: ending } : { kind: ending, delayMs: 0 };
        });
        const working = workAll(inbox, runner);
        await begun.passed;
        expect(await inbox.accept(sampleEvent(id, rig.now()))).toMatchObject({
          outcome: "progress",
          overtaken: [],
        });
        free.open();
        await working;
        await workAll(inbox, runner);
        expect(runner.ran).toEqual(["PENDING", "SUCCESS"]);
        const state = (await inbox.events.get(pending.key + pending.slot))?.state;
        expect(state).toBe(ending === "done" ? "done" : "stale");
        expect(runner.notices.filter(({ type }) => type === "stale")).toHaveLength(ending === "done" ? 0 : 1);
      }
    },
  ),
];
