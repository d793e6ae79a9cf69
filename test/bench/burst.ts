/**
 * `npm run bench -- --burst`: 10,000 deliveries at the same moment, each on a connection of its own, to a receiver on each inbox
 * and to Express alone. How long is the event loop away, and how are they answered? It prints, and asserts nothing. On a machine
 * that has other work to do, the processor time of the longest turn says more than its length.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { availableParallelism, loadavg } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { createTestKeys, type SignedDelivery } from "@payhooks/core/testing";
import { hasRedis } from "../../scripts/redis-server.mjs";
import { PostgresServer } from "../faults/harness/postgres-server.ts";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { withScope } from "../faults/harness/scope.ts";
import type { Turns } from "./burst-server.ts";
import { signedDeliveries } from "./deliveries.ts";
import { percentile } from "./statistics.ts";
import { table } from "./table.ts";

const { values: options } = parseArgs({
  options: { events: { type: "string", default: "10000" } },
  strict: false,
});
const COUNT = Number(options.events);
const WARM_UP = 500;

const keys = { ...createTestKeys(), secret: "whsec_burst_0123456789abcdef" };

/** Sends all at once, and counts the answers by their status; `slowestMs` is of those that were accepted. */
async function burst(port: number, deliveries: readonly SignedDelivery[]) {
  const agent = new Agent({ maxSockets: Number.POSITIVE_INFINITY });
  const answers: Record<string, number> = {};
  const times: number[] = [];
  const send = ({ rawBody, headers }: SignedDelivery): Promise<void> =>
    new Promise((resolve) => {
      const from = performance.now();
      const done = (answer: unknown): void => {
        answers[String(answer)] = (answers[String(answer)] ?? 0) + 1;
        if (answer === 200) times.push(performance.now() - from);
        resolve();
      };
      const sent = { host: "127.0.0.1", port, path: "/pay", method: "POST", agent };
      const length = { "content-length": rawBody.byteLength };
      const posting = request({ ...sent, headers: { ...headers, ...length } }, (response) => {
        response.resume().once("end", () => done(response.statusCode));
      });
      posting.once("error", (error: NodeJS.ErrnoException) => done(error.code));
      posting.end(rawBody);
    });
  const from = performance.now();
  await Promise.all(deliveries.map(send));
  agent.destroy();
  return { answers, ms: performance.now() - from, slowestMs: percentile(times, 1) };
}

async function measure(kind: string, url: string): Promise<readonly string[]> {
  const all = await signedDeliveries("rsa", WARM_UP + COUNT, keys);
  const env = { ...process.env, NODE_ENV: "production", PAY_PUBLIC_KEY: keys.publicKey };
  const program = fileURLToPath(new URL("burst-server.ts", import.meta.url));
  const child: ChildProcess = fork(program, [kind, url], { execArgv: ["--import=tsx"], env });
  const next = async (): Promise<unknown> => (await once(child, "message"))[0];
  const port = (await next()) as number;
  const ask = async (): Promise<Turns> => {
    const answer = next();
    child.send("turns");
    return (await answer) as Turns;
  };
  await burst(port, all.slice(0, WARM_UP));
  await ask();
  const { answers, ms, slowestMs } = await burst(port, all.slice(WARM_UP));
  const { longestMs, longestCpuMs, cpuMs } = await ask();
  child.kill("SIGKILL");
  const codes = Object.entries(answers).map(([status, count]) => `${count} × ${status}`);
  const figures = [longestMs, longestCpuMs, slowestMs, ms, cpuMs].map((value) => `${Math.round(value)} ms`);
  return [kind, ...figures, codes.join(", ")];
}

await withScope(async (scope) => {
  const postgres = await PostgresServer.start(scope);
  const redis = hasRedis() ? await RedisServer.start(scope, { aof: "everysec" }) : null;
  const rows: (readonly string[])[] = [];
  for (const [kind, url] of [
    ["Express alone", ""],
    ["memory", ""],
    ["SQLite", ""],
    ...(redis === null ? [] : [["Redis", redis.url]]),
    ["PostgreSQL", postgres.url],
  ]) {
    rows.push(await measure(kind ?? "", url ?? ""));
  }
  const load = (loadavg()[0] ?? Number.NaN).toFixed(1);
  console.log(
    `${COUNT} deliveries at once, Node ${process.versions.node}, ${availableParallelism()} cores, load ${load}`,
  );
  const head = [
    "the longest turn",
    "in processor time",
    "the slowest 200",
    "all answered after",
    "processor time",
    "answers",
  ];
  console.log(table(["inbox", ...head], rows));
});
