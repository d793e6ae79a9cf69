/**
 * A merchant's server against a service whose world is bad: 30 % of the answers are lost, and of the rest deliveries are
 * doubled and come out of order. What the handlers did is asked of the server (`test/conformance/application.ts`).
 */
import { createSandbox, type Delivery, type FaultKind, type Sandbox } from "@payhooks/sandbox";
import { expect } from "vitest";
import { CONNECT_PATH, CONTROL_PATH, PAYMENT_PATHS } from "../conformance/application.ts";
import { KEYS, SECRET } from "../conformance/targets.ts";

/** Decides which deliveries are hit; each of the three faults hits some of them. */
const SEED = "30 percent";
export const FAULTS: readonly FaultKind[] = ["drop-answer", "duplicate", "reorder"];
const RATE = 0.3;
const MAX_WAIT_MS = 60_000;

/** A sandbox whose callbacks go to a server of the conformance suite, with the faults at work. */
export async function startLossySandbox(port: number): Promise<Sandbox> {
  const base = `http://127.0.0.1:${port}`;
  const sandbox = await createSandbox({
    seed: SEED,
    callbackUrl: base + PAYMENT_PATHS.plain,
    settings: { webhook_url: base + CONNECT_PATH, webhook_secret: SECRET, webhook_enabled: true },
    merchant: { privateKey: KEYS.privateKey },
    delayMs: 5,
    retry: { maxAttempts: 30, baseMs: 5, maxMs: 200 },
    answerTimeoutMs: MAX_WAIT_MS,
  });
  for (const kind of FAULTS) sandbox.faults.add({ kind, rate: RATE, delayMs: 100 });
  return sandbox;
}

/** Waits until so many events are acknowledged; fails with those that are not. */
export async function allDelivered(sandbox: Sandbox, count: number): Promise<readonly Delivery[]> {
  const open = (): string[] =>
    sandbox.deliveries
      .list()
      .filter(({ state }) => state !== "delivered")
      .map(({ reference, status, state }) => `${reference} ${status} ${state}`);
  await expect.poll(() => sandbox.deliveries.list().length, { timeout: MAX_WAIT_MS }).toBe(count);
  await expect.poll(open, { timeout: MAX_WAIT_MS }).toEqual([]);
  return sandbox.deliveries.list();
}

/** How often each fault happened. */
export function faultsIn(deliveries: readonly Delivery[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { attempts } of deliveries) {
    for (const kind of attempts.flatMap(({ faults }) => faults)) counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return counts;
}

/** The events that handlers ran for, as `reference STATUS` or the id of a settlement, once everything has come to rest. */
export async function runsOf(
  port: number,
  wanted: (run: string) => boolean,
  atLeast: number,
): Promise<string[]> {
  const url = `http://127.0.0.1:${port}${CONTROL_PATH}effects`;
  const runs = async (): Promise<string[]> => {
    const effects = (await (await fetch(url)).json()) as string[];
    return effects
      .filter((effect) => effect.startsWith("ran "))
      .map((effect) => {
        const event: { referenceId?: string; status?: string; data?: { id: string } } = JSON.parse(
          effect.slice(4),
        );
        return event.data?.id ?? `${event.referenceId} ${event.status}`;
      })
      .filter(wanted);
  };
  // Handlers run after the answer; that none runs twice shows in what is there once all have run.
  await expect
    .poll(async () => new Set(await runs()).size, { timeout: MAX_WAIT_MS })
    .toBeGreaterThanOrEqual(atLeast);
  return runs();
}

/** Deposits and settlements through the faults; every one must be handled once. */
export async function handledOnce(port: number, name: string): Promise<void> {
  const sandbox = await startLossySandbox(port);
  try {
    const references = Array.from({ length: 40 }, (_, n) => `${name}-${n + 1}`);
    for (const reference of references) {
      sandbox.deposit({ reference, outcome: [{ status: "PENDING" }, { status: "SUCCESS" }] });
    }
    const settlements = Array.from({ length: 10 }, () => sandbox.settlements.create({ amount: 125_000 }).id);
    for (const id of settlements) sandbox.settlements.decide(id, "approved");
    const deliveries = await allDelivered(sandbox, 2 * references.length + settlements.length);

    const faults = faultsIn(deliveries);
    for (const kind of FAULTS) expect(faults[kind]).toBeGreaterThan(10);
    const attempts = deliveries.reduce((sum, delivery) => sum + delivery.attempts.length, 0);
    expect(attempts).toBeGreaterThan(deliveries.length * 1.3);

    const isOurs = (run: string): boolean => run.startsWith(`${name}-`) || settlements.includes(run);
    const wanted = [...references.map((reference) => `${reference} SUCCESS`), ...settlements];
    const runs = await runsOf(port, (run) => isOurs(run) && !run.endsWith("PENDING"), wanted.length);
    expect(runs.toSorted()).toEqual(wanted.toSorted());
    // A PENDING that is overtaken never runs; one that is not runs once.
    const pending = await runsOf(port, (run) => isOurs(run) && run.endsWith("PENDING"), 0);
    expect(pending).toHaveLength(new Set(pending).size);
  } finally {
    await sandbox.close();
  }
}
