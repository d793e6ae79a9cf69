/** The example for Workers, and the documentation's code in a project of its own, on workerd. */
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ENVIRONMENT, startServer } from "../conformance/targets.ts";
import { install, pack } from "../package/pack.ts";
import { receives, writeProject } from "../package/project.ts";
import { FUNCTIONS, HANDLERS } from "../package/starters.ts";
import { packagesIn, root } from "../package/workspace.ts";
import { onWorkerd } from "./workerd.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "payhooks-worker-")));
const starters = [...FUNCTIONS, ...HANDLERS].filter(({ document }) => document === "docs/start/workers.md");
const OBJECTS = { objects: { DELIVERIES: "Deliveries" } };

beforeAll(async () => {
  const core = packagesIn("packages").filter(({ manifest }) => manifest.name === "@payhooks/core");
  const tarballs = await pack(core, folder);
  for (const starter of starters) writeProject(starter, join(folder, starter.name), tarballs);
  await install(folder, tarballs);
}, 600_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("on workerd, handlers run once and forgeries are refused", { timeout: 60_000 }, () => {
  it.each([
    ["the example", join(root, "examples/worker/src/index.ts"), OBJECTS],
    ["the code of docs/start/workers.md in a new project", join(folder, "worker/src/index.ts"), OBJECTS],
    ["its code without an object", join(folder, "worker-in-memory/src/index.ts"), {}],
  ])("by %s, and an unknown path is not found", async (_what, entry, objects) => {
    const server = await startServer(await onWorkerd(entry, ENVIRONMENT, objects));
    try {
      await receives(server);
      const answer = await fetch(`http://127.0.0.1:${server.port}/elsewhere`, { method: "POST", body: "{}" });
      expect(`${answer.status} ${await answer.text()}`).toBe("404 not found");
    } finally {
      await server.stop();
    }
  });
});
