import type { Command } from "./command-line/command.ts";

type Load = () => Promise<Command>;

/** By name, in the order of the help. Only the command that is called is loaded. */
const LOADERS: ReadonlyMap<string, Load> = new Map([
  ["sandbox", async () => (await import("./sandbox/sandbox-command.ts")).sandboxCommand],
  ["send", async () => (await import("./send/command.ts")).sendCommand],
  ["verify", async () => (await import("./verify/command.ts")).verifyCommand],
  ["events", async () => (await import("./events/command.ts")).eventsCommand],
  ["explain", async () => (await import("./explain/command.ts")).explainCommand],
  ["alerts", async () => (await import("./alerts/command.ts")).alertsCommand],
  ["migrate", async () => (await import("./migrate/command.ts")).migrateCommand],
  ["move", async () => (await import("./move/command.ts")).moveCommand],
  ["reseal", async () => (await import("./reseal/command.ts")).resealCommand],
  ["shadow", async () => (await import("./shadow/command.ts")).shadowCommand],
]);

export const COMMAND_NAMES: readonly string[] = [...LOADERS.keys()];

/** Null if there is no such command. */
export async function loadCommand(name: string): Promise<Command | null> {
  return (await LOADERS.get(name)?.()) ?? null;
}

export function loadCommands(): Promise<Command[]> {
  return Promise.all([...LOADERS.values()].map((load) => load()));
}
