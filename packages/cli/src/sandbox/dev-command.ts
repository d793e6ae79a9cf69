import type { Command } from "../command-line/command.ts";
import { UsageError } from "../command-line/errors.ts";
import { usesColour } from "../command-line/printer.ts";
import { runApp } from "./app.ts";
import { printAttempts } from "./attempts.ts";
import { environmentOf, VARIABLES } from "./environment.ts";
import { SANDBOX_OPTIONS, startSandbox } from "./options.ts";
import { announce } from "./sandbox-command.ts";

export const devCommand: Command = {
  name: "dev",
  summary: "Run the sandbox and your server together, with the variables set",
  usage: ["[SANDBOX OPTIONS] -- COMMAND [ARGUMENTS …]"],
  options: SANDBOX_OPTIONS,
  notes: [
    `It sets ${VARIABLES.join(", ")} for COMMAND, even those that are set already. It passes SIGINT, SIGTERM and SIGHUP on to COMMAND and to everything that COMMAND has started. A second one, or 15 s, ends those that are left. When COMMAND ends, the sandbox ends too, and payhooks ends with the same exit code. If COMMAND cannot be started, the exit code is 127.`,
    "Lines that COMMAND prints begin with app |. Lines of the sandbox begin with sandbox |. It prints one for each attempt to deliver: the delivery, the answer and the time that it took.",
  ],
  examples: [
    "payhooks dev -- node server.js",
    "payhooks dev --app http://127.0.0.1:8080 --state sandbox.json -- npm run dev",
  ],
  arguments: { least: 0, most: 0 },
  passesOn: true,
  runsUntilStopped: true,
  async run(given, terminal, stop) {
    const [command, ...args] = given.rest;
    if (command === undefined) {
      throw new UsageError(
        "There is no command to run.",
        "Put it after --, such as: payhooks dev -- node server.js",
      );
    }
    const sandbox = await startSandbox(given);
    const prefixed = {
      ...terminal,
      line: (text = "") => terminal.line(`${terminal.paint("dim", "sandbox |")} ${text}`),
    };
    try {
      announce(sandbox, given, prefixed);
      printAttempts(sandbox, prefixed);
      const environment = {
        ...environmentOf(sandbox),
        ...(usesColour(process.stdout) && { FORCE_COLOR: "1" }),
      };
      const code = await runApp(command, args, environment, terminal, stop);
      terminal.json({ event: "ended", exitCode: code });
      return code;
    } finally {
      await sandbox.close();
    }
  },
};
