// Looks for nginx and systemd's own check of units, for the suite of examples/deploy.
import { spawnSync } from "node:child_process";
import { leaveOut } from "./suites.mjs";

export const deploySuites = ["test/examples/deploy.test.ts"];

/** True where both can be started. */
export function hasDeployTools() {
  return [
    ["nginx", "-v"],
    ["systemd-analyze", "--version"],
  ].every(([command, version]) => spawnSync(command, [version], { stdio: "ignore" }).status === 0);
}

/** Says which suite is left out where one is missing. With `CI` set that is a failure. */
export function expectDeployTools() {
  if (hasDeployTools()) return;
  leaveOut(deploySuites, "nginx or systemd-analyze", "apt-get install -y nginx-light systemd");
}
