import { fakeClock } from "@payhooks/core/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Job, VerifiedEvent } from "../src/inbox/inbox.ts";
import { memoryInbox } from "../src/inbox/memory/index.ts";
import { memoryQueue } from "../src/inbox/memory/queue.ts";
import { memoryStore } from "../src/inbox/memory/store.ts";

const jobOf = (n: number): Job => ({ eventId: n.toString(16).padStart(48, "0"), replay: 0 });

function eventOf(n: number, signedAt: number, changes: Partial<VerifiedEvent> = {}): VerifiedEvent {
  return {
    key: n.toString(16).padStart(32, "0"),
    slot: "1".repeat(16),
    variantSlot: () => "2".repeat(16),
    id: `tx-${n}`,
    name: "DEPOSIT",
    status: "SUCCESS",
    rank: 1,
    identity: { referenceId: `o-${n}` },
    amount: "10",
    signedAt,
    fresh: true,
    retentionMs: 8 * 86_400_000,
    verdict: "run",
    detail: null,
    referenceKey: null,
    delivery: {
      flow: "payments",
      tenant: "",
      source: "callback",
      rawBody: new Uint8Array(),
      headers: {},
      keyId: null,
      receivedAt: signedAt,
    },
    ...changes,
  };
}

const done = { run: async () => ({ kind: "done" as const }), notify: () => {} };
const all = { deadlineMs: 60_000, limit: 1_000, concurrency: 1 };

describe("the memory queue", () => {
  it("gives out delayed jobs by their time, whatever the order of their adding", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 1_000 }), { maxLength: 60 }), async (delays) => {
        const clock = fakeClock(0);
        const queue = memoryQueue({ clock });
        for (const [n, delayMs] of delays.entries()) await queue.add(jobOf(n), { delayMs });
        const earliest = delays.length === 0 ? null : Math.min(...delays);
        expect(await queue.pending()).toEqual({ due: 0, nextDueAt: earliest });
        const taken: number[] = [];
        let now = 0;
        const times = [...new Set(delays)].sort((a, b) => a - b);
        for (const time of times) {
          await clock.advance(time - now - 1);
          expect(await queue.take()).toBeNull();
          await clock.advance(1);
          now = time;
          for (let taking = await queue.take(); taking !== null; taking = await queue.take()) {
            taken.push(delays[Number.parseInt(taking.job.eventId, 16)] ?? -1);
            await taking.settle("finished");
          }
        }
        expect(taken).toEqual([...delays].sort((a, b) => a - b));
        expect(await queue.pending()).toEqual({ due: 0, nextDueAt: null });
      }),
      { numRuns: 30 },
    );
  });

  it("gives out due jobs in the order of their adding, each once however often it was added", async () => {
    const queue = memoryQueue({ clock: fakeClock() });
    for (const n of [3, 1, 2, 1, 3]) await queue.add(jobOf(n), { delayMs: 0 });
    const taken: Job[] = [];
    for (let taking = await queue.take(); taking !== null; taking = await queue.take())
      taken.push(taking.job);
    expect(taken).toEqual([jobOf(3), jobOf(1), jobOf(2)]);
  });

  it("keeps that order among thousands, while others come and go", async () => {
    const queue = memoryQueue({ clock: fakeClock() });
    let added = 0;
    let taken = 0;
    // The line grows, shrinks to nothing, and grows again.
    for (const [adds, takes] of [
      [3_000, 1_700],
      [900, 2_200],
      [2_500, 2_499],
      [1, 2],
    ] as const) {
      for (let n = 0; n < adds; n++) await queue.add(jobOf(added++), { delayMs: 0 });
      for (let n = 0; n < takes; n++) expect((await queue.take())?.job).toEqual(jobOf(taken++));
    }
    expect(taken).toBe(added);
    expect(await queue.take()).toBeNull();
  });

  it("a job that is hastened is due at once; one that does not wait is left alone", async () => {
    const queue = memoryQueue({ clock: fakeClock() });
    await queue.add(jobOf(1), { delayMs: 60_000 });
    await queue.hasten(jobOf(1));
    await queue.hasten(jobOf(2));
    expect(await queue.pending()).toEqual({ due: 1, nextDueAt: null });
    expect((await queue.take())?.job).toEqual(jobOf(1));
    expect(await queue.take()).toBeNull();
  });

  it("a job that is added while it runs runs again, and once", async () => {
    const queue = memoryQueue({ clock: fakeClock() });
    await queue.add(jobOf(1), { delayMs: 0 });
    const taking = await queue.take();
    await queue.add(jobOf(1), { delayMs: 0 });
    await queue.add(jobOf(1), { delayMs: 0 });
    expect(await queue.take()).toBeNull();
    await taking?.settle("finished");
    expect((await queue.take())?.job).toEqual(jobOf(1));
    expect(await queue.take()).toBeNull();
  });
});

describe("the consumer of the memory queue", () => {
  it("takes a delayed job once that has become due and is then added again", async () => {
    const clock = fakeClock();
    const queue = memoryQueue({ clock });
    await queue.add(jobOf(1), { delayMs: 100 });
    await clock.advance(100);
    await queue.recover();
    await queue.add(jobOf(1), { delayMs: 0 });
    await queue.add(jobOf(1), { delayMs: 200 });
    expect(await queue.pending()).toEqual({ due: 1, nextDueAt: null });
    expect((await queue.take())?.job).toEqual(jobOf(1));
    expect(await queue.take()).toBeNull();
  });

  it("begins what is due when its turn begins, so many at a time, before deliveries have theirs again", async () => {
    const queue = memoryQueue({ clock: fakeClock() });
    let running = 0;
    let most = 0;
    const ran: Job[] = [];
    const consumer = await queue.consume(
      async (job) => {
        most = Math.max(most, ++running);
        await Promise.resolve();
        running--;
        ran.push(job);
        return "finished";
      },
      { concurrency: 4, notify: () => {} },
    );
    const jobs = Array.from({ length: 300 }, (_, n) => jobOf(n));
    for (const job of jobs) await queue.add(job, { delayMs: 0 });
    const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    await turn();
    // A burst is no reason to keep deliveries waiting.
    expect(ran).toEqual(jobs.slice(0, 256));
    await turn();
    expect(ran).toEqual(jobs);
    expect(most).toBe(4);
    await consumer.stop();
  });

  it("is stopped for everybody who stops it when what runs has ended", async () => {
    const queue = memoryQueue({ clock: fakeClock() });
    let end = (): void => {};
    const ended = new Promise<"finished">((resolve) => {
      end = () => resolve("finished");
    });
    await queue.add(jobOf(1), { delayMs: 0 });
    await queue.add(jobOf(2), { delayMs: 0 });
    const consumer = await queue.consume(() => ended, { concurrency: 1, notify: () => {} });
    await new Promise((resolve) => setImmediate(resolve));
    const stopped: number[] = [];
    const stops = [1, 2].map((n) => consumer.stop().then(() => stopped.push(n)));
    await new Promise((resolve) => setImmediate(resolve));
    expect(stopped).toEqual([]);
    end();
    await Promise.all(stops);
    expect(await queue.pending()).toEqual({ due: 1, nextDueAt: null });
    await consumer.stop();
  });
});

describe("the memory inbox at its bounds", () => {
  it("forgets the oldest finished records, and then refuses unknown events of that age", async () => {
    const clock = fakeClock();
    const inbox = memoryInbox({ clock, maxRecords: 10 });
    const start = clock.now();
    const signedAt = (n: number): number => start - 1_000_000 + n * 1_000;
    for (let n = 1; n <= 15; n++) {
      expect((await inbox.accept(eventOf(n, signedAt(n)))).outcome).toBe("new");
      await inbox.work(done, all);
    }
    // 1 to 5 are gone: their copies cannot be told from new ones, and nothing must run twice.
    for (let n = 1; n <= 5; n++) {
      expect(await inbox.accept(eventOf(n, signedAt(n)))).toMatchObject({
        outcome: "expired",
        pending: false,
        signedBefore: signedAt(5),
      });
    }
    expect((await inbox.accept(eventOf(100, signedAt(4)))).outcome).toBe("expired");
    for (let n = 6; n <= 15; n++)
      expect((await inbox.accept(eventOf(n, signedAt(n)))).outcome).toBe("duplicate");
    expect((await inbox.accept(eventOf(101, signedAt(6)))).outcome).toBe("new");
    expect(await inbox.work(done, all)).toMatchObject({ ran: 1 });
  });

  it("what waits or is held never goes, whatever the bound is", async () => {
    const clock = fakeClock();
    const inbox = memoryInbox({ clock, maxRecords: 2 });
    const held = eventOf(1, clock.now(), { verdict: "unexpected", rank: null });
    await inbox.accept(held);
    for (let n = 2; n <= 20; n++) await inbox.accept(eventOf(n, clock.now() + n));
    expect((await inbox.accept(held)).outcome).toBe("duplicate");
    // The onHeld run of the held one, and all that wait.
    expect(
      await inbox.work(
        { ...done, run: async ({ data: { mode } }) => ({ kind: mode === "tell" ? "told" : "done" }) },
        all,
      ),
    ).toMatchObject({
      ran: 20,
    });
    expect((await inbox.accept(held)).outcome).toBe("duplicate");
  });

  it("refuses new events above maxUnfinished, but neither copies nor what is to be held", async () => {
    const clock = fakeClock();
    const inbox = memoryInbox({ clock, maxUnfinished: 2 });
    await inbox.accept(eventOf(1, clock.now()));
    await inbox.accept(eventOf(2, clock.now()));
    await expect(async () => inbox.accept(eventOf(3, clock.now()))).rejects.toMatchObject({
      code: "ERR_INBOX_FULL",
      status: 503,
    });
    expect((await inbox.accept(eventOf(2, clock.now()))).outcome).toBe("duplicate");
    expect(
      (await inbox.accept(eventOf(2, clock.now(), { slot: "3".repeat(16), status: "FAILED" }))).outcome,
    ).toBe("held");
    await inbox.work(
      { ...done, run: async ({ data: { mode } }) => ({ kind: mode === "tell" ? "told" : "done" }) },
      all,
    );
    expect((await inbox.accept(eventOf(3, clock.now()))).outcome).toBe("new");
  });

  it("counts what waits, runs and is held", async () => {
    const clock = fakeClock();
    const inbox = memoryInbox({ clock });
    for (let n = 1; n <= 3; n++) await inbox.accept(eventOf(n, clock.now()));
    const seen: unknown[] = [];
    await inbox.work(
      {
        ...done,
        run: async () => {
          seen.push(await inbox.health());
          return { kind: "held", reason: "rejected", detail: null, tell: false };
        },
      },
      { ...all, limit: 2 },
    );
    const healthy = { ok: true, detail: null };
    expect(seen).toEqual([
      { ...healthy, waiting: 2, running: 1, held: 0 },
      { ...healthy, waiting: 1, running: 1, held: 1 },
    ]);
    expect(await inbox.health()).toEqual({ ...healthy, waiting: 1, running: 0, held: 2 });
  });

  it("a long wait before the end does not shorten the life after it", async () => {
    const clock = fakeClock();
    const store = memoryStore({ environment: clock, maxRecords: 10, maxUnfinished: 10 });
    const event = eventOf(1, clock.now());
    const { job } = await store.accept(event, { maxHeld: 10, delayMs: 0 });
    await clock.advance("30d");
    const begun = await store.begin(job, { owner: "me", leaseMs: 30_000, force: null });
    if (begun.kind !== "leased") expect.fail(begun.kind);
    await store.finish(job, begun.lease.token, { kind: "done" });
    expect(store.size()).toMatchObject({ finished: 1, unfinished: 0 });
    await clock.advance("7d");
    expect(
      (await store.accept({ ...event, signedAt: clock.now() }, { maxHeld: 10, delayMs: 0 })).outcome,
    ).toBe("resume");
  });
});
