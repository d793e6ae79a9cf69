import { COMMON_OPTIONS, type CommandForm, type OptionSpec } from "./form.ts";

const LINE_WIDTH = 100;

/** `payhooks --help` */
export function overview(commands: readonly CommandForm[], version: string): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  return [
    `payhooks ${version}: receive payment callbacks and webhooks, and try it on this machine`,
    "",
    "Usage: payhooks COMMAND [OPTIONS]",
    "",
    "Commands:",
    ...commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`),
    "",
    "payhooks COMMAND --help shows the options of a command, payhooks --version shows the version.",
    "Exit codes: 0 all is well, 1 something was found or failed, 2 the command line is wrong.",
    "",
  ].join("\n");
}

/** `payhooks <command> --help` */
export function helpOf(command: CommandForm): string {
  const { options, notes, examples } = command;
  const list = Object.entries({ ...options, ...COMMON_OPTIONS });
  const width = Math.max(...list.map(([option, spec]) => labelOf(option, spec).length));
  const indent = " ".repeat(width + 4);
  return [
    command.summary,
    "",
    ...usageOf(command),
    "",
    ...notes.flatMap((note) => [...wrap(note, LINE_WIDTH), ""]),
    "Options:",
    ...list.flatMap(([option, spec]) => {
      const lines = wrap(textOf(spec), LINE_WIDTH - width - 4);
      const first = `  ${labelOf(option, spec).padEnd(width)}  ${lines[0] ?? ""}`;
      return [first, ...lines.slice(1).map((line) => indent + line)];
    }),
    "",
    "Examples:",
    ...examples.map((example) => `  ${example}`),
    "",
  ].join("\n");
}

/** Every way to call a command, one a line. */
export function usageOf({ name, usage }: CommandForm): string[] {
  return usage.map((form, index) =>
    `${index === 0 ? "Usage:" : "      "} payhooks ${name} ${form}`.trimEnd(),
  );
}

export function labelOf(option: string, spec: OptionSpec): string {
  return spec.value === undefined ? `--${option}` : `--${option} ${spec.value}`;
}

/** The whole text of an option: what it does, whether it may be repeated, and its default. */
export function textOf({ help, multiple, default: fallback }: OptionSpec): string {
  const more = [multiple ? "may be repeated" : "", fallback === undefined ? "" : `default: ${fallback}`];
  const notes = more.filter(Boolean);
  return notes.length === 0 ? help : `${help} (${notes.join("; ")})`;
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
