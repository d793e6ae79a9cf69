import { spawnSync } from "node:child_process";
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { constants } from "node:os";
import { join } from "node:path";
import { verifyPaymentCallback } from "@payhooks/core";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { file, folder } from "./support/files.ts";
import { payhooks, RunningCommand } from "./support/run.ts";

const VARIABLES = [
  "PAY_PUBLIC_KEY",
  "CONNECT_WEBHOOK_SECRET",
  "PAY_BASE_URL",
  "PAY_API_PUBLIC_KEY",
  "PAY_API_SECRET_KEY",
  "PAY_CONNECT_API_KEY",
  "PAY_MERCHANT_ID",
];

/** Variables of a `.env` file, read as common loaders do. */
function variablesIn(path: string): Record<string, string> {
  const lines = readFileSync(path, "utf8").matchAll(/^([A-Z_]+)="(.*)"$/gm);
  return Object.fromEntries(
    [...lines].map(([, name = "", value = ""]) => [name, value.replaceAll("\\n", "\n")]),
  );
}

async function started(args: readonly string[]): Promise<{ running: RunningCommand; url: string }> {
  const running = new RunningCommand(["sandbox", "--port", "0", ...args]);
  const [, url = ""] = await running.until(/dashboard {2}(http:\S+)\/\n/);
  return { running, url };
}

const call = async (url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });

interface Settings {
  readonly webhook_url: string | null;
  readonly webhook_secret: string | null;
  readonly webhook_enabled: boolean;
}

const put = async (url: string, body: unknown): Promise<Response> =>
  fetch(url, {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

async function settingsOf(url: string): Promise<Settings> {
  const { data } = (await (await fetch(`${url}/sandbox/settings`)).json()) as { data: Settings };
  return data;
}

interface Received {
  readonly path: string;
  readonly body: Buffer;
}

/** A merchant's server: what it received, and a promise of the next. */
async function merchant(): Promise<{ url: string; next: Promise<Received> }> {
  let take: (received: Received) => void = () => {};
  const next = new Promise<Received>((resolve) => {
    take = resolve;
  });
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    take({ path: request.url ?? "", body: Buffer.concat(chunks) });
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, next };
}

/** Nobody reads any more what the command prints. */
function unread({ process }: RunningCommand): void {
  process.stdout?.destroy();
  process.stderr?.destroy();
}

/** Runs a command to its end whose standard output cannot be written. */
function onFullDisk(args: readonly string[]): { code: number | null; stderr: string } {
  const full = openSync("/dev/full", "w");
  onTestFinished(() => closeSync(full));
  const { status, stderr } = spawnSync(process.execPath, [inject("payhooks"), ...args], {
    stdio: ["ignore", full, "pipe"],
  });
  return { code: status, stderr: String(stderr) };
}

describe("payhooks sandbox", () => {
  it("serves the dashboard and the endpoints, writes the variables, and ends with 0 on SIGTERM", async () => {
    const env = file("KEPT=1\n# a comment\nPAY_BASE_URL=old\n", ".env.local");
    const shop = await merchant();
    const { running, url } = await started(["--write-env", env, "--app", shop.url, "--delay-ms", "0"]);
    const dashboard = await fetch(`${url}/`);
    expect(dashboard.status).toBe(200);
    expect(await dashboard.text()).toContain(">Take a deposit</button>");
    await running.until(/next {7}press "Take a deposit" on the dashboard/);
    const variables = variablesIn(env);
    expect(Object.keys(variables)).toEqual(VARIABLES);
    expect(readFileSync(env, "utf8")).toMatch(/^KEPT=1\n# a comment\nPAY_PUBLIC_KEY=/);
    expect(variables.PAY_BASE_URL).toBe(url);
    const key = `${variables.PAY_API_PUBLIC_KEY}:${variables.PAY_API_SECRET_KEY}`;
    const payment = {
      amount: "10.50",
      currency: "ETB",
      phone_number: "251911234567",
      medium: "TELEBIRR",
      reference: "order-1",
      callback_url: `${shop.url}/callbacks/pay`,
    };
    const answer = await call(`${url}/api/v2/payment/direct`, payment, { "X-API-Key": key });
    expect(answer.status).toBe(200);
    const { path, body } = await shop.next;
    expect(path).toBe("/callbacks/pay");
    expect(verifyPaymentCallback(body, { publicKey: variables.PAY_PUBLIC_KEY }).event.referenceId).toBe(
      "order-1",
    );
    running.process.kill("SIGTERM");
    expect(await running.ended).toMatchObject({ code: 0, stderr: "" });
  });

  it("sends what the dashboard triggers to the app, with the usual path", async () => {
    const shop = await merchant();
    const { url } = await started(["--app", shop.url, "--delay-ms", "0"]);
    await call(`${url}/sandbox/deposits`, { reference: "order-2" });
    expect((await shop.next).path).toBe("/callbacks/pay");
  });

  it("prints a line for each attempt to deliver: what, the answer, and how long it took", async () => {
    const statuses = [503, 200];
    const server = createServer((request, response) => {
      request.resume().on("end", () => {
        const known = request.url === "/webhooks/connect" ? 200 : (statuses.shift() ?? 500);
        const status = request.url === "/nowhere" ? 404 : known;
        response.writeHead(status).end(status === 503 ? '{"error":{"code":"ERR_INBOX_FULL"}}' : "{}");
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const app = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const args = ["--app", app, "--delay-ms", "0", "--retry-ms", "10", "--attempts", "2"];
    const { running, url } = await started([...args, "--fault", "duplicate"]);
    const time = "\\d\\d:\\d\\d:\\d\\d";
    const has = (line: string) => running.until(new RegExp(`^${time} ${line}\\n`, "m"));

    // The two copies of the duplicate are answered with 503 and 200.
    await call(`${url}/sandbox/deposits`, { reference: "order-1" });
    await has(
      'DEPOSIT SUCCESS order-1 \\((?:attempt 2, )?fault: duplicate\\) → 503 \\{"error":\\{"code":"ERR_INBOX_FULL"}} \\d+ ms',
    );
    await has("DEPOSIT SUCCESS order-1 \\((?:attempt 2, )?fault: duplicate\\) → 200 \\d+ ms");
    await call(`${url}/sandbox/withdrawals`, { reference: "payout-1", outcome: "FAILED" });
    await has("WITHDRAWAL FAILED payout-1 → 500 \\{} \\d+ ms, again in 0\\.0 s");
    await has("WITHDRAWAL FAILED payout-1 \\(attempt 2\\) → 500 \\{} \\d+ ms, given up");
    const { data: account } = (await (await call(`${url}/sandbox/connected-accounts`, {})).json()) as {
      data: { id: string };
    };
    await call(`${url}/sandbox/connected-accounts/${account.id}/kyc`, { decision: "approved" });
    await has("connected_account\\.approved evt_[0-9a-f-]+ → 200 \\d+ ms");
    const nobody = { reference: "order-2", callback_url: "http://127.0.0.1:1/" };
    await call(`${url}/sandbox/deposits`, nobody);
    await has("DEPOSIT SUCCESS order-2 → no answer: .*ECONNREFUSED.* \\d+ ms, again in 0\\.0 s");
    await has("DEPOSIT SUCCESS order-2 \\(attempt 2\\) → no answer: .*ECONNREFUSED.* \\d+ ms, given up");
    const refused = /^ {2}Nothing listens at http:\/\/127\.0\.0\.1:1\/\. .* with --app URL where/gm;
    expect(running.stdout.match(refused)).toHaveLength(1);
    await call(`${url}/sandbox/deposits`, { reference: "order-3", callback_url: `${app}/nowhere` });
    await running.until(/^ {2}There is nothing at http:\S+\/nowhere\. .* with --callback-url URL where/m);
    expect(running.stdout).not.toContain("signature");
  });

  it("reports each attempt to programs, without bodies and signatures", async () => {
    const shop = await merchant();
    const running = new RunningCommand([
      "sandbox",
      "--port",
      "0",
      "--app",
      shop.url,
      "--delay-ms",
      "0",
      "--json",
    ]);
    const [, url = ""] = await running.until(/"url":"(http[^"]+)"/);
    await call(`${url}/sandbox/deposits`, { reference: "order-3" });
    const [line] = await running.until(/^\{"event":"attempt".*\n/m);
    expect(JSON.parse(line)).toEqual({
      event: "attempt",
      delivery: expect.objectContaining({
        event: "DEPOSIT",
        status: "SUCCESS",
        reference: "order-3",
        state: "delivered",
      }),
      attempt: {
        number: 1,
        at: expect.any(String),
        answer: { status: 200, bodyExcerpt: "" },
        error: null,
        acknowledged: true,
        durationMs: expect.any(Number),
        faults: [],
      },
    });
  });

  it("keeps keys and secret over a restart with --state, and send signs with them", async () => {
    const state = join(folder, "state file.json");
    const env = [join(folder, "first.env"), join(folder, "second.env")] as const;
    const first = await started(["--state", state, "--write-env", env[0]]);
    first.running.process.kill("SIGINT");
    expect((await first.running.ended).code).toBe(0);
    await started(["--state", state, "--write-env", env[1]]);
    const [before, after] = env.map(variablesIn);
    expect({ ...after, PAY_BASE_URL: "" }).toEqual({ ...before, PAY_BASE_URL: "" });
    const shop = await merchant();
    await payhooks(["send", "deposit", "--to", `${shop.url}/callbacks/pay`, "--state", state]);
    const { body } = await shop.next;
    const expected = { publicKey: after?.PAY_PUBLIC_KEY, expect: { merchantId: after?.PAY_MERCHANT_ID } };
    expect(verifyPaymentCallback(body, expected).event.event).toBe("DEPOSIT");
  });

  it("goes on with saved webhook settings, unless --app or --webhook-url gives others", async () => {
    const state = join(folder, "settings.json");
    const settingsWith = async (args: readonly string[], change?: object): Promise<Settings> => {
      const { running, url } = await started(["--state", state, ...args]);
      const settings = await settingsOf(url);
      if (change !== undefined) await put(`${url}/sandbox/settings`, { ...settings, ...change });
      running.process.kill("SIGTERM");
      await running.ended;
      return settings;
    };
    const webhooks = (port: number) => `http://127.0.0.1:${port}/webhooks/connect`;
    const first = await settingsWith(["--app", "http://127.0.0.1:1111"]);
    expect(first).toMatchObject({ webhook_url: webhooks(1111), webhook_enabled: true });
    expect(await settingsWith([])).toEqual(first);
    const second = await settingsWith(["--app", "http://127.0.0.1:2222"], { webhook_enabled: false });
    expect(second).toEqual({ ...first, webhook_url: webhooks(2222) });
    expect(await settingsWith([])).toEqual({ ...second, webhook_enabled: false });
    expect(await settingsWith(["--webhook-url", webhooks(3333)])).toEqual({
      ...first,
      webhook_url: webhooks(3333),
    });
  });

  /** A state file of a sandbox whose settings were changed through its API. */
  const stateWith = async (change: object): Promise<string> => {
    const state = join(folder, `${randomUUID()}.json`);
    const { running, url } = await started(["--state", state]);
    expect((await put(`${url}/sandbox/settings`, { ...(await settingsOf(url)), ...change })).status).toBe(
      200,
    );
    running.process.kill("SIGTERM");
    await running.ended;
    return state;
  };

  it.each([" spaced out ", "a$b"])("goes on with the saved secret %j", async (secret) => {
    const state = await stateWith({ webhook_secret: secret });
    const { url } = await started(["--state", state]);
    expect((await settingsOf(url)).webhook_secret).toBe(secret);
  });

  it.each([
    ["webhook_secret", "a$b", ["--write-env", join(folder, "saved.env")]],
    ["webhook_url", "http://127.0.0.1:1/", ["--strict-https"]],
  ])(
    "names the state file, and the way out, if a saved %s of %s cannot be used",
    async (name, value, args) => {
      const state = await stateWith({ [name]: value });
      const option = `--${name.replace("_", "-")}`;
      const ended = await payhooks(["sandbox", "--port", "0", "--state", state, ...args]);
      expect(ended).toMatchObject({ code: 2, stdout: "" });
      expect(ended.stderr).toContain(`payhooks: The ${name} that is saved in ${state} `);
      expect(ended.stderr).toContain(`Give another with ${option}`);
      await started(["--state", state, ...args, `${option}=https://shop.example/`]);
    },
  );

  it("has the webhooks and faults of its options after a reset too", async () => {
    const { url } = await started(["--fault", "duplicate", "--fault", "drop-answer:0.3"]);
    const settings = await settingsOf(url);
    expect(settings).toMatchObject({
      webhook_enabled: true,
      webhook_secret: expect.stringMatching(/^whsec_/),
    });
    await put(`${url}/sandbox/settings`, { webhook_enabled: false });
    await call(`${url}/sandbox/reset`, {});
    expect(await settingsOf(url)).toEqual(settings);
    const faults = await (await fetch(`${url}/sandbox/faults`)).json();
    expect(faults).toMatchObject({ data: [{ kind: "duplicate" }, { kind: "drop-answer", rate: 0.3 }] });
  });

  it("refuses another --private-key than the one in the state file", async () => {
    const state = join(folder, "keys.json");
    const { running } = await started(["--state", state]);
    running.process.kill("SIGTERM");
    await running.ended;
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const pem = file(privateKey.export({ type: "pkcs8", format: "pem" }).toString());
    const ended = await payhooks(["sandbox", "--port", "0", "--state", state, "--private-key", pem]);
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(ended.stderr).toMatch(/holds another private key than the one given\..*\[ERR_OPTION_INVALID\]/);
  });

  it("accepts http:// callbacks on this machine, and HTTPS only with --strict-https", async () => {
    const callback = { callback_url: "http://127.0.0.1:1/callbacks/pay" };
    const usual = await started([]);
    expect((await call(`${usual.url}/sandbox/deposits`, callback)).status).toBe(200);
    const strict = await started(["--strict-https"]);
    expect((await call(`${strict.url}/sandbox/deposits`, callback)).status).toBe(400);
    expect(strict.running.stdout).toContain("webhooks   off");
  });

  it("takes redirects under the other call's names, unless it is --strict", async () => {
    const redirects = { success: "https://shop.example/paid", failed: "https://shop.example/no" };
    const usual = await started([]);
    expect((await call(`${usual.url}/sandbox/deposits`, { redirects })).status).toBe(200);
    const strict = await started(["--strict"]);
    expect((await call(`${strict.url}/sandbox/deposits`, { redirects })).status).toBe(400);
  });

  it("breaks what --fault says", async () => {
    const { url } = await started(["--fault", "drop-answer:0.3", "--fault", "duplicate"]);
    const response = await fetch(`${url}/sandbox/faults`);
    expect(await response.json()).toMatchObject({
      data: [
        { kind: "drop-answer", rate: 0.3, remaining: null },
        { kind: "duplicate", remaining: 1 },
      ],
    });
  });

  it("says as JSON where it listens", async () => {
    const running = new RunningCommand(["sandbox", "--port", "0", "--json"]);
    const [line] = await running.until(/.*\n/);
    expect(JSON.parse(line)).toMatchObject({
      event: "listening",
      url: expect.stringMatching(/^http:\/\/127/),
      seed: expect.any(String),
    });
  });

  it("fails when its port is taken", async () => {
    const { url } = await started([]);
    const ended = await payhooks(["sandbox", "--port", new URL(url).port]);
    expect(ended).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("ERR_PORT_IN_USE") });
    expect(ended.stderr).toContain("--port 0 takes any that is free");
  });

  it.each([
    [["--fault", "drop-anser"], /Did you mean drop-answer\?/],
    [["--fault", "duplicate:2"], /above 0 and at most 1/],
    [["--host", "0.0.0.0"], /ERR_HOST_NOT_LOOPBACK/],
    [["--outcome", "success"], /Did you mean SUCCESS\?/],
    [["--webhook-secret", " x"], /white space around it/],
    [["--private-key", file("nonsense")], /ERR_OPTION_INVALID/],
    [["--callback-url", "localhost"], /full URL/],
  ])("%j exits with 2 and says why", async (args, why) => {
    const ended = await payhooks(["sandbox", "--port", "0", ...args]);
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(ended.stderr).toMatch(why);
    expect(ended.stderr).not.toMatch(/^\s+at /m);
  });

  it("goes on when nobody reads its output any more", async () => {
    const { running, url } = await started(["--delay-ms", "0", "--app", "http://127.0.0.1:1"]);
    unread(running);
    const deposit = await call(`${url}/sandbox/deposits`, { reference: "order-1" });
    expect(deposit.status).toBe(200);
    // The attempt cannot be told of.
    const attempted = `${url}/sandbox/deliveries?reference=order-1`;
    await expect
      .poll(async () => (await (await fetch(attempted)).text()).includes("ECONNREFUSED"))
      .toBe(true);
    expect((await call(`${url}/sandbox/deposits`, { reference: "order-2" })).status).toBe(200);
    running.process.kill("SIGTERM");
    expect((await running.ended).code).toBe(0);
  });

  it.runIf(existsSync("/dev/full"))("ends with 1 in good order when its output cannot be written", () => {
    const state = join(folder, "full.json");
    const ended = onFullDisk(["sandbox", "--port", "0", "--state", state]);
    expect(ended).toEqual({ code: 1, stderr: "payhooks: The output cannot be written: ENOSPC.\n" });
    expect(JSON.parse(readFileSync(state, "utf8"))).toMatchObject({ version: 2 });
  });

  it("fails when the file of variables cannot be written, leaving nothing behind", async () => {
    const path = join(folder, "no such folder", ".env");
    const ended = await payhooks(["sandbox", "--port", "0", "--write-env", path]);
    expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining("ERR_ENV_FILE") });
    expect(existsSync(path)).toBe(false);
  });
});

describe("payhooks sandbox with a command", () => {
  const app = (program: string): string[] => [
    "sandbox",
    "--port",
    "0",
    "--",
    process.execPath,
    "-e",
    program,
  ];

  it("sets the variables, says what to do next, shows what the app prints behind a prefix, and ends as it does", async () => {
    const print = `console.log(JSON.stringify(${JSON.stringify(VARIABLES)}.map((name) => [name, process.env[name]])))`;
    const ended = await payhooks(
      app(`${print}; console.error("to stderr"); process.stdout.write("no line end"); process.exitCode = 7`),
    );
    expect(ended.code).toBe(7);
    expect(ended.stdout).toMatch(/^sandbox \| Payhooks sandbox {2}http/m);
    expect(ended.stdout).toMatch(
      /^sandbox \| {3}next {7}press "Take a deposit" on the dashboard to send a first event, or run\nsandbox \| {14}curl -X POST http:\/\/127\.0\.0\.1:\d+\/sandbox\/deposits$/m,
    );
    expect(ended.stdout).toMatch(/^app \| no line end$/m);
    expect(ended.stderr).toBe("app | to stderr\n");
    const [, printed = "[]"] = /^app \| (\[\[.*)$/m.exec(ended.stdout) ?? [];
    const variables = Object.fromEntries(JSON.parse(printed) as [string, string][]);
    expect(variables.PAY_PUBLIC_KEY).toContain("BEGIN PUBLIC KEY");
    expect(variables.CONNECT_WEBHOOK_SECRET).toMatch(/^whsec_[0-9a-f]{48}$/);
    expect(ended.stdout).toContain(variables.PAY_BASE_URL);
  });

  it("runs the sandbox while the app runs", async () => {
    const program = `fetch(process.env.PAY_BASE_URL + "/sandbox/keys").then((r) => r.json()).then(({ data }) => console.log(data.publicKey.trim() === process.env.PAY_PUBLIC_KEY))`;
    expect(await payhooks(app(program))).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^app \| true$/m),
    });
  });

  it("prints a line for each attempt to deliver, marked as the sandbox's", async () => {
    const program = `
      const app = require("node:http").createServer((request, response) => {
        request.resume().on("end", () => response.end());
      });
      app.listen(0, "127.0.0.1", () => {
        const callback_url = "http://127.0.0.1:" + app.address().port + "/";
        const body = JSON.stringify({ reference: "order-9", callback_url });
        const headers = { "content-type": "application/json" };
        fetch(process.env.PAY_BASE_URL + "/sandbox/deposits", { method: "POST", headers, body });
      });`;
    const running = new RunningCommand(app(program));
    await running.until(/^sandbox \| \d\d:\d\d:\d\d DEPOSIT SUCCESS order-9 → 200 \d+ ms\n/m);
    running.process.kill("SIGTERM");
    expect((await running.ended).code).toBe(128 + constants.signals.SIGTERM);
  });

  it("passes signals on, and ends with the app's exit code", async () => {
    const polite = new RunningCommand(
      app(
        `process.on("SIGTERM", () => { console.log("closing"); process.exit(3); }); setInterval(() => {}, 1000); console.log("ready")`,
      ),
    );
    await polite.until(/app \| ready/);
    polite.process.kill("SIGTERM");
    expect(await polite.ended).toMatchObject({ code: 3, stdout: expect.stringContaining("app | closing") });
    const plain = new RunningCommand(app(`setInterval(() => {}, 1000); console.log("ready")`));
    await plain.until(/app \| ready/);
    plain.process.kill("SIGINT");
    expect((await plain.ended).code).toBe(128 + constants.signals.SIGINT);
  });

  /** A server that takes its time to end, and tells. `ignores`: it does not even begin. */
  const server = (ends: string): string => `
      for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => { ${ends} });
      setInterval(() => {}, 1000);
      console.log("pid " + process.pid);`;
  const ENDS = 'console.log("closing"); setTimeout(() => process.exit(0), 200)';
  /** Files of a project whose server is in `server.js`. */
  function projectWith(program: string): string {
    const project = join(folder, randomUUID());
    mkdirSync(project);
    writeFileSync(join(project, "server.js"), program);
    writeFileSync(join(project, "package.json"), JSON.stringify({ scripts: { dev: "node server.js" } }));
    return project;
  }
  /** A process that has ended may be known for a while, as a zombie. */
  const isAlive = (pid: number): boolean =>
    /^\s*[^Z\s]/.test(String(spawnSync("ps", ["-o", "stat=", "-p", String(pid)]).stdout));
  const WAYS = [
    ["node server.js", [process.execPath, "server.js"]],
    ["npm run dev", ["npm", "run", "dev"]],
    ["npx, which starts a shell", ["npm", "exec", "-c", "node server.js"]],
    ["a shell that waits", ["sh", "-c", "node server.js; true"]],
  ] as const;
  const SENT = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

  it
    .skipIf(process.platform === "win32")
    .each(WAYS.flatMap(([name, command]) => SENT.map((signal) => [name, signal, command] as const)))(
    "ends what it started with %s on %s, after that has closed",
    async (_, signal, command) => {
      const running = new RunningCommand(["sandbox", "--port", "0", "--", ...command], {
        cwd: projectWith(server(ENDS)),
      });
      const [, pid] = await running.until(/app \| pid (\d+)/);
      running.process.kill(signal);
      const { stdout } = await running.ended;
      expect(stdout).toContain("app | closing");
      expect(isAlive(Number(pid))).toBe(false);
    },
  );

  it.skipIf(process.platform === "win32")("ends at a second signal what ignores the first", async () => {
    const running = new RunningCommand(["sandbox", "--port", "0", "--", "npm", "run", "dev"], {
      cwd: projectWith(server('console.log("never")')),
    });
    const [, pid] = await running.until(/app \| pid (\d+)/);
    running.process.kill("SIGINT");
    // The copy of a signal that npm passes on is not a second one.
    running.process.kill("SIGINT");
    await running.until(/app \| never/);
    expect(isAlive(Number(pid))).toBe(true);
    await new Promise((resolve) => setTimeout(resolve, 600));
    running.process.kill("SIGINT");
    await running.ended;
    expect(isAlive(Number(pid))).toBe(false);
  });

  it.skipIf(process.platform === "win32").each([
    ["closes", ENDS, "closing"],
    ["does not close", 'console.log("never")', "never"],
  ])(
    "ends with COMMAND, even if a process that COMMAND has left behind holds its output, and %s",
    async (_, ends, said) => {
      const command = "node server.js & sleep 3; printf last; exit 3";
      const running = new RunningCommand(["sandbox", "--port", "0", "--", "sh", "-c", command], {
        cwd: projectWith(server(ends)),
      });
      const [, pid] = await running.until(/app \| pid (\d+)/);
      const ended = await running.ended;
      expect(ended.code).toBe(3);
      expect(ended.stdout).toContain("last");
      expect(ended.stdout).toContain(said);
      expect(isAlive(Number(pid))).toBe(false);
    },
  );

  it("goes on until the app ends when nobody reads its output any more, and ends as the app does", async () => {
    const closed = join(folder, "closed");
    const closing = `
      process.on("SIGTERM", () => {
        console.log("closing");
        console.error("closing");
        setTimeout(() => {
          require("node:fs").writeFileSync(${JSON.stringify(closed)}, "");
          process.exit(3);
        }, 300);
      });
      setInterval(() => console.log("busy"), 10);
      console.log("ready");`;
    const running = new RunningCommand(app(closing));
    await running.until(/app \| ready/);
    unread(running);
    running.process.kill("SIGTERM");
    expect((await running.ended).code).toBe(3);
    expect(existsSync(closed)).toBe(true);
  });

  it.runIf(existsSync("/dev/full"))(
    "stops the app, and ends with 1, when its output cannot be written",
    () => {
      const program = `setTimeout(() => {}, 20_000) // ${randomUUID()}`;
      const ended = onFullDisk(app(program));
      expect(ended).toEqual({ code: 1, stderr: "payhooks: The output cannot be written: ENOSPC.\n" });
      expect(String(spawnSync("ps", ["-eo", "args"]).stdout)).not.toContain(program);
    },
  );

  it("ends with 127 when the command cannot be started", async () => {
    const missing = await payhooks(["sandbox", "--port", "0", "--", "no-such-command"]);
    expect(missing).toMatchObject({ code: 127, stderr: expect.stringContaining("there is no such command") });
  });

  it("leaves the app's options alone, --json and --help among them", async () => {
    const ended = await payhooks([
      ...app("console.log(process.argv.slice(1).join(' '))"),
      "--",
      "--json",
      "--help",
      "-p",
    ]);
    expect(ended).toMatchObject({ code: 0, stdout: expect.stringMatching(/^app \| .*--json --help -p$/m) });
  });
});
