/** A take that has failed in a process that takes nothing any more, so that no success can follow. */
import { type FakeClock, fakeClock } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import type { Runner } from "../../src/inbox/contract/inbox.ts";
import type { RecordStore } from "../../src/inbox/contract/store.ts";
import { createInbox } from "../../src/inbox/engine.ts";
import { memoryStore } from "../../src/memory/store.ts";
import { environmentOf } from "../../src/time/environment.ts";
import { verifiedEvent } from "../verified-event.ts";

const BAD = { ok: false, failing: "take" };
const GOOD = { ok: true, failing: null };

/** An inbox on a store that is not in this process. */
async function setUp(clock: FakeClock) {
  const store: RecordStore = { ...memoryStore({ clock }), immediate: false, endsWithProcess: false };
  let frozenMs = 0;
  const environment = environmentOf({
    now: () => clock.now() + frozenMs,
    monotonic: () => clock.monotonic() + frozenMs,
    after: (ms, callback) => clock.after(ms, callback),
  });
  const inbox = createInbox(store, { clock: environment });
  const stalls: string[] = [];
  inbox.observe(({ type }) => {
    if (type === "stalled" || type === "recovered") stalls.push(type);
  });
  await inbox.ready();
  return { inbox, store, stalls, freeze: () => (frozenMs += 60_000) };
}

function runnerOf(run: Runner["run"]): Runner {
  return { run, firstHandler: () => null, handlersOf: () => [], notify() {} };
}

/** A runner in whose first run the process is frozen before the handler is to be called. */
function onceFrozen(freeze: () => void): Runner {
  let runs = 0;
  return runnerOf(async (run) => {
    if (runs++ === 0) freeze();
    const kind = run.mayCall() === "yes" ? "done" : "handed-back";
    return { outcome: { kind }, changes: [], onWritten() {} };
  });
}

describe("a failed take in a process that takes nothing", () => {
  it("is over a minute later, if the process runs events only with their deliveries", async () => {
    const clock = fakeClock();
    const { inbox, stalls, freeze } = await setUp(clock);
    const event = verifiedEvent(1, { signedAt: clock.now() });
    const { whenHandled } = await inbox.accept(event, { runAtOnce: onceFrozen(freeze) });
    expect(await whenHandled).toMatchObject({ state: "waiting", ran: false });
    await clock.advance("50s");
    expect(await inbox.health()).toMatchObject(BAD);
    expect(stalls).toEqual(["stalled"]);
    await clock.advance("12s");
    expect(await inbox.health()).toMatchObject(GOOD);
    expect(stalls).toEqual(["stalled", "recovered"]);
    await inbox.close({ graceMs: 0 });
  });

  it("is over as soon as an event that is run by its id has begun", async () => {
    const clock = fakeClock();
    const { inbox, freeze } = await setUp(clock);
    const { eventId } = await inbox.accept(verifiedEvent(1, { signedAt: clock.now() }));
    const runner = onceFrozen(freeze);
    expect(await inbox.runEvent(runner, eventId)).toMatchObject({ state: "waiting", ran: false });
    expect(await inbox.health()).toMatchObject(BAD);
    expect(await inbox.runEvent(runner, eventId)).toMatchObject({ state: "done", ran: true });
    expect(await inbox.health()).toMatchObject(GOOD);
    await inbox.close({ graceMs: 0 });
  });

  it("is over a minute later, if the process is paused or every place has a handler that takes long", async () => {
    for (const isPaused of [true, false]) {
      const clock = fakeClock();
      const { inbox, store, stalls } = await setUp(clock);
      const { takeDue } = store;
      const runs = await inbox.run(
        runnerOf(() => new Promise(() => {})),
        { concurrency: 1 },
      );
      await clock.advance("1s");
      store.takeDue = () => Promise.reject(new Error("away"));
      await clock.advance("6s");
      if (isPaused) runs.pause();
      else await inbox.accept(verifiedEvent(1, { signedAt: clock.now() }));
      store.takeDue = takeDue;
      await clock.advance("50s");
      expect(await inbox.health()).toMatchObject(BAD);
      await clock.advance("12s");
      expect(await inbox.health()).toMatchObject(GOOD);
      expect(stalls).toEqual(["stalled", "recovered"]);
      const closing = inbox.close({ graceMs: 0 });
      await clock.advance(1);
      await closing;
    }
  });

  it("is not over while polls fail whenever a place is free", async () => {
    const clock = fakeClock();
    const { inbox, store, stalls } = await setUp(clock);
    store.takeDue = () => Promise.reject(new Error("away"));
    let end = (): void => {};
    const runner = runnerOf(async () => {
      await new Promise<void>((resolve) => (end = resolve));
      return { outcome: { kind: "done" }, changes: [], onWritten() {} };
    });
    await inbox.run(runner, { concurrency: 1 });
    for (let n = 1; n <= 5; n++) {
      await clock.advance("1s");
      await inbox.accept(verifiedEvent(n, { signedAt: clock.now() }));
      await clock.advance("50s");
      end();
    }
    expect(stalls).toEqual(["stalled"]);
    const closing = inbox.close({ graceMs: 0 });
    await clock.advance(1);
    await closing;
  });
});
