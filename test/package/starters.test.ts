/** Installs the documentation's code from the tarballs into a new project: it works at the first attempt. */
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ADAPTERS, packageOf } from "../adapters.ts";
import { startServer } from "../conformance/targets.ts";
import { APPS } from "./apps.ts";
import { bin, install, pack, run, write } from "./pack.ts";
import { receives, versionOf, writeProject } from "./project.ts";
import { codeOf, FUNCTIONS, HANDLERS, NEXT_APP, NEXT_BACKGROUND, SERVERS } from "./starters.ts";
import { packagesIn, readManifest, root } from "./workspace.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "payhooks-starters-")));
const projectOf = (name: string): string => join(folder, name);
const adapters = packagesIn("packages").filter(({ manifest }) =>
  ["@payhooks/core", ...ADAPTERS.map(packageOf)].includes(manifest.name),
);

beforeAll(async () => {
  const tarballs = await pack(adapters, folder);
  for (const starter of [...SERVERS, ...HANDLERS, ...FUNCTIONS])
    writeProject(starter, projectOf(starter.name), tarballs);
  layKit(tarballs);
  await install(folder, tarballs);
}, 180_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The files that the first stage of examples/deploy's image has when it builds, with the packed packages to be installed. */
function layKit(tarballs: Readonly<Record<string, string>>): void {
  const kit = join(root, "examples/deploy");
  const [stage = ""] = readFileSync(join(kit, "Dockerfile"), "utf8").split("RUN npm run build");
  const copied = [...stage.matchAll(/^COPY (.+) \S+$/gm)].flatMap(([, names = ""]) => names.split(" "));
  // The lockfile is the merchant's own.
  for (const name of copied.filter((one) => one !== "package-lock.json"))
    cpSync(join(kit, name), join(projectOf("deploy"), name), { recursive: true });
  const { dependencies, devDependencies, ...manifest } = readManifest(kit);
  const names = Object.keys({ ...dependencies, ...devDependencies });
  const versions = names.map((name) => [name, versionOf(name, tarballs)]);
  write(projectOf("deploy"), "package.json", { ...manifest, dependencies: Object.fromEntries(versions) });
}

/** As its reader does it: with the compiler and the configuration of the project. */
async function build(name: string): Promise<void> {
  const project = projectOf(name);
  if (existsSync(join(project, "tsconfig.json"))) expect(await run(bin("tsc"), [], project)).toBe("");
}

describe("in a new project", { timeout: 60_000 }, () => {
  it.each(SERVERS)("of $name, the code of $document", async ({ name, runs }) => {
    await build(name);
    const server = await startServer({
      command: process.execPath,
      args: [runs],
      cwd: projectOf(name),
      env: { PORT: "0" },
      listening: /listening .*port: (\d+)/,
    });
    try {
      await receives(server);
    } finally {
      await server.stop();
    }
  });

  it.each(HANDLERS)("of a $name, the code of $document", async ({ name, runs, mounts }) => {
    await build(name);
    const server = await startServer({
      command: process.execPath,
      args: ["--import=tsx", join(root, "test/conformance/servers/module.ts"), join(projectOf(name), runs)],
      cwd: join(root, "test"),
    });
    try {
      await receives(server, mounts);
    } finally {
      await server.stop();
    }
  });

  it.each(FUNCTIONS)("of functions on $name, the code of $document compiles", async ({ name }) => {
    await build(name);
    expect(existsSync(join(projectOf(name), "dist/index.js"))).toBe(true);
  });

  it("of examples/deploy, what its Dockerfile copies is enough to build it", async () => {
    await run("npm", ["run", "build"], projectOf("deploy"));
    expect(existsSync(join(projectOf("deploy"), "dist/server.js"))).toBe(true);
  });

  it("is everything that the pages of the adapters show", () => {
    const tried = [...SERVERS, ...HANDLERS, ...FUNCTIONS, NEXT_APP, NEXT_BACKGROUND, ...APPS].flatMap(
      ({ document, files }) => Object.values(files).map((at) => `${document} ${at}`),
    );
    const pages = ADAPTERS.map(({ name }) => `packages/${name}/README.md`);
    const starts = readdirSync(join(root, "docs/start")).map((name) => `docs/start/${name}`);
    const shown = [...starts, ...pages].flatMap((page) =>
      [...codeOf(page).keys()].map((at) => `${page} ${at}`),
    );
    expect(new Set(tried)).toEqual(new Set(shown));
  });
});
