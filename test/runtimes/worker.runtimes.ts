/** The example for Workers, and the documentation's code in a project of its own, on workerd. */
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, it } from "vitest";
import { ENVIRONMENT, startServer } from "../conformance/targets.ts";
import { install, pack } from "../package/pack.ts";
import { lay, receives } from "../package/project.ts";
import { HANDLERS } from "../package/starters.ts";
import { packagesIn, root } from "../package/workspace.ts";
import { onWorkerd } from "./workerd.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "payhooks-worker-")));
const starters = HANDLERS.filter(({ name }) => name === "worker");

beforeAll(async () => {
  const core = packagesIn("packages").filter(({ manifest }) => manifest.name === "@payhooks/core");
  const tarballs = await pack(core, folder);
  for (const starter of starters) lay(starter, join(folder, starter.name), tarballs);
  await install(folder, tarballs);
}, 600_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("on workerd, handlers run once and forgeries are refused", { timeout: 60_000 }, () => {
  it.each([
    ["the example", join(root, "examples/worker/src/index.ts")],
    ["the code of docs/start/workers.md in a new project", join(folder, "worker/src/index.ts")],
  ])("by %s", async (_what, entry) => {
    const server = await startServer(await onWorkerd(entry, ENVIRONMENT));
    try {
      await receives(server);
    } finally {
      await server.stop();
    }
  });
});
