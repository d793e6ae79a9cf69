import { createReceiver, memoryInbox } from "@payhooks/core";
import { describe, expect, it } from "vitest";
import { payhooksConsole as onExpress } from "../src/express.ts";
import { payhooksConsole as onFastify } from "../src/fastify.ts";
import { payhooksConsole as onHono } from "../src/hono.ts";
import { payhooksConsole as onFetch } from "../src/index.ts";
import { payhooksConsole as onNext } from "../src/next.ts";
import { consoleFixture } from "./support/console-fixture.ts";
import { MOUNTS } from "./support/mounts.ts";

const receiver = createReceiver({ payments: { publicKey: "unused" }, inbox: memoryInbox() });
const mounts = { onExpress, onFastify, onHono, onFetch, onNext };

describe.each(Object.entries(mounts))("%s", (_name, mount) => {
  const given = (options: unknown) => () =>
    (mount as (receiver: unknown, options: unknown) => unknown)(receiver, options);

  it.each([[undefined], [{}], [{ authorize: undefined }]])(
    "does not mount without authorize: %j",
    (options) => {
      expect(given(options)).toThrow(expect.objectContaining({ code: "ERR_OPTION_MISSING" }));
    },
  );

  it.each([
    [{ authorize: "everybody" }],
    [{ authorize: () => null, redact: "userId" }],
    [{ authorize: () => null, redact: ["userId", ""] }],
    [{ authorize: () => null, redact: [7] }],
    [{ authorize: () => null, allowedHosts: "admin.shop.example" }],
    [{ authorize: () => null, allowedHosts: [""] }],
    [{ authorize: () => null, allowedHosts: ["*"] }],
    [{ authorize: () => null, allowedHosts: ["*.shop.example"] }],
    [{ authorize: () => null, allowedHosts: ["https://admin.shop.example"] }],
    [{ authorize: () => null, allowedHosts: ["admin.shop.example/payhooks"] }],
    [{ authorize: () => null, allowedHosts: ["localhost", undefined] }],
  ])("does not mount with %j", (options) => {
    expect(given(options)).toThrow(expect.objectContaining({ code: "ERR_OPTION_INVALID" }));
  });
});

describe.each(Object.keys(MOUNTS))("authorize on %s", (on) => {
  it("gets the framework's own request, and decides", async () => {
    const { open } = await consoleFixture();
    const page = await open({
      on,
      authorize: (header) => (header("x-test-user") === "marta" ? { by: "marta", can: ["view"] } : null),
    });
    expect((await page.get()).status).toBe(403);
    const { status, text } = await page.get();
    expect([status, text]).toEqual([403, expect.not.stringContaining("Decisions and trouble")]);
    const response = await fetch(page.url, { headers: { "x-test-user": "marta" } });
    expect(response.status).toBe(200);
    expect(await response.text()).toContain("Decisions and trouble");
  });

  it("lets nobody in when it throws, or answers with a value that is not a user", async () => {
    const { open } = await consoleFixture();
    const answers: readonly unknown[] = [
      undefined,
      true,
      "marta",
      { by: "", can: ["view"] },
      { by: "marta" },
      { by: "marta", can: "view" },
      { by: "marta", can: ["everything"] },
    ];
    let asked = 0;
    const page = await open({
      on,
      authorize: () => {
        if (asked === answers.length) throw new Error("the session store is away");
        return answers[asked++] as null;
      },
    });
    for (const _ of [...answers, "throws"]) {
      const { status, text } = await page.get();
      expect([status, text]).toEqual([500, expect.not.stringContaining("Decisions and trouble")]);
    }
    expect(asked).toBe(answers.length);
  });
});
