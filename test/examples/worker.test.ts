/** On Node, behind the smallest bridge; `npm run test:runtimes` runs it on workerd. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Server, startServer } from "../conformance/targets.ts";
import { receives } from "../package/project.ts";
import { root } from "../package/workspace.ts";

const serve = join(root, "test/conformance/servers/module.ts");
const example = join(root, "examples/worker/src/index.ts");

describe("the example for Workers", () => {
  let server: Server;
  beforeAll(async () => {
    server = await startServer({
      command: process.execPath,
      args: ["--conditions=payhooks-source", "--import=tsx", serve, example],
      cwd: join(root, "test"),
    });
  });
  afterAll(() => server.stop());

  it("runs handlers once, and refuses forgeries", () => receives(server));

  it("answers what it does not know", async () => {
    const answer = await fetch(`http://127.0.0.1:${server.port}/elsewhere`, { method: "POST", body: "{}" });
    expect(`${answer.status} ${await answer.text()}`).toBe("404 not found");
  });
});
