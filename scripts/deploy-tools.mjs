// Whether there are nginx and systemd's own check of units, for the suite of examples/deploy.
import { spawnSync } from "node:child_process";

export const deploySuites = ["test/examples/deploy.test.ts"];

/** True where both can be started. */
export function hasDeployTools() {
  return [
    ["nginx", "-v"],
    ["systemd-analyze", "--version"],
  ].every(([command, version]) => spawnSync(command, [version], { stdio: "ignore" }).status === 0);
}

/** Says which suite is left out where one is missing; with `CI` set that is a failure, since nobody would read the line. */
export function expectDeployTools() {
  if (hasDeployTools()) return;
  const line = `nginx or systemd-analyze is missing: ${deploySuites.join(", ")} is left out. Install them: apt-get install -y nginx-light systemd`;
  process.stderr.write(`\u001b[31m${line}\u001b[0m\n`);
  if (process.env.CI) process.exit(1);
}
