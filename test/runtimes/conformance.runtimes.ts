import { join } from "node:path";
import { describe, expect } from "vitest";
import { type AdapterUnderTest, adapterConformance } from "../conformance/suite.ts";
import { type Command, ENVIRONMENT, startServer } from "../conformance/targets.ts";
import { FETCH_TRAPS, HONO_TRAPS } from "../conformance/traps.ts";
import { root } from "../package/workspace.ts";
import { BUN, DENO, type Runtime } from "./install.ts";
import { onWorkerd } from "./workerd.ts";

const servers = join(root, "test/conformance/servers");
const APPS = { fetch: FETCH_TRAPS, hono: HONO_TRAPS } as const;
type App = keyof typeof APPS;

const onRuntime = ({ command, args, name }: Runtime, app: App): Command => ({
  command,
  args: [...args, join(servers, `${name}.ts`), app],
  cwd: join(root, "test"),
});

const adapters = (
  name: string,
  commandFor: (app: App) => Command | Promise<Command>,
  runtime = "",
): AdapterUnderTest[] =>
  (["fetch", "hono"] as const).map((app) => ({
    name: `${name} ${app}`,
    traps: APPS[app],
    async start() {
      const server = await startServer(await commandFor(app));
      expect(server.runtime).toBe(runtime);
      return server;
    },
  }));

describe("other runtimes give the same bytes the same answer", () => {
  adapterConformance([
    ...adapters("Bun", (app) => onRuntime(BUN, app), `bun ${BUN.version}`),
    ...adapters("Deno", (app) => onRuntime(DENO, app), `deno ${DENO.version}`),
    // A Worker cannot ask for its runtime's version: the matrix asks the program.
    ...adapters("workerd", (app) => onWorkerd(join(servers, "worker.ts"), { ...ENVIRONMENT, APP: app })).map(
      (adapter) => ({ ...adapter, runsAfterResponse: true }),
    ),
  ]);
});
