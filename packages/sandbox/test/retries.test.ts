import { describe, expect, it, onTestFinished } from "vitest";
import type { SandboxOptions } from "../src/index.ts";
import { manualClock } from "./support/manual-clock.ts";
import { type Callback, verifies } from "./support/signature.ts";
import { receiver, start } from "./support/start.ts";

const noJitter = { jitter: 0 };

/** A sandbox on a manual clock with one deposit whose first attempt was made. */
async function delivered(answers: number[], options: SandboxOptions = {}) {
  const merchant = await receiver();
  merchant.answerWith(...answers);
  const clock = manualClock();
  const sandbox = await start({ clock, callbackUrl: merchant.url, retry: noJitter, ...options });
  sandbox.deposit({ reference: "order-1" });
  await clock.advance(0, sandbox);
  return { merchant, clock, sandbox, delivery: () => sandbox.deliveries.list()[0] };
}

/** The warnings that this process emits from now on, until the test ends. */
function warningsOfProcess(): readonly string[] {
  const warnings: string[] = [];
  const note = ({ message }: Error): void => void warnings.push(message);
  process.on("warning", note);
  onTestFinished(() => void process.off("warning", note));
  return warnings;
}

describe("the retries of a delivery", () => {
  it("wait 1, 2, 4, 8 … seconds and end with the first 2xx", async () => {
    const { merchant, clock, sandbox, delivery } = await delivered([500, 404, 302, 400, 204]);
    for (const [attempts, seconds] of [
      [1, 1],
      [2, 2],
      [3, 4],
      [4, 8],
    ] as const) {
      expect(delivery()).toMatchObject({ state: "retrying", attempts: { length: attempts } });
      const due = new Date(clock.now() + seconds * 1_000).toISOString();
      expect(delivery()?.nextAttemptAt).toBe(due);
      await clock.advance(seconds * 1_000 - 1, sandbox);
      expect(merchant.received).toHaveLength(attempts);
      await clock.advance(1, sandbox);
    }
    expect(delivery()).toMatchObject({ state: "delivered", nextAttemptAt: null });
    expect(delivery()?.attempts.map(({ answer }) => answer?.status)).toEqual([500, 404, 302, 400, 204]);
    expect(delivery()?.attempts.map(({ number, acknowledged }) => [number, acknowledged])).toEqual([
      [1, false],
      [2, false],
      [3, false],
      [4, false],
      [5, true],
    ]);
    expect(sandbox.transactions.byReference("order-1")?.transaction.webhook_received).toBe(true);
    await clock.advance(3_600_000, sandbox);
    expect(merchant.received).toHaveLength(5);
  });

  it("are told one by one to each listener, with the time of the next one, until it no longer listens", async () => {
    const merchant = await receiver();
    merchant.answerWith(500, 404);
    const clock = manualClock();
    const retry = { ...noJitter, maxAttempts: 2 };
    const sandbox = await start({ clock, callbackUrl: merchant.url, retry });
    const told: unknown[] = [];
    const stop = sandbox.deliveries.onAttempt(({ reference, state, nextAttemptAt }, { number, answer }) => {
      const seconds = nextAttemptAt === null ? null : (Date.parse(nextAttemptAt) - clock.now()) / 1_000;
      told.push([reference, number, answer?.status, state, seconds]);
    });
    sandbox.deposit({ reference: "order-1" });
    await clock.advance(60_000, sandbox);
    sandbox.faults.add({ kind: "duplicate" });
    sandbox.deposit({ reference: "order-2" });
    await clock.advance(0, sandbox);
    expect(told).toEqual([
      ["order-1", 1, 500, "retrying", 1],
      ["order-1", 2, 404, "gave-up", null],
      ["order-2", 1, 200, "delivered", null],
      ["order-2", 2, 200, "delivered", null],
    ]);
    stop();
    sandbox.deposit({ reference: "order-3" });
    await clock.advance(0, sandbox);
    expect(told).toHaveLength(4);
  });

  it.each([
    [
      "throws",
      () => {
        throw new Error("a mistake");
      },
    ],
    [
      "rejects",
      async () => {
        throw new Error("a mistake");
      },
    ],
  ])("go on, and are told to other listeners, if one of them %s", async (_, listener) => {
    const warnings = warningsOfProcess();
    const merchant = await receiver();
    merchant.answerWith(500);
    const clock = manualClock();
    const sandbox = await start({ clock, callbackUrl: merchant.url, retry: noJitter });
    const told: number[] = [];
    sandbox.deliveries.onAttempt(listener);
    sandbox.deliveries.onAttempt((_, { number }) => void told.push(number));
    sandbox.deposit({ reference: "order-1" });
    await clock.advance(60_000, sandbox);
    expect(told).toEqual([1, 2]);
    expect(sandbox.deliveries.list()).toMatchObject([{ reference: "order-1", state: "delivered" }]);
    await expect
      .poll(() => warnings)
      .toEqual(Array(2).fill("A listener of onAttempt failed: Error: a mistake"));
  });

  it("are in the log as failed if the sandbox cannot make them, and are made again", async () => {
    const merchant = await receiver();
    // At the end of the times that a date can have.
    const clock = manualClock(-8.64e15 + 5e11);
    const sandbox = await start({ clock, callbackUrl: merchant.url, retry: noJitter });
    sandbox.faults.add({ kind: "stale-timestamp", ageMs: 1e12 });
    sandbox.deposit({ reference: "order-1" });
    await clock.advance(60_000, sandbox);
    expect(sandbox.deliveries.list()).toMatchObject([
      {
        state: "delivered",
        attempts: [
          { answer: null, error: expect.stringContaining("Invalid time value"), faults: ["stale-timestamp"] },
          { answer: { status: 200 }, error: null },
        ],
      },
    ]);
  });

  it("wait for no time if there is none to multiply", async () => {
    const merchant = await receiver();
    merchant.answerWith(...Array(30).fill(500));
    const clock = manualClock();
    const retry = { ...noJitter, baseMs: 0, factor: Number.MAX_SAFE_INTEGER, maxAttempts: 40 };
    const sandbox = await start({ clock, callbackUrl: merchant.url, retry });
    sandbox.deposit({ reference: "order-1" });
    await clock.advance(0, sandbox);
    const { attempts } = await sandbox.deliveries.waitFor({ reference: "order-1", state: "delivered" });
    expect(attempts).toHaveLength(31);
  });

  it("repeat the same bytes", async () => {
    const { merchant, clock, sandbox } = await delivered([500, 500]);
    await clock.advance(60_000, sandbox);
    expect(new Set(merchant.received.map(({ body }) => body)).size).toBe(1);
    expect(merchant.received).toHaveLength(3);
  });

  it("are dated and signed anew where that is asked for, with the key of the moment", async () => {
    const { merchant, clock, sandbox } = await delivered([500], { signRetries: "anew" });
    const before = sandbox.keys.publicKey;
    await sandbox.keys.rotate();
    await clock.advance(60_000, sandbox);
    const [first, second] = merchant.received.map(({ body }): Callback => JSON.parse(body));
    expect(first && verifies(first, before)).toBe(true);
    expect(second && verifies(second, sandbox.keys.publicKey)).toBe(true);
    expect(second?.timestamp?.slice(0, 20)).toBe("2026-03-01T12:00:01.");
    expect({ ...second, timestamp: "", signature: "" }).toEqual({ ...first, timestamp: "", signature: "" });
  });

  it("end after the last attempt, and the log says so", async () => {
    const { merchant, clock, sandbox, delivery } = await delivered([500, 500, 500, 500], {
      retry: { ...noJitter, maxAttempts: 3 },
    });
    await clock.advance(3_600_000, sandbox);
    expect(merchant.received).toHaveLength(3);
    expect(delivery()).toMatchObject({ state: "gave-up", nextAttemptAt: null, attempts: { length: 3 } });
    expect(sandbox.transactions.byReference("order-1")?.transaction.webhook_received).toBe(false);
  });

  it("never wait longer than the maximum", async () => {
    const retry = { jitter: 0, baseMs: 100, factor: 10, maxMs: 500, maxAttempts: 5 };
    const { clock, sandbox } = await delivered([500, 500, 500, 500], { retry });
    const waits: number[] = [];
    for (let wait = clock.waiting()[0]; wait !== undefined; wait = clock.waiting()[0]) {
      waits.push(wait);
      await clock.advance(wait, sandbox);
    }
    expect(waits.filter((wait) => wait <= 500)).toEqual([100, 500, 500, 500]);
  });

  it("swing by the jitter, the same for the same seed", async () => {
    const waitOf = async (seed: string, reference: string) => {
      const merchant = await receiver();
      merchant.answerWith(500);
      const clock = manualClock();
      const sandbox = await start({ clock, seed, callbackUrl: merchant.url });
      sandbox.deposit({ reference });
      await clock.advance(0, sandbox);
      return clock.waiting()[0] ?? 0;
    };
    const waits = await Promise.all(
      ["a", "b", "c", "d", "e", "f"].map((reference) => waitOf("seed", reference)),
    );
    for (const wait of waits) expect(wait).toBeGreaterThanOrEqual(500);
    for (const wait of waits) expect(wait).toBeLessThanOrEqual(1_500);
    expect(new Set(waits).size).toBeGreaterThan(3);
    expect(await waitOf("seed", "c")).toBe(waits[2]);
    expect(await waitOf("another seed", "c")).not.toBe(waits[2]);
  });

  it("follow an address that nobody listens on, and say why", async () => {
    const merchant = await receiver();
    await merchant.close();
    const clock = manualClock();
    const sandbox = await start({ clock, callbackUrl: merchant.url, retry: noJitter });
    sandbox.deposit();
    await clock.advance(0, sandbox);
    const [delivery] = sandbox.deliveries.list();
    expect(delivery).toMatchObject({ state: "retrying" });
    expect(delivery?.attempts).toMatchObject([
      { answer: null, acknowledged: false, error: expect.stringContaining("ECONNREFUSED") },
    ]);
  });

  it("follow an answer that does not come in time", async () => {
    const merchant = await receiver();
    const asked = new Promise<void>((resolve) => merchant.answerWith(() => resolve()));
    const clock = manualClock();
    const sandbox = await start({ clock, callbackUrl: merchant.url, answerTimeoutMs: 700, retry: noJitter });
    sandbox.deposit();
    const running = clock.advance(0);
    await running;
    await asked;
    await clock.advance(700, sandbox);
    expect(sandbox.deliveries.list()[0]?.attempts).toMatchObject([
      { answer: null, error: expect.stringContaining("no answer within 700 ms") },
    ]);
  });

  it("follow an answer that begins in time, and does not end in time", async () => {
    const merchant = await receiver();
    const begun = new Promise<void>((resolve) =>
      merchant.answerWith((response) => {
        response.writeHead(200);
        response.write("wait", () => resolve());
      }),
    );
    const clock = manualClock();
    const sandbox = await start({ clock, callbackUrl: merchant.url, answerTimeoutMs: 700, retry: noJitter });
    sandbox.deposit();
    await clock.advance(0);
    await begun;
    // The sandbox has the beginning, too.
    await new Promise((resolve) => setTimeout(resolve, 100));
    await clock.advance(700, sandbox);
    expect(sandbox.deliveries.list()[0]?.attempts).toMatchObject([
      { answer: null, error: "no answer within 700 ms" },
    ]);
  });

  it("keep no more than an excerpt of an endless answer", async () => {
    const merchant = await receiver();
    merchant.answerWith((response) => {
      response.writeHead(500);
      response.end("x".repeat(1_000_000));
    });
    const sandbox = await start({ callbackUrl: merchant.url });
    sandbox.deposit();
    const delivery = await sandbox.deliveries.waitFor({ state: "retrying" });
    await expect
      .poll(() => sandbox.deliveries.get(delivery.id)?.attempts[0]?.answer?.bodyExcerpt.length)
      .toBe(2_048);
  });
});

describe("a replay", () => {
  it("sends the same bytes as a new entry that names the old one", async () => {
    const { merchant, sandbox, delivery } = await delivered([]);
    const first = delivery();
    const replay = sandbox.deliveries.replay(first?.id ?? "");
    await sandbox.deliveries.idle();
    expect(merchant.received.map(({ body }) => body)).toEqual([
      first?.attempts[0]?.body,
      first?.attempts[0]?.body,
    ]);
    expect(sandbox.deliveries.get(replay.id)).toMatchObject({ replayOf: first?.id, state: "delivered" });
  });

  it("signs anew with the key of today where that is asked for", async () => {
    const { merchant, sandbox, delivery } = await delivered([]);
    await sandbox.keys.rotate();
    sandbox.deliveries.replay(delivery()?.id ?? "");
    sandbox.deliveries.replay(delivery()?.id ?? "", { resign: true });
    await sandbox.deliveries.idle();
    expect(merchant.received).toHaveLength(3);
    const callbacks = merchant.received.map(({ body }): Callback => JSON.parse(body));
    const isNew = callbacks.map((one) => verifies(one, sandbox.keys.publicKey));
    expect(isNew.filter(Boolean)).toHaveLength(1);
  });

  it("of a delivery that is not in the log is refused", async () => {
    const sandbox = await start();
    expect(() => sandbox.deliveries.replay("dlv_nobody")).toThrow(/No delivery dlv_nobody/);
  });
});

describe("key rotation", () => {
  it("gives callbacks of before the old key and callbacks of after the new one", async () => {
    const { merchant, clock, sandbox } = await delivered([]);
    const { publicKey, keyId } = sandbox.keys;
    await sandbox.keys.rotate();
    expect(sandbox.keys.keyId).not.toBe(keyId);
    sandbox.deposit({ reference: "order-2" });
    await clock.advance(0, sandbox);
    const [before, after] = merchant.received.map(({ body }): Callback => JSON.parse(body));
    expect(before && [verifies(before, publicKey), verifies(before, sandbox.keys.publicKey)]).toEqual([
      true,
      false,
    ]);
    expect(after && [verifies(after, publicKey), verifies(after, sandbox.keys.publicKey)]).toEqual([
      false,
      true,
    ]);
  });
});
