import type { Command } from "./command-line/command.ts";

type Load = () => Promise<Command>;

/** By name, in the order of the help. Only the command that is called is loaded. */
const LOADERS: Readonly<Record<string, Load>> = {
  sandbox: async () => (await import("./sandbox/sandbox-command.ts")).sandboxCommand,
  send: async () => (await import("./send/command.ts")).sendCommand,
  verify: async () => (await import("./verify/command.ts")).verifyCommand,
  events: async () => (await import("./events/command.ts")).eventsCommand,
  explain: async () => (await import("./explain/command.ts")).explainCommand,
  alerts: async () => (await import("./alerts/command.ts")).alertsCommand,
  migrate: async () => (await import("./migrate/command.ts")).migrateCommand,
  move: async () => (await import("./move/command.ts")).moveCommand,
  reseal: async () => (await import("./reseal/command.ts")).resealCommand,
  shadow: async () => (await import("./shadow/command.ts")).shadowCommand,
};

export const COMMAND_NAMES: readonly string[] = Object.keys(LOADERS);

/** Null if there is no such command. */
export async function loadCommand(name: string): Promise<Command | null> {
  return Object.hasOwn(LOADERS, name) ? ((await LOADERS[name]?.()) ?? null) : null;
}

export function loadCommands(): Promise<Command[]> {
  return Promise.all(Object.values(LOADERS).map((load) => load()));
}
