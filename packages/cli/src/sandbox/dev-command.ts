import type { Command } from "../command-line/command.ts";
import { UsageError } from "../command-line/errors.ts";
import { usesColour } from "../command-line/terminal.ts";
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
    `Sets ${VARIABLES.join(", ")} for COMMAND, over what is set already. Signals are passed on to it; when it ends, so does the sandbox, and its exit code is that of payhooks (127 when it cannot be started).`,
    "What COMMAND prints has app | before it. A line with sandbox | tells of an attempt to deliver: what, the answer and how long it took.",
  ],
  examples: [
    "payhooks dev -- node server.js",
    "payhooks dev --app http://127.0.0.1:8080 --state sandbox.json -- npm run dev",
  ],
  arguments: { least: 0, most: 0 },
  passesOn: true,
  async run(given, terminal) {
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
      const code = await runApp(command, args, environment, terminal);
      terminal.json({ event: "ended", exitCode: code });
      return code;
    } finally {
      await sandbox.close();
    }
  },
};
