/** The packages as they are published, on every runtime: loaded, verifying, receiving, running. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ADAPTERS } from "../adapters.ts";
import { startServer } from "../conformance/targets.ts";
import { install, pack, run, write } from "../package/pack.ts";
import { packagesIn, readManifest, root } from "../package/workspace.ts";
import { BUN, DENO, NODES, type Runtime, versionSaidBy, WORKERD } from "./install.ts";
import { onWorkerd } from "./workerd.ts";

const app = mkdtempSync(join(tmpdir(), "payhooks-matrix-"));
const LIBRARIES = ["core", "client", ...ADAPTERS.map(({ name }) => name)];
/** The packages that a Worker can load: frameworks on Node's own server cannot run there. */
const ON_WORKERS = [
  "core",
  "client",
  ...ADAPTERS.flatMap(({ name, onWorkers }) => (onWorkers ? [name] : [])),
];
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

beforeAll(async () => {
  const tarballs = await pack(packages, app);
  const ofPeers = ["react", "react-dom", "reflect-metadata", "rxjs"];
  const ofCore = ["@opentelemetry/api"];
  const peers = [...ADAPTERS.flatMap((adapter) => adapter.peers), ...ofPeers, ...ofCore].map((name) => [
    name,
    readManifest(join(root, "test/node_modules", name)).version,
  ]);
  const dependencies = { ...Object.fromEntries(peers), ...tarballs };
  write(app, "package.json", { name: "merchant", private: true, dependencies });
  await install(app, tarballs);
  write(app, "check.mjs", program(entriesOf(LIBRARIES)));
  write(
    app,
    "main.mjs",
    'import { check } from "./check.mjs";\nconsole.log(await check());\nprocess.exit(0);\n',
  );
  write(app, "check-worker.mjs", program(entriesOf(ON_WORKERS)));
  write(
    app,
    "worker.mjs",
    'import { check } from "./check-worker.mjs";\nexport default { fetch: async (_request, _env, context) => new Response(await check(context)) };\n',
  );
}, 600_000);

afterAll(() => rmSync(app, { recursive: true, force: true }), 60_000);

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
    expect(JSON.parse(await run(command, [...args, join(app, "main.mjs")], app))).toEqual(GOOD);
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
