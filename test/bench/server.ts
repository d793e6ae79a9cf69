/** The server process, from the bench's side. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "tsup";
import type { Answers, Order, Reply, Surroundings } from "./protocol.ts";

export interface ServerProcess {
  /** The runtime, as it says itself. */
  readonly node: string;
  tell<Name extends Order["do"]>(order: Extract<Order, { do: Name }>): Promise<Answers[Name]>;
  end(): Promise<void>;
}

/** Below the tests' own node_modules, from where the packages are found. */
const folder = fileURLToPath(new URL("../node_modules/.cache/payhooks-bench", import.meta.url));
const sources = fileURLToPath(new URL(".", import.meta.url));

/** The programs that are measured, as one file each. */
export interface Programs {
  readonly server: string;
  readonly parts: string;
  readonly merchant: string;
}

/** Makes plain JavaScript of their sources; every package stays outside, as it was built. */
export async function buildPrograms(): Promise<Programs> {
  await build({
    config: false,
    entry: {
      server: join(sources, "child/main.ts"),
      parts: join(sources, "child/parts.ts"),
      merchant: join(sources, "by-hand/merchant.ts"),
    },
    splitting: false,
    outDir: folder,
    format: "esm",
    outExtension: () => ({ js: ".mjs" }),
    platform: "node",
    target: "node20",
    skipNodeModulesBundle: true,
    silent: true,
  });
  return {
    server: join(folder, "server.mjs"),
    parts: join(folder, "parts.mjs"),
    merchant: join(folder, "merchant.mjs"),
  };
}

/** @param execPath the Node to run it on. */
export async function startServer(
  file: string,
  surroundings: Surroundings,
  execPath: string = process.execPath,
): Promise<ServerProcess> {
  const child: ChildProcess = fork(file, [JSON.stringify(surroundings)], {
    execPath,
    execArgv: ["--expose-gc"],
    env: { ...process.env, NODE_ENV: "production" },
  });
  const next = async (): Promise<unknown> => {
    const gone = new AbortController();
    const ended = once(child, "exit", { signal: gone.signal }).then(([code]) => {
      throw new Error(`the server process ended with ${code}`);
    });
    ended.catch(() => {});
    try {
      const [reply] = (await Promise.race([once(child, "message", { signal: gone.signal }), ended])) as [
        Reply,
      ];
      if ("error" in reply) throw new Error(`the server process: ${reply.error}`);
      return reply.ok;
    } finally {
      gone.abort();
    }
  };
  const node = String(await next());
  return {
    node,
    async tell<Name extends Order["do"]>(order: Extract<Order, { do: Name }>) {
      child.send(order);
      return (await next()) as Answers[Name];
    },
    async end() {
      const exited = once(child, "exit");
      child.send({ do: "end" } satisfies Order);
      await exited;
    },
  };
}
