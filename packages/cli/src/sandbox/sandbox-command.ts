import type { Sandbox } from "@payhooks/sandbox";
import type { Command } from "../command-line/command.ts";
import { EXIT } from "../command-line/errors.ts";
import { waitForAbort } from "../command-line/output.ts";
import type { ParsedArguments } from "../command-line/parsed-arguments.ts";
import { escapeForTerminal } from "../command-line/printer.ts";
import type { Terminal } from "../command-line/terminal.ts";
import { runApp } from "./app.ts";
import { printAttempts } from "./attempts.ts";
import { checkSecret, environmentOf, VARIABLE_NAMES, writeEnvironment } from "./environment.ts";
import { SANDBOX_OPTIONS, savedNames, startSandbox } from "./options.ts";

export const sandboxCommand: Command = {
  name: "sandbox",
  summary: "Run the payment service on this machine, with a dashboard, and your server beside it",
  usage: ["[OPTIONS]", "[OPTIONS] -- COMMAND [ARGUMENTS …]"],
  options: SANDBOX_OPTIONS,
  notes: [
    "The sandbox has all endpoints of the service and the hosted checkout. It sends signed callbacks and webhooks, retries them, and makes faults happen if you ask for them. It runs until Ctrl-C. Unlike the service, it accepts callback addresses with http:// on this machine.",
    "It prints a line for each attempt to deliver: the delivery, the answer and the time that it took.",
    `With COMMAND it also runs your server, with ${VARIABLE_NAMES.join(", ")} set, even those that are set already. --write-env writes them into a file instead. SIGINT, SIGTERM and SIGHUP are passed on to COMMAND and to everything that COMMAND has started. A second one, or 15 s, ends those that are left. When COMMAND ends, the sandbox ends too. What COMMAND has started gets SIGTERM, and SIGKILL after 2 s. payhooks ends with the exit code of COMMAND. If COMMAND cannot be started, the exit code is 127.`,
    "Lines that COMMAND prints begin with app |. They have no colours, and control characters in them are printed as escapes. Lines of the sandbox then begin with sandbox |.",
  ],
  examples: [
    "payhooks sandbox -- node server.js",
    "payhooks sandbox --state sandbox.json --write-env .env.local",
    "payhooks sandbox --fault drop-answer:0.3 --fault duplicate:0.3 --seed 7",
  ],
  arguments: { least: 0, most: 0 },
  hasProgramArguments: true,
  runsUntilStopped: true,
  async run(args, terminal, stop) {
    const [command, ...commandArgs] = args.rest;
    const whenStopped = command === undefined ? Promise.race([nextSignal(), waitForAbort(stop)]) : null;
    const sandbox = await startSandbox(args);
    const sandboxTerminal = command === undefined ? terminal : withPrefix(terminal);
    try {
      announce(sandbox, args, sandboxTerminal);
      printAttempts(sandbox, sandboxTerminal);
      if (command === undefined) {
        await whenStopped;
        return EXIT.ok;
      }
      const code = await runApp(command, commandArgs, environmentOf(sandbox), terminal, stop);
      terminal.json({ event: "ended", exitCode: code });
      return code;
    } finally {
      await sandbox.close();
    }
  },
};

const withPrefix = (terminal: Terminal): Terminal => ({
  ...terminal,
  line: (text = "") => terminal.line(`${terminal.paint("dim", "sandbox |")} ${text}`),
});

/** Prints the addresses and what to do next, and writes the file of variables. */
function announce(sandbox: Sandbox, args: ParsedArguments, terminal: Terminal): void {
  const { line, paint } = terminal;
  const file = args.text("write-env");
  if (file !== undefined) writeVariables(file, sandbox, args);
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
  line(`  webhooks   ${escapeForTerminal(webhookUrl ?? "off: give --webhook-url")}`);
  line(`  key        ${sandbox.keys.keyId}, ${sandbox.url}/sandbox/keys/public.pem`);
  line(`  seed       ${escapeForTerminal(sandbox.seed)}`);
  if (file !== undefined) line(`  variables  ${escapeForTerminal(file, 1_000)}`);
  line('  next       press "Take a deposit" on the dashboard to send a first event, or run');
  line(`             curl -X POST ${sandbox.url}/sandbox/deposits`);
}

function writeVariables(file: string, sandbox: Sandbox, args: ParsedArguments): void {
  const variables = environmentOf(sandbox);
  const isSaved = savedNames(args).includes("webhook_secret");
  checkSecret(variables.CONNECT_WEBHOOK_SECRET ?? "", isSaved ? (args.text("state") ?? null) : null);
  writeEnvironment(file, variables);
}

/** Resolves at the first signal that asks us to stop. */
function nextSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => resolve());
  });
}
