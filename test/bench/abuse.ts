/**
 * What hostile senders do to a server with the Express adapter: how much its memory grows, and how long good
 * deliveries take meanwhile, against their own time before in the same run. Beside it, the same done to Express alone:
 * what a sender does to any server of this kind. It prints, and asserts nothing.
 *
 * Server, good sender and hostile senders are three processes. The hostile ones stand back where they compete for a
 * processor, since in earnest they have machines of their own.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setPriority } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { connectEvent, createTestKeys, signConnectWebhook } from "@payhooks/core/testing";
import { PATHS } from "../e2e/merchant-server.ts";
import { exchange, type HeaderLines, request, Wire } from "../e2e/wire.ts";
import { pause } from "../faults/harness/scope.ts";
import { table } from "./table.ts";

const { values: options } = parseArgs({
  options: { seconds: { type: "string", default: "8" } },
  strict: false,
});
const SECONDS = Number(options.seconds);
const SECRET = "whsec_abuse_0123456789abcdef";
const env = {
  ...process.env,
  PAY_PUBLIC_KEY: createTestKeys().publicKey,
  CONNECT_WEBHOOK_SECRET: SECRET,
};

const TYPE: HeaderLines = [["Content-Type", "application/json"]];
const SIGNED: HeaderLines = [...TYPE, ["X-Connect-Signature", `sha256=${"0".repeat(64)}`]];

// Made beforehand: what they cost is the server's time, not ours.
const large = Buffer.alloc(1_000_000, " ");
const bomb = gzipSync(Buffer.alloc(10_000_000));
const stranger = Buffer.from(JSON.stringify(connectEvent()));
/** Of the right length: without one, nothing else would be looked at. */
const signature = `"signature":"${Buffer.alloc(256, 1).toString("base64")}"`;
const deep = Buffer.from(`{${signature},"a":${"[".repeat(30_000)}${"]".repeat(30_000)}}`);
/** Names that a weak hash takes for one another. */
const names = Array.from({ length: 3_000 }, (_, n) => {
  const pairs = n % 7;
  return `"${"Aa".repeat(pairs)}${"BB".repeat(6 - pairs)}${n}":1`;
});
const wide = Buffer.from(`{${signature},${names.join(",")}}`);
const FLOOD: HeaderLines = [...SIGNED, ...Array.from({ length: 400 }, (_, n) => [`X-${n}`, "y"] as const)];

type Abuse = (port: number) => Promise<unknown>;
const send =
  (path: string, body: Uint8Array, headers: HeaderLines = SIGNED): Abuse =>
  (port) =>
    exchange(port, request("POST", path, headers, body)).catch(() => null);
/** With a signature that is right: only the service itself, gone mad, can send these. */
const sendSigned = (body: Uint8Array): Abuse => {
  const { rawBody, headers } = signConnectWebhook(body, SECRET);
  return send(PATHS.connect, rawBody, Object.entries(headers));
};

/** One hostile sender's turn; resolves when the server is through with it. */
const ABUSES: Readonly<Record<string, Abuse>> = {
  "slow bodies": async (port) => {
    const wire = await Wire.open(port);
    await wire.write(request("POST", PATHS.connect, [...SIGNED, ["Content-Length", "1000"]]));
    await wire.write(Buffer.from("{"));
    await Promise.race([wire.answer().catch(() => null), pause(2_500)]);
    wire.destroy();
  },
  "oversized bodies": send(PATHS.connect, large),
  "compressed bodies": send(PATHS.connect, bomb, [...SIGNED, ["Content-Encoding", "gzip"]]),
  "deep JSON": send(PATHS.payments, deep, TYPE),
  "wide JSON, names alike": send(PATHS.payments, wide, TYPE),
  "header floods": send(PATHS.connect, Buffer.from("{}"), FLOOD),
  "wrong signatures": send(PATHS.connect, stranger),
  "deep JSON, signed": sendSigned(deep),
  "wide JSON, signed": sendSigned(wide),
};

interface Result {
  readonly turns: number;
  readonly grownMb: number;
  readonly p99: number;
  readonly factor: number;
  readonly refused: number;
}

const [payhooksServer, bareServer] = [child("abuse-server.ts", "payhooks"), child("abuse-server.ts", "bare")];
const good = child("abuse-good-sender.ts");
const [[payhooksPort], [barePort]] = (await Promise.all([
  once(payhooksServer, "message"),
  once(bareServer, "message"),
])) as [[number], [number]];
// After the others were started, which would inherit it.
setPriority(10);
const ours = await abuse(payhooksPort);
const bare = await abuse(barePort);
for (const process of [payhooksServer, bareServer, good]) process.disconnect();
const rows = [...ours].map(([name, { turns, grownMb, p99, factor, refused }]) => {
  const { p99: bareP99 = Number.NaN, factor: bareFactor = Number.NaN } = bare.get(name) ?? {};
  return [
    name,
    String(turns),
    String(refused),
    `${grownMb.toFixed(1)} MB`,
    `${p99.toFixed(2)} ms`,
    `× ${factor.toFixed(2)}`,
    `${bareP99.toFixed(2)} ms`,
    `× ${bareFactor.toFixed(2)}`,
  ];
});
const head = [
  "abuse",
  "turns",
  "good ones refused",
  "memory",
  "p99",
  "of its own",
  "Express alone: p99",
  "of its own",
];
console.log(table(head, rows));

function child(file: string, ...args: readonly string[]): ChildProcess {
  const execArgv = ["--expose-gc", "--import=tsx"];
  return fork(fileURLToPath(new URL(file, import.meta.url)), args, { env, execArgv });
}

/** Does everything to one server, and says what it did to it, by the name of the abuse; "alone" comes first. */
async function abuse(port: number): Promise<ReadonlyMap<string, Result>> {
  const goodTraffic = async (): Promise<{ p99: number; refused: number }> => {
    good.send({ port, seconds: SECONDS });
    const [result] = (await once(good, "message")) as [{ p99: number; refused: number }];
    return result;
  };
  const memory = async (): Promise<number> => {
    const { body } = await exchange(port, request("GET", "/memory", []));
    return (JSON.parse(body) as { bytes: number }).bytes / 1e6;
  };
  await goodTraffic(); // warm
  const alone = await goodTraffic();
  const atFirst = await memory();
  const idle = await Promise.all(Array.from({ length: 500 }, () => Wire.open(port)));
  const results = new Map<string, Result>([["alone", { turns: 0, grownMb: 0, factor: 1, ...alone }]]);
  for (const [name, turn] of [["500 idle sockets", null] as const, ...Object.entries(ABUSES)]) {
    let going = true;
    let turns = 0;
    const senders = Array.from({ length: turn === null ? 0 : 4 }, async (_, n) => {
      await pause(n * 5);
      while (going) {
        await turn?.(port);
        turns++;
        await pause(20);
      }
    });
    const { p99, refused } = await goodTraffic();
    going = false;
    await Promise.all(senders);
    const grownMb = (await memory()) - atFirst;
    results.set(name, { turns, grownMb, p99, factor: p99 / alone.p99, refused });
  }
  for (const wire of idle) wire.destroy();
  await pause(100);
  const grownMb = (await memory()) - atFirst;
  const after = await goodTraffic();
  results.set("after it", { turns: 0, grownMb, factor: after.p99 / alone.p99, ...after });
  return results;
}
