/** The shutdown that the documentation shows: each of its programs, and each of its snippets in a program. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  callbackFields,
  createTestKeys,
  forgedCallback,
  type SignedDelivery,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { globSync } from "tinyglobby";
import { describe, expect, it } from "vitest";
import { documents } from "../docs/markdown.ts";
import { toJavaScript } from "../docs/program.ts";
import { RunningProgram } from "../e2e/program.ts";
import { type Scope, until, withScope } from "../faults/harness/scope.ts";
import { root } from "../package/workspace.ts";
import { SlowService, withSlowDeposits } from "./slow-service.ts";

const { publicKey, privateKey } = createTestKeys();
const quickstart = readFileSync(join(root, "examples/express/src/quickstart.ts"), "utf8");
const listens = 'server.once("listening", () => console.log("listening", server.address()));\n';

/** A snippet begins where its reader's server does: here it is the one of the quick start. */
function programOf(text: string): string {
  if (text.includes("createReceiver(")) return text;
  const [start] = quickstart.split("const server =");
  return `${start}${text.replace("app.listen(3000)", "app.listen(0)")}${listens}`;
}

/** In documents; what imports a file of its own project is tested there (test/package/next.test.ts). */
const shown = documents().flatMap(({ path, blocks }) =>
  blocks
    .filter(
      ({ language, text }) => language === "ts" && text.includes("SIGTERM") && !text.includes('import("./'),
    )
    .map(({ text }) => ({ path, text })),
);

/** The program, listening, with a connection on which nothing is said. */
async function start(
  scope: Scope,
  code: string,
  env: Readonly<Record<string, string>>,
): Promise<{ readonly program: RunningProgram; readonly port: number }> {
  const program = new RunningProgram({ code: toJavaScript(code), folder: "test" }, [], {
    PAY_PUBLIC_KEY: publicKey,
    CONNECT_WEBHOOK_SECRET: "whsec_0123456789abcdef",
    PORT: "0",
    ...env,
  });
  scope.add(program, async (one) => {
    one.kill();
    await one.exitCode;
  });
  const [, port] = await program.until(/listening .*port: (\d+)/);
  const silent = scope.add(connect(Number(port), "localhost"), (one) => one.destroy());
  silent.on("error", () => {});
  await new Promise((resolve) => silent.once("connect", resolve));
  return { program, port: Number(port) };
}

async function post(port: number, { headers, rawBody }: SignedDelivery): Promise<number> {
  const url = `http://localhost:${port}/callbacks/pay`;
  return (await fetch(url, { method: "POST", headers, body: rawBody })).status;
}

/** A forgery is refused until the receiver closes; then everything is answered 503, or nothing listens any more. */
async function isClosing(port: number): Promise<boolean> {
  const forged = forgedCallback(callbackFields(), { amount: "9.000000" }, privateKey);
  return (await post(port, forged).catch(() => 503)) === 503;
}

const credited = ({ output }: RunningProgram): readonly string[] =>
  [...output.matchAll(/credit .* for (\S+) once/g)].map(([, reference = ""]) => reference).sort();

describe.each(shown)("the shutdown in $path", ({ text }) => {
  it.each(["SIGTERM", "SIGINT"] as const)(
    "lets handlers end that are under way, loses and repeats nothing, and ends with 0: %s",
    (signal) =>
      withScope(async (scope) => {
        const folder = mkdtempSync(join(tmpdir(), "payhooks-shutdown-"));
        scope.add(folder, (path) => rmSync(path, { recursive: true, force: true }));
        const service = await SlowService.start(scope);
        const env = { ...service.environment, PAYHOOKS_FILE: join(folder, "inbox.db") };
        const code = withSlowDeposits(programOf(text));
        const first = await start(scope, code, env);
        // More than run at the same time.
        const references = Array.from({ length: 20 }, (_, i) => `order-${i}`).sort();
        for (const referenceId of references) {
          const delivery = signPaymentCallback(callbackFields({ referenceId }), privateKey);
          expect(await post(first.port, delivery)).toBe(200);
        }
        await until("all places are taken", () => service.calls.length === 16);
        first.program.signal(signal);
        // As npm does after Ctrl-C.
        first.program.signal(signal);
        await until("it closes", () => isClosing(first.port));
        expect(credited(first.program)).toEqual([]);
        service.answer();
        expect(await first.program.exitCode, first.program.output).toBe(0);
        const done = credited(first.program);
        if (/inbox: memoryInbox\(\)/.test(code)) {
          expect(done).toEqual(references);
        } else {
          // Events that had not begun were handed back.
          const next = await start(scope, code, env);
          await until("the rest", () => credited(next.program).length >= references.length - done.length);
          next.program.signal(signal);
          expect(await next.program.exitCode).toBe(0);
          expect([...done, ...credited(next.program)].sort()).toEqual(references);
        }
      }),
  );
});

it("every example that hears signals is tested: by what the documentation shows of it, or on its own", () => {
  const hears = globSync("**/*.ts", { cwd: join(root, "examples"), ignore: "**/node_modules/**" }).filter(
    (path) => {
      const source = readFileSync(join(root, "examples", path), "utf8");
      return source.includes("SIGTERM") && !shown.some(({ text }) => text === source);
    },
  );
  expect(hears.sort()).toEqual([
    "branded/src/index.ts", // test/examples/branded.test.ts
    "deploy/src/server.ts", // test/examples/deploy.test.ts
    "express/src/demo.ts", // test/e2e/start.test.ts
    "redis/src/server.ts", // test/faults/example.test.ts
    "redis/src/worker.ts", // test/faults/example.test.ts
    "shop/src/shop.ts", // test/examples/shop.test.ts
  ]);
});
