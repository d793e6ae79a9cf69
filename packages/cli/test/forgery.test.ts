import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createTestKeys } from "@payhooks/core/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { RunningProgram } from "../../../test/e2e/program.ts";
import { root } from "../../../test/package/workspace.ts";
import { file, folder } from "./support/files.ts";
import { payhooks, RunningCommand } from "./support/run.ts";

const keys = createTestKeys();
const privateKey = file(keys.privateKey, "private.pem");

/** The naive receiver of the Express example: its address, and what it has said about deliveries. */
async function startVictim(): Promise<{ url: string; lines: () => string[] }> {
  const env = { PAY_PUBLIC_KEY: keys.publicKey, PORT: "0" };
  const victim = new RunningProgram("examples/express/src/victim.ts", [], env);
  onTestFinished(() => victim.kill());
  const [, port] = await victim.until(/listening on port (\d+)\n/);
  return {
    url: `http://127.0.0.1:${port}/callbacks/pay`,
    lines: () => victim.output.split("\n").slice(1, -1),
  };
}

describe("payhooks send --forge, against a receiver that only checks the signature", {
  timeout: 60_000,
}, () => {
  it("resplit is credited: its signature is that of a FAILED payment", async () => {
    const victim = await startVictim();
    const send = (...more: string[]) =>
      payhooks(["send", "deposit", "--to", victim.url, "--private-key", privateKey, ...more]);

    const forged = await send("--forge", "resplit", "--reference", "order-7", "--amount", "250.5", "--body");
    expect(forged.stdout).toMatch(/#1 DEPOSIT SUCCESS order-7 250\.500000 \(forged: resplit\) → 200 OK/);
    expect(forged).toMatchObject({ code: 0, stderr: "" });
    await expect.poll(victim.lines).toEqual(["credited 250.500000 for order-7"]);
    expect(forged.stdout).toMatch(/"userId":"u&status=FAILED&timestamp=[^"]+&userId=user-17"/);

    // A body that is not authentic at all is refused even there.
    for (const kind of ["amount", "signature"]) {
      expect(await send("--forge", kind)).toMatchObject({
        code: 0,
        stdout: expect.stringContaining("→ 401"),
      });
    }
    await expect
      .poll(() => victim.lines().slice(1))
      .toEqual(Array(2).fill("refused: the signature does not fit"));
  });

  it("resplit is credited as the documentation shows it", async () => {
    const text = readFileSync(`${root}/docs/reference/cli.md`, "utf8");
    const [, section = ""] = text.split("## A forgery that a naive receiver takes");
    const [, sent = ""] = /\npayhooks (send .*--forge resplit .*)\n/.exec(section) ?? [];
    const [, printed = ""] = /```text\n(app \| .*)\n```/.exec(section) ?? [];
    const state = join(folder, "sandbox.json");
    const program = [process.execPath, "--import=tsx", "examples/express/src/victim.ts"];
    const dev = new RunningCommand(["sandbox", "--port", "0", "--state", state, "--", ...program], {
      cwd: root,
      env: { PORT: "0" },
    });
    const [, port] = await dev.until(/^app \| victim listening on port (\d+)\n/m);
    const args = sent.replace(":3000/", `:${port}/`).replace("sandbox.json", "STATE").split(" ");
    const ended = await payhooks(args.map((word) => (word === "STATE" ? state : word)));
    expect(ended).toMatchObject({ code: 0, stdout: expect.stringContaining("→ 200 OK") });
    await dev.until(/^app \| credited .*\n/m);
    expect(dev.stdout.split("\n")).toContain(printed);
    dev.process.kill("SIGTERM");
    await dev.ended;
  });

  it("resplit makes a SUCCESS out of a FAILED, of withdrawals and of old callbacks too", async () => {
    const victim = await startVictim();
    const args = ["--to", victim.url, "--private-key", privateKey, "--forge", "resplit"];
    const many = ["--events", "2", "--times", "2", "--reference", "payout", "--stale"];
    expect(await payhooks(["send", "withdrawal", ...args, ...many])).toMatchObject({ code: 0 });
    await expect
      .poll(victim.lines)
      .toEqual(["payout-1", "payout-1", "payout-2", "payout-2"].map((id) => `credited 10.500000 for ${id}`));

    const other = await payhooks(["send", "deposit", ...args, "--status", "PENDING"]);
    expect(other).toMatchObject({ code: 2, stderr: expect.stringContaining("a SUCCESS out of a FAILED") });
  });
});
