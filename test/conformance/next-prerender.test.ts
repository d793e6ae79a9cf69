/** Tests a GET route while Next.js builds with `cacheComponents`: Next.js' own code for that, without a build. */
import "next/dist/server/node-environment.js";
import { createRequire } from "node:module";
import { createReceiver, memoryInbox } from "@payhooks/core";
import { createTestKeys } from "@payhooks/core/testing";
import { live, type RouteHandler, ready } from "@payhooks/next";
import { expect, it, onTestFinished } from "vitest";

const load = createRequire(import.meta.url);
const { AppRouteRouteModule } = load("next/dist/server/route-modules/app-route/module.js");
const { NextRequest } = load("next/server.js");

/** The answer that would be kept as a file, or why there is none. */
async function prerendered(GET: RouteHandler): Promise<string> {
  const route = new AppRouteRouteModule({
    userland: () => ({ GET }),
    definition: { kind: "APP_ROUTE", page: "/probe/route", pathname: "/probe", filename: "route" },
    distDir: ".next",
    relativeProjectDir: "",
    resolvedPagePath: "app/probe/route.ts",
  });
  await route.ensureUserland();
  const context = {
    sharedContext: { buildId: "build", deploymentId: "" },
    prerenderManifest: { routes: {}, dynamicRoutes: {}, preview: {} },
    renderOpts: { cacheComponents: true, experimental: {}, cacheLifeProfiles: {}, onClose() {} },
  };
  try {
    const response: Response = await route.prerender(new NextRequest("http://localhost/probe"), context);
    return `${response.status} ${await response.text()}`;
  } catch (error) {
    return (error as { digest?: string }).digest ?? String(error);
  }
}

it("a probe is never answered by a file that the build has left", async () => {
  const { publicKey } = createTestKeys();
  const receiver = createReceiver({ payments: { publicKey }, inbox: memoryInbox() });
  onTestFinished(async () => void (await receiver.close({ graceMs: 0 })));
  // A route that does not read its request becomes a file.
  expect(await prerendered(async () => Response.json(receiver.live()))).toMatch(/^200 \{"ok":true/);
  for (const route of [live(receiver), ready(receiver)]) {
    expect(await prerendered(route)).toBe("DYNAMIC_SERVER_USAGE");
  }
});
