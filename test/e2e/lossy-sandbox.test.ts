import { describe, it, onTestFinished } from "vitest";
import { onNode, startServer } from "../conformance/targets.ts";
import { handledOnce } from "./lossy-sandbox.ts";

/** The same for Next.js is in test/conformance/next.test.ts, beside the application that it needs to be built. */
describe("the sandbox drops 30 % of the answers, doubles and reorders the rest", { timeout: 120_000 }, () => {
  it.each([
    ["Express", "express.ts", "5"],
    ["Fastify", "fastify.ts", ""],
    ["Hono", "hono.ts", ""],
  ])("each handler runs once per event on %s", async (name, file, version) => {
    const server = await startServer(onNode(file, ...(version === "" ? [] : [version])));
    onTestFinished(() => server.stop());
    await handledOnce(server.port, name.toLowerCase());
  });
});
