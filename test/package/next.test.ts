/** The documentation's Next.js code in a new project: built, started, started in the background, ended, and edited. */
import { mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createReceiver } from "@payhooks/core";
import { redisInbox } from "@payhooks/core/redis";
import { callbackFields, signPaymentCallback } from "@payhooks/core/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { QUIET } from "../conformance/next.ts";
import { KEYS, type Server, startServer } from "../conformance/targets.ts";
import { SlowService, withSlowDeposits } from "../examples/slow-service.ts";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { Scope, until } from "../faults/harness/scope.ts";
import { install, pack, run, write } from "./pack.ts";
import { copy, receives, writeProject } from "./project.ts";
import { codeOf, NEXT_APP, NEXT_BACKGROUND } from "./starters.ts";
import { packagesIn } from "./workspace.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "payhooks-next-")));
const project = join(folder, NEXT_APP.name);
const next = join(project, "node_modules/.bin/next");
const scope = new Scope();
let redis: RedisServer;

beforeAll(async () => {
  redis = await RedisServer.start(scope);
  const packages = packagesIn("packages").filter(({ manifest }) => /core|next/.test(manifest.name));
  const tarballs = await pack(packages, folder);
  writeProject(NEXT_APP, project, tarballs);
  await install(folder, tarballs);
}, 180_000);
afterAll(async () => {
  await scope.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Without any secret, and without Redis. */
const build = (bundler = "--turbopack"): Promise<string> => run(next, ["build", bundler], project, QUIET);

/** Ended politely: what `next dev` has started is ended by itself. */
async function serve(command: "start" | "dev", env: Readonly<Record<string, string>> = {}): Promise<Server> {
  const server = await startServer({
    command: next,
    args: [command, "--port", "0", "--hostname", "127.0.0.1"],
    cwd: project,
    env: {
      ...QUIET,
      NODE_ENV: command === "dev" ? "development" : "production",
      REDIS_URL: redis.url,
      ...env,
    },
    listening: /http:\/\/127\.0\.0\.1:(\d+)[\s\S]*Ready/,
  });
  return scope.add(server, (one) => one.stop("SIGTERM"));
}

/** The code of the README, whose deposits wait for a slow service: one build is for all tests of how handlers end. */
async function buildSlow(where: "after the response" | "in the background"): Promise<void> {
  if (where === "in the background") copy(NEXT_BACKGROUND, project);
  write(project, "lib/receiver.ts", withSlowDeposits(codeOf(NEXT_APP.document)[0] ?? ""));
  await build();
}

/** The environment of a service that answers at once. */
async function quickService(): Promise<Readonly<Record<string, string>>> {
  const service = await SlowService.start(scope);
  service.answer();
  return service.environment;
}

const connections = async (): Promise<number> => Number(await redis.info("connected_clients"));

describe("in a new Next.js project", { timeout: 180_000 }, () => {
  it.each([["--webpack"], ["--turbopack"]])(
    "the code of the README is built and receives: %s",
    async (bundler) => {
      await build(bundler);
      const server = await serve("start");
      await receives(server);
      await server.stop("SIGTERM");
    },
  );

  describe.each([
    { where: "after the response", env: {}, codes: { SIGTERM: 143, SIGINT: 130 } },
    { where: "in the background", env: { NEXT_MANUAL_SIG_HANDLE: "true" }, codes: { SIGTERM: 0, SIGINT: 0 } },
  ] as const)("where handlers run $where", ({ where, env, codes }) => {
    beforeAll(() => buildSlow(where), 180_000);
    afterAll(() => copy(NEXT_APP, project));

    it.each(["SIGTERM", "SIGINT"] as const)(
      "a handler that is under way comes to its end at a %s",
      async (signal) => {
        const service = await SlowService.start(scope);
        const server = await serve("start", { ...env, ...service.environment });
        const fields = callbackFields({ referenceId: "slow" });
        const { rawBody, headers: signed } = signPaymentCallback(fields, KEYS.privateKey);
        // A server that closes still answers on a connection that was busy at that moment, for as long as it is used.
        const headers = { ...signed, connection: "close" };
        const deliver = async (): Promise<number> => {
          const url = `http://127.0.0.1:${server.port}/callbacks/pay`;
          return (await fetch(url, { method: "POST", headers, body: Buffer.from(rawBody) })).status;
        };
        expect(await deliver()).toBe(200);
        await until("the handler is under way", () => service.calls.length === 1);
        const ended = new Promise((resolve) => server.process.once("close", resolve));
        server.process.kill(signal);
        await until("it closes", async () => (await deliver().catch(() => 503)) === 503);
        service.answer();
        expect(await ended, server.output()).toBe(codes[signal]);
        expect(server.output().match(/credit .* for slow once/g)).toHaveLength(1);
        expect(service.calls).toHaveLength(1);
      },
    );
  });

  // On the build of the handlers in the background.
  it("with instrumentation.ts, handlers run with no request coming by", async () => {
    const server = await serve("start", await quickService());
    const other = createReceiver({
      payments: { publicKey: KEYS.publicKey },
      inbox: redisInbox(redis.url),
      run: "elsewhere",
    });
    const { rawBody, headers } = signPaymentCallback(
      callbackFields({ referenceId: "elsewhere" }),
      KEYS.privateKey,
    );
    const delivery = { method: "POST", url: "/", headers: new Headers(headers), rawBody };
    expect(await other.payments.receive(delivery)).toMatchObject({ status: 200 });
    await until("the handler", () => server.output().includes("for elsewhere once"));
    await other.close();
    await receives(server);
    await server.stop("SIGTERM");
  });

  it("with instrumentation.ts, it starts while Redis is away, and receives once Redis is there", async () => {
    const service = await quickService();
    await redis.kill();
    const server = await serve("start", service);
    const { rawBody, headers } = signPaymentCallback(callbackFields(), KEYS.privateKey);
    const url = `http://127.0.0.1:${server.port}/callbacks/pay`;
    const init = { method: "POST", headers, body: Buffer.from(rawBody) };
    expect((await fetch(url, init)).status).toBe(503);
    await redis.up();
    await until("it receives", async () => (await fetch(url, init)).status === 200);
    await receives(server);
    await server.stop("SIGTERM");
  });

  it("an edited handler replaces the one before, and its connections", async () => {
    const path = "lib/receiver.ts";
    const original = readFileSync(join(project, path), "utf8");
    const server = await serve("dev");
    await receives(server);
    const before = await connections();
    for (const edit of ["first", "second", "third"]) {
      write(project, path, original.replace("`credit ", `\`${edit} edit: credit `));
      await until(`the ${edit} edit`, async () => {
        await receives(server);
        return server.output().includes(`${edit} edit: credit`);
      });
      const seen = server.output().length;
      await receives(server);
      await receives(server);
      const credits =
        server
          .output()
          .slice(seen)
          .match(/.*credit .* for order/g) ?? [];
      expect(credits.filter((line) => !line.includes(`${edit} edit: `))).toEqual([]);
      await until("the connections of before", async () => (await connections()) === before);
    }
    await server.stop("SIGTERM");
  });
});
