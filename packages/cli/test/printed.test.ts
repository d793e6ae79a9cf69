import { createHmac } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createRequire } from "node:module";
import { type AddressInfo, createServer, type Server } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createReceiver } from "@payhooks/core";
import { sqliteInbox } from "@payhooks/core/sqlite";
import { anyCallbackFields, createTestKeys, signPaymentCallback } from "@payhooks/core/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { silent } from "../../../test/support/silent.ts";
import { escapeCharacter, escapeForTerminal } from "../src/command-line/printer.ts";
import { COMMAND_NAMES } from "../src/commands.ts";
import { inParallel } from "../src/delivery/post.ts";
import { file, folder } from "./support/files.ts";
import { type CommandResult, payhooks, RunningCommand } from "./support/run.ts";

const ESCAPE = "\u001b";
/** Controls, hidden and turned text of every kind: C0, DEL, C1, direction, zero width, separators, tags outside of the BMP. */
const HOSTILE =
  "x\u001b[2K\u0007\r\b\u007f\u009b2K\u009d0;title\u009c\u202eyb\u2066x\u2069\u200b\u200f\ufeff\u00ad\u2028\u2029\u{e0041}\u001b[32mPAINTED\u001b[0m\nFORGED";
const UNSAFE = /[^\n\t\P{Cc}]|[\p{Cf}\p{Zl}\p{Zp}]/u;

/** The colours of the command line. */
const OURS = new RegExp(`${ESCAPE}\\[(?:0|1|2|31|32|33|36)m(?!PAINTED)`, "g");

/** The parts of a text that act on the terminal, paint lines of others, or begin a line that looks like ours. */
function harmIn(text: string): string | undefined {
  const plain = text.replace(OURS, "");
  return (UNSAFE.exec(plain) ?? /^FORGED/m.exec(plain))?.[0];
}

/** The reader: a program, or a person at a terminal. */
const READERS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  program: {},
  terminal: {
    TERM: "xterm",
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent("process.stdout.isTTY = process.stderr.isTTY = true")}`,
  },
};

const keys = createTestKeys();
const secret = "whsec_0123456789abcdef";
const publicKey = file(keys.publicKey, "public.pem");
const privateKey = file(keys.privateKey, "private.pem");
const sealKeys = file(`k1:${Buffer.alloc(32, 1).toString("base64")}`, "seal.keys");

/** A body that was signed for other fields, with a hostile name and hostile values. */
function hostileBody(): string {
  const fields = anyCallbackFields({ message: HOSTILE, referenceId: `r-${HOSTILE}` });
  const { rawBody } = signPaymentCallback(fields, keys.privateKey);
  return file(JSON.stringify({ ...JSON.parse(rawBody.toString()), [HOSTILE]: "x" }));
}

/** An inbox with a held event, and one that was given up, whose texts are hostile. */
async function hostileInbox(name: string): Promise<string> {
  const path = join(folder, name);
  const inbox = sqliteInbox(path);
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    inbox,
    logger: silent,
  });
  const failing = (): never => {
    throw new Error(HOSTILE);
  };
  receiver.onDeposit(failing, { maxAttempts: 1 });
  receiver.onWithdrawal(() => {});
  await receiver.start();
  for (const changes of [{ referenceId: `r-${HOSTILE}` }, { status: "success", payTxnId: HOSTILE }]) {
    const { rawBody, headers } = signPaymentCallback(
      anyCallbackFields({ message: HOSTILE, ...changes }),
      keys.privateKey,
    );
    const get = (name: string): string | null => headers[name] ?? null;
    await receiver.payments.receive({ method: "POST", url: "/", headers: { get }, rawBody });
  }
  await receiver.close();
  // A record that no Payhooks can read stays where it is.
  const Sqlite = createRequire(import.meta.url)("libsql") as typeof import("libsql");
  const database = new Sqlite(path);
  database
    .prepare("INSERT INTO records (key, version, text, lane, due_in_ms) VALUES (?, '1', 'x', 'usual', 0)")
    .run(`payments/${HOSTILE}`);
  database.close();
  return path;
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** A server that gives everything the same answer. */
const answering = (answer: Buffer): Promise<number> =>
  listening(
    createServer((socket) => {
      socket.on("error", () => {}).once("data", () => socket.end(answer));
    }),
  );

/** PostgreSQL's message of an error, hostile in its code and in its text. */
function postgresError(): Buffer {
  const fields = Buffer.from(`SERROR\0C${HOSTILE}\0M${HOSTILE}\0\0`);
  const head = Buffer.from("E\0\0\0\0");
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}

/** A merchant's server that refuses everything. */
async function refusing(): Promise<string> {
  const server = createHttpServer((request, response) => {
    request.resume();
    response.writeHead(400).end(HOSTILE);
  });
  return `http://127.0.0.1:${await listening(server)}`;
}

function check(command: readonly string[], { stdout, stderr }: CommandResult): void {
  for (const text of [stdout, stderr]) expect(harmIn(text), `${command} ${text}`).toBeUndefined();
  if (!command.includes("--json")) expect(stdout + stderr, command.join(" ")).not.toBe("");
  else for (const line of stdout.split("\n").filter(Boolean)) JSON.parse(line);
}

describe.each(Object.keys(READERS))("the output of the command line for a %s", (reader) => {
  const env = READERS[reader] ?? {};
  const forms = reader === "program" ? [[], ["--json"]] : [[]];

  it("has no character that controls a terminal or hides text, as text and as JSON, from any command", async () => {
    const body = hostileBody();
    const inbox = await hostileInbox(`${reader}.sqlite`);
    const postgres = `postgres://127.0.0.1:${await answering(postgresError())}/shop`;
    const redis = `redis://127.0.0.1:${await answering(Buffer.from(`-ERR ${HOSTILE.replaceAll("\n", " ")}\r\n`))}`;
    const app = await refusing();
    const other = file("{}", `other ${reader} ${HOSTILE}`);
    const ofOther = `sha256=${createHmac("sha256", secret).update("{}").digest("hex")}`;
    const noDatabase = file("this is no database", `no database ${reader} ${HOSTILE}`);
    const names = { flow: HOSTILE, tenant: HOSTILE, id: HOSTILE, event: HOSTILE, status: HOSTILE };
    const journal = file(`${JSON.stringify({ type: "handled", at: 1, event: names })}\n`);
    const send = ["--private-key", privateKey, "--to", `${app}/${HOSTILE}`, "--reference", HOSTILE, "--body"];
    const decision = ["--by", HOSTILE, "--note", HOSTILE];
    const commands: readonly (readonly string[])[] = [
      ["verify", "--key", publicKey, body],
      ["verify", "--secret", secret, "--header", `sha256=${HOSTILE}`, body],
      ["verify", "--secret", secret, "--header", ofOther, body, other],
      ["verify", "--key", publicKey, `missing-${HOSTILE}`],
      ["verify", "--key", noDatabase, body],
      ["events", "--sqlite", inbox, "--body"],
      ["events", "--sqlite", noDatabase],
      ...(reader === "terminal" ? [["events", "--csv", "--sqlite", inbox]] : []),
      ["events", "--postgres", postgres],
      ["events", "--redis", redis],
      ["events", "--reference", `r-${HOSTILE}`, "--sqlite", inbox, "--body"],
      ["events", "--reference", `r-${HOSTILE}`, "--redis", redis],
      ["events", HOSTILE, "--sqlite", inbox],
      ["explain", `r-${HOSTILE}`, "--sqlite", inbox],
      ["alerts", "test", "--slack", "http://127.0.0.1:1/", "--from", HOSTILE],
      ["events", "erase", "--all", "--state", "held", "--unfinished", "--dry-run", "--sqlite", inbox],
      ["events", "replay", "--all", "--reason", "exhausted,unrecognized", "--dry-run", "--sqlite", inbox],
      ["events", "discard", HOSTILE, ...decision, "--sqlite", inbox],
      ["send", "deposit", ...send],
      ["send", "deposit", ...send, "--forge", "amount", "--message", HOSTILE],
      ["send", "deposit", "--private-key", privateKey, "--to", postgres.replace("postgres", "http")],
      ["send", "deposit", "--state", noDatabase, "--to", app],
      ["migrate", "--postgres", postgres],
      ["migrate", "--sql", "--table", HOSTILE],
      ["move", "--from", inbox, "--to", postgres],
      ["move", "--from", redis, "--to", inbox],
      ["move", "--from", noDatabase, "--to", inbox],
      ["move", "--from", inbox, "--to", join(folder, `moved ${reader} ${HOSTILE}`), "--dry-run"],
      ["reseal", "--sqlite", inbox, "--seal-keys", sealKeys, "--dry-run"],
      ["reseal", "--sqlite", inbox, "--seal-keys", join(folder, HOSTILE)],
      ["shadow", journal],
      ["shadow", noDatabase],
      ["sandbox", "--port", "0", "--state", noDatabase],
      ["sandbox", "--port", "0", "--app", HOSTILE],
      ["sandbox", "--port", "0", "--", HOSTILE],
      ["events", "discard", "--all", "--reason", "exhausted", "--yes", ...decision, "--sqlite", inbox],
      [`unknown-${HOSTILE}`],
      ["verify", `--unknown-${HOSTILE}`],
    ];
    for (const name of COMMAND_NAMES) expect(commands.map(([one]) => one)).toContain(name);
    const calls = commands.flatMap(([name = "", ...others]) =>
      forms.map((form) => [name, ...form, ...others]),
    );
    await inParallel(calls, 3, async (call) =>
      check(call, await payhooks(call, { env: { DATABASE_URL: "", ...env } })),
    );
  });

  it("is as harmless while the sandbox runs: of deliveries, of answers, and of an application beside it", async () => {
    const app = await refusing();
    // Its lines are its own, whatever begins them.
    const text = JSON.stringify(HOSTILE.split("\n", 1)[0]);
    const server = `console.log(${text}); console.error(${text}); setInterval(() => {}, 1000)`;
    for (const options of forms) {
      const saved = join(folder, `variables ${reader}${options} ${HOSTILE}`);
      const command = [
        "sandbox",
        ...options,
        "--port",
        "0",
        "--app",
        app,
        "--delay-ms",
        "0",
        "--seed",
        HOSTILE,
      ];
      const running = new RunningCommand(
        [...command, "--attempts", "1", "--write-env", saved, "--", process.execPath, "--eval", server],
        { env },
      );
      const [, url] = await running.until(/dashboard\W+(http:\/\/127\.0\.0\.1:\d+)/);
      const wanted = { method: "POST", headers: { "content-type": "application/json" } };
      const deposit = { reference: HOSTILE, message: HOSTILE };
      await fetch(`${url}/sandbox/deposits`, { ...wanted, body: JSON.stringify(deposit) });
      await running.until(options.length > 0 ? /"event":"attempt"/ : /→ .*400/);
      await expect.poll(() => running.stdout + running.stderr).toMatch(/PAINTED\n[\s\S]*PAINTED\n/);
      running.process.kill("SIGTERM");
      check(command, await running.ended);
    }
  });
});

describe("the output of the command line", () => {
  it("goes through one printer: no other file writes to a stream", () => {
    const source = fileURLToPath(new URL("../src", import.meta.url));
    const writers = readdirSync(source, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .filter((name) =>
        /\.write\(|console\.|process\.std(?:out|err)(?!\.(?:on|isTTY)\b)/.test(
          readFileSync(join(source, name), "utf8"),
        ),
      );
    // The question of `ask` is its own text.
    expect(writers.sort()).toEqual(["command-line/ask.ts", "command-line/printer.ts"]);
  });
});

describe("a text from outside", () => {
  it("is shown on one line, and JSON reads its escapes back", () => {
    expect(UNSAFE.exec(escapeForTerminal(HOSTILE, 1_000))).toBeNull();
    expect(escapeForTerminal("a\nb\tc")).toBe("a\\u000ab\\u0009c");
    for (const character of ["\u0000", "\u009b", "\u202e", "\u{e0041}"]) {
      expect(JSON.parse(`"${escapeCharacter(character)}"`)).toBe(character);
    }
  });
});
