/** One SUCCESS per reference (docs/concepts/deduplication.md): whose a reference is, from when, and for how long. */
import { expect } from "vitest";
import { type ContractCase, onFreshData } from "./rig.ts";
import {
  heldOf,
  newId,
  outcomes,
  RETENTION_MS,
  type Sample,
  sampleEvent,
  sampleRunner,
  workAll,
} from "./sample-events.ts";

const HOUR_MS = 3_600_000;
const reused = { outcome: "held", reason: "reference-reused" };

let references = 0;
/** A SUCCESS of a new transaction for that reference. */
function claiming(referenceKey: string, now: number, sample: Sample = {}): ReturnType<typeof sampleEvent> {
  return sampleEvent(newId(), now, { referenceKey, ...sample });
}

function newReference(): string {
  return (++references).toString(16).padStart(32, "e");
}

export const referenceCases: readonly ContractCase[] = [
  onFreshData("a reference is its first transaction's, whose copies pass; others are held", async (rig) => {
    const { inbox } = rig.start();
    const reference = newReference();
    const [first, second] = [claiming(reference, rig.now()), claiming(reference, rig.now())];
    expect(await outcomes(inbox, [first])).toEqual(["new"]);
    expect(await inbox.accept(second)).toMatchObject(reused);
    expect(await outcomes(inbox, [first, second, claiming(newReference(), rig.now())])).toEqual([
      "duplicate",
      "duplicate",
      "new",
    ]);
    const runner = sampleRunner();
    await workAll(inbox, runner);
    expect(runner.ran.sort()).toEqual(["SUCCESS", "SUCCESS", "tell SUCCESS"]);
    expect((await heldOf(inbox)).map(({ id }) => id)).toEqual([second.id]);
  }),
  onFreshData("of many transactions that want one reference at the same time, one has it", async (rig) => {
    const processes = [rig.start(), rig.start()];
    const reference = newReference();
    const events = Array.from({ length: 20 }, () => claiming(reference, rig.now()));
    const answers = await Promise.all(
      events.flatMap((event) => processes.map(({ inbox }) => inbox.accept(event))),
    );
    expect(answers.filter(({ outcome }) => outcome === "new")).toHaveLength(1);
    const runner = sampleRunner();
    await workAll((processes[0] ?? rig.start()).inbox, runner);
    expect(runner.ran.filter((name) => name === "SUCCESS")).toHaveLength(1);
    expect(await heldOf((processes[0] ?? rig.start()).inbox)).toHaveLength(19);
  }),
  onFreshData("what is refused claims no reference", async (rig) => {
    const { inbox } = rig.start();
    const reference = newReference();
    const refused = claiming(reference, rig.now());
    await inbox.accept({ ...sampleEvent(0, rig.now(), { status: "FAILED" }), key: refused.key });
    // A conflict for which there is no room, and one that was signed too long ago.
    await expect((async () => inbox.accept(refused, { maxHeld: 0 }))()).rejects.toMatchObject({
      code: "ERR_HELD_FULL",
    });
    expect(await outcomes(inbox, [claiming(reference, rig.now(), { fresh: false })])).toEqual(["expired"]);
    expect(await outcomes(inbox, [claiming(reference, rig.now())])).toEqual(["new"]);
  }),
  onFreshData(
    "a reference is claimed for as long as the record lives that claimed it, by its signed time",
    async (rig) => {
      const { inbox } = rig.start();
      const reference = newReference();
      const first = claiming(reference, rig.now(), { signedAt: rig.now() + 12 * HOUR_MS });
      await inbox.accept(first);
      await workAll(inbox, sampleRunner());
      await rig.advance(RETENTION_MS + 11 * HOUR_MS);
      expect(await inbox.accept(claiming(reference, rig.now()))).toMatchObject(reused);
      await rig.advance(2 * HOUR_MS);
      expect(await outcomes(inbox, [claiming(reference, rig.now())])).toEqual(["new"]);
    },
    { timeTravel: true },
  ),
  onFreshData("what is held claims no reference: a conflict, a mismatch", async (rig) => {
    const { inbox } = rig.start();
    const [one, other] = [newReference(), newReference()];
    const conflict = claiming(one, rig.now());
    await inbox.accept({ ...sampleEvent(0, rig.now(), { status: "FAILED" }), key: conflict.key });
    expect(await inbox.accept(conflict)).toMatchObject({ outcome: "held", reason: "conflict" });
    const success = claiming(newReference(), rig.now());
    await inbox.accept(success);
    const mismatch = {
      ...claiming(other, rig.now(), { identity: { referenceId: "o-2" } }),
      key: success.key,
    };
    expect(await inbox.accept(mismatch)).toMatchObject({ outcome: "held", reason: "mismatch" });
    const events = [one, other].map((reference) => claiming(reference, rig.now()));
    expect(await outcomes(inbox, events)).toEqual(["new", "new"]);
  }),
  onFreshData(
    "a copy that was signed earlier does not shorten a claim",
    async (rig) => {
      const { inbox } = rig.start();
      const reference = newReference();
      const first = claiming(reference, rig.now(), { signedAt: rig.now() + 12 * HOUR_MS });
      expect(await outcomes(inbox, [first, { ...first, signedAt: rig.now() }])).toEqual(["new", "duplicate"]);
      await rig.advance(RETENTION_MS + 11 * HOUR_MS);
      expect(await inbox.accept(claiming(reference, rig.now()))).toMatchObject(reused);
    },
    { timeTravel: true },
  ),
];
