/** How long a record lives (docs/concepts/deduplication.md, Window and expiry): by the greatest signed time and each delivery, never before it is finished. */
import { expect } from "vitest";
import { type ContractCase, onFreshData } from "./inbox-processes.ts";
import {
  heldOf,
  newId,
  outcomes,
  RETENTION_MS,
  sampleEvent,
  sampleRunner,
  workAll,
} from "./sample-events.ts";

const HOUR_MS = 3_600_000;
const timeTravel = { timeTravel: true } as const;

export const expiryCases: readonly ContractCase[] = [
  onFreshData(
    "a finished record lives for the window and a day; then a replay is refused, and only a new signature is new",
    async (rig) => {
      const { inbox } = rig.start();
      const event = sampleEvent(newId(), rig.now());
      const eventId = event.key + event.slot;
      await inbox.accept(event);
      await workAll(inbox, sampleRunner());
      await rig.advance(RETENTION_MS - HOUR_MS);
      expect((await inbox.events.get(eventId))?.state).toBe("done");
      await rig.advance(2 * HOUR_MS);
      expect(await inbox.events.get(eventId)).toBeNull();
      expect(await outcomes(inbox, [{ ...event, isWithinWindow: false }])).toEqual(["expired"]);
      expect(await outcomes(inbox, [{ ...event, signedAt: rig.now() }])).toEqual(["new"]);
    },
    timeTravel,
  ),
  onFreshData(
    "the greatest signed time counts, in whatever order deliveries come",
    async (rig) => {
      const { inbox } = rig.start();
      const event = sampleEvent(newId(), rig.now(), { signedAt: rig.now() + 12 * HOUR_MS });
      await inbox.accept(event);
      await inbox.accept({ ...event, signedAt: rig.now() });
      await workAll(inbox, sampleRunner());
      await rig.advance(RETENTION_MS + 11 * HOUR_MS);
      expect((await inbox.events.get(event.key + event.slot))?.state).toBe("done");
      await rig.advance(2 * HOUR_MS);
      expect(await inbox.events.get(event.key + event.slot)).toBeNull();
    },
    timeTravel,
  ),
  onFreshData(
    "every delivery that was signed later than any before it extends the record: a copy, a stale one, one out of the window",
    async (rig) => {
      const { inbox } = rig.start();
      const id = newId();
      await inbox.accept(sampleEvent(id, rig.now()));
      await workAll(inbox, sampleRunner());
      for (const sample of [{}, { status: "PENDING" }, { isWithinWindow: false }]) {
        await rig.advance(RETENTION_MS - HOUR_MS);
        const copy = sampleEvent(id, rig.now(), sample);
        expect(["duplicate", "stale"]).toContain((await inbox.accept(copy)).outcome);
      }
      await rig.advance(RETENTION_MS - HOUR_MS);
      const event = sampleEvent(id, rig.now());
      expect((await inbox.events.get(event.key + event.slot))?.state).toBe("done");
    },
    timeTravel,
  ),
  onFreshData(
    "a copy that was signed no later writes nothing: at the record's end it is out of the window",
    async (rig) => {
      const { inbox, calls } = rig.start();
      const event = sampleEvent(newId(), rig.now());
      await inbox.accept(event);
      await workAll(inbox, sampleRunner());
      await rig.advance(RETENTION_MS - HOUR_MS);
      const before = calls.length;
      expect(await outcomes(inbox, [{ ...event, isWithinWindow: false }])).toEqual(["duplicate"]);
      expect(calls.slice(before).filter((call) => call !== "read" && call !== "accept")).toEqual([]);
      await rig.advance(2 * HOUR_MS);
      expect(await outcomes(inbox, [{ ...event, isWithinWindow: false }])).toEqual(["expired"]);
    },
    timeTravel,
  ),
  onFreshData(
    "an event that waits or is held does not expire; once it ends, its record lives for the window and a day",
    async (rig) => {
      const { inbox } = rig.start();
      const [waiting, held] = [
        sampleEvent(newId(), rig.now()),
        sampleEvent(newId(), rig.now(), { verdict: "malformed", signedAt: null }),
      ];
      await inbox.accept(waiting);
      await inbox.accept(held);
      await rig.advance(5 * RETENTION_MS);
      const heldId = held.key + held.variantSlot();
      expect((await heldOf(inbox)).map(({ eventId }) => eventId)).toEqual([heldId]);
      const runner = sampleRunner();
      await workAll(inbox, runner);
      expect(runner.ran.filter((name) => !name.startsWith("onHeld"))).toEqual(["SUCCESS"]);
      await inbox.events.discard(heldId, { by: "an operator", note: "old" });
      for (const eventId of [waiting.key + waiting.slot, heldId])
        expect(await inbox.events.get(eventId)).not.toBeNull();
      await rig.advance(RETENTION_MS - HOUR_MS);
      // The service may sign the event anew after all that time: it is still known. So is an event that does not say when it was signed.
      expect(await outcomes(inbox, [{ ...waiting, signedAt: rig.now() }, held])).toEqual([
        "duplicate",
        "duplicate",
      ]);
    },
    timeTravel,
  ),
];
