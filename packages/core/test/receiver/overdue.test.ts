/** A handler that goes on past its time limit is not called beside itself. */
import type { HandlerOptions } from "@payhooks/core";
import { createHarness, createTestKeys, type Harness } from "@payhooks/core/testing";
import { expect, it } from "vitest";

const keys = createTestKeys();

/** A handler whose first call goes on until it is let go. */
async function slowAtFirst(options: HandlerOptions): Promise<{
  readonly t: Harness;
  readonly calls: number[];
  readonly atOnce: () => number;
  readonly release: () => void;
}> {
  const calls: number[] = [];
  let running = 0;
  let most = 0;
  let release = (): void => {};
  const free = new Promise<void>((resolve) => {
    release = resolve;
  });
  const t = await createHarness({
    keys,
    register: (receiver) =>
      receiver.onDeposit(
        async (_, { attempt }) => {
          calls.push(attempt);
          most = Math.max(most, ++running);
          if (calls.length === 1) await free;
          running--;
        },
        { timeoutMs: 10_000, backoffMs: () => 1_000, ...options },
      ),
  });
  return { t, calls, atOnce: () => most, release };
}

const errorsOf = ({ notices }: Harness): readonly string[] =>
  notices.flatMap((notice) => (notice.type === "retry" ? [notice.error] : []));

it("while a call of a handler is over its time, further attempts of its event fail without a call", async () => {
  const { t, calls, atOnce, release } = await slowAtFirst({});
  const delivering = t.deposit();
  await t.advance("10s");
  await t.advance("2s");
  const { eventId } = await delivering;
  expect(calls).toEqual([1]);
  expect(errorsOf(t).slice(0, 2)).toEqual([
    "Error: timed out after 10000 ms",
    "Error: attempt 1 is over time and has not ended, so the handler was not called again",
  ]);
  release();
  await t.advance("2s");
  expect(calls).toHaveLength(2);
  expect(calls[1]).toBeGreaterThan(2);
  expect(atOnce()).toBe(1);
  expect((await t.receiver.events.get(`${eventId}`))?.state).toBe("done");
  await t.close();
});

it("while a call is over its time, its event is held once the attempts are used up", async () => {
  const { t, calls, release } = await slowAtFirst({ maxAttempts: 3 });
  const delivering = t.deposit();
  await t.advance("10s");
  await t.advance("5s");
  const { eventId } = await delivering;
  expect(calls).toEqual([1]);
  const event = await t.receiver.events.get(`${eventId}`);
  expect(event).toMatchObject({ state: "held", reason: "exhausted" });
  expect(event?.detail).toContain("attempt 1 is over time");
  release();
  // A person replays it once the call has ended: it is called then.
  await t.receiver.events.replay(`${eventId}`, { by: "an operator", note: "the bank is back" });
  await t.advance("1s");
  expect(calls).toHaveLength(2);
  await t.close();
});

it('with onTimeout: "rerun", a handler is called again while its first call is over its time', async () => {
  const { t, calls, atOnce, release } = await slowAtFirst({ onTimeout: "rerun" });
  const delivering = t.deposit();
  await t.advance("10s");
  await t.advance("2s");
  await delivering;
  expect([calls, atOnce()]).toEqual([[1, 2], 2]);
  release();
  await t.close();
});

it("while a call is over its time, the handler is called for other events", async () => {
  const { t, calls, release } = await slowAtFirst({});
  const first = t.deposit();
  await t.advance("10s");
  expect((await t.deposit()).outcome).toBe("done");
  expect(calls).toEqual([1, 1]);
  release();
  await first;
  await t.close();
});
