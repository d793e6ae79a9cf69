/** Bundles a Worker and serves it with workerd. */
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "tsup";
import type { Command } from "../conformance/targets.ts";
import { WORKERD } from "./install.ts";

/** How to serve the Worker in `entry`, with these variables as its environment. */
export async function onWorkerd(
  entry: string,
  variables: Readonly<Record<string, string>>,
): Promise<Command> {
  const folder = mkdtempSync(join(tmpdir(), "payhooks-workerd-"));
  mkdirSync(folder, { recursive: true });
  await build({
    config: false,
    entry: { worker: entry },
    outDir: folder,
    format: "esm",
    outExtension: () => ({ js: ".mjs" }),
    platform: "node",
    target: "es2022",
    noExternal: [/./],
    splitting: false,
    silent: true,
    esbuildOptions: (options) => {
      options.conditions = ["workerd", "worker", "module"];
    },
  });
  const bindings = Object.entries(variables).map(
    ([name, text]) => `(name = ${JSON.stringify(name)}, text = ${JSON.stringify(text)})`,
  );
  writeFileSync(
    join(folder, "config.capnp"),
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .worker)],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
const worker :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "worker.mjs")],
  compatibilityDate = "2026-04-01",
  compatibilityFlags = ["nodejs_compat"],
  bindings = [${bindings.join(", ")}],
);
`,
  );
  return {
    command: WORKERD.command,
    args: ["serve", "--control-fd=1", join(folder, "config.capnp")],
    listening: /"socket":"http","port":(\d+)/,
  };
}
