/**
 * For how long a request keeps the event loop, and with it everybody else, waiting: what the fuzzer sends, and bodies of
 * nearly 64 KiB in the shapes that cost most, each answered and run by a receiver in this process. It prints, and asserts
 * nothing; test/security/event-loop.test.ts counts the steps.
 */
import { createReceiver, memoryInbox, type Receiver } from "@payhooks/core";
import { systemClock } from "../../packages/core/src/time/clock.ts";
import { Fuzzer } from "../security/fuzz/fuzzer.ts";
import { heavyDeliveries } from "../security/fuzz/heavy.ts";
import { KEYS, NOW, SECRET } from "../security/fuzz/signed.ts";
import { silent } from "../support/silent.ts";
import { median, percentile } from "./statistics.ts";
import { table } from "./table.ts";

/** No request may stop the event loop for longer. */
const GOAL_MS = 20;
const MAX_BYTES = 64 * 1024;
const ATTEMPTS = 2_000;
/** A measurement above this is repeated: other processes and the compiler take their time as well. */
const AGAIN_FROM_MS = 0.5;
const TIMES = 5;

interface Request {
  readonly name: string;
  readonly flow: "payments" | "connect";
  readonly method: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Uint8Array;
}

const clock = { ...systemClock, now: () => NOW };

async function startReceiver(): Promise<Receiver> {
  const receiver = createReceiver({
    payments: { publicKey: KEYS.publicKey },
    connect: { secret: SECRET },
    inbox: memoryInbox({ clock, maxRecords: 100 }),
    clock,
    run: "after-response",
    logger: silent,
  });
  const nothing = (): void => {};
  receiver.onDeposit({ SUCCESS: nothing, FAILED: nothing, PENDING: nothing });
  receiver.onWithdrawal({ SUCCESS: nothing, FAILED: nothing, PENDING: nothing });
  receiver.onConnectedAccountApproved(nothing).onConnectedAccountDeclined(nothing);
  receiver.onSettlementApproved(nothing).onSettlementDeclined(nothing);
  await receiver.start();
  return receiver;
}

/**
 * The longest time between two turns of the event loop, from a request's arrival until all that it started is done. Of
 * the clock's time and the processor's the lesser one: other processes do not count.
 */
async function longestStop(request: Request): Promise<number> {
  const receiver = await startReceiver();
  let isDone = false;
  const work: Promise<unknown>[] = [];
  const { flow, method, headers, body } = request;
  let from = performance.now();
  let before = process.cpuUsage();
  void receiver[flow]
    .receive({
      method,
      url: "/",
      headers: { get: (name) => headers.get(name) ?? null },
      rawBody: body,
      waitUntil: (promise) => work.push(promise),
    })
    .then(async () => {
      await Promise.all(work);
      isDone = true;
    });
  let longest = 0;
  while (!isDone) {
    await new Promise((resolve) => setImmediate(resolve));
    const now = performance.now();
    const { user, system } = process.cpuUsage(before);
    longest = Math.max(longest, Math.min(now - from, (user + system) / 1_000));
    from = now;
    before = process.cpuUsage();
  }
  await receiver.close({ graceMs: 0 });
  return longest;
}

/** The least of several times where one was long. */
async function stopOf(request: Request): Promise<number> {
  let ms = await longestStop(request);
  for (let again = 1; again < TIMES && ms > AGAIN_FROM_MS; again++) {
    ms = Math.min(ms, await longestStop(request));
  }
  return ms;
}

/** The fuzzer's deliveries, without the sockets. */
function fuzzed(): readonly Request[] {
  const fuzzer = new Fuzzer(1);
  return Array.from({ length: ATTEMPTS }, (_, number) => fuzzer.attempt(number)).flatMap((tried) => {
    const { to: flow, method, body, headers, done } = tried;
    if (body === null || body.byteLength > MAX_BYTES) return [];
    const byName = new Map(headers.map(([name, value]) => [name.toLowerCase(), value]));
    return [{ name: done.join(", ") || "as it was signed", flow, method, headers: byName, body }];
  });
}

const heavy = (wanted: "payments" | "connect", signed: boolean): readonly Request[] =>
  heavyDeliveries()
    .filter((one) => one.flow === wanted && one.signed === signed)
    .map(({ name, flow, headers, body }) => ({
      name,
      flow,
      method: "POST",
      headers: new Map(Object.entries(headers)),
      body,
    }));

const GROUPS: readonly (readonly [name: string, requests: readonly Request[]])[] = [
  ["the fuzzer's requests", fuzzed()],
  ["callbacks of 64 KiB, not signed", heavy("payments", false)],
  ["callbacks of 64 KiB, signed", heavy("payments", true)],
  ["webhooks of 64 KiB, not signed", heavy("connect", false)],
  ["webhooks of 64 KiB, signed", heavy("connect", true)],
];

// Compiled before it is measured.
for (const request of fuzzed().slice(0, 300)) await longestStop(request);

const rows: string[][] = [];
for (const [name, requests] of GROUPS) {
  const stops: { readonly name: string; readonly ms: number }[] = [];
  for (const request of requests) stops.push({ name: request.name, ms: await stopOf(request) });
  const times = stops.map(({ ms }) => ms);
  const longest = stops.reduce((a, b) => (b.ms > a.ms ? b : a));
  rows.push([
    name,
    String(stops.length),
    `${median(times).toFixed(2)} ms`,
    `${percentile(times, 0.99).toFixed(2)} ms`,
    `${longest.ms.toFixed(2)} ms`,
    longest.name,
    String(times.filter((ms) => ms > GOAL_MS).length),
  ]);
}
const head = [
  "the event loop stands still for",
  "requests",
  "median",
  "p99",
  "longest",
  "which is",
  `over ${GOAL_MS} ms`,
];
console.log(`\n${table(head, rows)}`);
