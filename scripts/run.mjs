// The one entry of every npm script: `node scripts/run.mjs <task> [arguments…]`. Installs the packages of the lockfile, builds
// the changed packages, then runs the task. It uses nothing but Node, because in a fresh clone there is nothing else, and it is
// not a pre-script, because npm skips those under ignore-scripts.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expectDeployTools } from "./deploy-tools.mjs";
import { expectMariadb } from "./mariadb-server.mjs";
import { expectPgbouncer } from "./pgbouncer.mjs";
import { expectPostgres } from "./postgres-server.mjs";
import { expectPrometheus } from "./prometheus.mjs";
import { provideRedis } from "./redis-server.mjs";

const root = resolve(fileURLToPath(import.meta.url), "../..");
const onWindows = process.platform === "win32";

const tasks = {
  /** Starts the demo from the TypeScript sources, so it needs no build and no second process to pass signals through. */
  start: (args) =>
    serve(process.execPath, ["--conditions=payhooks-source", "--import=tsx", exampleDemo, ...args]),
  build: () => build(),
  /** Runs the quick tests. With arguments, runs the named files or projects, quick or not. */
  test: (args) => test(args, "!rest*"),
  /** The long tests. vitest.config.ts says which files these are, and why. */
  "test:rest": (args) => {
    expectMariadb();
    expectPgbouncer();
    expectDeployTools();
    expectPrometheus();
    return test(args, "rest*");
  },
  /** The fault tests at full length; `--kills 200` bounds those that are counted in kills. */
  "test:faults": async (args) => {
    provideRedis();
    process.env.PAYHOOKS_FAULTS = "long";
    const at = args.indexOf("--kills");
    if (at >= 0) [, process.env.PAYHOOKS_FAULTS_KILLS] = args.splice(at, 2);
    await run("vitest", ["run", "--project", "rest-faults*", ...args]);
  },
  /** The proofs of the security at full length: hours. `PAYHOOKS_SEED=7` repeats a run. */
  "test:security": async (args) => {
    process.env.PAYHOOKS_SECURITY = "long";
    await run("vitest", ["run", "--project", "*security", ...args]);
  },
  /** Simulated histories: test/simulation/README.md. test/simulation/main.ts has the options. */
  "test:simulation": (args) =>
    run(process.execPath, [
      // Histories make much garbage that lives for a short time, so its space is large. Each processor plays histories, so the
      // collector gets no threads of its own.
      "--max-semi-space-size=64",
      "--single-threaded-gc",
      "--conditions=payhooks-source",
      "--import=tsx",
      "test/simulation/main.ts",
      ...args,
    ]),
  /** Changes the sources of the verification, one place at a time; `--mutate <file>` names one of them. */
  "test:mutants": (args) => run("stryker", ["run", ...args]),
  /** On the built packages, as users get them. test/bench/bench.ts has the options. */
  bench: async (args) => {
    provideRedis();
    await build();
    await run(process.execPath, ["--import=tsx", "test/bench/bench.ts", ...args]);
  },
  /** In Chromium: Debian's, or the one that PAYHOOKS_CHROMIUM names. */
  "test:browser": (args) => run("vitest", ["run", "--config", "vitest.browser.config.ts", ...args]),
  /** Makes the pictures of the documentation, in docs/images. */
  screenshots: () =>
    run(process.execPath, ["--conditions=payhooks-source", "--import=tsx", "test/browser/screenshots.ts"]),
  /** Installs other runtimes first (1 GB, once), into a folder below node_modules. */
  "test:runtimes": async (args) => {
    await build();
    await run("vitest", ["run", "--config", "vitest.runtimes.config.ts", ...args]);
  },
  check: async () => {
    await build();
    await run("biome", ["ci", "."]);
    await run("turbo", ["run", "typecheck", "--output-logs=errors-only"]);
    await run("knip", []);
    await run(process.execPath, ["scripts/check-packages.mjs"]);
    await run(process.execPath, ["scripts/api-reports.mjs"]);
  },
  /** Writes what each package exports into its folder `api`, with which `check` compares. */
  api: async () => {
    await build();
    await run(process.execPath, ["scripts/api-reports.mjs", "--write"]);
  },
  /** The documentation as a site, in site/dist; with `preview` it is served as well. Installs what that needs, below site. */
  docs: async ([then]) => {
    await run("pnpm", [
      "--dir",
      "site",
      "install",
      "--frozen-lockfile",
      "--prefer-offline",
      "--reporter=silent",
    ]);
    const vitepress = join(root, "site/node_modules/.bin/vitepress");
    await run(vitepress, ["build", "site"]);
    if (then === "preview") await run(vitepress, ["preview", "site"]);
  },
  /** Asks what changed, and writes it into .changeset. */
  changeset: (args) => run("changeset", args),
  "release:prepare": () => run(process.execPath, ["scripts/prepare-release.mjs"]),
  "release:check": () => run(process.execPath, ["scripts/check-release.mjs"]),
  format: () => run("biome", ["check", "--write", "."]),
};

const exampleDemo = "examples/express/src/demo.ts";
const signals = ["SIGINT", "SIGTERM", "SIGHUP"];

const [taskName = "", ...taskArguments] = process.argv.slice(2);
const task = Object.hasOwn(tasks, taskName) ? tasks[taskName] : undefined;
if (!task) fail(`Unknown task "${taskName}". Tasks: ${Object.keys(tasks).join(", ")}.`);
requireNode(readManifest().engines.node);
process.chdir(root);
process.env.PATH = join(root, "node_modules", ".bin") + delimiter + process.env.PATH;
process.env.TURBO_TELEMETRY_DISABLED = "1";
process.env.NEXT_TELEMETRY_DISABLED = "1";
await install();
await task(taskArguments);

/** Installs if the lockfile or a manifest has changed since the last installation. */
async function install() {
  const isInput = (path) => /(^|\/)package\.json$|^pnpm-(lock|workspace)\.yaml$/.test(path);
  const wanted = fingerprint(sourceFiles().filter(isInput), (path) => readFileSync(path));
  if (readStamp("install") === wanted) return;
  const pnpm = `pnpm@${readManifest().packageManager.split("@")[1]}`;
  process.stdout.write("Installing dependencies…\n");
  const args = ["--yes", pnpm, "install", "--frozen-lockfile", "--reporter=append-only"];
  // With CI set, pnpm asks no question and keeps the lockfile as it is. Only for pnpm: with CI set, other tools hide their
  // output.
  const code = await exitCode("npx", args, { env: { CI: "true", ...process.env } });
  if (code !== 0) {
    fail(
      "Installing failed; the lines above say why. The first run needs the npm registry: check the network and any proxy, then try again.",
      code,
    );
  }
  writeStamp("install", wanted);
}

/** Builds the packages. Skips turbo if no input of a build has changed. */
async function build() {
  const isInput = (path) => /^packages\/[^/]+\/(src\/|[^/]+$)|^ts[^/]+$|^pnpm-lock\.yaml$/.test(path);
  const modified = (path) => `${statSync(path).mtimeMs} ${statSync(path).size}`;
  const wanted = fingerprint(sourceFiles().filter(isInput), modified);
  const built = readdirSync("packages").every(
    (name) => isBundled(name) || existsSync(`packages/${name}/dist`),
  );
  if (built && readStamp("build") === wanted) return;
  rmSync(stampPath("build"), { force: true });
  await run("turbo", ["run", "build", "--filter=./packages/*", "--output-logs=errors-only"]);
  writeStamp("build", wanted);
}

/** A private package has no build of its own: it is bundled into those that use it. */
function isBundled(name) {
  return JSON.parse(readFileSync(`packages/${name}/package.json`, "utf8")).private === true;
}

async function test(args, projects) {
  provideRedis();
  expectPostgres();
  await build();
  const isNamed = args.some((arg) => !arg.startsWith("-") || arg.startsWith("--project"));
  await run("vitest", ["run", ...(isNamed ? [] : ["--project", projects]), ...args]);
}

/** Runs a command to its end; when it fails, so do we, with its exit code. */
async function run(command, args) {
  const code = await exitCode(command, args);
  if (code !== 0) process.exit(code);
}

/**
 * Runs a server that ends on a signal. It gets a process group of its own, so that Ctrl-C, which a terminal
 * sends to the whole group and npm then sends again, reaches it once, from here, and its shutdown is not cut short.
 */
async function serve(command, args) {
  process.exitCode = await exitCode(command, args, { ownGroup: !onWindows });
}

/** Runs a command with our terminal, passes our signals on to it, and answers with its exit code. */
function exitCode(command, args, { ownGroup = false, env = process.env } = {}) {
  return new Promise((settle) => {
    const viaShell = onWindows && command !== process.execPath; // .cmd files need a shell there
    const child = spawn(command, args, { stdio: "inherit", detached: ownGroup, shell: viaShell, env });
    let lastSignalAt = 0;
    const passOn = (signal) => {
      if (ownGroup && Date.now() - lastSignalAt < 1000) return;
      lastSignalAt = Date.now();
      child.kill(signal === "SIGHUP" ? "SIGTERM" : signal); // do not stop in mid-work when the terminal is closed
    };
    for (const signal of signals) process.on(signal, passOn);
    // A SIGTERM to npm ends the shell between npm and us without reaching us: we only lose our parent.
    const parent = process.ppid;
    const watch = setInterval(() => {
      if (process.ppid === parent) return;
      clearInterval(watch);
      passOn("SIGTERM");
    }, 250);
    child.on("error", (error) => fail(`Could not run ${command}: ${error.message}`));
    child.on("exit", (code, killedBy) => {
      clearInterval(watch);
      for (const signal of signals) process.off(signal, passOn);
      settle(code ?? 128 + constants.signals[killedBy]);
    });
  });
}

/** Every file that belongs to the workspace, found without git: a downloaded archive has none. */
function sourceFiles(directory = "") {
  const skipped = new Set(["node_modules", "dist", "coverage", ".git", ".turbo", ".next", ".stryker-tmp"]);
  return readdirSync(directory || ".", { withFileTypes: true }).flatMap((entry) => {
    const path = directory + entry.name;
    if (entry.isDirectory()) return skipped.has(entry.name) ? [] : sourceFiles(`${path}/`);
    return entry.isFile() ? [path] : [];
  });
}

function fingerprint(paths, describe) {
  const hash = createHash("sha256").update(process.version);
  for (const path of paths.sort()) hash.update(`\0${path}\0`).update(describe(path));
  return hash.digest("hex");
}

function stampPath(name) {
  return join(root, "node_modules", `.payhooks-${name}`);
}

function readStamp(name) {
  return existsSync(stampPath(name)) ? readFileSync(stampPath(name), "utf8") : undefined;
}

function writeStamp(name, value) {
  mkdirSync(join(root, "node_modules"), { recursive: true });
  writeFileSync(stampPath(name), value);
}

function readManifest() {
  return JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
}

function requireNode(range) {
  const wanted = range.replace(/^>=/, "").split(".").map(Number);
  const actual = process.versions.node.split(".").map(Number);
  const isOlder = actual[0] < wanted[0] || (actual[0] === wanted[0] && actual[1] < wanted[1]);
  if (isOlder)
    fail(
      `Payhooks needs Node.js ${range}; this is ${process.version}. Install a newer one and run this again.`,
    );
}

function fail(message, code = 1) {
  process.stderr.write(`${message}\n`);
  process.exit(code);
}
