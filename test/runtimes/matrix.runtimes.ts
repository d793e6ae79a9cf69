/** The packages as they are published, on every runtime: loaded, verifying, receiving, running. */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startServer } from "../conformance/targets.ts";
import { packagesIn, readManifest, root, type WorkspacePackage } from "../package/workspace.ts";
import { BUN, DENO, installRuntimes, NODES, type Runtime, versionSaidBy, WORKERD } from "./install.ts";
import { onWorkerd } from "./workerd.ts";

const app = mkdtempSync(join(tmpdir(), "payhooks-matrix-"));
const LIBRARIES = ["core", "client", "express", "fastify", "hono", "next"];
/** What a Worker can load: frameworks on Node's own server cannot run there. */
const ON_WORKERS = ["core", "client", "hono"];
const packages = packagesIn("packages").filter(({ manifest }) =>
  LIBRARIES.includes(manifest.name.replace("@payhooks/", "")),
);
const entriesOf = (names: readonly string[]): string[] =>
  packages
    .filter(({ manifest }) => names.includes(manifest.name.replace("@payhooks/", "")))
    .flatMap(({ manifest }) =>
      Object.keys(manifest.exports ?? {})
        .filter((subpath) => subpath !== "./package.json")
        .map((subpath) => manifest.name + subpath.slice(1)),
    );

interface Vector {
  readonly body: string;
}
const vectors = JSON.parse(
  readFileSync(join(root, "test/vectors/payments.json"), "utf8"),
) as readonly Vector[];
const publicKey = readFileSync(join(root, "test/vectors/keys/primary.public.pem"), "utf8");
const SECRET = "whsec_matrix_0123456789";

const run = async (command: string, args: readonly string[]): Promise<string> => {
  try {
    const { stdout } = await promisify(execFile)(command, [...args], {
      cwd: app,
      maxBuffer: 16 * 1024 * 1024,
    });
    return stdout.trim();
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    throw new Error(`${command} failed:\n${stdout}${stderr}`, { cause: error });
  }
};

/** A module whose `check` loads every entry, verifies a vector, receives a signed delivery and runs its handler. */
const program = (entries: readonly string[]): string => `
${entries.map((entry, n) => `import * as e${n} from "${entry}";`).join("\n")}
import { createReceiver, memoryInbox, verifyPaymentCallback } from "@payhooks/core";
import { connectWebhooks } from "@payhooks/core/fetch";
import { connectEvent, signConnectWebhook } from "@payhooks/core/testing";

export async function check(context) {
  const empty = Object.entries({ ${entries.map((entry, n) => `"${entry}": e${n}`).join(", ")} })
    .filter(([, module]) => Object.keys(module).length === 0).map(([name]) => name);
  const { event } = verifyPaymentCallback(new TextEncoder().encode(${JSON.stringify(vectors[0]?.body)}), {
    publicKey: ${JSON.stringify(publicKey)},
  });
  let handled;
  const ran = new Promise((resolve) => { handled = resolve; });
  const receiver = createReceiver({ connect: { secret: ${JSON.stringify(SECRET)} }, inbox: memoryInbox() });
  receiver.onSettlementApproved(async ({ data }) => handled(data.amount));
  const { headers, rawBody } = signConnectWebhook(connectEvent("settlement.approved"), ${JSON.stringify(SECRET)});
  const request = new Request("http://merchant.example/", { method: "POST", headers, body: rawBody });
  const answer = await connectWebhooks(receiver)(request, undefined, context);
  return JSON.stringify({ empty, verified: event.payTxnId, status: answer.status, ran: await ran });
}
`;

const pack = async ({ directory }: WorkspacePackage): Promise<string> => {
  const pnpm = join(root, "node_modules/.bin/pnpm");
  const { stdout } = await promisify(execFile)(pnpm, ["pack", "--json", "--pack-destination", app], {
    cwd: directory,
  });
  return (JSON.parse(stdout) as { filename: string }).filename;
};

beforeAll(async () => {
  await installRuntimes();
  const files: Record<string, string> = {};
  for (const one of packages) files[one.manifest.name] = `file:${await pack(one)}`;
  const peers = ["express", "fastify", "hono", "next", "react", "react-dom"].map((name) => [
    name,
    readManifest(join(root, "test/node_modules", name)).version,
  ]);
  const dependencies = { ...Object.fromEntries(peers), ...files };
  writeFileSync(join(app, "package.json"), JSON.stringify({ name: "merchant", private: true, dependencies }));
  // JSON is YAML. Siblings are not on the registry: whoever asks for one gets its tarball.
  writeFileSync(
    join(app, "pnpm-workspace.yaml"),
    JSON.stringify({ overrides: files, autoInstallPeers: false }),
  );
  await run(join(root, "node_modules/.bin/pnpm"), ["install", "--prefer-offline", "--ignore-scripts"]);
  writeFileSync(join(app, "check.mjs"), program(entriesOf(LIBRARIES)));
  writeFileSync(
    join(app, "main.mjs"),
    'import { check } from "./check.mjs";\nconsole.log(await check());\nprocess.exit(0);\n',
  );
  writeFileSync(join(app, "check-worker.mjs"), program(entriesOf(ON_WORKERS)));
  writeFileSync(
    join(app, "worker.mjs"),
    'import { check } from "./check-worker.mjs";\nexport default { fetch: async (_request, _env, context) => new Response(await check(context)) };\n',
  );
}, 600_000);

afterAll(() => rmSync(app, { recursive: true, force: true }));

const GOOD = {
  empty: [],
  verified: (JSON.parse(vectors[0]?.body ?? "{}") as { payTxnId?: string }).payTxnId,
  status: 200,
  ran: 125_000,
};
const runtimes: readonly Runtime[] = [...NODES, BUN, DENO];

describe("the packed packages", { timeout: 120_000 }, () => {
  it.each([...runtimes, WORKERD])("are tried on $name $version, and no other", async (runtime) => {
    expect(await versionSaidBy(runtime)).toBe(runtime.version);
  });

  it.each(runtimes)("load, verify, receive and run on $name", async ({ command, args }) => {
    expect(JSON.parse(await run(command, [...args, join(app, "main.mjs")]))).toEqual(GOOD);
  });

  it("load, verify, receive and run on workerd", async () => {
    const server = await startServer(await onWorkerd(join(app, "worker.mjs"), {}));
    try {
      const answer = await fetch(`http://127.0.0.1:${server.port}/`);
      expect(JSON.parse(await answer.text())).toEqual(GOOD);
    } finally {
      await server.stop();
    }
  });
});
