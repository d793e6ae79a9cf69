import manifest from "../package.json" with { type: "json" };
import type { Command } from "./command-line/command.ts";
import { cliErrorOf, EXIT, UsageError } from "./command-line/errors.ts";
import { helpOf, overview } from "./command-line/help.ts";
import { findNearest } from "./command-line/nearest.ts";
import { Output } from "./command-line/output.ts";
import { readArguments } from "./command-line/parsed-arguments.ts";
import { escapeForTerminal, paint, printJson, printText } from "./command-line/printer.ts";
import { createTerminal } from "./command-line/terminal.ts";
import { COMMAND_NAMES, loadCommand, loadCommands } from "./commands.ts";

/** Runs one command line. Resolves with the exit code; never rejects. */
export async function main(argv: readonly string[]): Promise<number> {
  const output = new Output();
  // Looked for before the command line is read, so that errors about it are JSON too.
  const end = argv.indexOf("--");
  const isJson = argv.slice(0, end < 0 ? argv.length : end).includes("--json");
  try {
    const code = await dispatch(argv, output);
    return output.isBroken ? EXIT.failure : code;
  } catch (error) {
    return reportError(error, isJson);
  }
}

async function dispatch(argv: readonly string[], output: Output): Promise<number> {
  const [name, ...rest] = argv;
  if (name === "--version" || name === "-v") {
    printText("stdout", `${manifest.version}\n`);
    return EXIT.ok;
  }
  if (name === undefined || name === "--help" || name === "-h" || name === "help") {
    const topic = name === "help" ? rest[0] : undefined;
    const text =
      topic === undefined
        ? overview(await loadCommands(), manifest.version)
        : helpOf(await commandNamed(topic));
    printText(name === undefined ? "stderr" : "stdout", text);
    return name === undefined ? EXIT.usage : EXIT.ok;
  }
  const command = await commandNamed(name);
  const args = readArguments(command, rest);
  if (args.flag("help")) {
    printText("stdout", helpOf(command));
    return EXIT.ok;
  }
  output.setCommand(command, args);
  return command.run(args, createTerminal(args.flag("json")), output.stop);
}

async function commandNamed(name: string): Promise<Command> {
  const command = await loadCommand(name);
  if (command !== null) return command;
  const near = findNearest(name, COMMAND_NAMES);
  const hint = near === null ? "" : ` Did you mean ${near}?`;
  const kind = name.startsWith("-") ? "option" : "command";
  throw new UsageError(
    `Unknown ${kind} ${name}.${hint}`,
    `Commands: ${COMMAND_NAMES.join(", ")}. See payhooks --help`,
  );
}

function reportError(error: unknown, isJson: boolean): number {
  const cliError = cliErrorOf(error);
  if (isJson) {
    const { code, message, fix } = cliError;
    printJson({ error: { code, message, ...(fix === "" ? {} : { fix }) } });
  } else {
    const code = cliError.code === "ERR_USAGE" ? "" : ` [${cliError.code}]`;
    const message = escapeForTerminal(cliError.message, 2_000);
    printText(
      "stderr",
      `${paint("red", "payhooks:")} ${message}${code}\n${cliError.fix === "" ? "" : `${cliError.fix}\n`}`,
    );
  }
  return cliError.exitCode;
}
