/** The table of deduplication (docs/deduplication.md): every inbox against the reference model, over all short sequences. */
import type { Runner } from "@payhooks/core/inbox";
import { expect } from "vitest";
import { type ModelDelivery, ReferenceModel } from "./reference-model.ts";
import { type ContractCase, onFreshData, type Process, type Rig, rigOn } from "./rig.ts";
import {
  heldOf,
  newId,
  outcomes,
  type Sample,
  sampleEvent,
  sampleRunner,
  slotNameOf,
  workAll,
} from "./sample-events.ts";

/** A delivery in a sequence; without `completes` the process died right after the claim. */
interface Symbol {
  readonly delivery: ModelDelivery;
  readonly completes: boolean;
}

const IDENTITIES = [{ referenceId: "o-1" }, { referenceId: "o-2" }];
const AMOUNTS = ["10", "11"];
const STATUSES = ["PENDING", "SUCCESS", "FAILED"];

/** Every combination of the given values. */
function alphabet(of: {
  readonly statuses?: readonly string[];
  readonly unlisted?: readonly string[];
  readonly identities?: readonly Readonly<Record<string, string>>[];
  readonly amounts?: readonly string[];
  readonly sources?: readonly string[];
  readonly completes?: readonly boolean[];
}): readonly Symbol[] {
  const { statuses = STATUSES, unlisted = [], identities = IDENTITIES, amounts = ["10"] } = of;
  const { sources = ["callback"], completes = [true, false] } = of;
  const symbols: Symbol[] = [];
  for (const status of [...statuses, ...unlisted])
    for (const identity of identities)
      for (const amount of amounts)
        for (const source of sources)
          for (const end of completes) {
            const listed = !unlisted.includes(status);
            symbols.push({ delivery: { status, listed, identity, amount, source }, completes: end });
          }
  return symbols;
}

function* sequencesOf(
  first: readonly Symbol[],
  rest: readonly Symbol[],
  length: number,
): Generator<Symbol[]> {
  if (length === 1) {
    for (const symbol of first) yield [symbol];
    return;
  }
  for (const begun of sequencesOf(first, rest, length - 1))
    for (const symbol of rest) yield [...begun, symbol];
}

function shown(sequence: readonly Symbol[]): string {
  return sequence
    .map(({ delivery: { status, identity, amount, source }, completes }) =>
      [status, JSON.stringify(identity), amount, source, completes ? "" : "†"].join(" "),
    )
    .join(" → ");
}

/** A process that dies after the claim whenever `state.dies` says so; it is the same one all the time, for speed. */
function mortal(rig: Rig): { readonly process: Process; readonly state: { dies: boolean } } {
  const state = { dies: false };
  const process = rig.start((moment, call) =>
    state.dies && moment === "before" && call === "queue.add" ? "fail" : undefined,
  );
  return { process, state };
}

/** Sequences that share one inbox; each has a record of its own. */
const BATCH = 500;

/** Delivers every sequence, then perhaps works it off and delivers it all again, and compares each step with the model. */
async function compare(
  make: Parameters<ContractCase["run"]>[0],
  sequences: Iterable<readonly Symbol[]>,
  how: { readonly after: "run-and-again" | "run" | "stop"; readonly flow?: "payments" | "connect" },
): Promise<number> {
  const { accepts } = await groundOf(make);
  let count = 0;
  let batch: (readonly Symbol[])[] = [];
  for (const sequence of sequences) {
    count++;
    // A store that accepts at once has no moment after the claim to die at: the same sequence is there without it.
    if (accepts === "at-once" && sequence.some(({ completes }) => !completes)) continue;
    batch.push(sequence);
    if (batch.length < BATCH) continue;
    await compareBatch(make, batch, how);
    batch = [];
  }
  if (batch.length > 0) await compareBatch(make, batch, how);
  return count;
}

/** What there is to know of a ground before anything is done on it. */
async function groundOf(make: Parameters<ContractCase["run"]>[0]): Promise<Rig> {
  const rig = rigOn(await make());
  await rig.close();
  return rig;
}

async function compareBatch(
  make: Parameters<ContractCase["run"]>[0],
  batch: readonly (readonly Symbol[])[],
  { after, flow = "payments" }: Parameters<typeof compare>[2],
): Promise<void> {
  const rig = rigOn(await make());
  const { process, state } = mortal(rig);
  const runs = new Map<string, string[]>();
  const runner: Runner = {
    async run({
      data: {
        mode,
        job: { eventId },
        previousStatus,
      },
    }) {
      if (mode === "tell") return { kind: "told" };
      const key = eventId.slice(0, 32);
      runs.set(key, [...(runs.get(key) ?? []), slotNameOf(eventId)]);
      previous.set(eventId, previousStatus);
      return { kind: "done" };
    },
    notify: () => {},
  };
  const previous = new Map<string, string | null>();
  const records = batch.map((sequence) => ({ sequence, id: newId(), model: new ReferenceModel() }));

  async function deliver(
    { sequence, id, model }: (typeof records)[number],
    ends: "as-told" | "all",
  ): Promise<void> {
    for (const [at, { delivery, completes }] of sequence.entries()) {
      const completed = completes || ends === "all" || rig.accepts === "at-once";
      const event = sampleEvent(id, rig.now(), { ...delivery, flow });
      state.dies = !completed;
      const expected = model.deliver(delivery, completed);
      const where = (): string => `step ${at + 1} (${ends}) of ${shown(sequence)}`;
      const accepting = Promise.resolve(process.inbox.accept(event));
      const dies =
        !completed && (expected.outcome === "resume" || !["duplicate", "stale"].includes(expected.outcome));
      if (dies) {
        if (
          await accepting.then(
            () => true,
            () => false,
          )
        )
          expect.fail(`acknowledged without a job: ${where()}`);
        continue;
      }
      const { outcome, reason, job } = await accepting;
      const slot = slotNameOf(job.eventId);
      const held = expected.outcome === "stale" ? null : expected.reason;
      if (outcome !== expected.outcome || reason !== held || slot !== expected.slot)
        expect({ outcome, reason, slot }, where()).toEqual({ ...expected, reason: held });
    }
  }

  /** What completed has run, once; what died may have run, when its record's lease passed; nothing held has. */
  function check({ sequence, id, model }: (typeof records)[number], all: boolean): void {
    const ran = runs.get(sampleEvent(id, 0).key) ?? [];
    const where = () => `runs after ${all ? "delivering all again of " : ""}${shown(sequence)}`;
    if (new Set(ran).size !== ran.length) expect(ran, where()).toEqual([...new Set(ran)]);
    for (const name of ran) {
      if (model.slots.get(name)?.verdict !== "run") expect(model.slots.get(name), where()).toBe("run");
    }
    for (const [name, slot] of model.slots) {
      if (slot.verdict !== "run") continue;
      const overtaken = slot.status === "PENDING" && model.terminal;
      const event = sampleEvent(id, 0, { status: slot.status });
      if (ran.includes(name)) {
        const told = previous.get(event.key + event.slot);
        if (told !== slot.previousStatus) expect(told, where()).toBe(slot.previousStatus);
      } else if (slot.acknowledged && !overtaken) expect(ran, where()).toContain(name);
      if (!all && overtaken && ran.includes(name)) expect(ran, where()).not.toContain(name);
    }
  }

  /** Beside each other where no process dies in between: each has a record of its own. */
  async function deliverAll(ends: "as-told" | "all"): Promise<void> {
    if (rig.accepts === "at-once") await Promise.all(records.map((record) => deliver(record, ends)));
    else for (const record of records) await deliver(record, ends);
  }

  await deliverAll("as-told");
  state.dies = false;
  if (after !== "stop") {
    await workAll(process.inbox, runner);
    for (const record of records) check(record, false);
  }
  if (after === "run-and-again") {
    await deliverAll("all");
    await workAll(process.inbox, runner);
    for (const record of records) check(record, true);
  }
  await rig.close();
}

const everything = alphabet({ amounts: AMOUNTS });
const lookups = alphabet({
  amounts: AMOUNTS,
  sources: ["callback", "lookup"],
  identities: [{ referenceId: "o-1" }],
});

/** Those with the first identity and amount: sequences that begin with others differ from theirs in names only. */
function named(symbols: readonly Symbol[]): readonly Symbol[] {
  return symbols.filter(
    ({ delivery: { identity, amount } }) => identity.referenceId === "o-1" && amount === AMOUNTS[0],
  );
}

/** Whether the last delivery completes is seen only by what comes after it. */
function last(symbols: readonly Symbol[]): readonly Symbol[] {
  return symbols.filter(({ completes }) => completes);
}

function* upTo(
  length: number,
  first: readonly Symbol[],
  rest: readonly Symbol[],
): Generator<readonly Symbol[]> {
  for (let shorter = 1; shorter <= length; shorter++) yield* sequencesOf(first, rest, shorter);
}

function* followedBy(
  sequences: Iterable<readonly Symbol[]>,
  symbols: readonly Symbol[],
): Generator<readonly Symbol[]> {
  for (const sequence of sequences) for (const symbol of symbols) yield [...sequence, symbol];
}

export const tableCases: readonly ContractCase[] = [
  {
    name: "the table of deduplication over all pairs of deliveries: statuses × identities × amounts × deaths, delivered twice",
    async run(make) {
      const count = await compare(make, upTo(2, everything, everything), { after: "run-and-again" });
      expect(count).toBe(24 + 24 ** 2);
    },
  },
  {
    name: "the table of deduplication over all sequences of three deliveries, delivered twice",
    async run(make) {
      const sequences = sequencesOf(named(everything), everything, 3);
      expect(await compare(make, sequences, { after: "run-and-again" })).toBe(6 * 24 ** 2);
    },
  },
  {
    name: "the table of deduplication over all sequences of four deliveries",
    async run(make) {
      if ((await groundOf(make)).depth < 4) return;
      const sequences = followedBy(sequencesOf(named(everything), everything, 3), last(everything));
      expect(await compare(make, sequences, { after: "stop" })).toBe(6 * 24 ** 2 * 12);
    },
  },
  {
    name: "look-ups beside callbacks: amounts of different sources are not compared",
    async run(make) {
      const sequences = sequencesOf(named(lookups), lookups, 3);
      expect(await compare(make, sequences, { after: "run-and-again" })).toBe(12 * 24 ** 2);
    },
  },
  {
    name: "identity fields that are absent on one side, and unlisted statuses, which set neither rank nor facts",
    async run(make) {
      const symbols = alphabet({
        statuses: ["PENDING", "SUCCESS"],
        unlisted: ["CANCELLED"],
        identities: [
          { referenceId: "o-1" },
          { referenceId: "o-1", merchantId: "m-1" },
          { referenceId: "o-1", merchantId: "m-2" },
        ],
        completes: [true],
      });
      expect(await compare(make, upTo(3, symbols, symbols), { after: "run" })).toBe(9 + 9 ** 2 + 9 ** 3);
    },
  },
  {
    name: "webhooks of the connect flow, which have no status",
    async run(make) {
      const symbols = alphabet({ statuses: [""], amounts: AMOUNTS, sources: ["webhook"] });
      const count = await compare(make, upTo(3, symbols, symbols), {
        after: "run-and-again",
        flow: "connect",
      });
      expect(count).toBe(8 + 8 ** 2 + 8 ** 3);
    },
  },
  onFreshData(
    "a mismatch is held once per distinct facts, and its copies are duplicates of it",
    async (rig) => {
      const { inbox } = rig.start();
      const id = newId();
      const event = (sample: Sample) => sampleEvent(id, rig.now(), sample);
      const other = { identity: { referenceId: "o-2" } };
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
    "an amount that changed on the way from PENDING is told; one from another source is told to its copy",
    async (rig) => {
      const { inbox } = rig.start();
      const [first, second] = [newId(), newId()];
      await inbox.accept(sampleEvent(first, rig.now(), { status: "PENDING", amount: "10" }));
      expect(await inbox.accept(sampleEvent(first, rig.now(), { amount: "9.5" }))).toMatchObject({
        outcome: "progress",
        previousAmount: "10",
      });
      await inbox.accept(sampleEvent(second, rig.now(), { amount: "10" }));
      const lookup = sampleEvent(second, rig.now(), { amount: "9.9", source: "lookup" });
      expect(await inbox.accept(lookup)).toMatchObject({ outcome: "duplicate", previousAmount: "10" });
      expect(await inbox.accept(lookup)).toMatchObject({ outcome: "duplicate", previousAmount: null });
      const runner = sampleRunner();
      await workAll(inbox, runner);
      const progressed = runner.leases.filter(({ data }) => data.id === `tx-${first}`);
      expect(
        progressed.map(({ data: { status, previousStatus, previousAmount } }) => [
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
        const foreign = { verdict, identity: { referenceId: verdict }, amount: "99" };
        expect(await outcomes(inbox, [event(foreign), event(foreign)])).toEqual(["held", "duplicate"]);
      }
      expect(await outcomes(inbox, [event({ status: "PENDING" }), event({})])).toEqual(["new", "progress"]);
      const runner = sampleRunner();
      await workAll(inbox, runner);
      expect(runner.ran.filter((name) => !name.startsWith("tell "))).toEqual(["SUCCESS"]);
      expect(runner.ran.filter((name) => name.startsWith("tell "))).toHaveLength(3);
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
    expect(others.filter((outcome) => outcome !== "resume" && outcome !== "duplicate")).toEqual([]);
    expect(new Set(answers.map(({ job }) => job.eventId)).size).toBe(1);
    const runner = sampleRunner();
    await Promise.all(processes.map(({ inbox }) => workAll(inbox, runner)));
    expect(runner.ran).toEqual(["SUCCESS"]);
  }),
  onFreshData(
    "records are scoped by tenant, flow and id: their keys are all that an inbox looks at",
    async (rig) => {
      const { inbox } = rig.start();
      const [one, other] = [newId(), newId()];
      expect(
        await outcomes(inbox, [
          sampleEvent(one, rig.now(), { tenant: "a" }),
          sampleEvent(other, rig.now(), { tenant: "b" }),
          sampleEvent(one, rig.now(), { tenant: "a" }),
        ]),
      ).toEqual(["new", "new", "duplicate"]);
    },
  ),
  onFreshData("an event signed outside of the window is refused unless it is recorded", async (rig) => {
    const { inbox } = rig.start();
    const [known, unknown] = [newId(), newId()];
    await inbox.accept(sampleEvent(known, rig.now()));
    const stale = { fresh: false };
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
    expect(await inbox.read(sampleEvent(unknown, 0).key + sampleEvent(unknown, 0).slot)).toBeNull();
    expect(await heldOf(inbox)).toEqual([]);
    // Nothing of what was refused was recorded: signed anew, it is new.
    expect(await outcomes(inbox, [sampleEvent(unknown, rig.now())])).toEqual(["new"]);
    const runner = sampleRunner();
    await workAll(inbox, runner);
    expect(runner.ran).toEqual(["SUCCESS", "SUCCESS"]);
  }),
  onFreshData(
    "a PENDING that waits when a terminal status is claimed is stale, and counts no run",
    async (rig) => {
      const { inbox } = rig.start();
      const id = newId();
      const pending = sampleEvent(id, rig.now(), { status: "PENDING" });
      await inbox.accept(pending);
      await inbox.accept(sampleEvent(id, rig.now(), { status: "FAILED" }));
      const runner = sampleRunner();
      expect(await workAll(inbox, runner)).toMatchObject({ ran: 1, failed: 0, remaining: 0 });
      expect(runner.ran).toEqual(["FAILED"]);
      expect((await inbox.read(pending.key + pending.slot))?.state).toBe("stale");
      expect(await outcomes(inbox, [pending])).toEqual(["duplicate"]);
    },
  ),
];
