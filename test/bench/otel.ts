/**
 * `npm run bench -- --otel`: what OpenTelemetry adds to the cost of an event, from its request on Express to the end of its handler.
 * Five processes get the same deliveries in turn: without instrumentation, with the API alone, with an SDK alone, with an SDK and two
 * empty spans for each event, and with an SDK that samples every span and drops it at its exporter. `--quick` shows that it works, and
 * measures too little.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { loadavg } from "node:os";
import { fileURLToPath } from "node:url";
import { createTestKeys, type SignedDelivery } from "@payhooks/core/testing";
import { signedDeliveries } from "./deliveries.ts";
import type { Answer, Instrumented, Question } from "./otel-server.ts";
import { estimate, verdictAtMost } from "./statistics.ts";

const isQuick = process.argv.includes("--quick");
const WARM_UP_ROUNDS = isQuick ? 1 : 6;
const ROUNDS = isQuick ? 6 : 30;
const EVENTS = isQuick ? 300 : 2_000;
const AT_ONE_TIME = 16;

interface Comparison {
  readonly name: string;
  readonly measured: Instrumented;
  readonly with: Instrumented;
  /** How much dearer an event may be, as a share of what it is compared with; null where nobody has to reach anything. */
  readonly atMost: number | null;
}

const COMPARISONS: readonly Comparison[] = [
  { name: "otel() with the API alone", measured: "api", with: "none", atMost: 0.03 },
  { name: "otel() with an SDK, every span sampled", measured: "sdk", with: "none", atMost: 0.15 },
  { name: "of it, the SDK alone", measured: "alone", with: "none", atMost: null },
  { name: "of it, otel() beside an SDK that is there", measured: "sdk", with: "alone", atMost: null },
  { name: "an SDK and two empty spans, without otel()", measured: "spans", with: "none", atMost: null },
];

/** One process that is measured. */
interface MeasuredProcess {
  readonly child: ChildProcess;
  readonly port: number;
  readonly agent: Agent;
  sent: number;
}

const keys = { ...createTestKeys(), secret: "whsec_bench_0123456789abcdef" };
const deliveries = await signedDeliveries("rsa", (WARM_UP_ROUNDS + ROUNDS) * EVENTS, keys);

async function start(instrumented: Instrumented): Promise<MeasuredProcess> {
  const program = fileURLToPath(new URL("otel-server.ts", import.meta.url));
  const child = fork(program, [instrumented, keys.publicKey], {
    execArgv: ["--import=tsx"],
    env: { ...process.env, NODE_ENV: "production" },
  });
  const [port] = (await once(child, "message")) as [number];
  return { child, port, agent: new Agent({ keepAlive: true, maxSockets: AT_ONE_TIME }), sent: 0 };
}

function post({ port, agent }: MeasuredProcess, { rawBody, headers }: SignedDelivery): Promise<void> {
  return new Promise((resolve, reject) => {
    const sending = request({
      host: "127.0.0.1",
      port,
      agent,
      method: "POST",
      path: "/callbacks/pay",
      headers,
    });
    sending.once("error", reject);
    sending.once("response", (response) => {
      response.resume().once("end", () => {
        if (response.statusCode === 200) resolve();
        else reject(new Error(`answered with ${response.statusCode}`));
      });
    });
    sending.end(rawBody);
  });
}

async function cpuUs({ child, sent }: MeasuredProcess): Promise<number> {
  const answered = once(child, "message") as Promise<[Answer]>;
  child.send({ handled: sent } satisfies Question);
  return (await answered)[0].cpuUs;
}

/** Microseconds of processor time that the process took for each event. */
async function costOf(merchant: MeasuredProcess, turn: readonly SignedDelivery[]): Promise<number> {
  const before = await cpuUs(merchant);
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let one = turn[next++]; one !== undefined; one = turn[next++]) await post(merchant, one);
  };
  await Promise.all(Array.from({ length: AT_ONE_TIME }, lane));
  merchant.sent += turn.length;
  return ((await cpuUs(merchant)) - before) / turn.length;
}

const merchants = {
  none: await start("none"),
  api: await start("api"),
  alone: await start("alone"),
  spans: await start("spans"),
  sdk: await start("sdk"),
};
const order = Object.keys(merchants) as Instrumented[];
const costs: Record<Instrumented, number[]> = { none: [], api: [], alone: [], spans: [], sdk: [] };
for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round++) {
  const turn = deliveries.slice(round * EVENTS, (round + 1) * EVENTS);
  for (let at = 0; at < order.length; at++) {
    const name = order[(at + round) % order.length] ?? "none";
    const cost = await costOf(merchants[name], turn);
    if (round >= WARM_UP_ROUNDS) costs[name].push(cost);
  }
}
for (const { child, agent } of Object.values(merchants)) {
  agent.destroy();
  child.disconnect();
}

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
console.log(
  `Node ${process.versions.node}, load ${loadavg()[0]?.toFixed(1)}, ${ROUNDS} rounds of ${EVENTS} events; ${estimate(costs.none).median.toFixed(0)} µs of processor time for an event without instrumentation`,
);
console.table(
  Object.fromEntries(
    COMPARISONS.map(({ name, measured, with: base, atMost }) => {
      const more = estimate(
        costs[measured].map((cost, round) => cost / (costs[base][round] ?? Number.NaN) - 1),
      );
      return [
        name,
        {
          µs: Math.round(estimate(costs[measured]).median),
          more: percent(more.median),
          "95 %": `${percent(more.low)} to ${percent(more.high)}`,
          goal: atMost === null ? "" : `≤ ${percent(atMost)}`,
          verdict: atMost === null ? "" : verdictAtMost(more, atMost),
        },
      ];
    }),
  ),
);
