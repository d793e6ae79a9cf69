import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { testKeys } from "./merchant-server.ts";
import { exchange, request } from "./wire.ts";

/** The parts in which the ten lines of merchants differ. */
interface Parts {
  readonly imports?: string;
  readonly inbox?: string;
  readonly handlers?: string;
  readonly mounts?: string;
}

const program = ({
  imports = "",
  inbox = "",
  handlers = "receiver.onDeposit(async () => {}).onSettlementApproved(async () => {});",
  mounts = `
    app.use("/callbacks/pay", paymentCallbacks(receiver));
    app.use("/webhooks/connect", connectWebhooks(receiver));`,
}: Parts): string => `
    import express from "express";
    import { createReceiver } from "@payhooks/core";
    import { connectWebhooks, paymentCallbacks } from "@payhooks/express";
    ${imports}
    const receiver = createReceiver({
      payments: { publicKey: process.env.PAY_PUBLIC_KEY },
      connect: { secret: process.env.CONNECT_WEBHOOK_SECRET },
      ${inbox}
    });
    ${handlers}
    const app = express();${mounts}
    const server = app.listen(0, "127.0.0.1", () => console.log("listening on " + server.address().port));
`;

const MEMORY: Parts = {
  imports: 'import { memoryInbox } from "@payhooks/core";',
  inbox: "inbox: memoryInbox(),",
};

const started = new Set<ReturnType<typeof spawn>>();
afterEach(() => {
  for (const child of started) child.kill("SIGKILL");
  started.clear();
});

/** Starts the program as a process of its own. */
function boot(parts: Parts, env: Readonly<Record<string, string | undefined>>) {
  const args = [
    "--conditions=payhooks-source",
    "--import=tsx",
    "--input-type=module",
    "--eval",
    program(parts),
  ];
  const { PATH } = process.env;
  const good = { PAY_PUBLIC_KEY: testKeys().publicKey, CONNECT_WEBHOOK_SECRET: "whsec_0123456789abcdef" };
  const given = Object.entries({ PATH, ...good, ...env }).filter(([, value]) => value !== undefined);
  const child = spawn(process.execPath, args, {
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    env: Object.fromEntries(given) as NodeJS.ProcessEnv,
    stdio: ["ignore", "pipe", "pipe"],
  });
  started.add(child);
  let stdout = "";
  let stderr = "";
  const port = new Promise<number>((resolve) => {
    child.stdout.on("data", (text) => {
      stdout += text;
      const match = /listening on (\d+)/.exec(stdout);
      if (match !== null) resolve(Number(match[1]));
    });
  });
  child.stderr.on("data", (text) => {
    stderr += text;
  });
  const exit = new Promise<{ code: number | null; stderr: string }>((resolve) => {
    child.on("close", (code) => resolve({ code, stderr }));
  });
  return { port, exit };
}

const WITHOUT_SIGNATURE = request(
  "POST",
  "/callbacks/pay",
  [["Content-Type", "application/json"]],
  Buffer.from("{}"),
);

describe("a process whose set-up is right", () => {
  it.each([
    ["in development, with no inbox named", {}, {}],
    ["in production, with the memory inbox named", MEMORY, { NODE_ENV: "production" }],
    [
      "with a factory, shared by both mounts, that waits for its secrets",
      {
        handlers: `const made = async () => {
          await new Promise((resolve) => setTimeout(resolve, 1));
          return receiver.onDeposit(async () => {});
        };`,
        mounts:
          'app.use("/callbacks/pay", paymentCallbacks(made)); app.use("/webhooks/connect", connectWebhooks(made));',
      },
      {},
    ],
  ] as [string, Parts, Record<string, string>][])("serves %s", async (_case, parts, env) => {
    const child = boot(parts, env);
    const first = await Promise.race([child.port, child.exit]);
    expect(first).toBeTypeOf("number");
    const answer = await exchange(first as number, WITHOUT_SIGNATURE);
    expect(answer).toMatchObject({ status: 401, body: '{"error":{"code":"ERR_SIGNATURE_MISSING"}}' });
  });
});

describe("a process whose set-up is wrong ends at its boot, with the fix on the screen", () => {
  it.each<[string, Parts, Record<string, string | undefined>, string, string[]]>([
    [
      "in production, with no inbox named",
      {},
      { NODE_ENV: "production" },
      "ERR_INBOX_REQUIRED",
      [
        "NODE_ENV is production and no inbox is named",
        "redisInbox(url)",
        "sqliteInbox(file)",
        "memoryInbox()",
      ],
    ],
    [
      "without a handler",
      { ...MEMORY, handlers: "" },
      {},
      "ERR_NO_HANDLERS",
      ["receiver.onDeposit(…)", 'run: "elsewhere"'],
    ],
    [
      "without the public key's variable",
      MEMORY,
      { PAY_PUBLIC_KEY: undefined },
      "ERR_OPTION_MISSING",
      ["payments.publicKey"],
    ],
    [
      "without the secret's variable",
      MEMORY,
      { CONNECT_WEBHOOK_SECRET: undefined },
      "ERR_OPTION_MISSING",
      ["connect.secret"],
    ],
    ["with an empty secret", MEMORY, { CONNECT_WEBHOOK_SECRET: "" }, "ERR_SECRET_BLANK", ["connect.secret"]],
    [
      "with a secret and the line's end",
      MEMORY,
      { CONNECT_WEBHOOK_SECRET: "whsec_0123456789abcdef\n" },
      "ERR_SECRET_WHITESPACE",
      ["connect.secret"],
    ],
    [
      "with the private key",
      MEMORY,
      { PAY_PUBLIC_KEY: testKeys().privateKey },
      "ERR_KEY_PRIVATE",
      ["payments.publicKey"],
    ],
    [
      "with a key that is none",
      MEMORY,
      { PAY_PUBLIC_KEY: "changeme" },
      "ERR_KEY_UNREADABLE",
      ["payments.publicKey"],
    ],
    [
      "with a flow mounted that is off",
      {
        ...MEMORY,
        handlers: "const other = createReceiver({ connect: { secret: 'whsec_0123456789abcdef' } });",
        mounts: 'app.use("/callbacks/pay", paymentCallbacks(other));',
      },
      {},
      "ERR_FLOW_OFF",
      ["payments: { publicKey }"],
    ],
    [
      "with a factory that makes a receiver without the flow",
      {
        ...MEMORY,
        mounts: `app.use("/callbacks/pay", paymentCallbacks(async () => createReceiver({ connect: { secret: "whsec_0123456789abcdef" } })));`,
      },
      {},
      "ERR_FLOW_OFF",
      ["payments: { publicKey }"],
    ],
  ])("%s", async (_case, parts, env, code, texts) => {
    const { code: exitCode, stderr } = await boot(parts, env).exit;
    expect(stderr).toContain("PayhooksError");
    expect(stderr).toContain(`code: '${code}'`);
    for (const text of texts) expect(stderr).toContain(text);
    expect(exitCode).toBe(1);
    expect(stderr).not.toContain("PRIVATE KEY");
    expect(stderr).not.toContain("whsec_");
  });
});
