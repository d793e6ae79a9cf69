import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { createReceiver, Reject, RetryAfter } from "@payhooks/core";
import type { createInbox } from "@payhooks/core/inbox";
import type { aesGcm } from "@payhooks/core/seal";
import { build, type Plugin } from "esbuild";
import type { effectsOn } from "../../packages/core/src/effects/own-client.ts";

/** The system under test: the part of the core that a process of a history is made of. */
export interface Core {
  readonly createReceiver: typeof createReceiver;
  readonly createInbox: typeof createInbox;
  readonly aesGcm: typeof aesGcm;
  readonly effectsOn: typeof effectsOn;
  readonly Reject: typeof Reject;
  readonly RetryAfter: typeof RetryAfter;
}

/** A change of one source of the core. */
export interface Replacement {
  /** Its path in `packages/core/src`. */
  readonly file: string;
  /** A text that occurs once. */
  readonly find: string;
  readonly put: string;
}

const sources: string = fileURLToPath(new URL("../../packages/core/src/", import.meta.url));

const ENTRY = `
export { createReceiver, Reject, RetryAfter } from "./index.ts";
export { createInbox } from "./inbox/engine.ts";
export { aesGcm } from "./seal/index.ts";
export { effectsOn } from "./effects/own-client.ts";
`;

/** The core's sources as one module that can be loaded: as they are, or with some texts replaced. */
export async function bundleCore(replacements: readonly Replacement[] = []): Promise<string> {
  const missed = new Set(replacements.map(({ file }) => file));
  const { outputFiles } = await build({
    stdin: { contents: ENTRY, resolveDir: sources, loader: "ts" },
    bundle: true,
    write: false,
    format: "esm",
    platform: "node",
    target: "node20",
    conditions: ["payhooks-source"],
    plugins: replacements.length === 0 ? [] : [replacing(replacements, missed)],
    logLevel: "silent",
  });
  if (missed.size > 0) throw new Error(`no such file of the core: ${[...missed].join(", ")}`);
  return moduleUrl(outputFiles[0]?.contents ?? new Uint8Array());
}

/** A module without a file, which has to bring everything that it imports. */
export function moduleUrl(code: Uint8Array): string {
  return `data:text/javascript;base64,${Buffer.from(code).toString("base64")}`;
}

/** Loads the core's sources: as they are, or with some texts replaced. */
export async function loadCore(replacements: readonly Replacement[] = []): Promise<Core> {
  return (await import(await bundleCore(replacements))) as Core;
}

/** A source of the core, its path in `packages/core/src`, with its texts replaced. Throws where one is not there once. */
export async function withReplaced(file: string, replacements: readonly Replacement[]): Promise<string> {
  let contents = await readFile(sources + file, "utf8");
  for (const { find, put } of replacements.filter((one) => one.file === file)) {
    const found = contents.split(find).length - 1;
    if (found !== 1) throw new Error(`${file} has ${found} times, not once: ${find}`);
    contents = contents.replace(find, () => put);
  }
  return contents;
}

/** Takes each file that it has changed out of `missed`. */
function replacing(replacements: readonly Replacement[], missed: Set<string>): Plugin {
  return {
    name: "replacing",
    setup({ onLoad }) {
      for (const file of new Set(replacements.map((one) => one.file))) {
        const path = sources + file;
        onLoad({ filter: new RegExp(`${escaped(path)}$`) }, async () => {
          const contents = await withReplaced(file, replacements);
          missed.delete(file);
          return { contents, loader: "ts" };
        });
      }
    },
  };
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}
