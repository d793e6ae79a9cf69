/** The documentation's SvelteKit code in a project as SvelteKit lays it out, built, and run by its server for Node. */
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startServer } from "../conformance/targets.ts";
import { install, pack, run } from "../package/pack.ts";
import { lay, receives } from "../package/project.ts";
import { SVELTEKIT } from "../package/starters.ts";
import { packagesIn } from "../package/workspace.ts";
import { freePort } from "../support/free-port.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "payhooks-sveltekit-")));
const project = join(folder, SVELTEKIT.name);

beforeAll(async () => {
  const core = packagesIn("packages").filter(({ manifest }) => manifest.name === "@payhooks/core");
  const tarballs = await pack(core, folder);
  lay(SVELTEKIT, project, tarballs);
  await install(folder, tarballs);
}, 600_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("in a new SvelteKit project, the code of docs/start/sveltekit.md is built and receives", {
  timeout: 120_000,
}, async () => {
  const tool = (name: string): string => join(project, "node_modules/.bin", name);
  await run(tool("vite"), ["build"], project, { NODE_ENV: "production" });
  expect(await run(tool("tsc"), ["--noEmit"], project)).toBe("");
  // Its server prints the port that it was given, not the one that it got.
  const port = await freePort();
  const server = await startServer({
    command: process.execPath,
    args: ["build"],
    cwd: project,
    env: { HOST: "127.0.0.1", PORT: String(port), NODE_ENV: "production" },
    listening: /Listening on http:\/\/127\.0\.0\.1:(\d+)/,
  });
  try {
    await receives(server, ["payments"]);
  } finally {
    await server.stop();
  }
});
