/**
 * `npm run bench -- --seal`: what a seal adds to the cost of an event in SQLite, from its delivery to the end of its handler. Two
 * receivers in this process get as many deliveries in turn, and the processor's time of each round is compared with that of the
 * other one. `--quick` shows that it works, and measures too little.
 */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { createReceiver, type Receiver } from "@payhooks/core";
import { aesGcm } from "@payhooks/core/seal";
import { sqliteInbox } from "@payhooks/core/sqlite";
import { createTestKeys, type SignedDelivery } from "@payhooks/core/testing";
import { sealText } from "../../packages/core/src/seal/cipher.ts";
import { SealKeyring } from "../../packages/core/src/seal/keys.ts";
import { silent } from "../support/silent.ts";
import { signedDeliveries } from "./deliveries.ts";
import { estimate, verdictAtMost } from "./statistics.ts";

const isQuick = process.argv.includes("--quick");
const WARM_UP_ROUNDS = isQuick ? 1 : 4;
const ROUNDS = isQuick ? 6 : 24;
const EVENTS = isQuick ? 200 : 1_000;
const AT_ONE_TIME = 50;
/** Microseconds of the process that a seal may add to an event. */
const GOAL_US = 10;

interface MeasuredReceiver {
  readonly receiver: Receiver;
  handled: number;
  onHandled: () => void;
}

const keys = { ...createTestKeys(), secret: "whsec_bench_0123456789abcdef" };
const folder = mkdtempSync(join(tmpdir(), "payhooks-bench-"));
const key = { id: "bench", key: randomBytes(32) };

async function start(name: string, seal?: ReturnType<typeof aesGcm>): Promise<MeasuredReceiver> {
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    inbox: sqliteInbox(join(folder, `${name}.db`), { seal }),
    run: "background",
    logger: silent,
  }).ignore("WITHDRAWAL");
  const merchant: MeasuredReceiver = { receiver, handled: 0, onHandled: () => {} };
  receiver.onDeposit(() => {
    merchant.handled++;
    merchant.onHandled();
  });
  await receiver.start();
  return merchant;
}

async function post({ receiver }: MeasuredReceiver, { headers, rawBody }: SignedDelivery): Promise<void> {
  const { status } = await receiver.payments.receive({
    method: "POST",
    url: "/callbacks",
    headers: { get: (name) => headers[name] ?? null },
    rawBody,
  });
  if (status !== 200) throw new Error(`answered with ${status}`);
}

/** Microseconds of processor time for each event. */
async function costOf(merchant: MeasuredReceiver, turn: readonly SignedDelivery[]): Promise<number> {
  const until = merchant.handled + turn.length;
  const before = process.cpuUsage();
  const ended = new Promise<void>((resolve) => {
    merchant.onHandled = () => {
      if (merchant.handled === until) resolve();
    };
  });
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let one = turn[next++]; one !== undefined; one = turn[next++]) await post(merchant, one);
  };
  await Promise.all(Array.from({ length: AT_ONE_TIME }, lane));
  await ended;
  // The ends of the last runs are written in the next turns.
  for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / turn.length;
}

const pool = await signedDeliveries("rsa", (WARM_UP_ROUNDS + ROUNDS) * EVENTS, keys);
const merchants = { clear: await start("clear"), sealed: await start("sealed", aesGcm([key])) };
const costs = { clear: [] as number[], sealed: [] as number[] };
for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round++) {
  const turn = pool.slice(round * EVENTS, (round + 1) * EVENTS);
  const order = round % 2 === 0 ? (["clear", "sealed"] as const) : (["sealed", "clear"] as const);
  for (const name of order) {
    const cost = await costOf(merchants[name], turn);
    if (round >= WARM_UP_ROUNDS) costs[name].push(cost);
  }
}
for (const { receiver } of Object.values(merchants)) await receiver.close();
rmSync(folder, { recursive: true });

/** Microseconds of one seal of a record of an event. */
function costOfText(length: number): number {
  const derived = new SealKeyring([key]).current;
  const text = "x".repeat(length);
  const from = process.cpuUsage();
  for (let at = 0; at < 50_000; at++) sealText(text, "0123456789abcdef0123456789abcdef", derived);
  const { user, system } = process.cpuUsage(from);
  return (user + system) / 50_000;
}

const more = estimate(costs.sealed.map((cost, round) => cost - (costs.clear[round] ?? Number.NaN)));
console.log(
  `Node ${process.versions.node}, load ${loadavg()[0]?.toFixed(1)}, ${ROUNDS} rounds of ${EVENTS} events; ${estimate(costs.clear).median.toFixed(0)} µs of processor time for an event in the clear`,
);
console.table({
  "a seal, for an event": {
    µs: Number(more.median.toFixed(1)),
    "95 %": `${more.low.toFixed(1)} to ${more.high.toFixed(1)}`,
    goal: `≤ ${GOAL_US}`,
    verdict: verdictAtMost(more, GOAL_US),
  },
  "one text of 1,200 characters": { µs: Number(costOfText(1_200).toFixed(1)) },
  "one text of 300 characters": { µs: Number(costOfText(300).toFixed(1)) },
});
