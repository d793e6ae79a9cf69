/** One event through three processes is one trace, with what each handler has asked of the database below it. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createTestKeys } from "@payhooks/core/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { PostgresServer } from "../faults/harness/postgres-server.ts";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { Scope } from "../faults/harness/scope.ts";
import { type PrintedSpan, TRACED_VARIABLE, type TracedStep } from "./traced-step.ts";

const scope = new Scope();
const keys = createTestKeys();
let postgres: PostgresServer;
let redis: RedisServer;
beforeAll(async () => {
  postgres = await PostgresServer.start(scope);
  redis = await RedisServer.start(scope);
});
afterAll(() => scope.close());

async function take(step: TracedStep["step"], on: "PostgreSQL" | "Redis"): Promise<readonly PrintedSpan[]> {
  const told: TracedStep = {
    step,
    postgres: postgres.url,
    redis: on === "Redis" ? redis.url : null,
    name: "traced",
    ...keys,
  };
  const program = fileURLToPath(new URL("traced-process.ts", import.meta.url));
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--conditions=payhooks-source", "--import=tsx", program],
    { env: { ...process.env, [TRACED_VARIABLE]: JSON.stringify(told) } },
  );
  return JSON.parse(stdout) as readonly PrintedSpan[];
}

it.each(["PostgreSQL", "Redis"] as const)(
  "an event that fails, is tried by another process, is held, is replayed by a third one and done is one trace, on %s",
  { timeout: 60_000 },
  async (on) => {
    const spans = [
      ...(await take("accept", on)),
      ...(await take("retry", on)),
      ...(await take("replay", on)),
    ];
    const [http] = spans.filter(({ name }) => name === "POST /payhooks");
    const inTrace = spans.filter(({ traceId }) => traceId === http?.traceId);
    const parentOf = ({ parent }: PrintedSpan): string | undefined =>
      spans.find(({ spanId }) => spanId === parent)?.name;

    const own = inTrace.filter(({ attributes }) => attributes["messaging.system"] === "payhooks");
    expect(own.map((span) => [span.name, parentOf(span), span.attributes["payhooks.outcome"]])).toEqual([
      ["accept payments", "POST /payhooks", "new"],
      ["process payments", "accept payments", "retry"],
      ["process payments", "accept payments", "given-up"],
      ["hold payments", "accept payments", undefined],
      ["process payments", "accept payments", "done"],
    ]);
    expect(own.map(({ attributes }) => attributes["payhooks.replays"])).toEqual([undefined, 0, 0, 0, 1]);

    const calls = own.filter(({ name }) => name === "process payments");
    const below = calls.map(({ spanId }) =>
      inTrace
        .filter(({ parent }) => parent === spanId)
        .map(({ attributes }) => attributes["db.statement"] ?? attributes["db.query.text"])
        .filter((text) => text !== undefined),
    );
    expect(below).toEqual([["SELECT 'accept'"], ["SELECT 'retry'"], ["SELECT 'replay'"]]);
  },
);
