import type { Sandbox } from "@payhooks/sandbox";
import type { Command } from "../command-line/command.ts";
import { EXIT } from "../command-line/errors.ts";
import type { Given } from "../command-line/given.ts";
import { aborted } from "../command-line/output.ts";
import type { Terminal } from "../command-line/terminal.ts";
import { printAttempts } from "./attempts.ts";
import { checkSecret, environmentOf, VARIABLES, writeEnvironment } from "./environment.ts";
import { SANDBOX_OPTIONS, savedNames, startSandbox } from "./options.ts";

export const sandboxCommand: Command = {
  name: "sandbox",
  summary: "Run the payment service on this machine, with a dashboard",
  usage: ["[OPTIONS]"],
  options: SANDBOX_OPTIONS,
  notes: [
    "The sandbox has all endpoints of the service and the hosted checkout. It sends signed callbacks and webhooks, retries them, and makes faults happen if you ask for them. It runs until Ctrl-C. Unlike the service, it accepts callback addresses with http:// on this machine.",
    "It prints a line for each attempt to deliver: the delivery, the answer and the time that it took.",
    `--write-env writes ${VARIABLES.join(", ")}.`,
  ],
  examples: [
    "payhooks sandbox --state sandbox.json --write-env .env.local",
    "payhooks sandbox --fault drop-answer:0.3 --fault duplicate:0.3 --seed 7",
  ],
  arguments: { least: 0, most: 0 },
  runsUntilStopped: true,
  async run(given, terminal, stop) {
    const stopped = Promise.race([nextSignal(), aborted(stop)]);
    const sandbox = await startSandbox(given);
    try {
      announce(sandbox, given, terminal);
      printAttempts(sandbox, terminal);
      await stopped;
    } finally {
      await sandbox.close();
    }
    return EXIT.ok;
  },
};

/** Prints the addresses and what to do next, and writes the file of variables. */
export function announce(sandbox: Sandbox, given: Given, terminal: Terminal): void {
  const { line, paint } = terminal;
  const file = given.text("write-env");
  if (file !== undefined) writeVariables(file, sandbox, given);
  const { webhook_url: url, webhook_enabled: isEnabled } = sandbox.settings.get();
  const webhookUrl = isEnabled ? url : null;
  terminal.json({
    event: "listening",
    url: sandbox.url,
    dashboard: `${sandbox.url}/`,
    keyId: sandbox.keys.keyId,
    seed: sandbox.seed,
    webhookUrl,
  });
  line(`${paint("bold", "Payhooks sandbox")}  ${paint("cyan", sandbox.url)}`);
  line(`  dashboard  ${sandbox.url}/`);
  line(`  webhooks   ${webhookUrl ?? "off: give --webhook-url"}`);
  line(`  key        ${sandbox.keys.keyId}, ${sandbox.url}/sandbox/keys/public.pem`);
  line(`  seed       ${sandbox.seed}`);
  if (file !== undefined) line(`  variables  ${file}`);
  line('  next       press "Take a deposit" on the dashboard to send a first event, or run');
  line(`             curl -X POST ${sandbox.url}/sandbox/deposits`);
}

function writeVariables(file: string, sandbox: Sandbox, given: Given): void {
  const variables = environmentOf(sandbox);
  const isSaved = savedNames(given).includes("webhook_secret");
  checkSecret(variables.CONNECT_WEBHOOK_SECRET ?? "", isSaved ? (given.text("state") ?? null) : null);
  writeEnvironment(file, variables);
}

/** Resolves at the first signal that asks us to stop. */
function nextSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => resolve());
  });
}
