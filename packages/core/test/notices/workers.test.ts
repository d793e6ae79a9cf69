import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const run = promisify(execFile);

/** Functions of the platform on Workers refuse to be called as the method of another object. */
const AS_ON_WORKERS = `
  const { queueMicrotask: real } = globalThis;
  Object.defineProperty(globalThis, "navigator", { value: { userAgent: "Cloudflare-Workers" } });
  globalThis.queueMicrotask = function (task) {
    if (this !== undefined && this !== globalThis) throw new TypeError("Illegal invocation");
    real(task);
  };
`;

const PROGRAM = `
  ${AS_ON_WORKERS}
  const { createReceiver, memoryInbox } = await import("@payhooks/core");
  const { createTestKeys } = await import("@payhooks/core/testing");
  const { publicKey } = createTestKeys();
  const receiver = createReceiver({ payments: { publicKey }, inbox: memoryInbox() });
  const notices = [];
  receiver.observe(({ type }) => notices.push(type));
  // A handler is missing, which is a warning.
  receiver.onDeposit(() => {});
  await receiver.start();
  await Promise.resolve();
  console.log("noticed:", notices.join());
  await receiver.close();
`;

it("notices are sent where functions of the platform refuse another this, as on Workers", async () => {
  const args = ["--conditions=payhooks-source", "--import=tsx", "--input-type=module", "--eval", PROGRAM];
  const { stdout } = await run(process.execPath, args, { cwd: new URL("../../../../test", import.meta.url) });
  expect(stdout).toContain("noticed: warning");
});
