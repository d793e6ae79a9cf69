import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { builtinModules } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { forAdapters, type Program, packageOf } from "../adapters.ts";
import { importsIn } from "./imports.ts";
import { bin, install, pack, run, write } from "./pack.ts";
import { type Manifest, packagesIn, readManifest, type WorkspacePackage } from "./workspace.ts";

/** A merchant's program for each package. */
const programs: Readonly<Record<string, Program>> = {
  ...forAdapters((adapter) => [packageOf(adapter), adapter.program]),
  "@payhooks/client": {
    imports: [["{ createClient, isClientError }", "@payhooks/client"]],
    body: `
        const client = createClient({ baseUrl: "https://api.example.com", publicKey: "pk", secretKey: "sk" });
        client.transactionByReference("").catch((error) => {
          if (isClientError(error)) console.log(error.code);
        });
      `,
    prints: "ERR_FIELD_MISSING",
  },
  "@payhooks/core": {
    imports: [["{ createReceiver }", "@payhooks/core"]],
    body: `
        const receiver = createReceiver({ connect: { secret: process.env.CONNECT_WEBHOOK_SECRET } });
        const headers = new Headers();
        const delivery = { method: "GET", url: "/", headers, rawBody: new Uint8Array() };
        receiver.connect.receive(delivery).then((reply) => console.log(reply.status));
      `,
    prints: "405",
  },
  "@payhooks/console": {
    imports: [
      ["{ createReceiver }", "@payhooks/core"],
      ["{ payhooksConsole }", "@payhooks/console"],
    ],
    body: `
        const receiver = createReceiver({ connect: { secret: process.env.CONNECT_WEBHOOK_SECRET } });
        const page = payhooksConsole(receiver, { allowedHosts: ["merchant.example"], authorize: () => ({ by: "me", can: ["view"] }) });
        page(new Request("https://merchant.example/payhooks")).then(async (answer) => {
          console.log(answer.status, (await answer.text()).includes("Payhooks console"));
          await receiver.close();
        });
      `,
    prints: "200 true",
  },
  "@payhooks/sandbox": {
    imports: [["{ createSandbox }", "@payhooks/sandbox"]],
    body: `
        createSandbox({ delayMs: 0 }).then(async (sandbox) => {
          const { transaction } = sandbox.deposit({ reference: "order-1", amount: "10.50", outcome: "FAILED" });
          const headers = { "X-API-Key": sandbox.keys.apiKey };
          const response = await fetch(sandbox.url + "/api/v2/payment/transaction/ref/order-1", { headers });
          const answer = await response.text();
          console.log(response.status, answer.includes(transaction.id));
          await sandbox.close();
        });
      `,
    prints: "200 true",
  },
  payhooks: {
    imports: [
      ["{ execFileSync }", "node:child_process"],
      ["{ createHmac }", "node:crypto"],
    ],
    body: `
        const webhook = JSON.stringify({
          event: "settlement.approved",
          idempotency_key: "evt_1",
          occurred_at: "2026-01-01T00:00:00Z",
          data: { object: "settlement", id: "wd_1", connected_account_id: "cm_1", amount: 5, status: "approved" },
        });
        const digest = createHmac("sha256", process.env.CONNECT_WEBHOOK_SECRET ?? "").update(webhook).digest("hex");
        const args = ["node_modules/payhooks/dist/payhooks.js", "verify", "--header", "sha256=" + digest, "--json", "-"];
        const printed = execFileSync(process.execPath, args, { input: webhook, encoding: "utf8" });
        console.log(JSON.parse(printed).summary);
      `,
    prints: "settlement.approved wd_1 (evt_1)",
  },
};

const published = packagesIn("packages").filter(({ manifest }) => !manifest.private);
const names = published.map(({ manifest }) => manifest.name);

/** Import specifiers of everything that the package exports, from its own manifest. */
const entriesOf = ({ manifest }: WorkspacePackage): string[] =>
  Object.keys(manifest.exports ?? {})
    .filter((subpath) => subpath !== "./package.json")
    .map((subpath) => manifest.name + subpath.slice(1));

const fileNameOf = (name: string): string => name.slice(name.indexOf("/") + 1);

const entries = published.flatMap(entriesOf);

const app: string = mkdtempSync(join(tmpdir(), "payhooks-tarballs-"));
const env = { CONNECT_WEBHOOK_SECRET: "only-for-this-test-0123456789" };

const node = (file: string): Promise<string> => run(process.execPath, [file], app, env);
const tsc = (project: string): Promise<string> => run(bin("tsc"), ["-p", project], app);
/** The packages that Next.js and NestJS ask for. */
const PEERS_OF_PEERS = ["react", "react-dom", "reflect-metadata", "rxjs"];

/** Peers of the published packages and the types of both, at the versions that the workspace has. */
const peersInWorkspace = (): Record<string, string> => {
  const versions: Record<string, string> = {};
  for (const { directory, manifest } of published) {
    const peers = Object.keys(manifest.peerDependencies ?? {}).filter((peer) => !names.includes(peer));
    for (const name of [
      "@types/node",
      ...PEERS_OF_PEERS,
      ...peers.flatMap((peer) => [peer, `@types/${peer}`]),
    ]) {
      if (!Object.hasOwn(manifest.devDependencies ?? {}, name)) continue;
      versions[name] = readManifest(join(directory, "node_modules", name)).version;
    }
  }
  return versions;
};

const installedManifest = (name: string): Manifest => readManifest(join(app, "node_modules", name));

beforeAll(async () => {
  const tarballs = await pack(published, app);
  const dependencies = { ...peersInWorkspace(), ...tarballs };
  write(app, "package.json", { name: "merchant", private: true, dependencies });
  await install(app, tarballs);
}, 180_000);

afterAll(() => rmSync(app, { recursive: true, force: true }));

describe.each(names)("the tarball of %s", (name) => {
  const directory = join(app, "node_modules", name);

  /** The names in the files of the build: modules of their own, of Node, and packages. */
  const named = (): string[] =>
    readdirSync(join(directory, "dist"))
      .filter((file) => /\.(?:c?js|d\.c?ts)$/.test(file))
      .flatMap((file) => importsIn(readFileSync(join(directory, "dist", file), "utf8"), file))
      .map(({ specifier }) => specifier);

  it("has a program in this test that uses it", () => {
    expect(programs[name], `write one at the top of this test`).toBeDefined();
  });

  it("holds the build, the licence and a README, and no sources or tests", () => {
    const top = readdirSync(directory).filter((entry) => entry !== "node_modules");
    const docs = name === "@payhooks/core" ? ["docs"] : [];
    expect(top.sort()).toEqual(["LICENSE", "README.md", "dist", ...docs, "package.json"]);
    // A source map would name sources that are not here.
    expect(readdirSync(join(directory, "dist")).filter((file) => file.endsWith(".map"))).toEqual([]);
  });

  it("takes security fixes of what it depends on", () => {
    const ranges = Object.entries(installedManifest(name).dependencies ?? {}).filter(
      ([dependency]) => !names.includes(dependency),
    );
    expect(ranges.filter(([, range]) => !range.startsWith("^"))).toEqual([]);
  });

  it("names Node's own modules with node:, as Workers, Deno and bundlers ask for them", () => {
    expect(named().filter((specifier) => builtinModules.includes(specifier.split("/", 1)[0] ?? ""))).toEqual(
      [],
    );
    // The reading itself: it does see what a module names.
    expect(named()).not.toEqual([]);
  });

  it("needs nothing that only the workspace has", () => {
    expect(named().filter((specifier) => /^(?:esbuild|@payhooks\/pages)(?:\/|$)/.test(specifier))).toEqual(
      [],
    );
  });

  it("has commands that run", async () => {
    const { bin: commands = {}, version } = installedManifest(name);
    for (const command of Object.keys(commands)) {
      const shell = process.platform === "win32" ? ".cmd" : "";
      expect(await run(join(app, "node_modules", ".bin", command + shell), ["--version"], app)).toBe(version);
    }
    expect(Object.keys(commands)).toEqual(name === "payhooks" ? ["payhooks"] : []);
  });

  it("has a manifest with nothing of the workspace left in it", () => {
    const text = JSON.stringify({ ...installedManifest(name), devDependencies: {} });
    expect(text).not.toMatch(/workspace:|catalog:|payhooks-source|\.\/src\//);
  });

  it("exports the entry points of the workspace's manifest, and the file behind each is there", () => {
    const manifest = installedManifest(name);
    const source = published.find((one) => one.manifest.name === name)?.manifest.exports ?? {};
    expect(Object.keys(manifest.exports ?? {})).toEqual(Object.keys(source));
    const targets = JSON.stringify(manifest.exports).match(/(?<=:")\.\/[^"]+/g) ?? [];
    expect(targets).not.toEqual([]);
    expect(targets.filter((target) => !existsSync(join(directory, target)))).toEqual([]);
  });
});

describe("the documentation in the tarball of the core", () => {
  const docs = join(app, "node_modules/@payhooks/core/docs");

  it("has the pages for users, and no link that leads nowhere", () => {
    const pages = readdirSync(docs, { recursive: true, encoding: "utf8" }).filter((file) =>
      file.endsWith(".md"),
    );
    expect(pages).toContain(join("guides", "handlers.md"));
    expect(pages.filter((page) => page.startsWith("decisions"))).toEqual([]);
    const links = pages.flatMap((page) =>
      [
        ...readFileSync(join(docs, page), "utf8")
          .replace(/^```[\s\S]*?^```|`[^`\n]*`/gm, "")
          .matchAll(/\]\(([^)#]+)/g),
      ]
        .map(([, target = ""]) => target)
        .filter((target) => !/^[a-z]+:/.test(target))
        .map((target) => ({ page, target })),
    );
    expect(links.length).toBeGreaterThan(300);
    expect(links.filter(({ page, target }) => !existsSync(join(docs, dirname(page), target)))).toEqual([]);
  });
});

const header = {
  esm: ([what, from]: readonly [string, string]) => `import ${what} from "${from}";`,
  commonjs: ([what, from]: readonly [string, string]) => `const ${what} = require("${from}");`,
};

/** A module that imports every entry point as a namespace and prints the names that each exports. */
const inventory = {
  esm: entries.map((entry, index) => `import * as e${index} from "${entry}";`).join("\n"),
  commonjs: entries.map((entry, index) => `const e${index} = require("${entry}");`).join("\n"),
  print: `
    const all = [${entries.map((entry, index) => `["${entry}", e${index}]`).join(", ")}];
    const named = all.map(([entry, module]) => [entry, Object.keys(module).sort()]);
    // A class or constant that two entry points of one package export must be one and the same.
    const split = all.flatMap(([a, one]) => all
      .filter(([b]) => a < b && a.split("/")[1] === b.split("/")[1])
      .flatMap(([b, other]) => Object.keys(one).filter((key) => key in other && one[key] !== other[key])
        .map((key) => key + " of " + a + " and of " + b)));
    console.log(JSON.stringify({ named: Object.fromEntries(named), split }));
  `,
};

const namesInSource = async (): Promise<Record<string, string[]>> => {
  const read = entries.map(async (entry) => {
    const module: object = await import(/* @vite-ignore */ entry);
    return [entry, Object.keys(module).sort()] as const;
  });
  return Object.fromEntries(await Promise.all(read));
};

describe.each([
  { format: "esm" as const, extension: "mjs" },
  { format: "commonjs" as const, extension: "cjs" },
])("from a JavaScript project, as $format", { timeout: 60_000 }, ({ format, extension }) => {
  it("every entry point exports what its source exports, once", async () => {
    write(app, `inventory.${extension}`, inventory[format] + inventory.print);
    const printed: { named: unknown; split: string[] } = JSON.parse(await node(`inventory.${extension}`));
    // The mount of each framework has one name, and is another function.
    const split = printed.split.filter((one) => !one.startsWith("payhooksConsole of "));
    expect({ ...printed, split }).toEqual({ named: await namesInSource(), split: [] });
  });

  it.each(Object.entries(programs))("a program with %s works", async (name, { imports, body, prints }) => {
    const file = `${fileNameOf(name)}.${extension}`;
    write(app, file, imports.map(header[format]).join("\n") + body);
    expect(await node(file)).toBe(prints);
  });
});

const strict = { strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true };
const compilerOptions = {
  ...strict,
  target: "es2022",
  lib: ["es2023"],
  types: ["node"],
  esModuleInterop: true,
};

/** `any` would let every wrong program through, so no export may be it, and a wrong program must not compile. */
const typeChecks = async (): Promise<string> => {
  const checks = Object.values(await namesInSource()).flatMap((exported, index) =>
    exported.map(
      (one) => `export const e${index}_${one}: NotAny<typeof e${index}.${one}> = e${index}.${one};`,
    ),
  );
  return [
    inventory.esm,
    'import { createReceiver } from "@payhooks/core";',
    "// @ts-expect-error a number is not a secret",
    "export const wrong = () => createReceiver({ connect: { secret: 42 } });",
    "type NotAny<T> = 0 extends 1 & T ? never : T;",
    ...checks,
  ].join("\n");
};

/** Writes every program as TypeScript, and a tsconfig.json, into a folder; the extensions are those given. */
const writeTypeScriptProject = async (
  folder: string,
  extensions: string[],
  options: Record<string, unknown>,
): Promise<void> => {
  mkdirSync(join(app, folder));
  for (const extension of extensions) {
    write(app, `${folder}/types.${extension}`, await typeChecks());
    for (const [name, { imports, body }] of Object.entries(programs)) {
      write(app, `${folder}/${fileNameOf(name)}.${extension}`, imports.map(header.esm).join("\n") + body);
    }
  }
  write(app, `${folder}/tsconfig.json`, { compilerOptions: { ...compilerOptions, ...options } });
};

describe.concurrent("from a strict TypeScript project", { timeout: 120_000 }, () => {
  // NestJS is an ES module alone. node20, unlike node16, lets CommonJS require such a module, as Node does.
  it("with the resolution of Node, programs compile and run, from ESM and from CommonJS", async () => {
    await writeTypeScriptProject("node16", ["mts", "cts"], { module: "node20", outDir: "out" });
    expect(await tsc("node16")).toBe("");
    for (const [name, { prints }] of Object.entries(programs)) {
      const file = join("node16", "out", fileNameOf(name));
      expect(await Promise.all([node(`${file}.mjs`), node(`${file}.cjs`)])).toEqual([prints, prints]);
    }
  });

  it("with bundler resolution, programs compile", async () => {
    await writeTypeScriptProject("bundler", ["ts"], {
      module: "esnext",
      moduleResolution: "bundler",
      skipLibCheck: true,
      noEmit: true,
    });
    expect(await tsc("bundler")).toBe("");
  });

  it("with the node10 resolution of older CommonJS projects, programs compile", async () => {
    await writeTypeScriptProject("node10", ["ts"], {
      module: "commonjs",
      moduleResolution: "node10",
      skipLibCheck: true,
      noEmit: true,
    });
    expect(await tsc("node10")).toBe("");
  });
});
