/** The documentation's code in projects of frameworks that the workspace does not have, built, and run by Node. */
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, it } from "vitest";
import { startServer } from "../conformance/targets.ts";
import { APPS } from "../package/apps.ts";
import { install, pack, run } from "../package/pack.ts";
import { receives, writeProject } from "../package/project.ts";
import { packagesIn } from "../package/workspace.ts";
import { freePort } from "../support/free-port.ts";
import { BUN } from "./install.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "payhooks-apps-")));

beforeAll(async () => {
  const used = ["@payhooks/core", "@payhooks/express", "@payhooks/nestjs"];
  const tarballs = await pack(
    packagesIn("packages").filter(({ manifest }) => used.includes(manifest.name)),
    folder,
  );
  for (const app of APPS) writeProject(app, join(folder, app.name), tarballs);
  await install(folder, tarballs);
}, 600_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }), 120_000);

describe("in a new project", { timeout: 300_000 }, () => {
  it.each(APPS)("of $name, the code of $document is built and receives", async (app) => {
    const project = join(folder, app.name);
    for (const [tool, ...args] of app.builds) {
      await run(join(project, "node_modules/.bin", tool), args, project, { NODE_ENV: "production" });
    }
    // Some servers print the port that they were given, not the one that they got.
    const port = await freePort();
    const server = await startServer({
      command: app.runtime === "bun" ? BUN.command : process.execPath,
      args: app.runs,
      cwd: project,
      env: { HOST: "127.0.0.1", PORT: String(port), NODE_ENV: "production" },
      listening: app.listening,
    });
    try {
      await receives(server, app.mounts);
    } finally {
      await server.stop();
    }
  });
});
