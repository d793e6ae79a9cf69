import { fakeClock } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import type { RunHandle, Runner } from "../../src/inbox/contract/inbox.ts";
import type { RunOutcome } from "../../src/inbox/record/run-outcome.ts";
import { memoryInbox } from "../../src/memory/index.ts";
import { verifiedEvent } from "../verified-event.ts";

/** Ends every run in the same way; onHeld handlers are through at once. */
function runner(
  outcome: RunOutcome = { kind: "done" },
  ran: (run: RunHandle) => Promise<void> = async () => {},
): Runner {
  return {
    async run(run) {
      await ran(run);
      return {
        outcome: run.input.mode === "onHeld" ? { kind: "stays-held" } : outcome,
        changes: [],
        onWritten: () => {},
      };
    },
    firstHandler: () => null,
    handlersOf: () => [],
    notify: () => {},
  };
}

const all = { deadlineMs: 60_000, limit: 1_000, concurrency: 1 };

describe("the memory inbox at its bounds", () => {
  it.each(["maxRecords", "maxUnfinished"])("refuses a %s that is not a whole number above zero", (option) => {
    for (const value of [Number.NaN, 0, -1, 1.5, Number.POSITIVE_INFINITY, "5"]) {
      expect(() => memoryInbox({ [option]: value })).toThrow(
        expect.objectContaining({
          code: "ERR_OPTION_INVALID",
          message: expect.stringContaining(`${option} is `),
        }),
      );
    }
  });

  it("forgets the oldest finished records, and then refuses unknown events of that age", async () => {
    const clock = fakeClock();
    const inbox = memoryInbox({ clock, maxRecords: 10 });
    const start = clock.now();
    const signedAt = (n: number): number => start - 1_000_000 + n * 1_000;
    for (let n = 1; n <= 15; n++) {
      expect((await inbox.accept(verifiedEvent(n, { signedAt: signedAt(n) }))).outcome).toBe("new");
      await inbox.work(runner(), all);
    }
    // 1 to 5 are gone: their copies cannot be told from new ones, and nothing must run twice.
    for (let n = 1; n <= 5; n++) {
      expect(await inbox.accept(verifiedEvent(n, { signedAt: signedAt(n) }))).toMatchObject({
        outcome: "expired",
        isBegun: false,
        signedBefore: signedAt(5),
      });
    }
    expect((await inbox.accept(verifiedEvent(100, { signedAt: signedAt(4) }))).outcome).toBe("expired");
    for (let n = 6; n <= 15; n++)
      expect((await inbox.accept(verifiedEvent(n, { signedAt: signedAt(n) }))).outcome).toBe("duplicate");
    expect((await inbox.accept(verifiedEvent(101, { signedAt: signedAt(6) }))).outcome).toBe("new");
    expect(await inbox.work(runner(), all)).toMatchObject({ ran: 1 });
  });

  it("takes late events of one tenant, whatever another one floods it with", async () => {
    const clock = fakeClock();
    const inbox = memoryInbox({ clock, maxRecords: 10 });
    const handle = async (n: number, tenant: string, signedAt: number): Promise<string> => {
      const event = verifiedEvent(n, { signedAt });
      const delivery = { ...event.delivery, tenant };
      const { outcome } = await inbox.accept({ ...event, delivery });
      await inbox.work(runner(), all);
      return outcome;
    };
    const late = clock.now() - 3_600_000;
    expect(await handle(1, "other", late)).toBe("new");
    for (let n = 100; n < 150; n++) {
      await clock.advance(1_000);
      expect(await handle(n, "flood", clock.now())).toBe("new");
    }
    expect(await handle(200, "flood", late)).toBe("expired");
    expect(await handle(1, "other", late)).toBe("duplicate");
    expect(await handle(2, "other", late)).toBe("new");
  });

  it("an event that was signed in the future makes no room before its time, and no other is refused for it", async () => {
    const clock = fakeClock();
    const inbox = memoryInbox({ clock, maxRecords: 10 });
    const handle = async (n: number, signedAt: number): Promise<string> => {
      const { outcome } = await inbox.accept(verifiedEvent(n, { signedAt }));
      await inbox.work(runner(), all);
      return outcome;
    };
    const ahead = clock.now() + 20 * 3_600_000;
    expect(await handle(1, ahead)).toBe("new");
    for (let n = 100; n < 150; n++) {
      await clock.advance(1_000);
      expect(await handle(n, clock.now())).toBe("new");
    }
    expect(await handle(1, ahead)).toBe("duplicate");
    await clock.advance("21h");
    for (let n = 200; n < 250; n++) {
      await clock.advance(1_000);
      expect(await handle(n, clock.now())).toBe("new");
    }
    expect(await handle(1, ahead)).toBe("expired");
  });

  it("takes in events whose signer's clock is ahead by as much as all of them fit", async () => {
    const clock = fakeClock();
    const inbox = memoryInbox({ clock, maxRecords: 10 });
    for (let n = 0; n < 100; n++) {
      expect((await inbox.accept(verifiedEvent(n, { signedAt: clock.now() + 3_000 }))).outcome).toBe("new");
      await inbox.work(runner(), all);
      await clock.advance(1_000);
    }
    // Nothing is forgotten too early: a copy of what was dropped is refused, and never new.
    const outcomes = new Set<string>();
    for (let n = 0; n < 100; n++) {
      const signedAt = clock.now() - (100 - n) * 1_000 + 3_000;
      outcomes.add((await inbox.accept(verifiedEvent(n, { signedAt }))).outcome);
    }
    expect([...outcomes].sort()).toEqual(["duplicate", "expired"]);
  });

  it("refuses one more event from the future rather than forget one, and takes events of now", async () => {
    const clock = fakeClock();
    const inbox = memoryInbox({ clock, maxRecords: 10 });
    const ahead = clock.now() + 3_600_000;
    for (let n = 0; n < 10; n++) await inbox.accept(verifiedEvent(n, { signedAt: ahead }));
    await inbox.work(runner(), all);
    await expect(async () => inbox.accept(verifiedEvent(10, { signedAt: ahead }))).rejects.toMatchObject({
      code: "ERR_INBOX_FULL",
      status: 503,
    });
    expect((await inbox.accept(verifiedEvent(11, { signedAt: clock.now() }))).outcome).toBe("new");
    for (let n = 0; n < 10; n++)
      expect((await inbox.accept(verifiedEvent(n, { signedAt: ahead }))).outcome).toBe("duplicate");
    await clock.advance("2h");
    for (let n = 20; n < 40; n++) {
      await clock.advance(1_000);
      expect((await inbox.accept(verifiedEvent(n, { signedAt: clock.now() }))).outcome).toBe("new");
      await inbox.work(runner(), all);
    }
    expect((await inbox.accept(verifiedEvent(10, { signedAt: clock.now() + 1_000 }))).outcome).toBe("new");
  });

  it("an event that waits or is held never goes, whatever the bound is", async () => {
    const clock = fakeClock();
    const inbox = memoryInbox({ clock, maxRecords: 2 });
    const held = verifiedEvent(1, { signedAt: clock.now(), verdict: "unexpected", rank: null });
    await inbox.accept(held);
    for (let n = 2; n <= 20; n++) await inbox.accept(verifiedEvent(n, { signedAt: clock.now() + n }));
    expect((await inbox.accept(held)).outcome).toBe("duplicate");
    // The onHeld run of the held one, and all that wait.
    expect(await inbox.work(runner(), all)).toMatchObject({
      ran: 20,
    });
    expect((await inbox.accept(held)).outcome).toBe("duplicate");
  });

  it("refuses new events above maxUnfinished, but neither copies nor events that are to be held", async () => {
    const clock = fakeClock();
    const inbox = memoryInbox({ clock, maxUnfinished: 2 });
    await inbox.accept(verifiedEvent(1, { signedAt: clock.now() }));
    await inbox.accept(verifiedEvent(2, { signedAt: clock.now() }));
    await expect(async () => inbox.accept(verifiedEvent(3, { signedAt: clock.now() }))).rejects.toMatchObject(
      {
        code: "ERR_INBOX_FULL",
        status: 503,
      },
    );
    expect((await inbox.accept(verifiedEvent(2, { signedAt: clock.now() }))).outcome).toBe("duplicate");
    expect(
      (
        await inbox.accept(
          verifiedEvent(2, { signedAt: clock.now(), slot: "3".repeat(16), status: "FAILED" }),
        )
      ).outcome,
    ).toBe("held");
    await inbox.work(runner(), all);
    expect((await inbox.accept(verifiedEvent(3, { signedAt: clock.now() }))).outcome).toBe("new");
  });

  it("counts events that wait, run or are held", async () => {
    const clock = fakeClock();
    const inbox = memoryInbox({ clock });
    for (let n = 1; n <= 3; n++) await inbox.accept(verifiedEvent(n, { signedAt: clock.now() }));
    const seen: unknown[] = [];
    await inbox.work(
      runner({ kind: "held", reason: "rejected", detail: null, onHeld: [] }, async () => {
        seen.push(await inbox.health());
      }),
      { ...all, limit: 2 },
    );
    const healthy = { ok: true, detail: null, failing: null, lostAt: null, retrying: 0, oldestDueMs: 0 };
    expect(seen).toEqual([
      { ...healthy, waiting: 2, running: 1, held: 0 },
      { ...healthy, waiting: 1, running: 1, held: 1 },
    ]);
    expect(await inbox.health()).toEqual({ ...healthy, waiting: 1, running: 0, held: 2 });
  });

  it("a long wait before the end does not shorten the life after it", async () => {
    const clock = fakeClock();
    const inbox = memoryInbox({ clock });
    const event = verifiedEvent(1, { signedAt: clock.now() });
    await inbox.accept(event);
    await clock.advance("30d");
    expect(await inbox.work(runner(), all)).toMatchObject({ ran: 1 });
    await clock.advance("7d");
    expect((await inbox.accept({ ...event, signedAt: clock.now() })).outcome).toBe("duplicate");
    await clock.advance("9d");
    expect((await inbox.accept({ ...event, signedAt: clock.now() })).outcome).toBe("new");
  });
});
