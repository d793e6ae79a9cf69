/** Bundles a Worker and serves it with workerd. */
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build, type Options } from "tsup";
import type { Command } from "../conformance/targets.ts";
import { WORKERD } from "./install.ts";

/** How a Worker is bundled and served. */
interface WorkerOptions {
  /** Its classes of Durable Objects, by the name of their binding. Their storage lies beside the bundle, and stays when workerd ends. */
  readonly objects?: Readonly<Record<string, string>>;
  readonly esbuildOptions?: NonNullable<Options["esbuildOptions"]>;
}

/** How to serve the Worker in `entry`, with these variables as its environment. */
export async function onWorkerd(
  entry: string,
  variables: Readonly<Record<string, string>>,
  { objects = {}, esbuildOptions }: WorkerOptions = {},
): Promise<Command> {
  const folder = mkdtempSync(join(tmpdir(), "payhooks-workerd-"));
  const disk = join(folder, "disk");
  mkdirSync(disk);
  await build({
    config: false,
    entry: { worker: entry },
    outDir: folder,
    clean: false,
    format: "esm",
    outExtension: () => ({ js: ".mjs" }),
    platform: "node",
    target: "es2022",
    noExternal: [/./],
    splitting: false,
    silent: true,
    esbuildOptions: (options, context) => {
      options.conditions = ["workerd", "worker", "module"];
      esbuildOptions?.(options, context);
    },
  });
  const bindings = [
    ...Object.entries(variables).map(([name, text]) => `(name = ${quoted(name)}, text = ${quoted(text)})`),
    ...Object.entries(objects).map(
      ([name, className]) => `(name = ${quoted(name)}, durableObjectNamespace = ${quoted(className)})`,
    ),
  ];
  const namespaces = Object.values(objects).map(
    (name) => `(className = ${quoted(name)}, uniqueKey = ${quoted(name)}, enableSql = true)`,
  );
  writeFileSync(
    join(folder, "config.capnp"),
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "disk", disk = (path = ${quoted(disk)}, writable = true)),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
const worker :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "worker.mjs")],
  compatibilityDate = "2026-04-01",
  compatibilityFlags = ["nodejs_compat"],
  durableObjectNamespaces = [${namespaces.join(", ")}],
  durableObjectStorage = (localDisk = "disk"),
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

const quoted = (text: string): string => JSON.stringify(text);
