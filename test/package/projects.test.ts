/** `npm test` and `npm run test:rest` together run every file of tests, and none of them twice. */
import { glob } from "tinyglobby";
import { expect, it } from "vitest";
import { hasRedis } from "../../scripts/redis-server.mjs";
import config, { withoutServer } from "../../vitest.config.ts";
import { root } from "./workspace.ts";

/** The files of all projects, one for each time that they are run. Vitest finds them with the same library. */
async function filesOfProjects(): Promise<readonly string[]> {
  const files: string[] = [];
  for (const project of config.test?.projects ?? []) {
    if (typeof project !== "object" || !("test" in project)) throw new Error("A project is written out.");
    const { include = [], exclude = [] } = project.test ?? {};
    files.push(...(await glob(include, { cwd: root, ignore: exclude, expandDirectories: false })));
  }
  return files;
}

it("each file is run by one project", async ({ skip }) => {
  skip(!hasRedis(), "some projects need redis-server, which is not installed");
  const there = await glob(
    ["packages/*/test/**/*.test.ts", "examples/*/test/**/*.test.ts", "test/**/*.test.ts"],
    {
      cwd: root,
      ignore: ["**/node_modules/**", "**/test/browser/**", ...withoutServer],
    },
  );
  expect(there.length).toBeGreaterThan(200);
  expect([...(await filesOfProjects())].sort()).toEqual(there.sort());
});
