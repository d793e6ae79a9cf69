/** The documentation's Next.js code in a new project: built, started, started in the background, and edited. */
import { mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createReceiver } from "@payhooks/core";
import { redisInbox } from "@payhooks/core/redis";
import { callbackFields, signPaymentCallback } from "@payhooks/core/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { QUIET } from "../conformance/next.ts";
import { KEYS, type Server, startServer } from "../conformance/targets.ts";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { Scope, until } from "../faults/harness/scope.ts";
import { install, pack, run, write } from "./pack.ts";
import { copy, lay, receives } from "./project.ts";
import { NEXT_APP, NEXT_BACKGROUND } from "./starters.ts";
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
  lay(NEXT_APP, project, tarballs);
  await install(folder, tarballs);
}, 180_000);
afterAll(async () => {
  await scope.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Without any secret, and without Redis. */
const build = (): Promise<string> => run(next, ["build"], project, QUIET);

/** Ended politely: what `next dev` has started is ended by itself. */
async function serve(command: "start" | "dev"): Promise<Server> {
  const server = await startServer({
    command: next,
    args: [command, "--port", "0", "--hostname", "127.0.0.1"],
    cwd: project,
    env: { ...QUIET, NODE_ENV: command === "dev" ? "development" : "production", REDIS_URL: redis.url },
    listening: /http:\/\/127\.0\.0\.1:(\d+)[\s\S]*Ready/,
  });
  return scope.add(server, (one) => one.stop("SIGTERM"));
}

const connections = async (): Promise<number> => Number(await redis.info("connected_clients"));

describe("in a new Next.js project", { timeout: 180_000 }, () => {
  it("the code of the README is built and receives", async () => {
    await build();
    const server = await serve("start");
    await receives(server);
    await server.stop("SIGTERM");
  });

  it("with instrumentation.ts, handlers run with no request coming by", async () => {
    copy(NEXT_BACKGROUND, project);
    await build();
    const server = await serve("start");
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
