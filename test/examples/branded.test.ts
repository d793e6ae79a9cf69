/** A service with names of its own: sandbox, client, receiver and command line, each as a process. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { RunningProgram } from "../e2e/program.ts";
import { Scope } from "../faults/harness/scope.ts";
import { root } from "../package/workspace.ts";
import { freePort } from "../support/free-port.ts";

const scope = new Scope();
const folder = mkdtempSync(join(tmpdir(), "payhooks-branded-"));
afterAll(async () => {
  await scope.close();
  rmSync(folder, { recursive: true });
});

const command = "packages/cli/src/payhooks.ts";
const names = ["--names", "examples/branded/names.json", "--state", join(folder, "sandbox.json")];
const flags = ["--conditions=payhooks-source", "--import=tsx"];
const example = join(root, "examples/branded/src/index.ts");

interface Sent {
  readonly event: string;
  readonly state: string;
  readonly attempts: readonly { readonly body: string; readonly headers: Readonly<Record<string, string>> }[];
}

async function payhooks(...args: readonly string[]): Promise<string> {
  const program = new RunningProgram(command, args);
  scope.add(program, (one) => one.kill());
  expect(`${await program.exitCode} ${program.output}`).toMatch(/^0 /);
  return program.output;
}

it("speaks under branded names from end to end", { timeout: 90_000 }, async () => {
  const [port, sandboxPort] = [await freePort(), await freePort()];
  const url = `http://127.0.0.1:${sandboxPort}`;
  const shop = `http://127.0.0.1:${port}`;
  const program = new RunningProgram(
    command,
    [
      "sandbox",
      "--port",
      `${sandboxPort}`,
      "--app",
      shop,
      ...names,
      "--",
      process.execPath,
      ...flags,
      example,
    ],
    { PORT: String(port) },
  );
  scope.add(program, (one) => one.kill());
  await program.until(/order-1 was ordered by ZEBUPAY/);
  await program.until(/order-1 is paid: 10\.500000 ETB by ZEBUPAY/);
  await program.until(/sbx-cancelled-1 is FAILED: CANCELLED/);
  await program.until(/webhooks go to http:\/\/127\.0\.0\.1:\d+\/webhooks\/connect/);

  const control = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const init = { method, headers: { "content-type": "application/json" } };
    const response = await fetch(`${url}/sandbox${path}`, {
      ...init,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return ((await response.json()) as { readonly data: unknown }).data;
  };
  const account = (await control("POST", "/connected-accounts")) as { readonly id: string };
  await control("POST", `/connected-accounts/${account.id}/kyc`, { decision: "approved" });
  await program.until(new RegExp(`${account.id} is approved`));

  // Nothing on the wire has a neutral name, and nothing was held or sent twice.
  const sent = (await control("GET", "/deliveries")) as readonly Sent[];
  expect(sent.map(({ event, state }) => `${event} ${state}`).sort()).toEqual([
    "DEPOSIT delivered",
    "WITHDRAWAL delivered",
    "connected_account.approved delivered",
  ]);
  for (const { attempts, event } of sent) {
    expect(attempts).toHaveLength(1);
    const { body = "", headers = {} } = attempts[0] ?? {};
    if (event === "connected_account.approved") {
      expect(Object.keys(headers)).toContain("X-ZebuPayConnect-Signature");
      expect(Object.keys(headers)).not.toContain("X-Connect-Signature");
    } else {
      expect(Object.keys(JSON.parse(body))).toEqual([
        ...["amount", "callback_url", "currency", "event", "medium", "message", "operator_id"],
        ...["reference", "status", "timestamp", "zebupayTxnId", "signature"],
      ]);
    }
  }

  const deposit = ["send", "deposit", ...names, "--to", `${shop}/callbacks/pay`];
  expect(await payhooks(...deposit, "--reference", "by-hand", "--body")).toContain('"zebupayTxnId":');
  await program.until(/by-hand is paid: 10\.500000 ETB/);
  await payhooks(...deposit, "--forge", "amount");
  await payhooks(...deposit, "--forge", "signature");
  const webhook = ["send", "connected-account", ...names, "--to", `${shop}/webhooks/connect`];
  expect(await payhooks(...webhook, "--body")).toContain("connected_account.approved");
  await payhooks(...webhook, "--forge", "signature");

  program.signal("SIGTERM");
  expect(await program.exitCode).toBe(0);
  expect(program.output.match(/ is paid: /g)).toHaveLength(2);
});

it("the branded example has no name of the service but in its file", () => {
  const source = readFileSync(example, "utf8");
  const code = source.slice(source.indexOf("*/"));
  expect(code).not.toMatch(/zebu/i);
});
