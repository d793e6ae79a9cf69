import { alertsCommand } from "./alerts/command.ts";
import type { Command } from "./command-line/command.ts";
import { eventsCommand } from "./events/command.ts";
import { explainCommand } from "./explain/command.ts";
import { migrateCommand } from "./migrate/command.ts";
import { moveCommand } from "./move/command.ts";
import { resealCommand } from "./reseal/command.ts";
import { sandboxCommand } from "./sandbox/sandbox-command.ts";
import { sendCommand } from "./send/command.ts";
import { shadowCommand } from "./shadow/command.ts";
import { verifyCommand } from "./verify/command.ts";

/** In the order of the help. */
export const COMMANDS: readonly Command[] = [
  sandboxCommand,
  sendCommand,
  verifyCommand,
  eventsCommand,
  explainCommand,
  alertsCommand,
  migrateCommand,
  moveCommand,
  resealCommand,
  shadowCommand,
];
