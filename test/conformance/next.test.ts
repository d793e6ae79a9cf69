import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { handledOnce } from "../e2e/lossy-sandbox.ts";
import { exchange, request } from "../e2e/wire.ts";
import { root } from "../package/workspace.ts";
import { CONNECT_PATH } from "./application.ts";
import { shown } from "./case.ts";
import { closeWhileConnected, ENDED_WITH_ITS_ANSWER } from "./closing.ts";
import { buildNext, NEXT, QUIET } from "./next.ts";
import { adapterConformance } from "./suite.ts";
import { NAMES, type Server, startServer } from "./targets.ts";
import { NEXT_TRAPS } from "./traps.ts";

const app = "test/conformance/next-app";
const cwd = join(root, app);

/** The files that the application imports from outside of its folder. */
const MERCHANT = ["test/conformance/application.ts", "test/conformance/servers", "test/support"];

const why = "Next.js answers methods that the route does not export";
const OWN = {
  "wrong method": { answers: ["405", "405", "405", "405"], why },
  HEAD: { answers: ["405"], why },
  OPTIONS: { answers: ["204 allow: OPTIONS, POST"], why },
  "content type repeated": {
    answers: Array(3).fill('400 {"error":{"code":"ERR_SIGNATURE_MISSING"}} application/json'),
    effects: Array(3).fill("refused 400 ERR_SIGNATURE_MISSING"),
    why: "Next.js hands over the first of several content types, and drops the others",
  },
} as const;

const NEXT_JS = { name: "Next.js", traps: NEXT_TRAPS, runsAfterResponse: true, own: OWN, startMs: 300_000 };

let first: Promise<Server> | undefined;
/** One server for everything in this file. */
function running(): Promise<Server> {
  first ??= start();
  return first;
}
afterAll(async () => (await first)?.stop());

async function start(env: Readonly<Record<string, string>> = {}): Promise<Server> {
  await buildNext(cwd, [app, ...MERCHANT, "packages/core/dist", "packages/next/dist"]);
  return startServer({
    command: process.execPath,
    args: [NEXT, "start", "--port", "0", "--hostname", "127.0.0.1"],
    cwd,
    env: { ...QUIET, ...env },
    listening: /http:\/\/127\.0\.0\.1:(\d+)[\s\S]*Ready/,
  });
}

describe("Next.js, built and started as in production, gives the same bytes the same answer", () => {
  // The server is everybody's in this file, and ended with it.
  const shared = async () => ({ port: (await running()).port, stop: async () => {} });
  adapterConformance([{ ...NEXT_JS, start: shared }]);
});

describe("Next.js does the same under the names of a deployment", () => {
  const named = () => start({ PAY_NAMES: JSON.stringify(NAMES) });
  adapterConformance([{ ...NEXT_JS, start: named }], NAMES);
});

describe("a handler that is exported under other methods too", () => {
  it.each(["GET", "PUT", "PATCH", "DELETE", "OPTIONS"])("answers %s as everywhere", async (method) => {
    const server = await running();
    const answer = await exchange(server.port, request(method, CONNECT_PATH, []));
    expect(shown(answer)).toBe(
      '405 {"error":{"code":"ERR_METHOD_NOT_ALLOWED"}} application/json allow: POST',
    );
  });
});

it("a receiver that closes ends each connection with its answer", { timeout: 300_000 }, async () => {
  const server = await start();
  try {
    expect(await closeWhileConnected(server.port)).toEqual(ENDED_WITH_ITS_ANSWER);
  } finally {
    await server.stop();
  }
});

describe("the sandbox drops 30 % of the answers, doubles and reorders the rest", { timeout: 400_000 }, () => {
  it("each handler runs once per event on Next.js", async () => {
    await handledOnce((await running()).port, "next");
  });
});
