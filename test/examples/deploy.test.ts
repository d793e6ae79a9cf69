/** examples/deploy: its nginx in front of two of its processes while they are restarted, and its files by the checks of their kinds. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { callbackFields, createTestKeys, signPaymentCallback } from "@payhooks/core/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { readDocument } from "../docs/markdown.ts";
import { VirtualProgram } from "../docs/program.ts";
import { RunningProgram } from "../e2e/program.ts";
import { PostgresServer } from "../faults/harness/postgres-server.ts";
import { Scope, until } from "../faults/harness/scope.ts";
import { root } from "../package/workspace.ts";
import { freePort } from "../support/free-port.ts";
import { GuardedProgram } from "../support/guarded.ts";

const kit = join(root, "examples/deploy");
const text = (name: string): string => readFileSync(join(kit, name), "utf8");
const folder = mkdtempSync(join(tmpdir(), "payhooks-deploy-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("two processes behind nginx", { timeout: 120_000 }, () => {
  const scope = new Scope();
  const keys = createTestKeys();
  const ports: number[] = [];
  let database: PostgresServer;
  let address = "";

  async function start(port: number): Promise<RunningProgram> {
    const program = new RunningProgram("examples/deploy/src/server.ts", [], {
      PAY_PUBLIC_KEY: keys.publicKey,
      CONNECT_WEBHOOK_SECRET: "whsec_0123456789abcdef",
      DATABASE_URL: database.url,
      PORT: String(port),
    });
    scope.add(program, (one) => one.kill());
    await program.until(/listening/);
    await until("the process is ready", async () =>
      (await fetch(`http://127.0.0.1:${port}/ready`)).ok ? true : null,
    );
    return program;
  }

  async function startNginx(): Promise<void> {
    const port = await freePort();
    const config = text("nginx.conf")
      .replace("app-1:3000", `127.0.0.1:${ports[0]}`)
      .replace("app-2:3000", `127.0.0.1:${ports[1]}`)
      .replace("listen 8080", `listen 127.0.0.1:${port}`)
      .replace(
        "http {",
        `http {\n${["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${folder}/${name};`).join("\n")}`,
      );
    const file = join(folder, "nginx.conf");
    writeFileSync(file, `pid ${folder}/nginx.pid;\n${config}`);
    execFileSync("nginx", ["-t", "-c", file], { stdio: "ignore" });
    const args = ["-c", file, "-g", "daemon off; master_process off;"];
    scope.add(await GuardedProgram.start("nginx", args), (one) => one.kill("SIGKILL"));
    address = `http://127.0.0.1:${port}`;
    await until("nginx answers", () =>
      fetch(address).then(
        () => true,
        () => null,
      ),
    );
  }

  async function post(referenceId: string, rawBody?: string): Promise<Response> {
    const signed = signPaymentCallback(
      callbackFields({ referenceId, payTxnId: `id-${referenceId}` }),
      keys.privateKey,
    );
    return fetch(`${address}/callbacks/pay`, {
      method: "POST",
      headers: signed.headers,
      body: rawBody ?? signed.rawBody,
    });
  }

  beforeAll(async () => {
    database = await PostgresServer.start(scope);
    ports.push(await freePort(), await freePort());
  });
  afterAll(() => scope.close());

  it("answer every delivery 200 while one after the other is restarted, and run each event once", async () => {
    const programs = [await start(ports[0] ?? 0), await start(ports[1] ?? 0)];
    await startNginx();
    const answers: number[] = [];
    let isOver = false;
    const sender = async (name: string): Promise<void> => {
      for (let count = 0; !isOver; count += 1) answers.push((await post(`${name}-${count}`)).status);
    };
    const senders = ["a", "b", "c", "d"].map(sender);
    const all = [...programs];
    for (const [at, program] of programs.entries()) {
      const before = answers.length;
      await until("deliveries are under way", () => (answers.length > before + 50 ? true : null));
      program.signal("SIGTERM");
      expect(await program.exitCode).toBe(0);
      const alone = answers.length;
      await until("the other process takes them", () => (answers.length > alone + 50 ? true : null));
      all.push(await start(ports[at] ?? 0));
    }
    isOver = true;
    await Promise.all(senders);
    expect(answers.length).toBeGreaterThan(200);
    expect(answers.filter((status) => status !== 200)).toEqual([]);
    const credited = (): string[] =>
      all.flatMap(({ output }) =>
        [...output.matchAll(/credit .* for (\S+) once/g)].map(([, one = ""]) => one),
      );
    await until("everything has run", () => (credited().length >= answers.length ? true : null));
    expect(new Set(credited()).size).toBe(answers.length);
    expect(credited()).toHaveLength(answers.length);
  });

  it("tell strangers neither /live nor /ready, and refuse a body that the receiver would refuse", async () => {
    for (const path of ["/live", "/ready", "/"]) expect((await fetch(address + path)).status).toBe(404);
    expect((await post("large", "x".repeat(65 * 1024))).status).toBe(413);
  });
});

describe("the files of examples/deploy", () => {
  const server = text("src/server.ts");
  const graceMs = Number(/graceMs: ([\d_]+)/.exec(server)?.[1]?.replaceAll("_", ""));

  it("have Kubernetes manifests that fit its own types", () => {
    const documents = parseAllDocuments(text("kubernetes.yaml")).map(
      (one) => one.toJSON() as { kind: string },
    );
    const modules = {
      Deployment: "apps/v1",
      Service: "core/v1",
      PodDisruptionBudget: "policy/v1",
      Ingress: "networking/v1",
    };
    expect(documents.map(({ kind }) => kind)).toEqual(Object.keys(modules));
    const programOf = (manifests: readonly { kind: string }[]): string =>
      manifests
        .map(({ kind }, at) => {
          const module = modules[kind as keyof typeof modules];
          return `import type { ${kind} } from "kubernetes-types/${module}.js";\nexport const m${at}: ${kind} = ${JSON.stringify(manifests[at])};`;
        })
        .join("\n");
    const wrong = JSON.stringify(documents).replace("readinessProbe", "readynessProbe");
    const program = new VirtualProgram({
      "manifests.ts": programOf(documents),
      "wrong.ts": programOf(JSON.parse(wrong) as { kind: string }[]),
    });
    expect(program.errorsOf("manifests.ts")).toEqual([]);
    expect(program.errorsOf("wrong.ts").join()).toContain("readynessProbe");
  });

  it("have a unit that systemd accepts", () => {
    const unit = text("payhooks.service")
      .replace("/usr/bin/node", process.execPath)
      .replace("User=shop", "User=root");
    const verify = (name: string, content: string): string => {
      writeFileSync(join(folder, name), content);
      try {
        return execFileSync("systemd-analyze", ["verify", "--man=no", join(folder, name)], {
          encoding: "utf8",
          stdio: "pipe",
        });
      } catch (error) {
        return String((error as { stderr?: unknown }).stderr);
      }
    };
    const said = (content: string): string[] =>
      verify("payhooks.service", content)
        .split("\n")
        .filter((line) => line.includes("payhooks.service"));
    expect(said(unit)).toEqual([]);
    expect(said(unit.replace("ExecStart=/", "ExecStart=-no/"))).not.toEqual([]);
  });

  it("let handlers finish before anybody kills the process", () => {
    const [deployment] = parseAllDocuments(text("kubernetes.yaml")).map((one) => one.toJSON());
    const { terminationGracePeriodSeconds, containers } = deployment.spec.template.spec;
    const preStop = containers[0].lifecycle.preStop.sleep.seconds;
    expect(terminationGracePeriodSeconds * 1_000).toBeGreaterThan(graceMs + preStop * 1_000 + 5_000);
    const seconds = [
      parse(text("compose.yaml"), { merge: true }).services["app-1"].stop_grace_period.replace("s", ""),
      /TimeoutStopSec=(\d+)/.exec(text("payhooks.service"))?.[1],
    ].map(Number);
    for (const each of seconds) expect(each * 1_000).toBeGreaterThan(graceMs + 5_000);
  });

  it("get from the commands of the page the manifest that they are tried with, and the lockfile of the Dockerfile", () => {
    const { blocks } = readDocument("docs/operating/deploying.md");
    const commands = blocks
      .filter(({ language }) => language === "sh")
      .flatMap((block) => block.text.trim().split("\n"));
    const copy = mkdtempSync(join(folder, "copy-"));
    const installed = { dependencies: [] as string[], devDependencies: [] as string[] };
    for (const command of commands) {
      const [, isDev, names] = /^npm install (--save-dev )?(.+)$/.exec(command) ?? [];
      if (names === undefined) execFileSync("sh", ["-c", command], { cwd: copy, stdio: "ignore" });
      else installed[isDev === undefined ? "dependencies" : "devDependencies"].push(...names.split(" "));
    }
    const made = JSON.parse(readFileSync(join(copy, "package.json"), "utf8"));
    const tried = JSON.parse(text("package.json"));
    expect([made.type, made.scripts.build]).toEqual([tried.type, tried.scripts.build]);
    for (const kind of ["dependencies", "devDependencies"] as const)
      expect(installed[kind].sort()).toEqual(Object.keys(tried[kind]).sort());
    expect(text("Dockerfile")).toMatch(/^COPY package\.json package-lock\.json /m);
  });

  it("send the stop signal to node itself", () => {
    expect(text("Dockerfile")).toMatch(/^STOPSIGNAL SIGTERM$/m);
    expect(text("Dockerfile")).toMatch(/^CMD \["node", /m);
    expect(text("payhooks.service")).toMatch(/^ExecStart=\S*node /m);
    expect(server).toContain('process.once("SIGTERM", stop)');
  });
});
