/**
 * What hostile senders do to a server with the Express adapter: how much its memory grows, and how long good
 * deliveries take meanwhile, against their own time before in the same run. It prints, and asserts nothing.
 */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { connectEvent, createTestKeys, signConnectWebhook } from "@payhooks/core/testing";
import { exchange, type HeaderLines, request, Wire } from "../e2e/wire.ts";

const { values: options } = parseArgs({
  options: { seconds: { type: "string", default: "8" } },
  strict: false,
});
const { publicKey } = createTestKeys();
const SECRET = "whsec_abuse_0123456789abcdef";
const PATH = "/webhooks/connect";
const SECONDS = Number(options.seconds);

const child = spawn(
  process.execPath,
  ["--expose-gc", "--import=tsx", fileURLToPath(new URL("abuse-server.ts", import.meta.url))],
  {
    env: { ...process.env, PAY_PUBLIC_KEY: publicKey, CONNECT_WEBHOOK_SECRET: SECRET },
    stdio: ["ignore", "pipe", "inherit"],
  },
);
const port = await new Promise<number>((resolve, reject) => {
  child.stdout.on("data", (text: Buffer) => {
    const found = /listening on (\d+)/.exec(text.toString());
    if (found !== null) resolve(Number(found[1]));
  });
  child.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
});

const TYPE: HeaderLines = [["Content-Type", "application/json"]];
const SIGNED: HeaderLines = [...TYPE, ["X-Connect-Signature", `sha256=${"0".repeat(64)}`]];
const send = (body: Uint8Array, headers: HeaderLines = SIGNED): Promise<unknown> =>
  exchange(port, request("POST", PATH, headers, body)).catch(() => null);

/** Signed by nobody, and large, or hard to read. */
const names = Array.from(
  { length: 4_000 },
  (_, n) => `"${"Aa".repeat(n % 7)}${"BB".repeat(6 - (n % 7))}${n}":1`,
);
const signed = (text: string): [Buffer, HeaderLines] => {
  const { rawBody, headers } = signConnectWebhook(Buffer.from(text), SECRET);
  return [Buffer.from(rawBody), Object.entries(headers)];
};
const [deep, deepHeaders] = signed(`{"a":${"[".repeat(30_000)}${"]".repeat(30_000)}}`);
const [wide, wideHeaders] = signed(
  `{${names
    .join(",")
    .slice(0, 60_000)
    .replace(/,[^,]*$/, "")}}`,
);

// Made beforehand: what they cost is the server's time, not ours.
const large = Buffer.alloc(1_000_000, " ");
const bomb = gzipSync(Buffer.alloc(10_000_000));
const stranger = Buffer.from(JSON.stringify(connectEvent()));

/** One hostile sender's turn; resolves when the server is through with it. */
const ABUSES: Readonly<Record<string, () => Promise<unknown>>> = {
  "slow bodies": async () => {
    const wire = await Wire.open(port);
    await wire.write(request("POST", PATH, [...SIGNED, ["Content-Length", "1000"]]));
    await wire.write(Buffer.from("{"));
    await wire.answer().catch(() => null);
    await wire.closed;
  },
  "oversized bodies": () => send(large),
  "compressed bodies": () => send(bomb, [...SIGNED, ["Content-Encoding", "gzip"]]),
  "deep JSON": () => send(deep, deepHeaders),
  "wide JSON, names alike": () => send(wide, wideHeaders),
  "header floods": () =>
    send(Buffer.from("{}"), [...SIGNED, ...Array.from({ length: 400 }, (_, n) => [`X-${n}`, "y"] as const)]),
  "wrong signatures": () => send(stranger),
};

async function memory(): Promise<number> {
  const { body } = await exchange(port, request("GET", "/memory", []));
  return (JSON.parse(body) as { bytes: number }).bytes;
}

/** The 99th percentile of good deliveries, one after the other, for some seconds. */
async function goodTraffic(): Promise<{ p99: number; refused: number }> {
  const times: number[] = [];
  let refused = 0;
  const wire = await Wire.open(port);
  for (const end = performance.now() + SECONDS * 1_000; performance.now() < end; ) {
    const { rawBody, headers } = signConnectWebhook(connectEvent(), SECRET);
    const from = performance.now();
    await wire.write(request("POST", PATH, Object.entries(headers), rawBody));
    const { status } = await wire.answer();
    times.push(performance.now() - from);
    if (status !== 200) refused++;
  }
  wire.destroy();
  times.sort((a, b) => a - b);
  return { p99: times[Math.floor(times.length * 0.99)] ?? Number.NaN, refused };
}

await goodTraffic(); // warm
const before = await goodTraffic();
const atFirst = await memory();
const idle = await Promise.all(Array.from({ length: 500 }, () => Wire.open(port)));
console.log(`good traffic alone: p99 ${before.p99.toFixed(2)} ms; 500 idle sockets stay open meanwhile`);
console.log(
  `${"abuse".padEnd(26)}${"turns".padStart(8)}${"memory".padStart(12)}${"p99".padStart(12)}   against alone`,
);
for (const [name, turn] of Object.entries(ABUSES)) {
  let going = true;
  let turns = 0;
  const senders = Array.from({ length: 4 }, async () => {
    while (going) {
      await turn();
      turns++;
      // As an attacker with one slow line each would: the processor of this machine serves both sides.
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  });
  const { p99, refused } = await goodTraffic();
  going = false;
  await Promise.all(senders);
  const grown = ((await memory()) - atFirst) / 1e6;
  const factor = (p99 / before.p99).toFixed(2);
  const lost = refused === 0 ? "" : `, ${refused} good ones refused`;
  console.log(
    `${name.padEnd(26)}${String(turns).padStart(8)}${`${grown.toFixed(1)} MB`.padStart(12)}${`${p99.toFixed(2)} ms`.padStart(12)}   × ${factor}${lost}`,
  );
}
for (const wire of idle) wire.destroy();
console.log(`memory at the end: ${(((await memory()) - atFirst) / 1e6).toFixed(1)} MB more than before`);
child.kill();
